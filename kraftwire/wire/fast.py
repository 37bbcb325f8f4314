"""Helpers of the generated readers and writers, besides the two encodings of `wire.encodings`.

Readers take the input and a position, and return a value and the position after it. Writers append
to a list of parts. Nothing here explains what is wrong: bad bytes and bad values raise any of the
exceptions that `kraftwire.wire.message` catches; the slow reader or writer then finds the field.
"""

from __future__ import annotations

from struct import Struct as Packer

from kraftwire.errors import UsageError
from kraftwire.wire.varint import read_uvarint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeVar

    T = TypeVar("T")
    # A struct's reader: input, position, how many, version, and the budget of elements.
    Read = Callable[[bytes, int, int, int, list[int]], tuple[list[T], int]]
    ReadOne = Callable[[bytes, int, int, int, list[int]], tuple[Sequence[T], int]]

__all__ = [
    "EMPTY",
    "FLOAT64",
    "INT8",
    "INT16",
    "INT32",
    "INT64",
    "UINT16",
    "UINT32",
    "ZERO_UUID",
    "NotInVersion",
    "Numbers",
    "Packer",
    "Parts",
    "Tags",
    "check_end",
    "exact_bool",
    "exact_uuid",
    "keep_tag",
    "new",
    "one_of",
    "read_nullable_struct",
    "read_nullable_tagged_struct",
    "read_struct",
    "read_tag",
    "write_nullable_struct",
    "write_nullable_tagged_struct",
    "write_struct",
]

ZERO_UUID = bytes(16)

# Stands for "a fresh default" in constructors, so that every object gets its own list.
EMPTY: Any = ()

# The output of a writer, joined once at the end, so that records are copied only once.
Parts = list["bytes | bytearray | memoryview"]

# Makes an object without attributes, for a reader to fill.
new = object.__new__


def one_of(default: Any, **given: Any) -> Any:
    """Return the argument of a constructor for a field that has several names.

    Raises: UsageError if it was given under more than one of them.
    """
    found = {name: value for name, value in given.items() if value is not EMPTY}
    if len(found) > 1:
        raise UsageError(f"{' and '.join(found)} name the same field: give one of them")
    return next(iter(found.values()), default)


_CACHED_COUNT_MAX = 512


class NotInVersion(ValueError):
    """The version has no field for a value that is not the default."""


class _Packers(dict[int, "Callable[..., Any]"]):
    """Functions of `struct` for arrays of one type, by length; those of short arrays are cached."""

    def __init__(self, code: str, method: str) -> None:
        super().__init__()
        self._code = code
        self._method = method

    def __missing__(self, count: int) -> Callable[..., Any]:
        function: Callable[..., Any] = getattr(Packer(f">{count}{self._code}"), self._method)
        if count <= _CACHED_COUNT_MAX:
            self[count] = function
        return function


class Tags(dict[int, "Parts"]):
    """The tagged fields of a struct that are not at their defaults, each as parts."""

    def __missing__(self, tag: int) -> Parts:
        parts = self[tag] = []
        return parts


class Numbers:
    """A type of number, whose arrays are read and written by one call."""

    __slots__ = ("pack", "size", "unpack")

    def __init__(self, code: str) -> None:
        self.pack = _Packers(code, "pack")
        self.unpack = _Packers(code, "unpack_from")
        self.size = Packer(f">{code}").size


INT8, INT16, UINT16, INT32, UINT32, INT64, FLOAT64 = map(Numbers, "bhHiIqd")


def exact_bool(value: object) -> object:
    """Return a bool. Raises: TypeError for other values, which `struct` would accept."""
    if value.__class__ is not bool:
        raise TypeError
    return value


def exact_uuid(value: bytes) -> bytes:
    """Return 16 bytes. Raises: ValueError for other lengths, which `struct` would pad or cut."""
    if len(value) != 16:
        raise ValueError
    return value


def read_tag(buf: bytes, pos: int) -> tuple[int, int, int]:
    """Read a tag and its size; return the tag, and where its value begins and ends."""
    tag, pos = read_uvarint(buf, pos)
    size, pos = read_uvarint(buf, pos)
    if pos + size > len(buf):
        raise ValueError
    return tag, pos, pos + size


def keep_tag(struct: Any, tag: int, value: bytes) -> None:
    """Keep a tagged field that the version does not know."""
    if struct.unknown_tagged_fields is None:
        struct.unknown_tagged_fields = {}
    struct.unknown_tagged_fields[tag] = value


def check_end(pos: int, end: int) -> None:
    """Check that a tagged field was as long as it said. Raises: ValueError."""
    if pos != end:
        raise ValueError


def read_struct(
    buf: bytes, pos: int, read: ReadOne[T], version: int, budget: list[int]
) -> tuple[T, int]:
    """Read a struct that is no element of an array; it counts like one."""
    budget[0] -= 1
    if budget[0] < 0:
        raise ValueError
    (value,), pos = read(buf, pos, 1, version, budget)
    return value, pos


def read_nullable_struct(
    buf: bytes, pos: int, read: ReadOne[T], version: int, budget: list[int]
) -> tuple[T | None, int]:
    """Read a struct or null, which is a negative byte before it."""
    if buf[pos] > 127:
        return None, pos + 1
    return read_struct(buf, pos + 1, read, version, budget)


def read_nullable_tagged_struct(
    buf: bytes, pos: int, read: ReadOne[T], version: int, budget: list[int]
) -> tuple[T | None, int]:
    """Read a struct or null inside a tagged field, where null is an unsigned varint of zero."""
    is_present, pos = read_uvarint(buf, pos)
    return read_struct(buf, pos, read, version, budget) if is_present else (None, pos)


def write_struct(
    out: Parts, value: T | None, write: Callable[[T, Parts, int], None], version: int
) -> None:
    """Write a struct that is no element of an array."""
    write(value, out, version)  # type: ignore[arg-type]


def write_nullable_struct(
    out: Parts, value: T | None, write: Callable[[T, Parts, int], None], version: int
) -> None:
    """Write a struct, or a byte of -1 for null."""
    out.append(b"\xff" if value is None else b"\1")
    if value is not None:
        write(value, out, version)


def write_nullable_tagged_struct(
    out: Parts, value: T | None, write: Callable[[T, Parts, int], None], version: int
) -> None:
    """Write a struct inside a tagged field, or a zero for null."""
    out.append(b"\0" if value is None else b"\1")
    if value is not None:
        write(value, out, version)
