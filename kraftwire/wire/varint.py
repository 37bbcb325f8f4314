"""Variable-length integers of Kafka's wire format: base 128, least significant group first.

Source: Kafka's `ByteUtils` (unsigned varints of flexible versions; zig-zag varints of records).
"""

from __future__ import annotations

from kraftwire.errors import WireError

_UVARINT_BYTES_MAX = 5
_VARLONG_BYTES_MAX = 10


def uvarint(value: int) -> bytes:
    """Encode an unsigned varint. Raises: WireError unless 0 <= value < 2**32."""
    if value < 0x80:
        if value >= 0:
            return _ONE_BYTE[value]
        raise WireError("unsigned varint out of range", expected="0 or more", found=str(value))
    if value < 0x4000:
        return bytes((value & 0x7F | 0x80, value >> 7))
    if value < 0x200000:
        return bytes((value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14))
    if value >= 0x100000000:
        raise WireError("unsigned varint out of range", expected="below 2**32", found=str(value))
    return _groups(value)


def _groups(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


_ONE_BYTE = tuple(bytes((value,)) for value in range(0x80))


def uvarint_size(value: int) -> int:
    """Bytes that `uvarint` needs for a value."""
    return max(1, (value.bit_length() + 6) // 7)


def varint(value: int) -> bytes:
    """Encode a zig-zag varint or varlong, as the fields of a record use them."""
    return _groups((value << 1) ^ (value >> 63))


def read_uvarint(buf: bytes | memoryview, position: int) -> tuple[int, int]:
    """Read an unsigned varint; returns (value, position after it).

    Raises: WireError if it is longer than five bytes or the buffer ends inside it.
    """
    # A loop takes three times as long.
    try:
        first = buf[position]
        if first < 0x80:
            return first, position + 1
        second = buf[position + 1]
        if second < 0x80:
            return (second << 7) + first - 0x80, position + 2
        third = buf[position + 2]
        if third < 0x80:
            return (third << 14) + (second << 7) + first - 0x4080, position + 3
        low = (third << 14) + (second << 7) + first - 0x204080
        fourth = buf[position + 3]
        if fourth < 0x80:
            return (fourth << 21) + low, position + 4
        fifth = buf[position + 4]
        if fifth < 0x80:
            # Kafka's reader drops what does not fit, so the fifth byte may overflow.
            return ((fourth & 0x7F | (fifth & 0x0F) << 7) << 21) + low, position + 5
    except IndexError:
        pass  # raised below
    return _read(buf, position, _UVARINT_BYTES_MAX, 32)


def read_varint(buf: bytes | memoryview, position: int, bits: int = 32) -> tuple[int, int]:
    """Read a zig-zag varint of 32 or 64 bits; returns (value, position after it).

    Raises: WireError if it is too long or the buffer ends inside it.
    """
    limit = _UVARINT_BYTES_MAX if bits == 32 else _VARLONG_BYTES_MAX
    raw, position = _read(buf, position, limit, bits)
    return (raw >> 1) ^ -(raw & 1), position


def _read(
    buf: bytes | memoryview, position: int, bytes_max: int, bits: int
) -> tuple[int, int]:
    start = position
    result = 0
    for shift in range(0, 7 * bytes_max, 7):
        if position >= len(buf):
            raise WireError(
                "the buffer ends inside a varint",
                offset=start,
                expected="a byte below 0x80",
                found=f"the end after {position - start} bytes",
            )
        byte = buf[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            # Kafka's reader drops what does not fit the type, so the fifth byte may overflow.
            return result & ((1 << bits) - 1), position
    raise WireError(
        f"varint longer than {bytes_max} bytes",
        offset=start,
        expected="a byte below 0x80",
        found=f"0x{buf[position - 1]:02x}",
    )
