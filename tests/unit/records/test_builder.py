"""Building batches: what callers may set, what follows from the records, what is refused."""

from __future__ import annotations

import pytest

from kraftwire.errors import UsageError, WireError
from kraftwire.records import (
    BatchBuilder,
    BatchHeader,
    Record,
    build_batch,
    build_columns,
    read_batches,
    record_size_max,
)

ROWS = [Record(5, 100, b"k", b"v"), Record(6, 90, None, b"v"), Record(9, 110, b"k", None)]


def test_offsets_and_timestamps_follow_from_the_records() -> None:
    """The first record gives the bases, the largest timestamp need not be the last."""
    (batch,) = read_batches(build_batch(ROWS))
    assert (batch.base_offset, batch.last_offset, batch.count) == (5, 9, 3)
    assert (batch.base_timestamp, batch.max_timestamp) == (100, 110)
    assert batch.partition_leader_epoch == -1
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (-1, -1, -1)
    assert batch.records() == ROWS
    assert batch.is_valid


def test_every_field_of_the_header_is_the_callers() -> None:
    """A log, a producer and a compactor each set different ones."""
    header = BatchHeader(
        base_offset=2,
        last_offset=12,
        partition_leader_epoch=8,
        compression="lz4",
        append_time=777,
        delete_horizon_ms=50,
        producer_id=3,
        producer_epoch=4,
        base_sequence=5,
        is_transactional=True,
        is_control=True,
    )
    (batch,) = read_batches(build_batch(iter(ROWS), header))
    assert (batch.base_offset, batch.last_offset, batch.partition_leader_epoch) == (2, 12, 8)
    assert (batch.compression, batch.timestamp_type) == ("lz4", "LogAppendTime")
    assert (batch.delete_horizon_ms, batch.base_timestamp, batch.max_timestamp) == (50, 50, 777)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (3, 4, 5)
    assert batch.is_transactional
    assert batch.is_control
    assert {record.timestamp for record in batch.records()} == {777}
    assert [record.offset for record in batch.records()] == [5, 6, 9]


def test_the_crc_does_not_cover_what_a_leader_sets() -> None:
    """Base offset and leader epoch are written into a batch that came with its CRC."""
    one = build_batch(ROWS, BatchHeader(base_offset=0))
    moved = [row._replace(offset=row.offset + 70) for row in ROWS]
    two = build_batch(moved, BatchHeader(base_offset=70, partition_leader_epoch=6))
    assert one[16:] == two[16:]


def test_an_empty_batch_needs_its_offsets() -> None:
    """Compaction keeps the header of a batch whose records are all gone."""
    with pytest.raises(UsageError):
        build_batch([])
    header = BatchHeader(base_offset=4, last_offset=8, max_timestamp=99, compression="gzip")
    (batch,) = read_batches(build_batch([], header))
    assert (batch.base_offset, batch.last_offset, batch.count, batch.size) == (4, 8, 0, 61)
    assert (batch.base_timestamp, batch.max_timestamp) == (-1, 99)
    assert batch.records() == []


def test_the_builder_numbers_records_one_by_one() -> None:
    """A leader appends without counting."""
    builder = BatchBuilder(BatchHeader(base_offset=40, partition_leader_epoch=2))
    assert builder.append(100, b"a", b"b") == 40
    assert builder.append(101, None, b"c", (("h", None),)) == 41
    assert len(builder) == 2
    (batch,) = read_batches(builder.build())
    assert batch.records() == [
        Record(40, 100, b"a", b"b"),
        Record(41, 101, None, b"c", (("h", None),)),
    ]


def test_columns_give_the_same_bytes_as_records() -> None:
    """Three ways of building give one batch."""
    header = BatchHeader(base_offset=7, producer_id=4, base_sequence=0)
    headers = [(), (("h", b"x"),), ()]
    keys, values = [b"a", None, b""], [None, b"b", b"c"]
    times = range(1000, 1003)
    rows = [Record(7 + n, times[n], keys[n], values[n], headers[n]) for n in range(3)]
    expected = build_batch(rows, header)
    assert build_columns(times, keys, values, headers=headers, header=header) == expected
    builder = BatchBuilder(header)
    for row in rows:
        builder.append(*row[1:5])
    assert builder.build() == expected


def test_columns_of_different_lengths_are_refused() -> None:
    """A value must not end up in another record."""
    with pytest.raises(UsageError, match="differ in length"):
        build_columns([1, 2], [b"k", b"k"], [b"v"])
    with pytest.raises(UsageError, match="differ in length"):
        build_columns([1], [b"k"], [b"v"], headers=[])


def test_the_builder_bounds_the_size_of_its_batch() -> None:
    """An accumulator closes a batch before it grows beyond what a fetch may return."""
    builder = BatchBuilder()
    assert builder.size_max >= 61
    for index in range(300):
        headers = (("key", b"value"), ("", None)) if index % 3 == 0 else ()
        builder.append(index * 10**12, bytes(index), bytes(index * 7), headers)
        assert len(builder.build()) <= builder.size_max
    assert record_size_max(None, None) < 40


def test_bytes_like_payloads_are_written() -> None:
    """Views of received frames are passed on without a copy."""
    rows = [Record(0, 0, memoryview(b"key"), bytearray(b"value"))]  # type: ignore[arg-type]
    (batch,) = read_batches(build_batch(rows))
    assert batch.records() == [Record(0, 0, b"key", b"value")]


@pytest.mark.parametrize(
    ("row", "header"),
    [
        (Record(0, 0, "text", None), BatchHeader()),  # type: ignore[arg-type]
        (Record(0, 0, None, 5), BatchHeader()),  # type: ignore[arg-type]
        (Record(0, 0, None, None, ((b"key", None),)), BatchHeader()),  # type: ignore[arg-type]
        (Record(0, 0, None, None, (("\udc80", None),)), BatchHeader()),
        (Record(0, 0, None, None), BatchHeader(base_offset=1)),
        (Record(2**31, 0, None, None), BatchHeader(base_offset=0, last_offset=0)),
        (Record(2**40, 0, None, None), BatchHeader(base_offset=0)),
        (Record(0, 2**63, None, None), BatchHeader()),
        (Record(0, -(2**63), None, None), BatchHeader(delete_horizon_ms=2**62)),
        (Record(2**63, 0, None, None), BatchHeader()),
        (Record(0, 0, None, None), BatchHeader(partition_leader_epoch=2**31)),
        (Record(0, 0, None, None), BatchHeader(producer_epoch=40_000)),
        (Record(0, 0, None, None), BatchHeader(base_sequence=-(2**31) - 1)),
        (Record(0, None, None, None), BatchHeader()),  # type: ignore[arg-type]
        # Searching a range of 2**64 numbers for a float takes for ever.
        (Record(0, 1.5, None, None), BatchHeader(append_time=0)),  # type: ignore[arg-type]
        (Record(1.5, 0, None, None), BatchHeader(base_offset=0, last_offset=0)),  # type: ignore[arg-type]
    ],
)
def test_values_that_do_not_fit_are_refused(row: Record, header: BatchHeader) -> None:
    """A batch that other clients misread is worse than an error."""
    with pytest.raises(WireError, match="does not fit"):
        build_batch([row], header)


def test_a_value_that_does_not_fit_is_named() -> None:
    """The caller has to find one of a thousand records."""
    rows = [Record(number, number, b"k", b"v") for number in range(5)]
    rows[3] = rows[3]._replace(value="text")  # type: ignore[arg-type]
    with pytest.raises(WireError, match="the value of record 3 is 'text', not bytes"):
        build_batch(rows)


def test_our_own_mistake_is_not_reported_as_a_wrong_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller would search the records for it."""

    def broken(*_: object) -> bytes:
        raise AttributeError("no such attribute")

    monkeypatch.setattr("kraftwire.records.builder._payload", broken)
    with pytest.raises(AttributeError, match="no such attribute"):
        build_batch(ROWS)


@pytest.mark.parametrize("level", [10, -2, "fast", 2**40])
def test_an_unknown_level_is_a_usage_error(level: int) -> None:
    """It comes from a configuration, as the codec does."""
    with pytest.raises(UsageError, match=r"compression level .*: expected -1 to 9"):
        build_batch(ROWS, BatchHeader(compression="gzip", level=level))


def test_unknown_compression_is_a_usage_error() -> None:
    """It comes from a configuration, not from bytes."""
    with pytest.raises(UsageError, match="brotli"):
        build_batch(ROWS, BatchHeader(compression="brotli"))
