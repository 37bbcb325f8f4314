"""What printers call: the JSON text of values, and lengths that are written as Kafka would.

Bad bytes raise any of `BAD_BYTES`, and so does what Kafka would have written differently: the
caller then decodes the message, which explains what is wrong.
"""

from __future__ import annotations

import struct
from base64 import urlsafe_b64encode
from binascii import b2a_base64
from json.encoder import encode_basestring_ascii

from kraftwire.errors import WireError
from kraftwire.limits import STRING_SIZE_MAX
from kraftwire.wire.functions.packers import CODES
from kraftwire.wire.sizes import FIXED_SIZES
from kraftwire.wire.varint import read_uvarint, uvarint_size

__all__ = [
    "BAD_BYTES", "BOOLS", "NUMBERS", "TEXTS", "UUIDS", "blob", "compact_blobs",
    "compact_strings", "long_length", "long_string", "long_tag", "plain_blobs", "plain_strings",
    "uuids",
]  # fmt: skip

# As in kraftwire.wire.message, for functions that make text and no objects.
BAD_BYTES = (IndexError, OverflowError, ValueError, WireError, struct.error)

BOOLS = ("false", "true")

# Names, ids and replicas repeat from message to message, so their texts are kept by their bytes: of
# each kind this many, of values up to this size.
_KEPT_COUNT = 4096
_KEPT_SIZE = 96

_DELETE = "\x7f"


class _Kept(dict[bytes, str]):
    """The texts of values by their bytes."""

    def __missing__(self, data: bytes) -> str:
        text = self._text(data)
        if len(data) <= _KEPT_SIZE:
            if len(self) >= _KEPT_COUNT:
                self.clear()
            self[data] = text
        return text

    def _text(self, data: bytes) -> str:
        raise NotImplementedError


class _Texts(_Kept):
    """Strings; nothing in them can control a terminal."""

    def _text(self, data: bytes) -> str:
        text: str = encode_basestring_ascii(data.decode())
        return text.replace(_DELETE, "\\u007f")


class _Uuids(_Kept):
    """Uuids in Kafka's form."""

    def _text(self, data: bytes) -> str:
        if len(data) != 16:
            raise ValueError
        return f'"{urlsafe_b64encode(data)[:22].decode()}"'


class _Numbers(_Kept):
    """Arrays of numbers of one type."""

    def __init__(self, type_name: str) -> None:
        super().__init__()
        self._code = CODES[type_name]
        self._size = FIXED_SIZES[type_name]

    def _text(self, data: bytes) -> str:
        numbers = struct.unpack(f">{len(data) // self._size}{self._code}", data)
        return str([*numbers]).replace(" ", "")


class _Bools(_Kept):
    """Arrays of bools."""

    def _text(self, data: bytes) -> str:
        return f"[{','.join([BOOLS[each] for each in data])}]"


TEXTS = _Texts()
UUIDS = _Uuids()
NUMBERS: dict[str, _Kept] = {
    name: _Numbers(name) for name in ("int8", "int16", "uint16", "int32", "uint32", "int64")
}
NUMBERS["bool"] = _Bools()


def blob(data: bytes) -> str:
    """Return the text of bytes, which is base64."""
    return f'"{b2a_base64(data, newline=False).decode()}"'


def long_length(buf: bytes, position: int, at: int, first: int) -> tuple[int, int]:
    """Read a compact length whose first byte is `first`, as short as it can be; a zero is an error.

    The next byte is at `position + at`. Returns: the length, and the position from which the data
    is at `at`.
    """
    if first < 128:
        raise ValueError
    second = buf[position + at]
    if 0 < second < 128:
        return (second << 7) + first - 128, position + 1
    length, end = _shortest(buf, position + at - 1)
    return length, end - at


def long_string(buf: bytes, position: int, at: int, first: int) -> tuple[int, int]:
    """Read a length like `long_length`, for a string, which Kafka limits to 32767 bytes."""
    length, position = long_length(buf, position, at, first)
    if length > STRING_SIZE_MAX + 1:
        raise ValueError
    return length, position


def long_tag(buf: bytes, position: int) -> tuple[int, int, int]:
    """Read a tag and its size, of which one takes several bytes; and the position after them."""
    tag, position = _shortest(buf, position)
    size, position = _shortest(buf, position)
    return tag, size, position


def _shortest(buf: bytes, position: int) -> tuple[int, int]:
    value, end = read_uvarint(buf, position)
    if uvarint_size(value) != end - position:
        raise ValueError
    return value, end


def compact_strings(buf: bytes, position: int, count: int) -> tuple[str, int]:
    """Return the text of an array of compact strings, and where it ends."""
    texts = []
    for _ in range(count):
        n = buf[position]
        position += 1
        if not 0 < n < 128:
            n, position = long_string(buf, position, 0, n)
        texts.append(TEXTS[buf[position : (position := position + n - 1)]])
    return f"[{','.join(texts)}]", position


def plain_strings(buf: bytes, position: int, count: int) -> tuple[str, int]:
    """Return the text of an array of strings with 16-bit lengths, and where it ends."""
    texts = []
    for _ in range(count):
        n = (buf[position] << 8) + buf[position + 1]
        position += 2
        if n > STRING_SIZE_MAX:
            raise ValueError
        texts.append(TEXTS[buf[position : (position := position + n)]])
    return f"[{','.join(texts)}]", position


def compact_blobs(buf: bytes, position: int, count: int) -> tuple[str, int]:
    """Return the text of an array of compact byte strings, and where it ends."""
    texts = []
    for _ in range(count):
        n = buf[position]
        position += 1
        if not 0 < n < 128:
            n, position = long_length(buf, position, 0, n)
        texts.append(blob(buf[position : (position := position + n - 1)]))
    return f"[{','.join(texts)}]", position


def plain_blobs(buf: bytes, position: int, count: int) -> tuple[str, int]:
    """Return the text of an array of byte strings with 32-bit lengths, and where it ends."""
    texts = []
    for _ in range(count):
        (n,) = _INT(buf, position)
        position += 4
        if n < 0:
            raise ValueError
        texts.append(blob(buf[position : (position := position + n)]))
    return f"[{','.join(texts)}]", position


def uuids(buf: bytes, position: int, count: int) -> tuple[str, int]:
    """Return the text of an array of uuids, and where it ends."""
    end = position + 16 * count
    if end > len(buf):
        raise ValueError
    return f"[{','.join([UUIDS[buf[at : at + 16]] for at in range(position, end, 16)])}]", end


_INT = struct.Struct(">i").unpack_from
