"""The tables of varints have every value that can be decoded, and no other."""

from __future__ import annotations

import pytest

from kraftwire.records.columns import Unusual, varint_values
from kraftwire.wire.varint import read_varint


def test_tables_hold_every_varint_of_one_byte_and_of_two() -> None:
    """A wrong entry would show in one record of thousands."""
    short, pairs = varint_values(1), varint_values(2)
    for word in range(0x1_0000):
        data = word.to_bytes(2)
        value, end = read_varint(data + b"\x00\x00\x00", 0)
        assert pairs[word] == (value if end == 2 else None)
        if not data[1]:
            assert short[data[0]] == (value if end == 1 else None)


def test_longer_varints_are_found_by_their_bytes() -> None:
    """Bytes that end early or late are no varint of that size."""
    assert varint_values(3)[b"\x80\x80\x01"] == 8192
    for wrong in (b"\x80\x80\x80", b"\x80\x01\x01", b"\x01\x01\x01"):
        with pytest.raises(Unusual):
            varint_values(3)[wrong]
