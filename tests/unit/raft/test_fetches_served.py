"""How a leader handles a fetch: whose it is, what it acknowledges, and whether it waits."""

from __future__ import annotations

from kraftwire.protocol.error_codes import ErrorCode
from tests.support.raft_lone import Lone
from tests.support.raft_quorums import append, fetches, leading


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
