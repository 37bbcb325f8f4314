"""Damaged messages: one to three small changes that a decoder must survive or refuse."""

from __future__ import annotations

import random
from collections.abc import Callable

# Bytes with a meaning: nulls, the edges of lengths, varints that are too long or overflow.
_PIECES = tuple(
    map(
        bytes.fromhex,
        [
            *("00", "01", "02", "7f", "80", "c3", "fe", "ff", "0000", "8000", "7fff", "ffff"),
            *("fffe", "8001", "ff01", "00000000", "7fffffff", "80000000", "ffffffff", "fffffffe"),
            *("80808000", "ffffff7f", "ffffffff07", "ffffffff0f", "8080808008", "8080808010"),
            *("ffffffff7f", "808080808000", "818080808000"),
        ],
    )
)


def mutated(data: bytes, source: random.Random) -> bytes:
    """A copy of a message with one to three changes at random places."""
    for _ in range(source.choice((1, 1, 1, 2, 3))):
        data = source.choice(_CHANGES)(data, source)
    return data


def _replace_byte(data: bytes, source: random.Random) -> bytes:
    at = source.randrange(len(data) + 1)
    return data[:at] + source.randbytes(1) + data[at + 1 :]


def _replace_with_piece(data: bytes, source: random.Random) -> bytes:
    at = source.randrange(len(data) + 1)
    piece = source.choice(_PIECES)
    return data[:at] + piece + data[at + len(piece) :]


def _insert_piece(data: bytes, source: random.Random) -> bytes:
    at = source.randrange(len(data) + 1)
    return data[:at] + source.choice(_PIECES) + data[at:]


def _change_byte_by_one(data: bytes, source: random.Random) -> bytes:
    # Lengths and counts that are almost right reach deeper code than absurd ones.
    at = source.randrange(max(len(data), 1))
    changed = bytes(((data[at : at + 1] or b"\0")[0] + source.choice((-1, 1)) & 0xFF,))
    return data[:at] + changed + data[at + 1 :]


def _lengthen_varint(data: bytes, source: random.Random) -> bytes:
    # The same value in more bytes than it needs.
    at = source.randrange(max(len(data), 1))
    low = (data[at : at + 1] or b"\0")[0] | 0x80
    padding = b"\x80" * source.randrange(4) + b"\0"
    return data[:at] + bytes((low,)) + padding + data[at + 1 :]


def _remove(data: bytes, source: random.Random) -> bytes:
    at = source.randrange(len(data) + 1)
    return data[:at] + data[at + source.randint(1, 4) :]


def _repeat(data: bytes, source: random.Random) -> bytes:
    start = source.randrange(len(data) + 1)
    end = start + source.randint(1, 12)
    return data[:end] + data[start:end] + data[end:]


def _cut(data: bytes, source: random.Random) -> bytes:
    return data[: source.randrange(len(data) + 1)]


_CHANGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    _replace_byte,
    _replace_with_piece,
    _insert_piece,
    _change_byte_by_one,
    _change_byte_by_one,
    _lengthen_varint,
    _remove,
    _repeat,
    _cut,
)
