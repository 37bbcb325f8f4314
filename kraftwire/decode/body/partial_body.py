"""The leading part of a body that cannot be decoded as a whole.

Works on the tree of the annotating decoder, which stops at the first byte that is missing or
wrong. Fields that were read completely are shown, and so are the elements of an array in front of
the stop; nothing is filled in for the rest.

Where bytes are missing, the decoder is given zeros in their place, because it would otherwise
refuse an array that cannot fit into what is there. Whatever it reads from them is thrown away.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from kraftwire.capture.limits import ANNOTATIONS_MAX
from kraftwire.wire.json_form import uuid_to_text
from kraftwire.wire.message import Message
from kraftwire.wire.reader import Annotation, PartialError, annotate

__all__ = ["Part", "annotated", "partial_json"]

# The leading fields of a frame with missing bytes are read as if zeros followed, at most this many:
# enough to stand for the rest of an array of a thousand partitions.
PARTIAL_BYTES_MAX = 64 * 1024

# Shows the bytes of a field of type records: its annotation, and where its data begins and ends.
Batches = Callable[[Annotation, int, int], Any]

_UNKNOWN_TAG = "unknown tagged field"
# The length that stands for null, by the type of the length.
_NULL_LENGTHS = {"unsigned varint": 0, "int16": -1, "int32": -1}
_BINARY = frozenset({"bytes", "records"})


@dataclass(frozen=True, slots=True)
class Part:
    """A tree of annotations that is valid up to `end`.

    `end` is the position after the last byte that is there; nodes that end after it, and
    those with end 0, were not read completely.
    """

    root: Annotation
    end: int

    def is_read(self, node: Annotation) -> bool:
        """Whether all bytes of a node are there and right."""
        return 0 < node.end <= self.end

    def stop(self) -> tuple[str, int]:
        """Return path and position of the innermost field that was not read completely."""
        node = self.root
        while True:
            inner = next((each for each in node.children if not self.is_read(each)), None)
            if inner is None or inner.start > self.end:
                break
            node = inner
        at = max((each.end for each in node.children if self.is_read(each)), default=node.start)
        return node.path, min(at, self.end)


def annotated(
    cls: type[Message], data: bytes, version: int, offset: int, *, size: int | None = None
) -> Part:
    """The annotations of a body, at most ANNOTATIONS_MAX of them.

    `size` is the announced length where bytes are missing.
    """
    missing = 0 if size is None else min(size - len(data), PARTIAL_BYTES_MAX)
    try:
        padded = data + bytes(missing)
        root, _ = annotate(cls.facts(), padded, version, offset, most=ANNOTATIONS_MAX)
    except PartialError as error:
        root = error.partial
    return Part(root, len(data))


def partial_json(part: Part, batches: Batches) -> dict[str, Any] | None:
    """Return the part of a message that its tree holds; None if it holds nothing.

    `batches` turns the data of a field of type records into what is to be shown.
    """
    return _Partial(part, batches).struct(part.root) or None


_MISSING: Any = object()


class _Partial:
    def __init__(self, part: Part, batches: Batches) -> None:
        self._part = part
        self._batches = batches

    def struct(self, node: Annotation) -> dict[str, Any]:
        out = {}
        for child in _fields(node):
            if (value := self.value(child)) is not _MISSING:
                out[child.name] = value
        return out

    def value(self, node: Annotation) -> Any:
        """A field or an element; `_MISSING` if nothing of it is there."""
        if node.type.startswith("[]"):
            return self.array(node)
        if node.type == "records":
            return self.records(node)
        if any(_fields(node)):
            return self.struct(node) or _MISSING
        return _plain(node) if self._part.is_read(node) else _MISSING

    def array(self, node: Annotation) -> Any:
        length = self.length(node)
        if length is None or length.value == _NULL_LENGTHS.get(length.type):
            return _MISSING if length is None else None
        items = (self.value(child) for child in node.children[1:])
        return [item for item in items if item is not _MISSING]

    def records(self, node: Annotation) -> Any:
        length = self.length(node)
        if length is None or length.value == _NULL_LENGTHS.get(length.type):
            return _MISSING if length is None else None
        end = node.end if self._part.is_read(node) else self._part.end
        return self._batches(node, length.end, end)

    def length(self, node: Annotation) -> Annotation | None:
        """The length before an array or records, if it is there."""
        length = node.children[0] if node.children else None
        return length if length is not None and self._part.is_read(length) else None


def _fields(node: Annotation) -> Iterator[Annotation]:
    """The fields of a struct, without lengths, counts and tag wrappers, which share its path."""
    for child in node.children:
        if child.path != node.path and child.type != _UNKNOWN_TAG:
            yield child


def _plain(node: Annotation) -> Any:
    if node.value is None:
        return None
    if node.type in _BINARY:
        return b64encode(node.value).decode()
    if node.type == "uuid":
        return uuid_to_text(node.value)
    return node.value
