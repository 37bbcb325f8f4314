"""Kafka's two encodings of strings, bytes, arrays and tagged fields.

`Classic` is the encoding of a message's first versions: lengths are integers of fixed size, -1 for
null. `Compact` is that of its flexible versions: lengths are unsigned varints of the length plus
one, 0 for null, and every struct ends with tagged fields. Everything else is the same in both.
"""

from __future__ import annotations

from struct import Struct as Packer

from kraftwire.limits import STRING_SIZE_MAX, TAGS_FREE_COUNT
from kraftwire.wire.fast import NotInVersion, read_tag
from kraftwire.wire.varint import read_uvarint, uvarint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeVar

    from kraftwire.wire.fast import Numbers, Parts, Read, Tags

    T = TypeVar("T")
    ReadOne = Callable[[bytes, int], tuple[T, int]]
    Blob = bytes | bytearray | memoryview

_INT16 = Packer(">h")
_INT32 = Packer(">i")
_SHORT = tuple(bytes((number,)) for number in range(128))


def _byte_size(value: Blob | None) -> int:
    """Return a value's size in bytes; elements of a view may be wider than one."""
    if value.__class__ is bytes:
        return len(value)
    if value.__class__ is memoryview:
        return value.nbytes
    if isinstance(value, bytes | bytearray):
        return len(value)
    raise TypeError


def _spend(count: int, room: int, budget: list[int]) -> None:
    """Take structs from the budget. Raises: ValueError above it, or above `room` in the bytes."""
    budget[0] -= count
    if count > room or budget[0] < 0:
        raise ValueError


class Classic:
    """The encoding before flexible versions: 16 bits before strings, 32 before all else."""

    # -- lengths, strings and tagged fields, which Compact has in another way -------------------

    @staticmethod
    def read_size(buf: bytes, pos: int) -> tuple[int, int]:
        """Read the length of bytes or of an array, -1 for null."""
        (size,) = _INT32.unpack_from(buf, pos)
        return size, pos + 4

    @staticmethod
    def size(size: int) -> bytes:
        """Return the length of bytes or of an array as bytes, -1 for null."""
        return _INT32.pack(size)

    @staticmethod
    def read_string(buf: bytes, pos: int) -> tuple[str, int]:
        """Read a string."""
        size = (buf[pos] << 8) + buf[pos + 1]
        if size > STRING_SIZE_MAX:
            raise ValueError
        pos += 2
        return buf[pos : pos + size].decode(), pos + size

    @staticmethod
    def read_nullable_string(buf: bytes, pos: int) -> tuple[str | None, int]:
        """Read a string or null."""
        size = (buf[pos] << 8) + buf[pos + 1]
        pos += 2
        if size > STRING_SIZE_MAX:
            return None, pos
        return buf[pos : pos + size].decode(), pos + size

    @staticmethod
    def write_string(out: Parts, value: str | None) -> None:
        """Write a string."""
        data = value.encode()  # type: ignore[union-attr]
        out.append(_INT16.pack(len(data)) + data)

    @staticmethod
    def write_nullable_string(out: Parts, value: str | None) -> None:
        """Write a string or null."""
        if value is None:
            out.append(b"\xff\xff")
        else:
            data = value.encode()
            out.append(_INT16.pack(len(data)) + data)

    @staticmethod
    def read_tags(buf: bytes, pos: int) -> tuple[dict[int, bytes] | None, int]:  # noqa: ARG004
        """Read the tagged fields of a struct, all of them as unknown ones."""
        return None, pos

    @staticmethod
    def read_tag_count(buf: bytes, pos: int) -> tuple[int, int]:  # noqa: ARG004
        """Read the number of tagged fields of a struct."""
        return 0, pos

    @staticmethod
    def write_tags(
        out: Parts,  # noqa: ARG004
        unknown: dict[int, bytes] | None,
        known: Tags | None = None,
    ) -> None:
        """Write the tagged fields that end a struct."""
        if unknown or known:
            raise NotInVersion

    # -- bytes ---------------------------------------------------------------------------------

    @classmethod
    def read_bytes(cls, buf: bytes, pos: int) -> tuple[bytes, int]:
        """Read bytes."""
        size, pos = cls.read_size(buf, pos)
        if size < 0:
            raise ValueError
        return buf[pos : pos + size], pos + size

    @classmethod
    def read_nullable_bytes(cls, buf: bytes, pos: int) -> tuple[bytes | None, int]:
        """Read bytes or null."""
        size, pos = cls.read_size(buf, pos)
        return (None, pos) if size < 0 else (buf[pos : pos + size], pos + size)

    @classmethod
    def read_records(cls, buf: bytes, pos: int) -> tuple[bytes | memoryview, int]:
        """Read batches of records, without a copy."""
        size, pos = cls.read_size(buf, pos)
        if size < 0:
            raise ValueError
        return (memoryview(buf)[pos : pos + size] if size else b""), pos + size

    @classmethod
    def read_nullable_records(cls, buf: bytes, pos: int) -> tuple[bytes | memoryview | None, int]:
        """Read batches of records or null, without a copy."""
        size, pos = cls.read_size(buf, pos)
        if size < 1:
            return (None if size else b""), pos
        return memoryview(buf)[pos : pos + size], pos + size

    @classmethod
    def write_bytes(cls, out: Parts, value: Blob | None) -> None:
        """Write bytes or records."""
        out.append(cls.size(_byte_size(value)))
        if value:
            out.append(value)

    @classmethod
    def write_nullable_bytes(cls, out: Parts, value: Blob | None) -> None:
        """Write bytes, records or null."""
        if value is None:
            out.append(cls.size(-1))
        else:
            cls.write_bytes(out, value)

    # -- arrays of structs ---------------------------------------------------------------------

    @staticmethod
    def read_array(
        buf: bytes, pos: int, read: Read[T], version: int, budget: list[int]
    ) -> tuple[list[T], int]:
        """Read an array of structs."""
        (count,) = _INT32.unpack_from(buf, pos)
        if count < 0:
            raise ValueError
        pos += 4
        if not count:
            return [], pos
        _spend(count, len(buf) - pos, budget)
        return read(buf, pos, count, version, budget)

    @staticmethod
    def read_nullable_array(
        buf: bytes, pos: int, read: Read[T], version: int, budget: list[int]
    ) -> tuple[list[T] | None, int]:
        """Read an array of structs or null."""
        (count,) = _INT32.unpack_from(buf, pos)
        if count < 0:
            return None, pos + 4
        return Classic.read_array(buf, pos, read, version, budget)

    @staticmethod
    def write_array(
        out: Parts, items: Sequence[T] | None, write: Callable[[T, Parts, int], None], version: int
    ) -> None:
        """Write an array of structs."""
        out.append(_INT32.pack(len(items)))  # type: ignore[arg-type]
        for item in items:  # type: ignore[union-attr]
            write(item, out, version)

    @classmethod
    def write_nullable_array(
        cls, out: Parts, items: Sequence[T] | None, write: Callable[[T, Parts, int], None],
        version: int,
    ) -> None:  # fmt: skip
        """Write an array of structs or null."""
        if items is None:
            out.append(cls.size(-1))
        else:
            cls.write_array(out, items, write, version)

    # -- arrays of numbers ---------------------------------------------------------------------

    @staticmethod
    def read_numbers(buf: bytes, pos: int, kind: Numbers) -> tuple[list[Any], int]:
        """Read an array of numbers."""
        (count,) = _INT32.unpack_from(buf, pos)
        if count < 0:
            raise ValueError
        return [*kind.unpack[count](buf, pos + 4)], pos + 4 + kind.size * count

    @classmethod
    def read_nullable_numbers(
        cls, buf: bytes, pos: int, kind: Numbers
    ) -> tuple[list[Any] | None, int]:
        """Read an array of numbers or null."""
        count, pos = cls.read_size(buf, pos)
        if count < 0:
            return None, pos
        return [*kind.unpack[count](buf, pos)], pos + kind.size * count

    @staticmethod
    def write_numbers(out: Parts, values: Sequence[Any] | None, kind: Numbers) -> None:
        """Write an array of numbers."""
        count = len(values)  # type: ignore[arg-type]
        out.append(_INT32.pack(count) + kind.pack[count](*values))  # type: ignore[misc]

    @classmethod
    def write_nullable_numbers(
        cls, out: Parts, values: Sequence[Any] | None, kind: Numbers
    ) -> None:
        """Write an array of numbers or null."""
        if values is None:
            out.append(cls.size(-1))
        else:
            cls.write_numbers(out, values, kind)

    # -- arrays of strings, bytes or uuids, by the function for one element ---------------------

    @staticmethod
    def read_uuid(buf: bytes, pos: int) -> tuple[bytes, int]:
        """Read a uuid."""
        end = pos + 16
        if end > len(buf):
            raise ValueError
        return buf[pos:end], end

    @staticmethod
    def write_uuid(out: Parts, value: bytes) -> None:
        """Write a uuid."""
        if _byte_size(value) != 16 or len(value) != 16:
            raise ValueError
        out.append(value)

    @classmethod
    def read_elements(cls, buf: bytes, pos: int, read: ReadOne[T]) -> tuple[list[T], int]:
        """Read an array."""
        items, pos = cls.read_nullable_elements(buf, pos, read)
        if items is None:
            raise ValueError
        return items, pos

    @classmethod
    def read_nullable_elements(
        cls, buf: bytes, pos: int, read: ReadOne[T]
    ) -> tuple[list[T] | None, int]:
        """Read an array or null."""
        count, pos = cls.read_size(buf, pos)
        if count < 0:
            return None, pos
        items = []
        for _ in range(count):
            item, pos = read(buf, pos)
            items.append(item)
        return items, pos

    @classmethod
    def write_elements(
        cls, out: Parts, values: Sequence[T] | None, write: Callable[[Parts, T], None]
    ) -> None:
        """Write an array."""
        out.append(cls.size(len(values)))  # type: ignore[arg-type]
        for value in values:  # type: ignore[union-attr]
            write(out, value)

    @classmethod
    def write_nullable_elements(
        cls, out: Parts, values: Sequence[T] | None, write: Callable[[Parts, T], None]
    ) -> None:
        """Write an array or null."""
        if values is None:
            out.append(cls.size(-1))
        else:
            cls.write_elements(out, values, write)


class Compact(Classic):
    """The encoding of flexible versions: lengths plus one as unsigned varints, tagged fields."""

    @staticmethod
    def read_size(buf: bytes, pos: int) -> tuple[int, int]:
        size = buf[pos]
        if size < 128:
            return size - 1, pos + 1
        size, pos = read_uvarint(buf, pos)
        return size - 1, pos

    @staticmethod
    def size(size: int) -> bytes:
        return _SHORT[size + 1] if size < 127 else _long_size(size)

    @staticmethod
    def read_string(buf: bytes, pos: int) -> tuple[str, int]:
        size = buf[pos]
        if size < 128:
            pos += 1
        else:
            size, pos = read_uvarint(buf, pos)
        end = pos + size - 1
        if not 0 < size <= STRING_SIZE_MAX + 1:
            raise ValueError
        return buf[pos:end].decode(), end

    @staticmethod
    def read_nullable_string(buf: bytes, pos: int) -> tuple[str | None, int]:
        if buf[pos]:
            return Compact.read_string(buf, pos)
        return None, pos + 1

    @staticmethod
    def write_string(out: Parts, value: str | None) -> None:
        data = value.encode()  # type: ignore[union-attr]
        size = len(data) + 1
        if size < 128:
            out.append(_SHORT[size] + data)
        elif size <= STRING_SIZE_MAX + 1:
            out.append(uvarint(size) + data)
        else:
            raise ValueError

    @staticmethod
    def write_nullable_string(out: Parts, value: str | None) -> None:
        if value is None:
            out.append(b"\0")
        else:
            Compact.write_string(out, value)

    @staticmethod
    def read_tags(buf: bytes, pos: int) -> tuple[dict[int, bytes] | None, int]:
        if not buf[pos]:
            return None, pos + 1
        count, pos = Compact.read_tag_count(buf, pos)
        tags = {}
        for _ in range(count):
            tag, pos, end = read_tag(buf, pos)
            tags[tag] = buf[pos:end]
            pos = end
        return tags or None, pos

    @staticmethod
    def read_tag_count(buf: bytes, pos: int) -> tuple[int, int]:
        count = buf[pos]
        if count < 128:
            return count, pos + 1
        count, pos = read_uvarint(buf, pos)
        if count > TAGS_FREE_COUNT + (len(buf) - pos) // 8:
            raise ValueError
        return count, pos

    @staticmethod
    def write_tags(
        out: Parts, unknown: dict[int, bytes] | None, known: Tags | None = None
    ) -> None:
        if unknown or known:
            _write_tags(out, unknown or {}, known or {})
        else:
            out.append(b"\0")

    # Arrays as Classic's, without a call for the length, which costs a tenth of all decoding.

    @staticmethod
    def read_array(
        buf: bytes, pos: int, read: Read[T], version: int, budget: list[int]
    ) -> tuple[list[T], int]:
        count = buf[pos] - 1
        if count < 127:
            pos += 1
        else:
            count, pos = Compact.read_size(buf, pos)
        if count < 0:
            raise ValueError
        if not count:
            return [], pos
        _spend(count, len(buf) - pos, budget)
        return read(buf, pos, count, version, budget)

    @staticmethod
    def read_nullable_array(
        buf: bytes, pos: int, read: Read[T], version: int, budget: list[int]
    ) -> tuple[list[T] | None, int]:
        if buf[pos] == 1:
            return [], pos + 1
        if buf[pos]:
            return Compact.read_array(buf, pos, read, version, budget)
        return None, pos + 1

    @staticmethod
    def read_numbers(buf: bytes, pos: int, kind: Numbers) -> tuple[list[Any], int]:
        count = buf[pos] - 1
        if count < 127:
            pos += 1
        else:
            count, pos = Compact.read_size(buf, pos)
        if count < 0:
            raise ValueError
        return [*kind.unpack[count](buf, pos)], pos + kind.size * count

    @staticmethod
    def write_array(
        out: Parts, items: Sequence[T] | None, write: Callable[[T, Parts, int], None], version: int
    ) -> None:
        out.append(Compact.size(len(items)))  # type: ignore[arg-type]
        for item in items:  # type: ignore[union-attr]
            write(item, out, version)

    @staticmethod
    def write_numbers(out: Parts, values: Sequence[Any] | None, kind: Numbers) -> None:
        count = len(values)  # type: ignore[arg-type]
        out.append(Compact.size(count) + kind.pack[count](*values))  # type: ignore[misc]


def _long_size(size: int) -> bytes:
    if size >= 0x7FFFFFFF:
        raise ValueError
    return uvarint(size + 1)


def _write_tags(out: Parts, unknown: dict[int, bytes], known: dict[int, Parts]) -> None:
    """Write tagged fields in ascending order. Raises: ValueError for what decoders may refuse."""
    tags = {tag: b"".join(parts) for tag, parts in known.items()}
    for tag, data in unknown.items():
        if tag in tags or tag < 0 or tag.__class__ is not int or _byte_size(data) != len(data):
            raise ValueError
        tags[tag] = data
    size = sum(map(len, tags.values())) + 2 * len(tags)
    if len(tags) > TAGS_FREE_COUNT and len(tags) > TAGS_FREE_COUNT + size // 8:
        # Decoders may accept this many if more bytes follow; the slow writer decides.
        raise ValueError
    out.append(uvarint(len(tags)))
    for tag in sorted(tags):
        out += (uvarint(tag), uvarint(len(tags[tag])), tags[tag])
