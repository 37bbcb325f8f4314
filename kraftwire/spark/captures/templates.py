"""Messages that differ from earlier ones only in a few numbers: the traffic of an idle quorum.

Owns a shortcut past the decoder. A template is a message that was decoded in the usual way, with
the places of the numbers that change; a frame that agrees with it in all other bytes is the same
message with other numbers. The places are found by encoding the message again with other numbers,
so this module knows no layout.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from kraftwire.capture.framing.frames import Frame
from kraftwire.errors import WireError

__all__ = ["Template", "Templates", "copy_struct"]

_FETCH = 1
_OFFSET = struct.Struct(">q")
_HEADER_SIZE = 8
_CORRELATION_ID = slice(4, 8)
_KEPT = 4
_SECOND = 2

# Whether it is a request, version, size.
_Kind = tuple[bool, int | None, int]

# Of a partition, the numbers that change from one Fetch to the next.
_ASKED = ("fetch_offset", "high_watermark")
_ANSWERED = ("high_watermark",)


class Template:
    """One message and the places in its frame where numbers change.

    `memo` keeps results of callers that do not depend on these numbers.
    """

    __slots__ = ("_body", "_parts", "_places", "_size", "memo")

    def __init__(self, data: bytes, body: Any, places: list[tuple[str, int]]) -> None:
        self._body = body
        self._size = len(data)
        self._places = places
        self.memo: dict[str, Any] = {}
        # The bytes between the places, which must be the same.
        ends = [(0 if body.KIND == "response" else 4, 4)]
        ends += [(at, _OFFSET.size) for _, at in sorted(places, key=lambda place: place[1])]
        parts = []
        begin = 0
        for at, size in ends:
            if at > begin:
                parts.append((begin, at, data[begin:at]))
            begin = at + size
        parts.append((begin, len(data), data[begin:]))
        self._parts = parts

    def match(self, data: bytes) -> Any:
        """Return the message in a frame's bytes; None if it is another one."""
        for begin, end, part in self._parts:
            if data[begin:end] != part:
                return None
        body = copy_struct(self._body)
        topic = copy_struct(_topics(body)[0])
        _set_topics(body, [topic])
        partition = copy_struct(topic.partitions[0])
        topic.partitions = [partition]
        for name, at in self._places:
            setattr(partition, name, _OFFSET.unpack_from(data, at)[0])
        return body


class Templates:
    """The templates of a connection, most recently used first.

    Making a template costs more than decoding one frame, so one is made from the second frame of a
    kind, and then after ever more of them, until one is used.
    """

    def __init__(self) -> None:
        self._known: dict[_Kind, list[Template]] = {}
        # Kind -> frames without a template, and how many of them lead to the next attempt.
        self._missed: dict[_Kind, tuple[int, int]] = {}

    def find(self, frame: Frame) -> tuple[Any, Template] | None:
        """Return the body of a frame, and the template that matched."""
        if frame.api_key != _FETCH or frame.findings or frame.missing:
            return None
        data = frame.data
        kind = frame.direction == "request", frame.api_version, len(data)
        known = self._known.get(kind)
        if known is None or len(data) != frame.size:
            return None
        for template in known:
            body = template.match(data)
            if body is not None:
                self._missed.pop(kind, None)
                if template is not known[0]:
                    known.remove(template)
                    known.insert(0, template)
                return body, template
        return None

    def learn(self, frame: Frame, body: Any, version: int) -> None:
        """Make a template from a frame without records that was decoded completely."""
        if frame.api_key != _FETCH or frame.findings or frame.missing:
            return
        key = frame.direction == "request", frame.api_version, len(frame.data)
        count, wanted = self._missed.get(key, (0, _SECOND))
        if count + 1 < wanted:
            self._missed[key] = count + 1, wanted
            return
        self._missed[key] = 0, 2 * wanted
        topics = _topics(body)
        if len(topics) != 1 or len(topics[0].partitions) != 1:
            return
        is_request = frame.direction == "request"
        partition = topics[0].partitions[0]
        if not is_request and partition.records:
            return
        names = _ASKED if is_request else _ANSWERED
        places = _places(frame.data, body, version, partition, names)
        if places is None:
            return
        known = self._known.setdefault(key, [])
        known.insert(0, Template(frame.data, _copied(body), places))
        del known[_KEPT:]


def _topics(body: Any) -> list[Any]:
    topics: list[Any] = body.topics if body.KIND == "request" else body.responses
    return topics


def _set_topics(body: Any, topics: list[Any]) -> None:
    if body.KIND == "request":
        body.topics = topics
    else:
        body.responses = topics


def _copied(body: Any) -> Any:
    """Return a copy, since the original is changed for a moment while places are sought."""
    made = copy_struct(body)
    _set_topics(made, [copy_struct(topic) for topic in _topics(body)])
    for topic in _topics(made):
        topic.partitions = [copy_struct(partition) for partition in topic.partitions]
    return made


_COPIERS: dict[type[Any], Callable[[Any], Any]] = {}


def copy_struct(struct_: Any) -> Any:
    """Return a shallow copy of a struct."""
    cls = struct_.__class__
    copier = _COPIERS.get(cls)
    if copier is None:
        copier = _COPIERS[cls] = _copier(cls)
    return copier(struct_)


def _copier(cls: type[Any]) -> Callable[[Any], Any]:
    new, slots = object.__new__, [getattr(cls, name) for name in cls.__slots__]
    pairs = [(slot.__get__, slot.__set__) for slot in slots]

    def copy(struct_: Any) -> Any:
        made = new(cls)
        for get, put in pairs:
            put(made, get(struct_))
        return made

    return copy


def _places(
    data: bytes, body: Any, version: int, partition: Any, names: tuple[str, ...]
) -> list[tuple[str, int]] | None:
    """Return the places of a partition's numbers in a frame; None if they cannot be found."""
    places = []
    try:
        written = body.encode(version)
        start = len(data) - len(written)
        if start < _HEADER_SIZE - 4 or data[start:] != written:
            return None
        for name in names:
            value = getattr(partition, name)
            # All eight bytes differ.
            other = _OFFSET.unpack(bytes(byte ^ 0x55 for byte in _OFFSET.pack(value)))[0]
            try:
                setattr(partition, name, other)
                changed = body.encode(version)
            finally:
                setattr(partition, name, value)
            if changed == written:
                continue  # this version does not have it
            if len(changed) != len(written):
                continue  # omitted at its default, so it has no place
            at = next(at for at, byte in enumerate(written) if byte != changed[at])
            end = at + _OFFSET.size
            if changed[at:end] != _OFFSET.pack(other) or changed[end:] != written[end:]:
                return None
            places.append((name, start + at))
    except WireError:
        return None
    return places
