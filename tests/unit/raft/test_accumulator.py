"""What a leader holds between append and write."""

from __future__ import annotations

import pytest

from kraftwire.errors import UsageError
from kraftwire.raft.accumulator import Accumulator, DrainedBatch, Refusal
from kraftwire.raft.batches import leader_change, read_fetched
from kraftwire.records.control import control_batch
from kraftwire.records.plain import data_batch

# Batches are stamped by the wall clock, which is not that of the linger time.
WALL = 1_700_000_000_000

CHANGE = leader_change(1, [1, 2, 3], [1, 2])


def accumulator(batch_max_bytes: int = 8 * 1024 * 1024) -> Accumulator:
    """At offset 100 of epoch 7, with a linger time of 25 ms."""
    return Accumulator(100, 7, linger_ms=25, batch_max_bytes=batch_max_bytes)


def test_nothing_is_due_at_first() -> None:
    """An idle leader sets no timer."""
    empty = accumulator()
    assert empty.drain_due_ms is None
    assert empty.drain(10_000) == []
    assert empty.end_offset == 100


def test_appends_share_a_batch_until_the_linger_time_is_over() -> None:
    """R-ACC-3: counted from the first append; the batch bears the time it was opened (R-ACC-5)."""
    held = accumulator()
    assert held.append([b"a", b"b"], 1000, WALL + 1000) == (100, 101)
    assert held.append([b"c"], 1010, WALL + 1010) == (102, 102)
    assert held.drain_due_ms == 1025
    assert held.drain(1024) == []
    data = data_batch(100, 7, WALL + 1000, [b"a", b"b", b"c"])
    assert held.drain(1025) == [DrainedBatch(100, 103, data)]
    assert held.drain(9999) == []
    assert held.end_offset == 103


def test_a_batch_of_two_mib_does_not_wait() -> None:
    """It is sent while the next one fills; a longer append is still in one batch."""
    held, value = accumulator(), bytes(256 * 1024)
    for count in range(7):
        assert held.append([value], count, WALL) == (100 + count, 100 + count)
    assert held.drain_due_ms == 25
    held.append([value], 7, WALL)
    assert held.drain_due_ms == 7
    held.append([value] * 20, 7, WALL)
    held.append([b"a"], 7, WALL)
    assert [(batch.base, batch.end_offset) for batch in held.drain(7)] == [
        (100, 108),
        (108, 128),
        (128, 129),
    ]


def test_the_linger_time_starts_over_after_a_drain() -> None:
    """Otherwise the second batch would be sent alone at once."""
    held = accumulator()
    held.append([b"a"], 0, WALL)
    held.drain(25)
    held.append([b"b"], 40, WALL + 40)
    assert held.drain_due_ms == 65


def test_control_records_stand_alone_and_are_due_at_once() -> None:
    """R-ACC-4: the open batch is closed before them, and offsets continue."""
    held = accumulator()
    held.append([b"a"], 10, WALL + 10)
    assert held.append_control([CHANGE], 12, WALL + 12) == (101, 101)
    held.append([b"b"], 12, WALL + 12)
    assert held.drain_due_ms == 12
    assert held.drain(12) == [
        DrainedBatch(100, 101, data_batch(100, 7, WALL + 10, [b"a"])),
        DrainedBatch(101, 102, control_batch(101, 7, WALL + 12, [CHANGE]), is_control=True),
        DrainedBatch(102, 103, data_batch(102, 7, WALL + 12, [b"b"])),
    ]


def test_a_full_batch_is_completed_and_due() -> None:
    """R-ACC-1: a list that no longer fits begins the next batch, undivided."""
    held = accumulator(200)
    held.append([b"x" * 80], 0, WALL)
    assert held.append([b"y" * 40, b"z" * 40], 3, WALL + 3) == (101, 102)
    assert held.drain_due_ms == 3
    assert [(b.base, b.end_offset) for b in held.drain(3)] == [(100, 101), (101, 103)]


def test_a_list_longer_than_a_batch_is_refused_to_the_byte() -> None:
    """A batch may have exactly the limit's size, and lists are never split."""
    values = [b"v" * 50, b"w" * 60]
    size = len(data_batch(100, 7, 0, values))
    assert accumulator(size).append(values, 0, WALL) == (100, 101)
    refused = accumulator(size - 1)
    answer = refused.append(values, 0, WALL)
    assert isinstance(answer, Refusal)
    assert answer.reason == "RecordBatchTooLarge"
    assert (refused.end_offset, refused.drain_due_ms) == (100, None)


def test_a_refused_list_leaves_the_open_batch_as_it_was() -> None:
    """Later appends still share the batch that was open."""
    held = accumulator(200)
    held.append([b"a"], 0, WALL)
    assert isinstance(held.append([b"x" * 200], 1, WALL + 1), Refusal)
    held.append([b"b"], 2, WALL + 2)
    assert held.drain_due_ms == 25
    assert [b.end_offset for b in held.drain(25)] == [102]


def test_no_batch_exceeds_the_limit() -> None:
    """The estimate of sizes is an upper bound, whatever the values' lengths."""
    held = accumulator(300)
    for number in range(1, 120):
        if isinstance(held.append([b"v" * number], number, WALL + number), Refusal):
            held.drain(10_000)
        for batch in held.drain(number):
            assert len(batch.data) <= 300


def test_appends_are_refused_while_ten_batches_wait() -> None:
    """R-ACC-1: a writer that is faster than the disk is refused."""
    held = accumulator(100)
    for number in range(11):
        assert held.append([b"x" * 20], 0, WALL) == (100 + number, 100 + number)
    answer = held.append([b"x"], 0, WALL)
    assert isinstance(answer, Refusal)
    assert answer.reason == "TooManyPending"
    assert len(held.drain(0)) == 11
    assert held.append([b"x"], 0, WALL) == (111, 111)


@pytest.mark.parametrize("values", [[], [b"a", b""]])
def test_empty_lists_and_values_are_errors_of_the_caller(values: list[bytes]) -> None:
    """R-FET-25: a Java follower ends on a record without value."""
    with pytest.raises(UsageError):
        accumulator().append(values, 0, WALL)


def test_what_is_drained_continues_the_log() -> None:
    """A follower's own checks accept it unchanged."""
    held = accumulator(150)
    held.append_control([CHANGE], 0, WALL)
    for number in range(8):
        held.append([b"x" * 30] * (number % 2 + 1), number, WALL + number)
    drained = held.drain(50)
    fetched = read_fetched(b"".join(batch.data for batch in drained), 100, 7)
    assert fetched.problem is None
    assert fetched.end_offset == held.end_offset == drained[-1].end_offset
