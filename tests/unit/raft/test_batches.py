"""Checks on fetched batches, and the batches that a leader makes, next to a Java leader's log."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from kraftwire.messages.leader_change_message import LeaderChangeMessage
from kraftwire.raft.batches import (
    OFFSET_MAX,
    FetchedBatches,
    control_records,
    leader_change,
    read_fetched,
)
from kraftwire.records import BatchHeader, Record, build_batch, read_batches
from kraftwire.records.control import ControlType, control_batch
from kraftwire.records.plain import data_batch

SEGMENT = (
    Path(__file__).resolve().parents[2]
    / "golden/logs/controller/__cluster_metadata-0/00000000000000000000.log"
)


@pytest.fixture(scope="module")
def segment() -> bytes:
    """A segment that a Java quorum wrote, from offset 0 on, epochs 1 to 4."""
    return SEGMENT.read_bytes()


def three() -> tuple[bytes, bytes, bytes]:
    """Batches at 5..6, 7..7 and 8..10 of epochs 2, 2 and 3."""
    return (
        data_batch(5, 2, 1000, [b"a", b"b"]),
        data_batch(7, 2, 1001, [b"c"]),
        data_batch(8, 3, 1002, [b"d", b"e", b"f"]),
    )


def patched(batch: bytes, offset: int, layout: str, value: int) -> bytes:
    """The batch with a field overwritten and its CRC corrected."""
    data = bytearray(batch)
    struct.pack_into(layout, data, offset, value)
    struct.pack_into(">I", data, 17, crc32c(bytes(data[21:])))
    return bytes(data)


def test_a_real_log_is_taken_whole(segment: bytes) -> None:
    """Everything that a Java leader wrote continues from batch to batch."""
    fetched = read_fetched(segment, 0, 4)
    assert fetched.problem is None
    assert fetched.data is segment
    expected = [(b.base_offset, b.partition_leader_epoch) for b in read_batches(segment)]
    assert fetched.batches == expected
    assert fetched.end_offset == max(b.last_offset for b in read_batches(segment)) + 1
    assert [base for base, _ in fetched.control] == [
        batch.base_offset for batch in read_batches(segment) if batch.is_control
    ]


def test_control_batches_are_returned_with_their_bytes() -> None:
    """Followers read control batches, whatever surrounds them."""
    control = control_batch(7, 3, 9, [leader_change(1, [1, 2], [2])])
    fetched = read_fetched(memoryview(data_batch(5, 2, 1, [b"a", b"b"]) + control), 5, 3)
    assert fetched.control == [(7, control)]
    assert fetched.end_offset == 8


@pytest.mark.parametrize("cut", [1, 11, 12, 30, 60, 61, 65])
def test_a_batch_cut_off_at_the_end_is_ignored(cut: int) -> None:
    """R-FET-10: Fetch answers are cut at their byte limit."""
    first, second, _ = three()
    fetched = read_fetched(first + second[:cut], 5, 3)
    assert (fetched.problem, fetched.end_offset) == (None, 7)
    assert bytes(fetched.data) == first


def test_a_batch_cut_off_with_nothing_before_it_is_a_problem() -> None:
    """A leader sends at least one whole batch; asking again at once would be a busy loop."""
    fetched = read_fetched(three()[0][:50], 5, 3)
    assert (fetched.problem, fetched.end_offset) == ("50 bytes hold no whole batch", 5)
    assert len(fetched.data) == 0


def test_no_records_are_not_a_problem() -> None:
    """The usual answer of a long poll, null in some clients' messages."""
    nothing = FetchedBatches(b"", [], 5, [], None)
    assert read_fetched(b"", 5, 3) == read_fetched(None, 5, 3) == nothing


def test_the_newest_time_is_that_of_the_batches_that_are_taken() -> None:
    """A refused batch is not in the log, so it does not advance the time."""
    first, second = data_batch(5, 3, 2000, [b"a"]), data_batch(6, 3, 1000, [b"b"])
    refused = data_batch(9, 3, 9000, [b"c"])
    assert read_fetched(first + second + refused, 5, 3).newest_timestamp == 2000


@pytest.mark.parametrize(
    ("second", "problem"),
    [
        (data_batch(8, 2, 1, [b"c"]), "a batch begins at offset 8, expected 7"),
        (data_batch(6, 2, 1, [b"c"]), "a batch begins at offset 6, expected 7"),
        (data_batch(7, 4, 1, [b"c"]), "epoch 4, expected 2 to 3"),
        (data_batch(7, 1, 1, [b"c"]), "epoch 1, expected 2 to 3"),
        (patched(data_batch(7, 2, 1, [b"c"]), 57, ">i", 2), "2 records and last offset delta 0"),
        (patched(data_batch(7, 2, 1, [b"c"]), 23, ">i", -1), "last offset delta -1"),
        (patched(data_batch(7, 2, 1, [b"c"]), 16, ">b", 1), "magic is 1, expected 2"),
        (patched(data_batch(7, 2, 1, [b"c"]), 8, ">i", 48), "length is 48, expected 49"),
        (patched(data_batch(7, 2, 1, [b"c"]), 8, ">i", -9), "length is -9, expected 49"),
        (data_batch(7, 2, 1, [b"c"])[:-1] + b"\xff", "the CRC of the batch at offset 7"),
    ],
)
def test_what_does_not_continue_the_log_is_refused(second: bytes, problem: str) -> None:
    """R-FET-23: the good batch before is kept, what comes after the bad one is not."""
    first, _, third = three()
    fetched = read_fetched(first + second + third, 5, 3)
    assert fetched.problem is not None
    assert problem in fetched.problem
    assert fetched.batches == [(5, 2)]
    assert (bytes(fetched.data), fetched.end_offset) == (first, 7)


def test_an_epoch_below_the_log_is_refused() -> None:
    """Epochs never fall along a log, across answers either."""
    fetched = read_fetched(data_batch(5, 2, 1, [b"c"]), 5, 9, last_epoch=3)
    assert (fetched.batches, fetched.problem) == (
        [],
        "the batch at offset 5 has epoch 2, expected 3 to 9",
    )


def test_no_log_reaches_the_end_of_the_offsets() -> None:
    """A log that ends beyond the last offset could not be fetched, or written to, any more."""
    last = data_batch(OFFSET_MAX - 2, 2, 1000, [b"a", b"b"])
    assert read_fetched(last, OFFSET_MAX - 2, 2).end_offset == OFFSET_MAX
    beyond = data_batch(OFFSET_MAX - 1, 2, 1000, [b"a", b"b"])
    refused = read_fetched(beyond, OFFSET_MAX - 1, 2)
    assert (refused.end_offset, refused.batches) == (OFFSET_MAX - 1, [])
    assert "beyond offset" in (refused.problem or "")


def test_no_damage_makes_reading_raise(segment: bytes) -> None:
    """A peer's bytes never end the node: whatever is kept is a prefix that continues the log."""
    generator = random.Random(7)
    for _ in range(400):
        data = bytearray(segment[: generator.randrange(1, 3000)])
        for _ in range(generator.randrange(1, 4)):
            data[generator.randrange(len(data))] = generator.randrange(256)
        fetched = read_fetched(bytes(data), 0, 4)
        assert bytes(data).startswith(bytes(fetched.data))
        for batch in (batch for _, batch in fetched.control):
            control_records(batch)


@given(st.binary(max_size=300), st.integers(0, 5))
@settings(max_examples=300, deadline=None, derandomize=True)
def test_no_bytes_make_reading_raise(data: bytes, offset: int) -> None:
    """Neither as fetched records nor as a control batch."""
    assert read_fetched(data, offset, 3).end_offset >= offset
    control_records(data)
    control_records(control_batch(0, 1, 0, [leader_change(1, [1], [1])])[:61] + data)


def test_the_start_of_an_epoch_equals_what_java_writes(segment: bytes) -> None:
    """The first batch of the golden log: LeaderChange, KRaftVersion and KRaftVoters at once."""
    batch = next(iter(read_batches(segment)))
    golden = bytes(batch.raw)
    records = control_records(golden)
    kinds = [kind for _, kind, _ in records]
    assert kinds == [ControlType.LEADER_CHANGE, ControlType.KRAFT_VERSION, ControlType.KRAFT_VOTERS]
    change = records[0][2]
    assert isinstance(change, LeaderChangeMessage)
    kind, made = leader_change(
        change.leader_id,
        [voter.voter_id for voter in change.voters],
        [voter.voter_id for voter in change.granting_voters],
    )
    again = [(kind, made)]
    for _, other, message in records[1:]:
        assert isinstance(other, ControlType)
        assert message is not None
        again.append((other, message))
    epoch = batch.partition_leader_epoch
    assert control_batch(0, epoch, records_time(golden), again) == golden


def records_time(batch: bytes) -> int:
    """The base timestamp in a batch's header."""
    time: int = struct.unpack_from(">q", batch, 27)[0]
    return time


def test_data_batches_equal_what_java_writes(segment: bytes) -> None:
    """Every data batch of the golden log, rebuilt from its values, byte for byte."""
    count = 0
    for batch in read_batches(segment):
        if not batch.is_control:
            values = [record.value or b"" for record in batch.records()]
            epoch = batch.partition_leader_epoch
            raw = bytes(batch.raw)
            assert data_batch(batch.base_offset, epoch, records_time(raw), values) == raw
            count += 1
    assert count > 50


@given(
    st.lists(st.binary(min_size=1, max_size=200), min_size=1, max_size=80),
    st.integers(0, 2**62),
    st.integers(0, 2**31 - 1),
)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_data_batches_equal_those_of_the_general_builder(
    values: list[bytes], number: int, epoch: int
) -> None:
    """The fast path only saves time: sizes and deltas of one byte and of more agree."""
    header = BatchHeader(partition_leader_epoch=epoch)
    rows = [Record(number + index, number, None, value) for index, value in enumerate(values)]
    assert data_batch(number, epoch, number, values) == build_batch(rows, header)


def test_unknown_control_records_survive_as_numbers() -> None:
    """A later Kafka may write new types, and following its log must continue."""
    known, change = leader_change(1, [1], [1])
    rows = [
        Record(3, 0, b"\x00\x00\x00\x63", b"\x00\x00"),
        Record(4, 0, None, None),
        Record(5, 0, b"\x00\x00\x00\x02", b"\x00"),
        Record(6, 0, b"\x00\x00\x00\x02", change.encode(0)),
    ]
    batch = build_batch(rows, BatchHeader(is_control=True, partition_leader_epoch=1))
    found = control_records(batch)
    assert [(offset, kind) for offset, kind, _ in found] == [(3, 99), (4, -1), (5, 2), (6, known)]
    assert [message is None for _, _, message in found] == [True, True, True, False]
