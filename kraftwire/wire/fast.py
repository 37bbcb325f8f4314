"""Helpers that decoders and encoders call: lengths above 127, small arrays, tagged fields.

Everything here is check-free where a check would cost time: a bad byte raises any of the
exceptions that `kraftwire.wire.message` catches, and the slow reader then explains what is wrong.
"""

from __future__ import annotations

from itertools import islice, repeat, starmap
from struct import Struct as Packer
from struct import error

from kraftwire.limits import STRING_SIZE_MAX, TAGS_FREE_COUNT
from kraftwire.wire.varint import read_uvarint, uvarint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, TypeVar

    T = TypeVar("T")

__all__ = [
    "EMPTY",
    "LENGTH",
    "PACK",
    "STRING_LENGTH",
    "UNPACK",
    "ZERO_UUID",
    "Packer",
    "Parts",
    "Rows",
    "Sweep",
    "blanks",
    "compact_blobs",
    "compact_strings",
    "islice",
    "lists",
    "long_length",
    "long_string",
    "plain_blobs",
    "plain_strings",
    "put_blobs",
    "put_strings",
    "put_tags",
    "put_uuids",
    "read_uvarint",
        "tag_count",
    "unknown_tags",
    "uuids",
]

ZERO_UUID = bytes(16)

# Stands for "a fresh default" in constructors, so that every object gets its own list.
EMPTY: Any = ()

# The output of an encoder; joined once at the end, so that records are copied only once.
Parts = list[bytes | memoryview]


def blanks(cls: type[T]) -> Iterator[T]:
    """Yield an endless supply of objects without attributes, for decoders.

    Taking one from here is a tenth slower than calling a class without `__init__`, and faster than
    calling ``object.__new__(cls)``; the iterator keeps no state, so threads may share it.
    """
    return starmap(object.__new__, repeat((cls,)))


_CACHED_COUNT_MAX = 512
# Arrays of numbers are kept by their bytes up to this size and this many of each type.
_KEPT_NUMBERS_SIZE = 96
_KEPT_NUMBERS_COUNT = 4096
# Lengths of batches repeat little, but those of one message are near each other.
_KEPT_LENGTHS_COUNT = 4096


class _Packers(dict):  # type: ignore[type-arg]
    """Functions of `struct` for arrays of one code, by element count; small counts are kept."""

    def __init__(self, code: str, method: str) -> None:
        super().__init__()
        self._code = code
        self._method = method

    def __missing__(self, count: int) -> Any:
        function = getattr(Packer(f">{count}{self._code}"), self._method)
        if count <= _CACHED_COUNT_MAX:
            self[count] = function
        return function


class _Lengths(dict[int, bytes]):
    """Compact lengths (actual length plus one) as bytes, cached up to a number."""

    def __init__(self, limit: int) -> None:
        super().__init__((length, bytes((length,))) for length in range(128))
        self._limit = limit

    def __missing__(self, length: int) -> bytes:
        if not 0 <= length <= self._limit:
            raise ValueError
        data = uvarint(length)
        if len(self) < _KEPT_LENGTHS_COUNT:
            self[length] = data
        return data


LENGTH = _Lengths(0x7FFFFFFF)
STRING_LENGTH = _Lengths(STRING_SIZE_MAX + 1)

UNPACK = {code: _Packers(code, "unpack_from") for code in "?bhHiIqd"}
PACK = {code: _Packers(code, "pack") for code in "?bhHiIqd"}


class _Lists(dict):  # type: ignore[type-arg]
    """The contents of adjacent arrays of numbers, by their bytes; None for other bytes.

    The replicas of partitions repeat, so short arrays are cached.
    """

    def __init__(self, arrays: tuple[tuple[str, bool, bool], ...]) -> None:
        super().__init__()
        self._arrays = tuple(
            (code, _SIZES[code], is_compact, -is_nullable)
            for code, is_compact, is_nullable in arrays
        )

    def __missing__(self, data: bytes) -> tuple[Any, ...] | None:
        try:
            is_whole = self.end(data, 0) == len(data)
        except (LookupError, error):
            is_whole = False
        if not is_whole:
            return None
        found: list[tuple[Any, ...] | None] = []
        position = 0
        for code, size, is_compact, _ in self._arrays:
            width = 1 if is_compact else 4
            count = int.from_bytes(data[position : position + width], "big", signed=not is_compact)
            count -= is_compact
            position += width
            found.append(UNPACK[code][count](data, position) if count >= 0 else None)
            position += size * max(count, 0)
        numbers = tuple(found)
        if position <= _KEPT_NUMBERS_SIZE and len(self) < _KEPT_NUMBERS_COUNT:
            self[data] = numbers
        return numbers

    def end(self, buf: bytes, position: int) -> int:
        """Return where the arrays at a position end; -1 to leave them to the ordinary loop."""
        for _, size, is_compact, count_min in self._arrays:
            if is_compact:
                count = buf[position] - 1
                position += 1
                if count > 126:
                    return -1
            else:
                (count,) = _INT(buf, position)
                position += 4
            if count > 0:
                position += size * count
            elif count < count_min:
                return -1
        return position


_INT = Packer(">i").unpack_from
_SIZES = {code: Packer(code).size for code in "?bhHiIqd"}
_lists: dict[tuple[tuple[str, bool, bool], ...], _Lists] = {}


def lists(*arrays: tuple[str, bool, bool]) -> _Lists:
    """Return the reader of a struct's adjacent arrays of numbers, each given by its `struct` code,
    whether its length is compact, and whether it can be null."""
    return _lists.setdefault(arrays, _Lists(arrays))


class Sweep:
    """Reads elements of equal size by one call: those whose arrays are as long as the first's."""

    def __init__(self, layout: str, *groups: tuple[int, _Lists]) -> None:
        self._layout = layout
        self._groups = groups
        self._packers: dict[tuple[int, ...], Packer] = {}

    def rows(
        self, buf: bytes, position: int, count: int
    ) -> tuple[Iterator[tuple[Any, ...]], int]:
        """Return the rows of up to `count` elements, and the size of an element."""
        sizes = []
        at = position
        for gap, group in self._groups:
            at += gap
            end = group.end(buf, at)
            if end < 0:
                return iter(()), 0
            sizes.append(end - at)
            at = end
        packer = self._packers.get(tuple(sizes)) or self._packer(tuple(sizes))
        size = packer.size
        end = position + size * min(count, (len(buf) - position) // size)
        return packer.iter_unpack(buf[position:end]), size

    def _packer(self, sizes: tuple[int, ...]) -> Packer:
        packer = Packer(self._layout % sizes)
        if len(self._packers) < _CACHED_COUNT_MAX:
            self._packers[sizes] = packer
        return packer


def long_length(buf: bytes, position: int, at: int, first: int) -> tuple[int, int]:
    """Read a compact length whose first byte, 128 or more, is `first`; a zero (null) is an error.

    The next byte is at `position + at`. Returns: the length, and the position from which the data
    is at `at`.
    """
    if first < 128:
        raise ValueError
    second = buf[position + at]
    if 0 < second < 128:
        return (second << 7) + first - 128, position + 1
    if second:
        third = buf[position + at + 1]
        if 0 < third < 128:
            return (third << 14) + (second << 7) + first - (128 << 7) - 128, position + 2
        if third:
            length, end = read_uvarint(buf, position + at - 1)
            if length > 0:
                return length, end - at
    # Longer than necessary, which no peer writes; the slow reader handles it.
    raise ValueError


def long_string(buf: bytes, position: int, at: int, first: int) -> tuple[int, int]:
    """Read a length like `long_length`, for a string, which Kafka limits to 32767 bytes."""
    length, position = long_length(buf, position, at, first)
    if length > STRING_SIZE_MAX + 1:
        raise ValueError
    return length, position


def compact_strings(buf: bytes, position: int, count: int) -> tuple[list[str], int]:
    """Read an array of compact strings."""
    out = []
    for _ in range(count):
        n = buf[position]
        position += 1
        if not 0 < n < 128:
            n, position = long_string(buf, position, 0, n)
        out.append(buf[position : (position := position + n - 1)].decode())
    return out, position


def plain_strings(buf: bytes, position: int, count: int) -> tuple[list[str], int]:
    """Read an array of strings with 16-bit lengths."""
    out = []
    for _ in range(count):
        n = (buf[position] << 8) + buf[position + 1]
        position += 2
        if n > STRING_SIZE_MAX:
            raise ValueError
        out.append(buf[position : (position := position + n)].decode())
    return out, position


def compact_blobs(buf: bytes, position: int, count: int) -> tuple[list[bytes], int]:
    """Read an array of compact byte strings."""
    out = []
    for _ in range(count):
        n = buf[position]
        position += 1
        if not 0 < n < 128:
            n, position = long_length(buf, position, 0, n)
        out.append(buf[position : (position := position + n - 1)])
    return out, position


def plain_blobs(buf: bytes, position: int, count: int) -> tuple[list[bytes], int]:
    """Read an array of byte strings with 32-bit lengths."""
    out = []
    for _ in range(count):
        (n,) = UNPACK["i"][1](buf, position)
        position += 4
        if n < 0:
            raise ValueError
        out.append(buf[position : (position := position + n)])
    return out, position


def uuids(buf: bytes, position: int, count: int) -> tuple[list[bytes], int]:
    """Read an array of uuids."""
    end = position + 16 * count
    if end > len(buf):
        raise ValueError
    return [buf[at : at + 16] for at in range(position, end, 16)], end


def unknown_tags(buf: bytes, position: int, count: int) -> tuple[dict[int, bytes] | None, int]:
    """Read a section of tagged fields of which none is known; `count` is its first byte."""
    count, position = tag_count(buf, position, count)
    tags = {}
    for _ in range(count):
        tag = buf[position]
        position += 1
        if tag > 127:
            tag, position = read_uvarint(buf, position - 1)
        size = buf[position]
        position += 1
        if size > 127:
            size, position = read_uvarint(buf, position - 1)
        tags[tag] = buf[position : (position := position + size)]
    if position > len(buf):
        raise ValueError
    return tags or None, position


def tag_count(buf: bytes, position: int, first: int) -> tuple[int, int]:
    """Read the number of tagged fields, whose first byte is `first`; refuse an absurd one."""
    if first < 128:
        return first, position
    count, position = read_uvarint(buf, position - 1)
    if count > TAGS_FREE_COUNT + (len(buf) - position) // 8:
        raise ValueError
    return count, position


class Rows(dict):  # type: ignore[type-arg]
    """Functions that pack a struct and its short arrays of numbers at once, by their counts."""

    def __init__(self, layout: str) -> None:
        super().__init__()
        self._layout = layout

    def __missing__(self, counts: Any) -> Any:
        function = Packer(self._layout % counts).pack
        if len(self) < _CACHED_COUNT_MAX:
            self[counts] = function
        return function


def _flat(value: object) -> None:
    """Raise for a value that is neither bytes nor a view whose length counts bytes."""
    if value.__class__ is memoryview:
        if value.nbytes != len(value):
            raise ValueError
    elif not isinstance(value, bytes | bytearray):
        raise TypeError


def put_strings(values: list[str], out: Parts, compact: bool) -> None:
    """Write the elements of an array of strings."""
    for value in values:
        data = value.encode()
        if len(data) > STRING_SIZE_MAX:
            raise ValueError
        out.append(uvarint(len(data) + 1) if compact else len(data).to_bytes(2, "big"))
        out.append(data)


def put_blobs(values: list[bytes], out: Parts, compact: bool) -> None:
    """Write the elements of an array of byte strings."""
    for value in values:
        _flat(value)
        out.append(uvarint(len(value) + 1) if compact else len(value).to_bytes(4, "big"))
        out.append(value)


def put_uuids(values: list[bytes], out: Parts) -> None:
    """Write the elements of an array of uuids."""
    for value in values:
        if len(value) != 16:
            raise ValueError
        _flat(value)
        out.append(value)


def _tags_size(tags: dict[int, bytes]) -> int:
    """Return the least number of bytes that tagged fields take."""
    return sum(map(len, tags.values())) + 2 * len(tags)


def put_tags(out: Parts, known: dict[int, bytes], unknown: dict[int, bytes] | None) -> None:
    """Replace the zero that ends `out` by a section of tagged fields, in ascending order."""
    out[-1] = out[-1][:-1]
    tags = dict(known)
    for tag, data in (unknown or {}).items():
        if tag in tags or tag < 0 or tag.__class__ is not int:
            raise ValueError
        _flat(data)
        tags[tag] = data
    if len(tags) > TAGS_FREE_COUNT and len(tags) > TAGS_FREE_COUNT + _tags_size(tags) // 8:
        # Decoders may refuse this many, unless more bytes follow; the slow writer decides.
        raise ValueError
    out.append(uvarint(len(tags)))
    for tag in sorted(tags):
        out.append(uvarint(tag) + uvarint(len(tags[tag])))
        out.append(tags[tag])
