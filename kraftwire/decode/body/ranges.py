"""Which bytes of a payload must not be shown: those of the fields that are redacted in its JSON.

For views of raw bytes. Where a secret lies in bytes that were not decoded, all of these are hidden;
where it lies in a record, the records of the whole batch are, as they may be compressed.
"""

from __future__ import annotations

from collections.abc import Iterator

from kraftwire.decode.body.findings import json_path
from kraftwire.decode.body.redact import holds_secrets, redact_batch
from kraftwire.decode.body.view import PayloadView, records_starts
from kraftwire.decode.limits import JSON_ROWS_FREE
from kraftwire.errors import WireError
from kraftwire.records.header import HEADER_SIZE
from kraftwire.records.json_form import batch_to_json
from kraftwire.records.reader import BatchReader
from kraftwire.wire.reader import Annotation

__all__ = ["ByteRange", "hidden_ranges"]

ByteRange = tuple[int, int]

_METADATA = "metadata"


def hidden_ranges(view: PayloadView) -> list[ByteRange]:
    """The ranges [start, end) of a payload to hide, in order; none if secrets are shown."""
    payload = view.payload
    if view.settings.show_secrets:
        return []
    if payload.body is None:
        start = payload.header_end
        return [(start, len(payload.data))] if view.hides_bytes else []
    ranges = list(_records(view))
    paths = set(view.secret_paths)
    if paths:
        ranges += _nodes(view.part.root, paths)
    if holds_secrets(payload.name) and payload.end < len(payload.data):
        ranges.append((payload.end, len(payload.data)))
    return sorted(ranges)


def _nodes(root: Annotation, paths: set[str]) -> Iterator[ByteRange]:
    """The bytes of the fields at some paths of the JSON form."""
    stack = [root]
    while stack:
        node = stack.pop()
        if json_path(node.path) in paths:
            yield node.start, node.end
        else:
            stack += node.children


def _records(view: PayloadView) -> Iterator[ByteRange]:
    """The records of batches of the metadata log that hold secrets, or cannot be read."""
    fields = [each for each in view.batches if each.is_metadata]
    if not fields:
        return
    starts = records_starts(view.part.root)
    for each in fields:
        data = getattr(each.where.holder, each.where.attribute)
        if data:
            start = starts.get(each.where.path, 0)
            for low, high in _batches(data):
                yield start + low, start + high


def _batches(data: memoryview) -> Iterator[ByteRange]:
    reader = BatchReader(data)
    while True:
        try:
            for batch in reader:
                json, problems = batch_to_json(batch, family=_METADATA, rows_max=JSON_ROWS_FREE)
                if redact_batch(json, is_metadata=True) or problems:
                    yield batch.position + HEADER_SIZE, batch.position + batch.size
            break
        except WireError:
            # Half a batch at the start of a slice may hold anything.
            start = reader.position
            yield start, start + reader.resume()
    if reader.remaining:
        yield reader.position, len(data)
