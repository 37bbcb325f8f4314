"""Answers that are no longer awaited, or that come from peers that cannot be trusted."""

from __future__ import annotations

from kraftwire.raft import effects
from kraftwire.raft.effects import ElectionState
from tests.support.raft.lone import Lone, stored_log
from tests.support.raft.messages import fetched, voted


def _fetching() -> Lone:
    """A follower of 2 in epoch 3, with its first fetch in flight."""
    lone = Lone(log=stored_log((1, 4)), election=ElectionState(2))
    lone.follow(2, 3)
    return lone


def _batch(lone: Lone, epoch: int) -> bytes:
    """The batch that continues the log."""
    return stored_log((epoch, lone.core.end_offset + 1))[-1]


def test_an_answer_that_arrives_after_its_time_out_is_ignored() -> None:
    """The fetch was sent again meanwhile: the late answer may no longer be true."""
    lone = _fetching()
    late = lone.last_request
    lone.fail(late)
    lone.wait(100)
    assert lone.last_request is not late
    before = lone.core.end_offset
    found = lone.answer(late, fetched(2, 3, _batch(lone, 3)))
    assert not [one for one in found if isinstance(one, effects.AppendToLog)]
    assert lone.core.end_offset == before


def test_a_late_vote_does_not_elect() -> None:
    """It answers a request that this candidate has given up."""
    lone = Lone()
    due = lone.core.deadline_ms
    assert due is not None
    lone.wait(due - lone.now)
    assert lone.core.role == "prospective"
    late = next(one for one in lone.requests if one.message.NAME == "VoteRequest")
    lone.fail(late)
    lone.answer(late, voted(0, is_granted=True))
    assert lone.core.role == "prospective"


def test_an_answer_to_an_older_role_is_ignored() -> None:
    """A new epoch began while the fetch was in flight."""
    lone = _fetching()
    late = lone.last_request
    lone.follow(3, 4)
    before = lone.core.end_offset
    lone.answer(late, fetched(3, 4, _batch(lone, 4)))
    assert lone.core.end_offset == before


def test_a_vote_of_an_older_epoch_does_not_count() -> None:
    """The peer that answers has not followed into the candidate's epoch."""
    lone = Lone(election=ElectionState(4))
    due = lone.core.deadline_ms
    assert due is not None
    lone.wait(due - lone.now)
    for sent in [one for one in lone.requests if one.message.NAME == "VoteRequest"]:
        lone.answer(sent, voted(3, is_granted=True))
    assert lone.core.role == "prospective"


def test_records_of_a_node_that_does_not_claim_to_lead_are_not_taken() -> None:
    """An answer without error, and without a leader."""
    lone = _fetching()
    before = lone.core.end_offset
    lone.fetch_gets(fetched(-1, 3, _batch(lone, 3), high_watermark=before + 1))
    assert lone.core.end_offset == before
    assert lone.core.high_watermark < before
