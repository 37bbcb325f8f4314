"""The bytes of a frame, field by field: header, body, the batches in it and their records.

Owns the spans that the byte view of captures prints: they follow each other and cover the frame.
Bytes that cannot be decoded are one span, and so are bytes that must not be shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from itertools import chain
from typing import Any

from kraftwire.capture.framing.frames import Frame
from kraftwire.decode.body.findings import json_path
from kraftwire.decode.body.frame import DecodedFrame
from kraftwire.decode.body.hidden_ranges import ByteRange, secret_ranges
from kraftwire.decode.body.layouts import Span, spans
from kraftwire.decode.body.lazy import lazy
from kraftwire.decode.body.quick import find_way
from kraftwire.decode.body.redact import REDACTED
from kraftwire.decode.body.scan import RecordsField, records_fields
from kraftwire.decode.body.sound import body_start
from kraftwire.decode.body.topics import TopicNames
from kraftwire.decode.body.walk import FieldWalk
from kraftwire.decode.files.kinds import FileKind
from kraftwire.decode.files.report import FileLine
from kraftwire.errors import WireError
from kraftwire.inspect.bytes.file_spans import line_spans
from kraftwire.inspect.values import raw_value_text
from kraftwire.protocol.versions import request_header_version, response_header_version
from kraftwire.records.decoded import family_of_topic
from kraftwire.records.reader import BatchReader
from kraftwire.wire.reader import Annotation

__all__ = ["FrameSpans", "span_text"]

_PREFIX_SIZE = 4
# Children of an annotation that are not fields.
_MARKERS = frozenset({"length", "present", "size", "tag", "tagged fields"})
_TAGGED_FIELDS = "taggedFields"
_UVARINT = "unsigned varint"
# Types whose values are short and often repeat, and how many texts of a field are kept.
_NUMBERS = frozenset({"bool", "int8", "int16", "int32", "int64", "uint16", _UVARINT})
_KEPT_MAX = 500
# Limits on the kept spans of records, which repeat when several followers fetch them.
_KEPT_BATCHES_MAX = 100
_KEPT_BATCHES_SIZE = 1000


class FrameSpans:
    """Divides frames into spans; plans for their bodies are kept."""

    def __init__(self, topics: TopicNames) -> None:
        self._topics = topics
        self._walk = FieldWalk(self._show)
        self._headers: dict[tuple[bool, bytes], list[Span]] = {}
        self._batches: dict[tuple[str, int, str | None, bytes], list[Span]] = {}

    def spans(self, decoded: DecodedFrame) -> Iterator[Span]:
        """Yield the spans of a frame.

        Positions count from the byte after the frame's length, which itself is [-4, 0). Values are
        texts. Secrets are hidden as `decoded.hidden_ranges` says.
        """
        frame = decoded.frame
        size = Span("size", -_PREFIX_SIZE, 0, str(frame.size))
        if decoded.is_token:
            found: Iterable[Span] = [Span("token", 0, len(frame.data), "")]
        else:
            found = _Payload(decoded, self._topics, self._walk).spans()
        hidden = decoded.hidden_ranges
        if not hidden:
            return chain((size,), found)
        return chain((size,), (_hide(span, hidden) for span in found))

    def sound_spans(self, frame: Frame, *, show_secrets: bool) -> list[Span] | None:
        """Return the spans of an ordinary frame whose body is sound and has no findings.

        The spans are those of `spans`; None if the frame takes the slow path.
        """
        key = frame.api_key, frame.api_version
        way = find_way(frame.is_request, *key)
        if way is None or frame.api_version is None:
            return None
        cls, has_tags = way
        data, version = frame.data, frame.api_version
        start = body_start(data, is_request=frame.is_request, has_tags=has_tags)
        body = self._walk.spans(cls, version, data, start)
        if body is None or (body[-1].end if body else start) != len(data):
            return None
        found = [Span("size", -_PREFIX_SIZE, 0, str(frame.size)), *self._header(frame, start)]
        if not any(each.value is None for each in body):
            return found + body
        message, _ = cls.decode(data, version, start)
        names = _names(records_fields(message, version), self._topics)
        for span in body:
            if span.value is not None:
                found.append(span)
            else:
                found += self._sound_batches(data, span, names.get(span.path), show_secrets)
        return found

    def _sound_batches(
        self, data: bytes, span: Span, topic: str | None, show_secrets: bool
    ) -> list[Span]:
        """Return the spans of the batches in a field; those of short fields are kept."""
        path, start, end = span.path, span.start, span.end
        records = data[start:end]
        key = path, start, topic, records
        found = self._batches.get(key)
        if found is None:
            family = _family(topic)
            found = list(_batch_spans(data, path, (start, end), family, self._topics))
            if not show_secrets:
                secret = secret_ranges(records, topic)
                hidden = [(start + low, start + high) for low, high in secret]
                found = [_hide(each, hidden) for each in found] if hidden else found
            if len(records) <= _KEPT_BATCHES_SIZE:
                if len(self._batches) >= _KEPT_BATCHES_MAX:
                    self._batches.clear()
                self._batches[key] = found
        return found

    def _header(self, frame: Frame, end: int) -> list[Span]:
        """Return the spans of a header; they are kept, as only the correlation id changes."""
        data, is_request = frame.data, frame.is_request
        fixed = data[:4] + data[8:end] if is_request else data[4:end]
        key = is_request, fixed
        found = self._headers.get(key)
        if found is None:
            found = list(_header_spans(data, is_request, self._header_version(frame), self._topics))
            if len(self._headers) >= _KEPT_MAX:
                self._headers.clear()
            self._headers[key] = found
        at = 2 if is_request else 0
        here = found[at]._replace(value=str(frame.correlation_id))
        return [*found[:at], here, *found[at + 1 :]]

    def _header_version(self, frame: Frame) -> int:
        find = request_header_version if frame.is_request else response_header_version
        assert frame.api_key is not None
        assert frame.api_version is not None
        return find(frame.api_key, frame.api_version)

    def _show(self, name: str, type_name: str) -> Callable[[Any], str]:
        """Return a function that makes the text of a field's value; short texts are kept."""
        if type_name == _UVARINT and name:
            return lru_cache(_KEPT_MAX)(_compact_length)
        show = partial(self._text, name, type_name)
        return lru_cache(_KEPT_MAX)(show) if type_name in _NUMBERS else show

    def _text(self, name: str, type_name: str, value: Any) -> str:
        return raw_value_text(name, type_name, value, self._topics)


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

    def __init__(self, decoded: DecodedFrame, topics: TopicNames, walk: FieldWalk) -> None:
        self._decoded = decoded
        self._topics = topics
        self._walk = walk
        self._payload = decoded.payload
        self._data = decoded.payload.data

    @lazy
    def _families(self) -> dict[str, str | None]:
        return {each.where.path: _family(each.topic) for each in self._decoded.batches}

    def spans(self) -> Iterable[Span]:
        """Yield the spans of the payload, on the fast path where the body is sound."""
        payload = self._payload
        body = None
        if payload.body is not None:
            cls, start = type(payload.body), payload.header_end
            body = self._walk.spans(cls, payload.body_version, payload.data, start)
        if body is None or (body[-1].end if body else start) != payload.end:
            return self._covering()
        if self._decoded.view.has_records:
            return chain(self._header(), self._with_batches(body), self._rest(payload.end))
        return [*self._header(), *body, *self._rest(payload.end)]

    def _header(self) -> Iterator[Span]:
        payload = self._payload
        version = payload.header_version
        yield from _header_spans(self._data, payload.is_request, version, self._topics)

    def _with_batches(self, body: list[Span]) -> Iterator[Span]:
        for span in body:
            if span.value is None:
                yield from self._batches(span.path, span.start, span.end)
            else:
                yield span

    def _rest(self, position: int) -> Iterator[Span]:
        if position < len(self._data):
            yield Span("not decoded", position, len(self._data), "")

    def _covering(self) -> Iterator[Span]:
        """Yield the spans of the annotated fields, up to the first one that was not read."""
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
        part = self._decoded.view.part
        for field in part.root.children:
            for span in self._leaves(field):
                if span.end > part.end:
                    return
                yield span

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


def _names(fields: list[RecordsField], topics: TopicNames) -> dict[str, str | None]:
    """Return the topics of records by the paths of their fields."""
    return {each.path: topics.name(each.topic, each.topic_id) for each in fields}


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
