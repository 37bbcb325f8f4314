"""Messages of magic 0 and 1: wrappers, offsets inside them, damage."""

from __future__ import annotations

import random
import struct
import zlib
from contextlib import suppress

import pytest

from kraftwire.errors import WireError
from kraftwire.records import LegacyBatch, Record, read_batches
from kraftwire.records.compression import compress
from kraftwire.records.json_form import batch_to_json

GZIP = 1


def message(
    offset: int,
    value: bytes | None,
    *,
    key: bytes | None = None,
    magic: int = 1,
    attributes: int = 0,
    timestamp: int = 1000,
) -> bytes:
    """One message with a correct CRC."""
    body = struct.pack(">bb", magic, attributes)
    if magic:
        body += struct.pack(">q", timestamp)
    for data in (key, value):
        body += struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def wrapper(offset: int, *inner: bytes, magic: int = 1, attributes: int = GZIP) -> bytes:
    """A message that holds others."""
    data = compress(GZIP, b"".join(inner))
    return message(offset, data, magic=magic, attributes=attributes, timestamp=9000)


def test_offsets_inside_a_wrapper_of_magic_1_count_from_zero() -> None:
    """The wrapper has the offset of its last message."""
    (batch,) = read_batches(wrapper(104, message(0, b"a"), message(2, b"b"), message(4, b"c")))
    assert [record.offset for record in batch.records()] == [100, 102, 104]
    assert (batch.base_offset, batch.last_offset, batch.count) == (100, 104, 3)
    assert batch.last_offset_delta == 4


def test_offsets_inside_a_wrapper_of_magic_0_are_absolute() -> None:
    """In that version the broker rewrote every message."""
    inner = (message(7, b"a", magic=0), message(9, b"b", magic=0))
    (batch,) = read_batches(wrapper(9, *inner, magic=0))
    assert batch.records() == [Record(7, -1, None, b"a"), Record(9, -1, None, b"b")]
    assert batch.timestamp_type == "NoTimestampType"


def test_a_wrapper_at_offset_zero_leaves_the_inner_offsets_alone() -> None:
    """Some producers did not fill in the wrapper's offset."""
    (batch,) = read_batches(wrapper(0, message(0, b"a"), message(1, b"b")))
    assert [record.offset for record in batch.records()] == [0, 1]


def test_a_wrapper_stamped_by_the_broker_stamps_its_messages() -> None:
    """Otherwise each has its own timestamp."""
    inner = (message(0, b"a", timestamp=1), message(1, b"b", timestamp=2))
    (batch,) = read_batches(wrapper(11, *inner, attributes=GZIP | 8))
    assert [record.timestamp for record in batch.records()] == [9000, 9000]
    assert batch.timestamp_type == "LogAppendTime"
    (batch,) = read_batches(wrapper(11, *inner))
    assert [record.timestamp for record in batch.records()] == [1, 2]


def test_a_message_cut_inside_a_wrapper_ends_it() -> None:
    """Old brokers filled wrappers from truncated reads; Java stops there too."""
    inner = message(0, b"a") + message(1, b"b")
    (batch,) = read_batches(wrapper(11, inner[:-1]))
    assert [record.value for record in batch.records()] == [b"a"]


def test_formats_may_be_mixed_in_one_log() -> None:
    """Topics that were upgraded hold all three."""
    from kraftwire.records import build_batch

    data = message(0, b"0", magic=0) + message(1, b"1") + build_batch([Record(2, 5, None, b"2")])
    batches = list(read_batches(data))
    assert [batch.magic for batch in batches] == [0, 1, 2]
    assert [batch.records()[0].value for batch in batches] == [b"0", b"1", b"2"]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (wrapper(11), "a wrapper without messages"),
        (wrapper(5, message(0, b"a"), message(9, b"b")), "below that of its last message"),
        (wrapper(11, wrapper(1, message(0, b"a"))), "a wrapper inside a wrapper"),
        (wrapper(11, message(0, b"a", magic=2)), "unknown magic"),
        (message(11, None, attributes=GZIP), "no such wrapper exists"),
        (message(11, b"x", attributes=4), "no such wrapper exists"),
        (message(11, b"x", attributes=5), "unknown compression codec"),
        (message(11, b"x", attributes=GZIP), "damaged gzip data"),
    ],
)
def test_wrappers_that_java_refuses_are_refused(data: bytes, problem: str) -> None:
    """The header stays readable; only the records do not."""
    (batch,) = read_batches(data)
    assert batch.is_valid
    for read in (batch.records, lambda: batch.base_offset, lambda: batch.count):
        with pytest.raises(WireError, match=problem) as caught:
            read()
        assert caught.value.offset == 0
    assert batch.salvage()[0] == []
    json, problems = batch_to_json(batch)
    assert (json["baseOffset"], json["count"]) == (None, None)
    assert json["lastOffset"] == batch.last_offset
    assert problem in str(problems[0])


def test_a_length_inside_a_message_that_leads_outside_is_refused() -> None:
    """Key and value lie before the next message, whatever their lengths say."""
    for place, path in ((26, "key"), (33, "value")):
        data = bytearray(message(3, b"value", key=b"key") + message(4, b"value"))
        data[place + 2] = 1
        reader = read_batches(data)
        with pytest.raises(WireError, match="the field leads outside") as caught:
            next(reader)
        assert caught.value.path == path
        assert reader.position == 0


def test_any_negative_length_is_a_null() -> None:
    """As in Java."""
    data = bytearray(message(3, None))
    data[-1] = 0xF0
    assert LegacyBatch(bytes(data)).records() == [Record(3, 1000, None, None)]


def test_the_crc_is_crc_32() -> None:
    """Not the Castagnoli variant of later batches."""
    data = bytearray(message(3, b"value"))
    (batch,) = read_batches(data)
    batch.ensure_valid()
    data[-1] ^= 1
    (batch,) = read_batches(data)
    assert not batch.is_valid
    with pytest.raises(WireError) as caught:
        batch.ensure_valid()
    assert caught.value.path == "crc"


def test_damaged_messages_read_or_fail_with_a_wire_error() -> None:
    """No other exception may come out of bytes."""
    rng = random.Random(5)
    inner = (message(0, b"a" * 20, key=b"k"), message(1, None), message(2, b"c"))
    good = message(0, b"x", magic=0) + wrapper(50, *inner) + message(51, b"y", key=b"k")
    for _ in range(3000):
        bad = bytearray(good)
        for _ in range(rng.randrange(1, 4)):
            bad[rng.randrange(len(bad))] = rng.choice([0, 1, 0x7F, 0xFF, rng.randrange(256)])
        reader = read_batches(bad)
        with suppress(WireError):
            for batch in reader:
                rows, damage = batch.salvage()
                assert (damage is None) == bool(rows)
                batch_to_json(batch)
        reader.resume()
