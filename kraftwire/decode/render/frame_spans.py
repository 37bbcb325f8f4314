"""The bytes of a frame, field by field: header, body, batches in it and the records in those.

Owns what the byte view of captures prints: spans that follow each other and cover the frame. What
cannot be decoded is one span, and so is what must not be shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from kraftwire.decode.body.findings import json_path
from kraftwire.decode.body.frame import DecodedFrame
from kraftwire.decode.body.layouts import Span, spans
from kraftwire.decode.body.redact import REDACTED
from kraftwire.decode.body.topics import TopicNames
from kraftwire.decode.files.kinds import FileKind
from kraftwire.decode.files.report import FileLine
from kraftwire.decode.files.spans import line_spans
from kraftwire.decode.render.values import raw_value_text
from kraftwire.errors import WireError
from kraftwire.records.decoded import family_of_topic
from kraftwire.records.reader import BatchReader
from kraftwire.wire.reader import Annotation

__all__ = ["frame_spans", "span_text"]

_PREFIX_SIZE = 4
# Children of an annotation that are no fields.
_MARKERS = frozenset({"length", "present", "size", "tag", "tagged fields"})
_TAGGED_FIELDS = "taggedFields"


def frame_spans(decoded: DecodedFrame, topics: TopicNames) -> Iterator[Span]:
    """The spans of a frame.

    Shape: positions count from the byte behind the frame's length, which itself is [-4, 0).
    Values are texts. Secrets are hidden as `decoded.hidden_ranges` says.
    """
    frame = decoded.frame
    yield Span("size", -_PREFIX_SIZE, 0, str(frame.size))
    if decoded.is_token:
        found: Iterable[Span] = [Span("token", 0, len(frame.data), "")]
    else:
        found = _Payload(decoded, topics).spans()
    hidden = decoded.hidden_ranges
    for span in found:
        is_hidden = any(start < span.end and span.start < end for start, end in hidden)
        yield replace(span, value=REDACTED, is_hidden=True) if is_hidden else span


def span_text(span: Span, topics: TopicNames) -> str:
    """The value of a span of a fixed layout or a file."""
    name = span.path.removesuffix(".value").rpartition(".")[2]
    return raw_value_text(name, "", span.value, topics)


class _Payload:
    """Walks over one payload."""

    def __init__(self, decoded: DecodedFrame, topics: TopicNames) -> None:
        self._decoded = decoded
        self._topics = topics
        self._payload = decoded.payload
        self._data = decoded.payload.data
        self._families = {
            each.where.path: family_of_topic(each.topic) if each.topic else None
            for each in decoded.batches
        }

    def spans(self) -> Iterator[Span]:
        position = 0
        for span in self._known():
            yield span
            position = span.end
        if position < len(self._data):
            yield Span("not decoded", position, len(self._data), "")

    def _known(self) -> Iterator[Span]:
        payload = self._payload
        if payload.header is None:
            return
        side = "request" if payload.is_request else "response"
        for span in spans(f"{side} header v{payload.header_version}", self._data):
            yield replace(span, value=span_text(span, self._topics))
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
            yield from self._batches(node, position)
        else:
            yield Span(_path(node), position, node.end, self._value(node))

    def _value(self, node: Annotation) -> str:
        if node.name == "length" and node.type == "unsigned varint":
            # Compact: 0 stands for null, everything else is one more than the length.
            return f"{node.value} ({node.value - 1 if node.value else 'null'})"
        name = "" if node.name in _MARKERS else node.name
        return raw_value_text(name, node.type, node.value, self._topics)

    def _batches(self, node: Annotation, start: int) -> Iterator[Span]:
        """The batches of a field of type records."""
        data = self._data[start : node.end]
        path = _path(node)
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
                        yield replace(
                            span,
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
            yield Span(f"{path}[{index}]", cut, node.end, "part of a batch")


def _path(node: Annotation) -> str:
    """The field's path; what is no field, as a length or a tag, has its own name behind it."""
    path = json_path(node.path)
    if node.name not in _MARKERS:
        outer, dot, last = path.rpartition(".")
        # The name as the schema spells it, where the path has that of the Python attribute.
        return path if "[" in last else f"{outer}{dot}{node.name}"
    name = _TAGGED_FIELDS if node.name == "tagged fields" else node.name
    return f"{path}.{name}" if path else name
