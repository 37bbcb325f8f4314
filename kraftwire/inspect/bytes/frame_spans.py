"""Divides a frame into the byte ranges of its fields: header, body, batches and records.

Owns the spans that the byte view of captures prints: they follow each other and cover the frame.
Bytes that cannot be decoded are one span, and so are bytes that must not be shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from kraftwire.decode.body.bodies import Part
from kraftwire.decode.body.capture_context import TopicNames
from kraftwire.decode.body.findings import json_path
from kraftwire.decode.body.frame import DecodedFrame
from kraftwire.decode.body.hidden_ranges import ByteRange
from kraftwire.decode.body.layouts import Span, spans
from kraftwire.decode.body.lazy import lazy
from kraftwire.decode.body.secrets import REDACTED
from kraftwire.decode.files.kinds import FileKind
from kraftwire.decode.files.report import FileLine
from kraftwire.errors import WireError
from kraftwire.inspect.bytes.file_spans import line_spans
from kraftwire.inspect.values import raw_value_text
from kraftwire.records.messages import family_of_topic
from kraftwire.records.reader import BatchReader
from kraftwire.wire.reader import Annotation, annotate

__all__ = ["frame_spans", "span_text"]

_PREFIX_SIZE = 4
# Children of an annotation that are not fields.
_MARKERS = frozenset({"length", "present", "size", "tag", "tagged fields"})
_TAGGED_FIELDS = "taggedFields"
_UVARINT = "unsigned varint"


def frame_spans(decoded: DecodedFrame, topics: TopicNames) -> Iterator[Span]:
    """Yield the spans of a frame.

    Positions count from the byte after the frame's length, which itself is [-4, 0). Values are
    texts. Secrets are hidden as `decoded.hidden_ranges` says.
    """
    frame = decoded.frame
    size = Span("size", -_PREFIX_SIZE, 0, str(frame.size))
    if decoded.is_token:
        found: Iterable[Span] = [Span("token", 0, len(frame.data), "")]
    else:
        found = _Payload(decoded, topics).spans()
    hidden = decoded.hidden_ranges
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


class _Payload:
    """Divides one payload into spans."""

    def __init__(self, decoded: DecodedFrame, topics: TopicNames) -> None:
        self._decoded = decoded
        self._topics = topics
        self._payload = decoded.payload
        self._data = decoded.payload.data

    @lazy
    def _families(self) -> dict[str, str | None]:
        return {each.where.path: _family(each.topic) for each in self._decoded.batches}

    def _header(self) -> Iterator[Span]:
        payload = self._payload
        version = payload.header_version
        yield from _header_spans(self._data, payload.is_request, version, self._topics)

    def _rest(self, position: int) -> Iterator[Span]:
        if position < len(self._data):
            yield Span("not decoded", position, len(self._data), "")

    def spans(self) -> Iterator[Span]:
        """Yield the spans of the payload, up to the first field that was not read."""
        position = 0
        for span in self._known():
            yield span
            position = span.end
        yield from self._rest(position)

    def _known(self) -> Iterator[Span]:
        payload = self._payload
        if payload.header is None:
            return
        yield from self._header()
        if payload.body_class is None:
            return
        part = self._part()
        for field in part.root.children:
            for span in self._leaves(field):
                if span.end > part.end:
                    return
                yield span

    def _part(self) -> Part:
        """Return the annotations of the body: all of them, if the body is small enough to show."""
        payload, part = self._payload, self._decoded.view.part
        if payload.body is None or part.is_read(part.root):
            return part
        facts, version = type(payload.body).facts(), payload.body_version
        root, end = annotate(facts, self._data, version, payload.header_end)
        return Part(root, end)

    def _leaves(self, node: Annotation) -> Iterator[Span]:
        """Yield the innermost fields of a node; the only child of a text is its length."""
        position = node.start
        for child in node.children:
            yield from self._leaves(child)
            position = child.end
        if position >= node.end:
            return  # also if a field was not read to its end: its end is 0
        if node.type == "records":
            yield from self._batches(_path(node), position, node.end)
        else:
            yield Span(_path(node), position, node.end, self._value(node))

    def _value(self, node: Annotation) -> str:
        if node.name == "length" and node.type == _UVARINT:
            return _compact_length(node.value)
        name = "" if node.name in _MARKERS else node.name
        return raw_value_text(name, node.type, node.value, self._topics)

    def _batches(self, path: str, start: int, end: int) -> Iterator[Span]:
        """Yield the spans of the batches in a field of type records."""
        family = self._families.get(path)
        yield from _batch_spans(self._data, path, (start, end), family, self._topics)


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
