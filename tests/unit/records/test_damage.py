"""Damaged records: the byte is named, memory stays bounded, and fast and slow reading agree."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from kraftwire.errors import WireError
from kraftwire.records import BatchHeader, Record, RecordBatch, build_batch, read_batches
from kraftwire.records.cursor import RecordCursor, read_records
from kraftwire.records.limits import HEADERS_COUNT_FREE
from kraftwire.records.record import Section
from kraftwire.wire.varint import varint

pytestmark = pytest.mark.slow

SEED = 20_26


def section(data: bytes, **changes: object) -> Section:
    """A section of records after some other bytes."""
    fields: dict[str, object] = {
        "data": b"before" + data,
        "start": 6,
        "end": 6 + len(data),
        "base_offset": 100,
        "base_timestamp": 5000,
        "append_time": None,
        "base_sequence": -1,
        "origin": 0,
        "position": 0,
        "headers_max": HEADERS_COUNT_FREE,
    }
    return Section(**(fields | changes))  # type: ignore[arg-type]


def body(
    *,
    time: bytes = b"\x00",
    offset: bytes = b"\x00",
    key: bytes = b"\x02k",
    value: bytes = b"\x02v",
    headers: bytes = b"\x00",
) -> bytes:
    """A record with its length in front."""
    fields = b"\x00" + time + offset + key + value + headers
    return varint(len(fields)) + fields


def batch_of(records: bytes, count: int) -> bytes:
    """A batch with a correct CRC around any bytes."""
    raw = bytearray(build_batch([Record(0, 0, None, None)]))[:61] + records
    raw[8:12] = (len(raw) - 12).to_bytes(4)
    raw[57:61] = count.to_bytes(4, signed=True)
    raw[17:21] = RecordBatch(bytes(raw)).computed_crc.to_bytes(4)
    return bytes(raw)


@pytest.mark.parametrize(
    ("record", "path", "problem"),
    [
        (b"\x40" + body()[1:], "length", "record length out of range"),
        (b"\x01" + body()[1:], "length", "record length out of range"),
        (b"\x80\x80\x80\x80\x80\x01" + body()[1:], "length", "varint longer than 5 bytes"),
        (body(time=b"\x80" * 10 + b"\x01"), "timestamp_delta", "varint longer than 10 bytes"),
        (body(offset=b"\x80" * 5 + b"\x01"), "offset_delta", "varint longer than 5 bytes"),
        (body(key=b"\x40k"), "key", "the field leads outside"),
        (body(value=b"\x40v"), "value", "the field leads outside"),
        (body(headers=b"\x01"), "headers_count", "number of headers out of range"),
        (body(headers=b"\xfe\xff\x03"), "headers_count", "number of headers out of range"),
        (body(headers=b"\x02\x01\x00"), "headers[0].key_length", "a header has no key"),
        (body(headers=b"\x02\x20\x00"), "headers[0].key", "the field leads outside"),
        (body(headers=b"\x02\x00\x20"), "headers[0].value", "the field leads outside"),
        (body(headers=b"\x00\x00"), "", "a record is longer than its fields"),
        (body(headers=b""), "headers_count", "the varint leads outside"),
    ],
)
def test_a_damaged_record_is_named_with_its_field(record: bytes, path: str, problem: str) -> None:
    """Record, field and byte: debugging a client requires all three."""
    data = body() + record + bytes(3)
    with pytest.raises(WireError) as caught:
        RecordCursor(section(data)).take(2)
    error = caught.value
    assert error.path == "records[1]" + ("." + path if path else "")
    assert error.problem == problem
    assert error.offset is not None
    assert 6 + len(body()) <= error.offset <= 6 + len(data)
    assert error.expected
    assert error.found


def test_damage_inside_compressed_data_has_the_byte_in_the_decompressed_records() -> None:
    """An offset into bytes that are not in the file would mislead."""
    from kraftwire.records.compression import compress

    records = compress(1, body() + b"\x40" + bytes(20))
    raw = bytearray(batch_of(records, 2))
    raw[22] = 1
    with pytest.raises(WireError, match=r"byte 9 of the decompressed records") as caught:
        RecordBatch(bytes(b"." * 5 + raw), 5).records()
    assert caught.value.offset == 5


@pytest.mark.parametrize("count", [-1, 3, 2**31 - 1])
def test_an_impossible_count_is_refused_before_anything_is_read(count: int) -> None:
    """A count of two billion must not become a loop, let alone a list."""
    (batch,) = read_batches(batch_of(body() + body(), count))
    with pytest.raises(WireError) as caught:
        batch.records()
    with pytest.raises(WireError):
        list(batch.iter_records())
    assert caught.value.path in ("count", "records[2].length")
    assert caught.value.found in (str(count), "the end after 0 bytes")


def test_bytes_after_the_last_record_are_an_error() -> None:
    """They would be lost when the batch is written again."""
    (batch,) = read_batches(batch_of(body() * 3, 2))
    for read in (batch.records, lambda: list(batch.iter_records())):
        with pytest.raises(WireError, match="bytes are left after the last record"):
            read()


def test_a_record_cut_at_the_end_of_the_batch_is_named() -> None:
    """The length of the third record is the last byte there is."""
    (batch,) = read_batches(batch_of(body() * 2 + b"\x80" * 7, 3))
    with pytest.raises(WireError, match="varint longer") as caught:
        batch.records()
    assert caught.value.path == "records[2].length"
    (batch,) = read_batches(batch_of(body() * 3 + b"\x80", 4))
    with pytest.raises(WireError, match="ends inside a varint") as caught:
        batch.records()
    assert caught.value.path == "records[3].length"


def test_an_empty_batch_has_no_records_whatever_follows_its_header() -> None:
    """Compaction leaves empty batches behind, and Java looks only at their count."""
    (batch,) = read_batches(batch_of(b"", 0))
    assert batch.records() == []
    (batch,) = read_batches(batch_of(b"rest", 0))
    assert list(batch.iter_records()) == []


def test_salvage_keeps_what_precedes_the_damage() -> None:
    """A damaged batch still shows the records that were good."""
    good = [body(offset=varint(index)) for index in range(30)]
    good[20] = b"\x40" + good[20][1:]
    (batch,) = read_batches(batch_of(b"".join(good), 30))
    rows, damage = batch.salvage()
    assert [row.offset for row in rows] == list(range(20))
    assert damage is not None
    assert damage.path.startswith("records[20]")


def test_varints_may_be_longer_than_they_need_to_be() -> None:
    """Java reads them, so other clients may write them."""
    data = body(time=b"\x84\x80\x00", offset=b"\x82\x80\x80\x80\x00", key=b"\x82\x00k") * 40
    rows = RecordCursor(section(data)).take(40)
    assert rows == [Record(101, 5002, b"k", b"v")] * 40


def test_any_negative_length_is_a_null() -> None:
    """As in Java's client, which looks only at the sign."""
    data = body(key=b"\x01", value=b"\x05") * 40
    assert RecordCursor(section(data)).take(40) == [Record(100, 5000, None, None)] * 40


def test_negative_deltas_count_backwards() -> None:
    """Timestamps of a producer's records need not grow."""
    data = body(time=b"\x03", offset=b"\x01") * 30
    rows = RecordCursor(section(data, base_sequence=0)).take(30)
    assert {(row.offset, row.timestamp) for row in rows} == {(99, 4998)}


def test_deltas_of_any_size_follow_each_other() -> None:
    """A delta seen in one size must not be taken for the same bytes in another."""
    sizes = [0, 5, 63, 64, 0, 8191, 8192, 1, 2**20, 70, 2**21, 0, 2**30, 127, 2**31 - 1, 2, 300]
    sizes += [-1, -64, 3, -65, -(2**20), 0, 2**40, 1, -(2**40), 100]
    rows = [body(time=varint(sizes[n]), offset=varint(n * 400)) for n in range(len(sizes))]
    found = section(b"".join(rows))
    for _ in range(2):
        for step in (1, 5, len(rows)):
            cursor = RecordCursor(found)
            taken = [row for n in range(0, len(rows), step) for row in cursor.take(
                min(step, len(rows) - n)
            )]
            assert [row.timestamp - 5000 for row in taken] == sizes
            assert [row.offset - 100 for row in taken] == [n * 400 for n in range(len(rows))]


def test_a_stamped_batch_is_read_whatever_its_deltas_are() -> None:
    """The broker's timestamp counts, but a delta of another size still moves what follows it.

    Read with the first record's shape, the second of these has other fields of the right length.
    """
    rows = [Record(7, -5, b"", bytes(8)), Record(8, 59, None, bytes(8))]
    (batch,) = read_batches(build_batch(rows, BatchHeader(append_time=77)))
    assert isinstance(batch, RecordBatch)
    assert batch.records() == [row._replace(timestamp=77) for row in rows]


def test_sums_beyond_64_bits_wrap_around_as_in_java() -> None:
    """A reader that disagreed with Java about an offset would be worse than one that fails."""
    data = body(time=varint(2**62), offset=varint(5))
    found = section(data, base_offset=2**63 - 2, base_timestamp=2**62)
    (row,) = RecordCursor(found).take(1)
    assert (row.offset, row.timestamp) == (-(2**63) + 3, -(2**63))


def test_header_keys_that_are_not_text_are_replaced_as_in_java() -> None:
    """Kafka's client shows replacement characters instead of failing."""
    data = body(headers=b"\x02\x04\xff\xfe\x02x")
    (row,) = RecordCursor(section(data)).take(1)
    assert row.headers == (("��", b"x"),)


def mutations(count: int, kinds: tuple[str, ...], *, resize: bool) -> Iterator[bytes]:
    """Batches with some bytes changed and, with `resize`, inserted or removed."""
    rng = random.Random(SEED)
    print("seed", SEED)
    for _ in range(count):
        rows = [
            Record(
                offset,
                rng.randrange(2**41),
                rng.choice([None, rng.randbytes(4)]),
                rng.choice([None, rng.randbytes(rng.randrange(90))]),
                ((("h", None), ("", b"x")) if rng.random() < 0.1 else ()),
            )
            for offset in range(rng.choice([1, 3, 60]))
        ]
        header = BatchHeader(compression=rng.choice(kinds), base_sequence=rng.choice([-1, 7]))
        raw = bytearray(build_batch(rows, header))
        for _ in range(rng.randrange(1, 4)):
            place = rng.randrange(12, len(raw))
            kind = rng.randrange(3) if resize else 0
            if kind == 0:
                raw[place] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
            elif kind == 1:
                raw[place:place] = rng.randbytes(rng.randrange(1, 6))
            else:
                del raw[place : place + rng.randrange(1, 6)]
        raw[8:12] = max(0, len(raw) - 12).to_bytes(4)
        yield bytes(raw)


def _refusal(read: Callable[[], object]) -> str | None:
    """The text of the error that refuses a batch."""
    try:
        read()
    except WireError as error:
        return str(error)
    return None


def test_mutated_batches_read_or_fail_with_a_wire_error() -> None:
    """No other exception may come out of bytes."""
    outcomes = {True: 0, False: 0}
    kinds = ("none", "none", "none", "gzip", "snappy", "lz4", "zstd")
    for raw in mutations(2000, kinds, resize=True):
        with suppress(WireError):
            for batch in read_batches(raw):
                rows, damage = batch.salvage()
                assert damage is not None or rows == list(batch.iter_records())
                assert _refusal(batch.ensure_readable) == _refusal(batch.records)
                outcomes[damage is None] += 1
    assert min(outcomes.values()) > 100, outcomes


def test_fast_and_slow_reading_agree_on_mutated_records() -> None:
    """Two readers of one format stay equal only if something compares them."""
    compared = 0
    for raw in mutations(2000, ("none",), resize=False):
        batch = RecordBatch(raw)
        if not 0 < batch.count < 1000:
            continue
        found = section(
            raw[61:], base_offset=batch.base_offset, base_timestamp=batch.base_timestamp,
            base_sequence=batch.base_sequence,
        )
        cursor = RecordCursor(found)
        rows, position = cursor._take(batch.count)
        if position > found.end:
            continue
        compared += 1
        assert (rows, position) == read_records(found, found.start, 0, batch.count)
    assert compared > 500


@pytest.mark.parametrize("codec", ["gzip", "lz4", "zstd"])
def test_a_batch_of_tiny_records_is_iterated_in_bounded_memory(codec: str) -> None:
    """Seven bytes become an object of two hundred; a list of all of them is not always needed."""
    count = 60_000
    rows = [Record(0, 0, None, None)] * count
    (batch,) = read_batches(build_batch(rows, BatchHeader(compression=codec, last_offset=0)))
    assert batch.size < 5_000
    tracemalloc.start()
    try:
        assert sum(1 for _ in batch.iter_records()) == count
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10 * 7 * count
