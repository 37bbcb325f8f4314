"""How a leader handles a fetch: whose it is, what it acknowledges, and whether it waits."""

from __future__ import annotations

import pytest

from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.raft.effects import ElectionState, FlushLog, SendReply
from kraftwire.records.offsets import OffsetAndEpoch
from tests.support.raft.lone import Lone, append, fetches, leading, stored_log
from tests.support.raft.messages import fetch

# The schema's default of HighWatermark, which stands for versions without it.
_BEFORE_18 = (1 << 63) - 1


def _error(lone: Lone, replica: int) -> int:
    answer = fetches(lone, replica)
    return int(answer.responses[0].partitions[0].error_code)


def test_a_fetch_in_the_leaders_own_name_is_refused() -> None:
    """R-CQ-3: another directory under this id would count for what it has not written."""
    lone = leading()
    assert _error(lone, 1) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert _error(lone, 2) == ErrorCode.NONE


def test_a_fetch_inside_a_batch_acknowledges_what_is_before_the_batch() -> None:
    """R-FET-11: no replica has half a batch, whatever offset is requested."""
    lone = leading()
    base = lone.core.end_offset
    append(lone, b"a", b"b", b"c")
    assert lone.core.end_offset == base + 3
    fetches(lone, 2, base + 2)
    assert lone.core.high_watermark == base
    fetches(lone, 2)
    assert lone.core.high_watermark == base + 3


def test_a_follower_that_does_not_know_the_high_watermark_does_not_wait() -> None:
    """KIP-1166: it has all records, and is told at once that they are committed."""
    lone = leading()
    mark = lone.core.high_watermark
    assert fetches(lone, 2, max_wait_ms=500, high_watermark=mark - 1) is not None
    assert fetches(lone, 2, max_wait_ms=500, high_watermark=mark) is None


def test_a_single_voter_answers_once_its_records_are_committed() -> None:
    """R-FET-15: before version 18, nothing else would tell an observer before the next record that
    the one it has is committed. A broker of Kafka 3.9 saw itself half a second late."""
    lone = leading(voters=(1,))
    mark = lone.core.high_watermark
    lone.is_slow = True
    assert fetches(lone, 9, max_wait_ms=500, high_watermark=_BEFORE_18) is None
    answers = len(lone.all_of(SendReply))
    append(lone, b"a")
    assert len(lone.all_of(SendReply)) == answers
    lone.flush(lone.all_of(FlushLog)[-1])
    (last,) = lone.all_of(SendReply)[answers:]
    partition = last.message.responses[0].partitions[0]  # type: ignore[attr-defined]
    assert (partition.high_watermark, last.part is not None) == (mark + 1, True)


@pytest.mark.parametrize("count", [10, 12])
def test_a_follower_at_the_logs_start_with_a_later_epoch_does_not_count(count: int) -> None:
    """R-FET-7, R-FET-12: its last record is not the one that was there. It is sent to the snapshot,
    commits nothing and keeps no leader, whether or not the log has records after its start."""
    lone = Lone(log=stored_log((1, count)), election=ElectionState(2), log_start=10)
    lone.lead()
    for _ in range(7):
        lone.wait(500)
        for replica in (2, 3):
            answer = lone.request(fetch(replica, 10, 3, 3, max_wait_ms=0))
            [partition] = answer.responses[0].partitions
            named = partition.snapshot_id
            if lone.core.role == "leader":
                assert partition.error_code == ErrorCode.NONE
                assert OffsetAndEpoch(named.end_offset, named.epoch) == (10, 1)
                assert not partition.records
    assert lone.core.high_watermark == -1
    assert lone.core.role == "resigned"


def test_a_follower_at_the_logs_start_with_its_epoch_counts() -> None:
    """R-FET-7: it has loaded the snapshot, and gets what follows."""
    lone = Lone(log=stored_log((1, 12)), election=ElectionState(2), log_start=10)
    lone.lead()
    answer = lone.request(fetch(2, 10, 1, 3, max_wait_ms=0))
    [partition] = answer.responses[0].partitions
    assert partition.snapshot_id is None or partition.snapshot_id.epoch < 0
    assert lone.core.end_offset == 13
    fetches(lone, 2)
    assert lone.core.high_watermark == 13
