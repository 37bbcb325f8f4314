"""The bytes of a frame, field by field: header, body, batches in it and the records in those.

Owns what the byte view of captures prints: spans that follow each other and cover the frame. What
cannot be decoded is one span, and so is what must not be shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from itertools import chain
from typing import Any

from kraftwire.decode.body.findings import json_path
from kraftwire.decode.body.frame import DecodedFrame
from kraftwire.decode.body.layouts import Span, spans
from kraftwire.decode.body.lazy import lazy
from kraftwire.decode.body.ranges import ByteRange
from kraftwire.decode.body.redact import REDACTED
from kraftwire.decode.body.topics import TopicNames
from kraftwire.decode.body.walk import FieldWalk
from kraftwire.decode.files.kinds import FileKind
from kraftwire.decode.files.report import FileLine
from kraftwire.decode.files.spans import line_spans
from kraftwire.decode.render.values import raw_value_text
from kraftwire.errors import WireError
from kraftwire.records.decoded import family_of_topic
from kraftwire.records.reader import BatchReader
from kraftwire.wire.reader import Annotation

__all__ = ["FrameSpans", "span_text"]

_PREFIX_SIZE = 4
# Children of an annotation that are no fields.
_MARKERS = frozenset({"length", "present", "size", "tag", "tagged fields"})
_TAGGED_FIELDS = "taggedFields"
_UVARINT = "unsigned varint"
# Types whose values are short and come again, and how many texts of a field are kept.
_NUMBERS = frozenset({"bool", "int8", "int16", "int32", "int64", "uint16", _UVARINT})
_KEPT_MAX = 500


class FrameSpans:
    """Takes frames apart; plans for their bodies are kept."""

    def __init__(self, topics: TopicNames) -> None:
        self._topics = topics
        self._walk = FieldWalk(self._show)

    def spans(self, decoded: DecodedFrame) -> Iterator[Span]:
        """The spans of a frame.

        Shape: positions count from the byte after the frame's length, which itself is [-4, 0).
        Values are texts. Secrets are hidden as `decoded.hidden_ranges` says.
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

    def _show(self, name: str, type_name: str) -> Callable[[Any], str]:
        """How the value of a field is shown; texts of numbers that come again are kept."""
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
    """Compact: 0 stands for null, everything else is one more than the length."""
    return f"{value} ({value - 1 if value else 'null'})"


def span_text(span: Span, topics: TopicNames) -> str:
    """The value of a span of a fixed layout or a file."""
    name = span.path.removesuffix(".value").rpartition(".")[2]
    return raw_value_text(name, "", span.value, topics)


class _Payload:
    """Walks over one payload."""

    def __init__(self, decoded: DecodedFrame, topics: TopicNames, walk: FieldWalk) -> None:
        self._decoded = decoded
        self._topics = topics
        self._walk = walk
        self._payload = decoded.payload
        self._data = decoded.payload.data

    @lazy
    def _families(self) -> dict[str, str | None]:
        return {
            each.where.path: family_of_topic(each.topic) if each.topic else None
            for each in self._decoded.batches
        }

    def spans(self) -> Iterable[Span]:
        """By the short way where the body is sound."""
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
        side = "request" if payload.is_request else "response"
        for span in spans(f"{side} header v{payload.header_version}", self._data):
            yield span._replace(value=span_text(span, self._topics))

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
        """By the annotations, as far as they go."""
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
        """The innermost fields; the children of a text are its length only."""
        position = node.start
        for child in node.children:
            yield from self._leaves(child)
            position = child.end
        if position >= node.end:
            return  # also where a field was not read to its end, which then is 0
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
        """The batches of a field of type records."""
        data = self._data[start:end]
        family = self._families.get(path)
        reader = BatchReader(data)
        index = 0
        while True:
            try:
                for batch in reader:
                    line = FileLine(
                        FileKind.LOG, start + batch.position, {}, batch.raw, batch, family
                    )
                    for span in line_spans(line):
                        yield span._replace(
                            path=f"{path}[{index}].{span.path}",
                            value=span_text(span, self._topics),
                        )
                    index += 1
                break
            except WireError as error:
                damaged = start + reader.position
                behind = damaged + reader.resume()
                yield Span(f"{path}[{index}]", damaged, behind, error.problem)
        if reader.remaining:
            cut = start + reader.position
            yield Span(f"{path}[{index}]", cut, end, "part of a batch")


def _path(node: Annotation) -> str:
    """The field's path; what is no field, as a length or a tag, has its own name behind it."""
    path = json_path(node.path)
    if node.name not in _MARKERS or path.rpartition(".")[2] == node.name:
        outer, dot, last = path.rpartition(".")
        # The name as the schema spells it, where the path has that of the Python attribute.
        return path if "[" in last else f"{outer}{dot}{node.name}"
    name = _TAGGED_FIELDS if node.name == "tagged fields" else node.name
    return f"{path}.{name}" if path else name
