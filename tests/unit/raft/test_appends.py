"""What a state machine may append, and what of it followers take for committed."""

from __future__ import annotations

import pytest

from kraftwire.raft import effects, events
from kraftwire.raft.effects import ElectionState, RefusalReason
from tests.support.raft.lone import Lone, leading, stored_log
from tests.support.raft.messages import fetched

# ---- a leader ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ahead", "reason"), [(-1, RefusalReason.NOT_LEADER), (1, RefusalReason.ILLEGAL_EPOCH)]
)
def test_an_append_of_another_epoch_is_refused(ahead: int, reason: RefusalReason) -> None:
    """R-ACC-1: the state machine decided on it before this node led, or before it lost the lead."""
    lone = leading(is_dynamic=False)
    end = lone.core.end_offset
    found = lone.handle(events.AppendRequested(1, lone.core.epoch + ahead, [b"x"]))
    [refused] = [one for one in found if isinstance(one, effects.AppendRefused)]
    assert refused.reason is reason
    lone.wait(100)
    assert (lone.core.end_offset, lone.core.role) == (end, "leader")


def test_an_append_after_a_resignation_is_refused_with_the_role() -> None:
    """R-ACC-1: the epoch is still that of the append, but this node does not lead it any more."""
    lone = leading(is_dynamic=False)
    epoch = lone.core.epoch
    lone.handle(events.ResignRequested(epoch))
    found = lone.handle(events.AppendRequested(1, epoch, [b"x"]))
    [refused] = [one for one in found if isinstance(one, effects.AppendRefused)]
    assert refused.detail == f"this node is resigned in epoch {epoch}, not the leader of {epoch}"


# ---- a follower ----------------------------------------------------------------------------------


def _following() -> Lone:
    """A follower of 2 in epoch 3 with six records, four of them committed."""
    lone = Lone(log=stored_log((1, 6)), election=ElectionState(2))
    lone.follow(2, 3)
    lone.fetch_gets(fetched(2, 3, high_watermark=4))
    assert lone.core.high_watermark == 4
    return lone


def _marks(lone: Lone) -> list[int]:
    return [one.offset for one in lone.all_of(effects.HighWatermarkAdvanced)]


def test_a_lower_high_watermark_is_ignored() -> None:
    """R-FET-22, S8: a new leader does not know yet what its predecessor has committed."""
    lone = _following()
    lone.fetch_gets(fetched(2, 3, high_watermark=2))
    assert (lone.core.high_watermark, _marks(lone)) == (4, [4])
    lone.fetch_gets(fetched(2, 3, high_watermark=-1))
    assert (lone.core.high_watermark, _marks(lone)) == (4, [4])


def test_a_high_watermark_beyond_the_log_counts_as_far_as_the_log_reaches() -> None:
    """R-FET-22: only what is in the log can be delivered."""
    lone = _following()
    lone.fetch_gets(fetched(2, 3, high_watermark=9))
    assert (lone.core.high_watermark, _marks(lone)) == (6, [4, 6])
