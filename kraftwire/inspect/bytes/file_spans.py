"""Divides a batch, an index entry or a state file into the byte ranges of its fields.

Goes down into the messages inside control, metadata and coordinator records. Compressed records
are one field: their bytes in the file are not those of the records.
"""

from __future__ import annotations

from collections.abc import Iterator

from kraftwire.capture.limits import ANNOTATIONS_MAX
from kraftwire.decode.body.findings import json_path
from kraftwire.decode.body.layouts import Span, spans
from kraftwire.decode.body.secrets import REDACTED, has_secret_records
from kraftwire.decode.files.kinds import FileKind
from kraftwire.decode.files.report import FileLine
from kraftwire.errors import WireError
from kraftwire.records.header import HEADER_SIZE
from kraftwire.records.json_form import decode_record
from kraftwire.records.messages import Decoded
from kraftwire.records.reader import Batch
from kraftwire.records.record import Record
from kraftwire.wire.message import Message
from kraftwire.wire.reader import Annotation, PartialError, annotate

__all__ = ["line_spans"]

_ENTRY_LAYOUTS = {
    FileKind.OFFSET_INDEX: "offset index entry",
    FileKind.TIME_INDEX: "time index entry",
    FileKind.TXN_INDEX: "transaction index entry",
}


def line_spans(line: FileLine) -> Iterator[Span]:
    """The fields of a line and the bytes [start, end) of the file that hold them, in order.

    The spans cover the line's bytes without a gap. What cannot be taken apart is one span
    whose value says why.
    """
    data = bytes(line.data)
    if line.batch is not None:
        found = _batch(line, line.batch, data)
    elif line.kind is FileKind.PRODUCER_SNAPSHOT:
        found = _producers(data)
    elif line.kind in _ENTRY_LAYOUTS:
        found = iter(spans(_ENTRY_LAYOUTS[line.kind], data))
    elif line.hides_records:
        found = iter([Span("content", 0, len(data), REDACTED, is_hidden=True)])
    else:
        found = iter([Span("content", 0, len(data), data.decode("utf-8", "replace"))])
    for span in found:
        yield _moved(span, line.position, "")


def _moved(span: Span, by: int, prefix: str) -> Span:
    path = f"{prefix}.{span.path}" if prefix else span.path
    return Span(path, span.start + by, span.end + by, span.value, span.is_hidden)


def _producers(data: bytes) -> Iterator[Span]:
    head = spans("producer snapshot", data)
    yield from head
    position, end = head[-1].end, len(data)
    index = 0
    while position < end:
        try:
            entry = spans("producer snapshot entry", data, position)
        except WireError as error:
            yield Span("rest", position, end, error.problem)
            return
        for span in entry:
            yield _moved(span, 0, f"producerEntries[{index}]")
        position, index = entry[-1].end, index + 1


def _batch(line: FileLine, batch: Batch, data: bytes) -> Iterator[Span]:
    if batch.magic < 2:
        yield from _covering(spans(f"message v{batch.magic}", data), len(data))
        return
    yield from spans("record batch", data)
    if line.hides_records or (line.may_hide_records and _has_secrets(line, batch)):
        yield Span("records", HEADER_SIZE, len(data), REDACTED, is_hidden=True)
    elif batch.codec:
        yield Span("records", HEADER_SIZE, len(data), f"{batch.count} in {batch.compression}")
    elif len(data) > HEADER_SIZE:
        yield from _records(line, batch, data)


def _has_secrets(line: FileLine, batch: Batch) -> bool:
    return has_secret_records(batch, line.family, is_metadata=line.family is None)


def _covering(found: list[Span], end: int) -> Iterator[Span]:
    yield from found
    if found[-1].end < end:
        yield Span("rest", found[-1].end, end, "bytes after the last field")


def _records(line: FileLine, batch: Batch, data: bytes) -> Iterator[Span]:
    rows = batch.iter_salvage()
    position = HEADER_SIZE
    problem = "not readable"
    for index, row in enumerate(rows):
        try:
            fields = spans("record", data, position)
        except WireError as error:
            problem = error.problem
            break
        decoded = _decoded(row, line.family, is_control=batch.is_control)
        for span in fields:
            for inner in _inside(span, row, decoded):
                yield _moved(inner, 0, f"records[{index}]")
        position = fields[-1].end
    if position < len(data):
        yield Span("records", position, len(data), problem)


def _decoded(row: Record, family: str | None, *, is_control: bool) -> Decoded | None:
    try:
        return decode_record(row, family, is_control=is_control)
    except WireError:
        return None


def _inside(span: Span, row: Record, decoded: Decoded | None) -> Iterator[Span]:
    """A field of a record, or in its place the fields of the message that it holds."""
    if decoded is None or span.path not in ("key.value", "value.value"):
        yield span
        return
    if span.path == "value.value":
        found = _value(row.value or b"", decoded)
    else:
        found = _key(row.key or b"", decoded)
    for inner in found:
        yield _moved(inner, span.start, span.path.removesuffix(".value"))


def _key(data: bytes, decoded: Decoded) -> Iterator[Span]:
    if decoded.key is None:
        yield from _covering(spans("control record key", data), len(data))
        return
    head = spans("coordinator record key", data)
    yield from head
    yield from _message(decoded.key, decoded.key.VERSIONS.high, data, head[-1].end)


def _value(data: bytes, decoded: Decoded) -> Iterator[Span]:
    if decoded.message is None or decoded.version is None:
        return
    head: list[Span] = []
    if decoded.key is not None:
        head = spans("coordinator record value", data)
    elif decoded.control_type is None:
        head = spans("metadata record", data)
    elif decoded.type == "EndTxnMarker":
        head = spans("end transaction marker", data)[:1]
    yield from head
    start = head[-1].end if head else 0
    yield from _message(decoded.message, decoded.version, data, start)


def _message(message: Message, version: int, data: bytes, start: int) -> Iterator[Span]:
    try:
        root, _ = annotate(message.facts(), data, version, start, most=ANNOTATIONS_MAX)
    except PartialError as error:
        root, position = error.partial, start
        for leaf in _leaves(root):
            yield leaf
            position = leaf.end
        yield Span("rest", position, len(data), error.problem)
        return
    yield from _leaves(root)


def _leaves(node: Annotation) -> Iterator[Span]:
    """The innermost fields; a text's children are its length only, so the rest is its own."""
    position = node.start
    for child in node.children:
        yield from _leaves(child)
        position = child.end
    if position < node.end:
        yield Span(_path(node), position, node.end, node.value)


def _path(node: Annotation) -> str:
    """The field's path; what is no field (a length, a tag) has its own name after it."""
    path = json_path(node.path)
    if node.name.startswith("[") or path.rpartition(".")[2].partition("[")[0] == node.name:
        return path
    name = "taggedFields" if node.name == "tagged fields" else node.name
    return f"{path}.{name}" if path else name
