"""Which bytes of a payload must not be shown: those of the fields that are redacted in its JSON.

For views of raw bytes. Where a secret is in bytes that were not decoded, all of these are hidden;
where it is in a record, the records of the whole batch are, as they may be compressed.
"""

from __future__ import annotations

from collections.abc import Iterator

from kraftwire.decode.body.findings import json_path
from kraftwire.decode.body.payload_view import PayloadView, records_starts
from kraftwire.decode.body.records import METADATA
from kraftwire.decode.body.secrets import has_secret_records, holds_secrets
from kraftwire.errors import WireError
from kraftwire.records.header import HEADER_SIZE
from kraftwire.records.messages import family_of_topic
from kraftwire.records.reader import BatchReader
from kraftwire.wire.reader import Annotation

__all__ = ["ByteRange", "hidden_ranges", "secret_ranges"]

ByteRange = tuple[int, int]


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
    """The records of batches that hold secrets; in the metadata log also what cannot be read."""
    if not view.has_records:
        return
    fields = [(each, getattr(each.where.holder, each.where.attribute)) for each in view.batches]
    found = [(each, list(secret_ranges(data, each.topic))) for each, data in fields if data]
    if not any(ranges for _, ranges in found):
        return
    starts = records_starts(view.part.root)
    for each, ranges in found:
        start = starts.get(each.where.path, 0)
        for low, high in ranges:
            yield start + low, start + high


def secret_ranges(data: memoryview | bytes, topic: str | None) -> Iterator[ByteRange]:
    """The ranges to hide in the records of a topic, None if its name is unknown."""
    family = None if topic is None else family_of_topic(topic)
    # Records of a topic without a known name may be those of the metadata log.
    is_metadata = topic is None or family == METADATA
    reader = BatchReader(data)
    while True:
        try:
            for batch in reader:
                if has_secret_records(batch, family, is_metadata=is_metadata):
                    yield batch.position + HEADER_SIZE, batch.position + batch.size
            break
        except WireError:
            # Half a batch at the start of a slice may hold anything.
            start = reader.position
            end = start + reader.resume()
            if is_metadata:
                yield start, end
    if reader.remaining and is_metadata:
        yield reader.position, len(data)
