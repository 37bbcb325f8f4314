"""Variable-length integers: Kafka's bytes, and where reading them fails."""

from __future__ import annotations

import pytest

from kraftwire.errors import WireError
from kraftwire.wire.varint import read_uvarint, read_varint, uvarint, uvarint_size, varint

UNSIGNED = [
    (0, "00"),
    (1, "01"),
    (127, "7f"),
    (128, "8001"),
    (300, "ac02"),
    (16383, "ff7f"),
    (16384, "808001"),
    (2**21 - 1, "ffff7f"),
    (2**28, "8080808001"),
    (2**32 - 1, "ffffffff0f"),
]
ZIG_ZAG = [
    (0, "00"),
    (-1, "01"),
    (1, "02"),
    (-64, "7f"),
    (64, "8001"),
    (2**31 - 1, "feffffff0f"),
    (-(2**31), "ffffffff0f"),
]


@pytest.mark.parametrize(("value", "data"), UNSIGNED)
def test_unsigned_varints_are_kafkas_bytes(value: int, data: str) -> None:
    """Every compact length and every tag is one of these."""
    assert uvarint(value).hex() == data
    assert uvarint_size(value) == len(data) // 2
    assert read_uvarint(bytes.fromhex(data), 0) == (value, len(data) // 2)


@pytest.mark.parametrize(("value", "data"), ZIG_ZAG)
def test_zig_zag_varints_are_kafkas_bytes(value: int, data: str) -> None:
    """The fields of a record are written like this."""
    assert varint(value).hex() == data
    assert read_varint(bytes.fromhex(data), 0) == (value, len(data) // 2)


@pytest.mark.parametrize("value", [2**63 - 1, -(2**63), 10**15, -(10**15)])
def test_zig_zag_varints_hold_64_bits(value: int) -> None:
    """Timestamps and offsets of records need them."""
    data = varint(value)
    assert read_varint(data, 0, bits=64) == (value, len(data))


def test_varints_are_read_in_the_middle_of_a_view() -> None:
    """Records are read out of memoryviews, one after the other."""
    view = memoryview(b"\x05\xac\x02\x07")
    assert read_uvarint(view, 1) == (300, 3)
    assert read_varint(view, 1) == (150, 3)


def test_a_varint_may_take_more_bytes_than_it_needs() -> None:
    """Kafka reads such varints, so they have to be understood."""
    assert read_uvarint(b"\x80\x80\x00", 0) == (0, 3)
    assert read_uvarint(b"\x85\x80\x80\x80\x00", 0) == (5, 5)


def test_bits_beyond_the_type_are_dropped_as_kafka_does() -> None:
    """The fifth byte has room for 35 bits; Kafka's reader shifts the surplus out of an int."""
    assert read_uvarint(b"\xff\xff\xff\xff\x7f", 0) == (2**32 - 1, 5)


@pytest.mark.parametrize("data", ["", "80", "ffff", "80808080"])
def test_a_cut_varint_is_an_error_at_its_first_byte(data: str) -> None:
    """The offset leads to the field, not to the end of the buffer."""
    with pytest.raises(WireError) as caught:
        read_uvarint(b"\x00" + bytes.fromhex(data), 1)
    assert caught.value.offset == 1
    assert caught.value.found == f"the end after {len(data) // 2} bytes"


def test_a_varint_that_never_ends_is_an_error() -> None:
    """Five bytes for 32 bits, ten for 64: reading more would accept what no peer writes."""
    with pytest.raises(WireError, match="longer than 5 bytes"):
        read_uvarint(b"\x80" * 8, 0)
    with pytest.raises(WireError, match="longer than 10 bytes"):
        read_varint(b"\xff" * 12, 0, bits=64)


@pytest.mark.parametrize("value", [-1, 2**32])
def test_only_unsigned_32_bit_numbers_are_written(value: int) -> None:
    """A negative length would become a huge one."""
    with pytest.raises(WireError, match="out of range"):
        uvarint(value)
