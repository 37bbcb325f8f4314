"""Leader hints behind the records of a long answer: made unreadable while it streams by.

A Fetch of version 16, and each ShareFetch, may end with the addresses of leaders. The answer's size
comes first, so hints of another length cannot take their place once it has begun. But a tag that
no schema has can: a client skips it, uses the address that it has for that leader, and requests
Metadata. The hints of a Fetch are a tagged field, which gets another tag. Those of a ShareFetch are
the last field, which becomes empty, and what it held becomes the value of such a tag.

The answer is followed field by field, by its schema, and nothing of it is kept.

Source: KIP-951; Kafka's `Metadata.updatePartitionLeadership`.
"""

from __future__ import annotations

from collections.abc import Generator

from kraftwire import messages
from kraftwire.protocol.versions import response_header_version
from kraftwire.wire.facts import FieldFacts, StructFacts
from kraftwire.wire.frame import LENGTH_SIZE

# A tag that no schema has, as long as the tag of the hints.
_UNKNOWN_TAG = 126
_HINTS_TAG = 0
_CORRELATION_ID_SIZE = 4
# Sizes of the types without a length of their own.
_FIXED = {
    "bool": 1, "int8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8,
    "float64": 8, "uuid": 16,
}  # fmt: skip

_EMPTY = 1
# A length has five bytes at most.
_SHIFT_MAX = 28
_HINTS = "nodeEndpoints"
# What a reader yields: how many bytes to skip, to read one, or to hide what that one begins.
_READ, _HIDE_TAG, _HIDE_REST = 0, -1, -2
_Steps = Generator[int, int, None]
_Value = Generator[int, int, int]


class HintsFilter:
    """Follows one answer; `feed` takes its frame of `size` bytes in pieces, and returns as many."""

    def __init__(self, api_key: int, api_version: int, size: int) -> None:
        root = messages.response_class(api_key).facts().root
        self._steps = _answer(root, api_key, api_version)
        self._step: int | None = next(self._steps)
        self._size = size
        # The position of the next piece, and the bytes to be changed, by their positions.
        self._start = 0
        self._changed: dict[int, int] = {}

    def feed(self, data: bytes | memoryview) -> bytes | memoryview:
        """Return the next bytes of the answer, with its hints hidden."""
        at, end = 0, len(data)
        while self._step is not None:
            value = 0
            if self._step == _HIDE_TAG:
                self._changed[self._start + at - 1] = _UNKNOWN_TAG
            elif self._step == _HIDE_REST:
                first = self._start + at - 1
                self._changed |= enumerate(_wrapping(self._size - first), first)
            elif at == end:
                break
            elif self._step == _READ:
                value = data[at]
                at += 1
            else:
                taken = min(self._step, end - at)
                at += taken
                self._step -= taken
                if self._step:
                    break
            self._advance(value)
        return self._with_changes(data)

    def _with_changes(self, data: bytes | memoryview) -> bytes | memoryview:
        start, self._start = self._start, self._start + len(data)
        here = [position for position in self._changed if position < self._start]
        if not here:
            return data
        changed = bytearray(data)
        for position in here:
            changed[position - start] = self._changed.pop(position)
        return bytes(changed)

    def _advance(self, value: int) -> None:
        try:
            self._step = self._steps.send(value)
        except StopIteration:
            self._step = None


def _wrapping(size: int) -> bytes:
    """Return what so many last bytes of an answer begin with, to be an empty array and a tag."""
    start = bytes([_EMPTY, 1, _UNKNOWN_TAG])
    for width in range(1, 6):
        left = size - len(start) - width
        if left < 1 << 7 * width:
            sizes = [left >> 7 * place & 0x7F | 0x80 for place in range(width)]
            sizes[-1] &= 0x7F
            return start + bytes(sizes)
    raise AssertionError(size)


def _answer(root: StructFacts, api_key: int, version: int) -> _Steps:
    """Follow a frame: length, correlation id, tags of the header, body."""
    yield LENGTH_SIZE + _CORRELATION_ID_SIZE
    if response_header_version(api_key, version):
        yield from _tags()
    yield from _struct(root, version, is_top=True)


def _struct(facts: StructFacts, version: int, *, is_top: bool = False) -> _Steps:
    for one in facts.fields:
        if version not in one.versions or version in one.tagged:
            continue
        if is_top and one.name == _HINTS:
            if (yield _READ) > _EMPTY:
                yield _HIDE_REST
                return
        else:
            yield from _field(one, version)
    yield from _tags(is_top=is_top)


def _tags(*, is_top: bool = False) -> _Steps:
    for _ in range((yield from _uvarint())):
        tag = yield from _uvarint()
        if is_top and tag == _HINTS_TAG:
            yield _HIDE_TAG
        yield from _skip((yield from _uvarint()))


def _field(field: FieldFacts, version: int) -> _Steps:
    if field.is_array:
        for _ in range((yield from _uvarint()) - 1):
            yield from _one(field, version)
    else:
        yield from _one(field, version)


def _one(field: FieldFacts, version: int) -> _Steps:
    if field.struct is not None:
        # A null struct is a single byte -1, any other begins with 1.
        if version in field.nullable and not field.is_array and (yield _READ) > 127:
            return
        yield from _struct(field.struct, version)
    elif field.type in _FIXED:
        yield _FIXED[field.type]
    else:
        yield from _skip((yield from _uvarint()) - 1)


def _skip(size: int) -> _Steps:
    if size > 0:
        yield size


def _uvarint() -> _Value:
    value = shift = 0
    while True:
        byte = yield _READ
        value |= (byte & 0x7F) << shift
        if byte < 128 or shift == _SHIFT_MAX:
            return value
        shift += 7
