"""The bytes of certificates, keys and stores: elements of DER, each a tag, a length and a content.

Readers raise ValueError or IndexError for bytes that are none.

Source: X.690. Stores of some tools have BER's indefinite lengths, which `definite` takes away.
"""

from __future__ import annotations

from collections.abc import Iterator

OCTETS, OID, SEQUENCE, SET = 0x04, 0x06, 0x30, 0x31
_CONSTRUCTED = 0x20
_INDEFINITE = 0x80
_END = b"\0\0"
_DEPTH_MAX = 32
# Real ones have up to 30. Work on the numbers grows with the square of their length.
_OID_BYTES_MAX = 256


def content(data: bytes, at: int, tag: int) -> tuple[bytes, int]:
    """Return the content of the element at a position, and the position after it."""
    if data[at] != tag:
        raise ValueError(f"expected tag {tag}, found {data[at]}")
    size, start = data[at + 1], at + 2
    if size & 0x80:
        count = size & 0x7F
        if not 1 <= count <= 4:
            raise ValueError("a length of another form")
        size, start = int.from_bytes(data[start : start + count]), start + count
    if start + size > len(data):
        raise ValueError("an element longer than what contains it")
    return data[start : start + size], start + size


def elements(data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Return tag, content and all bytes of each element."""
    at = 0
    while at < len(data):
        found, end = content(data, at, data[at])
        yield data[at], found, data[at:end]
        at = end


def first(data: bytes, tag: int) -> bytes:
    """Return the element at the start, without what follows it."""
    return data[: content(data, 0, tag)[1]]


def fields(data: bytes) -> list[tuple[int, bytes]]:
    """Return tag and content of each element of the sequence at the start."""
    inner = content(definite(data), 0, SEQUENCE)[0]
    return [(tag, found) for tag, found, _ in elements(inner)]


def octets(tag: int, data: bytes, depth: int = 0) -> bytes:
    """Return the bytes of an octet string, which BER may have in parts, and these in parts."""
    if not tag & _CONSTRUCTED:
        return data
    if depth > _DEPTH_MAX:
        raise ValueError("elements nested too deeply")
    return b"".join(octets(part, found, depth + 1) for part, found, _ in elements(data))


def number(data: bytes) -> int:
    """Return the value of an integer's content."""
    return int.from_bytes(data, signed=True)


def dotted(oid: bytes) -> str:
    """Return an object identifier as text. Raises: ValueError for one that is far too long."""
    if len(oid) > _OID_BYTES_MAX:
        raise ValueError("an object identifier that is too long")
    numbers, value = [], 0
    for byte in oid:
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(value)
            value = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def _element(tag: int, data: bytes) -> bytes:
    size = len(data)
    if size < 0x80:
        return bytes((tag, size)) + data
    width = (size.bit_length() + 7) // 8
    return bytes((tag, 0x80 | width)) + size.to_bytes(width) + data


def definite(data: bytes) -> bytes:
    """Return the element at the start in DER's form of lengths and octet strings.

    An element with a definite length is returned as it is.
    """
    return _definite(data, 0, 0)[0] if data[1] == _INDEFINITE else data


def _definite(data: bytes, at: int, depth: int) -> tuple[bytes, int]:
    if depth > _DEPTH_MAX:
        raise ValueError("elements nested too deeply")
    tag = data[at]
    if data[at + 1] == _INDEFINITE:
        inner, end, at = data, 0, at + 2
    else:
        inner, end = content(data, at, tag)
        if not tag & _CONSTRUCTED:
            return data[at:end], end
        at = 0
    parts = []
    while inner[at : at + 2] != _END if not end else at < len(inner):
        part, at = _definite(inner, at, depth + 1)
        parts.append(part)
    made = b"".join(parts)
    if tag == OCTETS | _CONSTRUCTED:
        tag, made = OCTETS, octets(tag, made)
    return _element(tag, made), end or at + len(_END)
