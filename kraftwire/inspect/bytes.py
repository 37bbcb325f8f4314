"""The byte view: every field of a frame or line of a file with its range, bytes and value.

Owns the spans, which follow each other and cover the frame or line, and their annotated hex dump.
Bytes that cannot be decoded are one span, and so are bytes that must not be shown and compressed
records, whose bytes in the file are not those of the records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from kraftwire.decode.body.bodies import ByteRange, Part
from kraftwire.decode.body.context import TopicNames
from kraftwire.decode.body.findings import json_path
from kraftwire.decode.body.frame import Frame, lazy
from kraftwire.decode.body.hidden_bytes import hidden_ranges
from kraftwire.decode.body.layouts import Span, spans
from kraftwire.decode.body.secrets import REDACTED, has_secret_records
from kraftwire.decode.files.kinds import FileKind
from kraftwire.decode.files.report import FileLine
from kraftwire.decode.limits import ANNOTATIONS_MAX
from kraftwire.decode.text import DIM, paint
from kraftwire.errors import WireError
from kraftwire.inspect.exchange_blocks import ExchangeWriter
from kraftwire.inspect.tree import batch_text
from kraftwire.inspect.values import raw_value_text
from kraftwire.printable import printable
from kraftwire.records.header import HEADER_SIZE
from kraftwire.records.json_form import decode_record
from kraftwire.records.messages import Decoded, family_of_topic
from kraftwire.records.reader import Batch, BatchReader
from kraftwire.records.record import Record
from kraftwire.wire.message import Message
from kraftwire.wire.reader import Annotation, PartialError, annotate

_PREFIX_SIZE = 4
# Children of an annotation that are not fields.
_MARKERS = frozenset({"length", "present", "size", "tag", "tagged fields"})
_TAGGED_FIELDS = "taggedFields"
_UVARINT = "unsigned varint"

_ENTRY_LAYOUTS = {
    FileKind.OFFSET_INDEX: "offset index entry",
    FileKind.TIME_INDEX: "time index entry",
    FileKind.TXN_INDEX: "transaction index entry",
}
_ROW = 8
_ROWS_SHOWN = 32
_HEX_WIDTH = _ROW * 3 - 1
_HIDDEN_BYTE = "**"

# Data up to this size is turned into text at once, not span by span.
_AT_ONCE_MAX = 64 * 1024

# Bytes as text, with a dot for each byte that is not a printable ASCII character.
_SHOWN = bytes(each if 0x20 <= each < 0x7F else ord(".") for each in range(256))


def frame_spans(frame: Frame, topics: TopicNames) -> Iterator[Span]:
    """Yield the spans of a frame.

    Positions count from the byte after the frame's length, which itself is [-4, 0). Values are
    texts. Secrets are hidden as `hidden_ranges` says.
    """
    size = Span("size", -_PREFIX_SIZE, 0, str(frame.size))
    if frame.is_token:
        found: Iterable[Span] = [Span("token", 0, len(frame.data), "")]
    else:
        found = _FrameSpans(frame, topics).spans()
    hidden = hidden_ranges(frame)
    if not hidden:
        return chain((size,), found)
    return chain((size,), (_hide(span, hidden) for span in found))


def _hide(span: Span, hidden: list[ByteRange]) -> Span:
    is_hidden = any(start < span.end and span.start < end for start, end in hidden)
    return span._replace(value=REDACTED, is_hidden=True) if is_hidden else span


def _compact_length(value: int) -> str:
    """Describe a compact length: 0 stands for null, others are one more than the length."""
    return f"{value} ({value - 1 if value else 'null'})"


def span_text(span: Span, topics: TopicNames) -> str:
    """Return the text of the value of a span of a fixed layout or a file."""
    name = span.path.removesuffix(".value").rpartition(".")[2]
    return raw_value_text(name, "", span.value, topics)


class _FrameSpans:
    """Divides a frame into spans."""

    def __init__(self, frame: Frame, topics: TopicNames) -> None:
        self._frame = frame
        self._topics = topics
        self._data = frame.payload.data

    @lazy
    def _families(self) -> dict[str, str | None]:
        return {each.where.path: _family(each.topic) for each in self._frame.batches}

    def spans(self) -> Iterator[Span]:
        """Yield the spans of the frame, up to the first field that was not read."""
        position = 0
        for span in self._known():
            yield span
            position = span.end
        if position < len(self._data):
            yield Span("not decoded", position, len(self._data), "")

    def _known(self) -> Iterator[Span]:
        payload = self._frame.payload
        if payload.header is None:
            return
        version = payload.header_version
        yield from _header_spans(self._data, payload.is_request, version, self._topics)
        if payload.body_class is None:
            return
        part = self._part()
        leaves = chain.from_iterable(map(_leaves, part.root.children))
        for start, end, node in leaves:
            for span in self._of_leaf(start, end, node):
                if span.end > part.end:
                    return
                yield span

    def _part(self) -> Part:
        """Return the annotations of the body: all of them, if the body is small enough to show."""
        payload, part = self._frame.payload, self._frame.part
        if payload.body is None or part.is_read(part.root):
            return part
        facts, version = type(payload.body).facts(), payload.body_version
        root, end = annotate(facts, self._data, version, payload.header_end)
        return Part(root, end)

    def _of_leaf(self, start: int, end: int, node: Annotation) -> Iterator[Span]:
        path = _path(node)
        if node.type == "records":
            family = self._families.get(path)
            yield from _batch_spans(self._data, path, (start, end), family, self._topics)
        else:
            yield Span(path, start, end, self._value(node))

    def _value(self, node: Annotation) -> str:
        if node.name == "length" and node.type == _UVARINT:
            return _compact_length(node.value)
        name = "" if node.name in _MARKERS else node.name
        return raw_value_text(name, node.type, node.value, self._topics)


def _leaves(node: Annotation) -> Iterator[tuple[int, int, Annotation]]:
    """Yield the innermost fields of a node and where they are; the only child of a text is its
    length, and the rest is its own."""
    position = node.start
    for child in node.children:
        yield from _leaves(child)
        position = child.end
    if position < node.end:  # the end of a field that was not read is 0
        yield position, node.end, node


def _header_spans(
    data: bytes, is_request: bool, version: int, topics: TopicNames
) -> Iterator[Span]:
    side = "request" if is_request else "response"
    for span in spans(f"{side} header v{version}", data):
        yield span._replace(value=span_text(span, topics))


def _family(topic: str | None) -> str | None:
    return family_of_topic(topic) if topic else None


def _batch_spans(
    data: bytes, path: str, place: ByteRange, family: str | None, topics: TopicNames
) -> Iterator[Span]:
    """Yield the spans of the batches in a field of type records; `place` is its range in `data`."""
    start, end = place
    reader = BatchReader(data[start:end])
    index = 0
    while True:
        try:
            for batch in reader:
                line = FileLine(
                    FileKind.LOG, start + batch.position, {}, batch.raw, batch, family
                )
                for span in line_spans(line):
                    inner = f"{path}[{index}].{span.path}"
                    yield span._replace(path=inner, value=span_text(span, topics))
                index += 1
            break
        except WireError as error:
            damaged = start + reader.position
            resumed = damaged + reader.resume()
            yield Span(f"{path}[{index}]", damaged, resumed, error.problem)
    if reader.remaining:
        cut = start + reader.position
        yield Span(f"{path}[{index}]", cut, end, "part of a batch")


def _path(node: Annotation) -> str:
    """Return the path of a field; for a length or a tag, the field's path and its own name."""
    path = json_path(node.path)
    if node.name not in _MARKERS or path.rpartition(".")[2] == node.name:
        outer, dot, last = path.rpartition(".")
        # Take the name in the schema, as the path has the name of the Python attribute.
        return path if "[" in last else f"{outer}{dot}{node.name}"
    name = _TAGGED_FIELDS if node.name == "tagged fields" else node.name
    return f"{path}.{name}" if path else name


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
        for leaf in _spans_of(root):
            yield leaf
            position = leaf.end
        yield Span("rest", position, len(data), error.problem)
        return
    yield from _spans_of(root)


def _spans_of(root: Annotation) -> Iterator[Span]:
    return (Span(_path(node), start, end, node.value) for start, end, node in _leaves(root))


class BytesWriter(ExchangeWriter):
    """Writes the bytes of requests and responses, and of lines of files."""

    def frame_lines(self, frame: Frame) -> Iterator[str]:
        """Yield the lines of the frame, from its length prefix to its last byte."""
        data = frame.size.to_bytes(4, "big", signed=True) + frame.data
        found = frame_spans(frame, self._topics)
        return self._lines(found, data, -4, "    ")

    def file_lines(self, line: FileLine) -> Iterator[str]:
        """Yield the lines of a file's line; positions count from the start of the file."""
        what = batch_text(line.json) if line.batch is not None else ""
        yield f"{line.json['file']}  {what}".rstrip()
        found = (
            each._replace(value=span_text(each, self._topics)) for each in line_spans(line)
        )
        yield from self._lines(found, bytes(line.data), line.position, "  ")
        yield ""

    def _lines(self, found: Iterable[Span], data: bytes, start: int, indent: str) -> Iterator[str]:
        lines = hexdump(found, data, start, is_full=self._is_full, indent=indent)
        # Without colours, the whole output is escaped later.
        return map(self._painted, lines) if self._is_coloured else lines

    def _painted(self, line: str) -> str:
        place, bar, rest = line.partition(")")
        return paint(place + bar, DIM, is_wanted=True) + printable(rest)


def hexdump(
    found: Iterable[Span], data: bytes, start: int = 0, *, is_full: bool = False, indent: str = ""
) -> Iterator[str]:
    """Yield the lines of spans: range, bytes in hex and as text, path and value.

    `start` is the position of the first byte of `data`. Long fields are cut unless `is_full`.
    """
    width = max(len(str(start)), len(str(start + len(data))))
    line = f"{indent}[%{width}d, %{width}d)  %-{_HEX_WIDTH}s  %-{_ROW}s  %s"
    is_small = len(data) <= _AT_ONCE_MAX
    hexes, texts = _columns(data) if is_small else ("", "")
    for path, low, high, value, is_hidden in found:
        text = path if value == "" else f"{path} = {value}"
        is_short = high - low <= _ROW
        at, end = low - start, (high if is_short else low + _ROW) - start
        if is_hidden:
            yield line % (low, high, _hidden(data[at:end]), "*" * (end - at), text)
        elif is_small:
            yield line % (low, high, hexes[3 * at : 3 * end - 1], texts[at:end], text)
        else:
            yield line % (low, high, *_columns(data[at:end]), text)
        if not is_short:
            span = Span(path, low, high, value, is_hidden)
            yield from _more(span, data[low - start : high - start], width, is_full, indent)


def _more(span: Span, data: bytes, width: int, is_full: bool, indent: str) -> Iterator[str]:
    """Yield the lines of a long field after the first."""
    place = indent + " " * (2 * width + 4)
    rows = range(0, len(data), _ROW)
    shown = rows if is_full or len(rows) <= _ROWS_SHOWN else rows[:_ROWS_SHOWN]
    for row in shown[1:]:
        piece = data[row : row + _ROW]
        if span.is_hidden:
            hex_text, text = _hidden(piece), "*" * len(piece)
        else:
            hex_text, text = _columns(piece)
        yield f"{place}  {hex_text:{_HEX_WIDTH}}  {text:{_ROW}}"
    if len(shown) < len(rows):
        rest = len(data) - len(shown) * _ROW
        yield f"{place}  ... {rest:,} bytes more, -v shows all"


def _columns(data: bytes) -> tuple[str, str]:
    """Return bytes in hex and as text."""
    return data.hex(" "), data.translate(_SHOWN).decode("ascii")


def _hidden(data: bytes) -> str:
    return " ".join([_HIDDEN_BYTE] * len(data))
