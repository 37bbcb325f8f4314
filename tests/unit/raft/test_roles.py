"""What a change of role keeps, ends and writes."""

from __future__ import annotations

from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.raft import effects, events
from kraftwire.raft.effects import ElectionState
from tests.support.raft.lone import Lone, fetches, leading, stored_log
from tests.support.raft.messages import begin, fetch, fetched


def _stored(lone: Lone) -> ElectionState:
    """The newest quorum-state that was written."""
    return lone.all_of(effects.PersistQuorumState)[-1].state


def _resigned() -> Lone:
    lone = leading()
    lone.handle(events.ResignRequested(lone.core.epoch))
    assert lone.core.role == "resigned"
    return lone


def test_a_leader_names_itself_and_a_candidate_its_vote() -> None:
    """R-ROLE-1, R-LEAD-1: both before anything else is written or sent in that role."""
    lone = Lone(log=stored_log((1, 4)), election=ElectionState(2))
    lone.lead()
    own, epoch = lone.config.key.id, lone.core.epoch
    states = [one.state for one in lone.all_of(effects.PersistQuorumState)]
    [candidate] = [one for one in states if one.voted is not None and one.voted.id == own]
    assert (candidate.epoch, candidate.leader_id) == (epoch, -1)
    assert (_stored(lone).leader_id, _stored(lone).voted) == (own, None)
    kinds = [type(one) for one in lone.effects]
    last_write = max(at for at, kind in enumerate(kinds) if kind is effects.PersistQuorumState)
    assert last_write < kinds.index(effects.AppendToLog)


def test_the_high_watermark_survives_all_roles_but_two() -> None:
    """R-ROLE-3, R-HW-5: a new leader computes its own, and does not adopt that of the last one."""
    lone = Lone(log=stored_log((1, 4)), election=ElectionState(2))
    lone.follow(2, 3)
    lone.fetch_gets(fetched(2, 3, high_watermark=4))
    assert lone.core.high_watermark == 4
    lone.follow(3, 4)
    assert lone.core.high_watermark == 4
    lone.lead()
    assert lone.core.high_watermark == -1
    fetches(lone, 2)
    assert lone.core.high_watermark == lone.core.end_offset


def test_an_announcement_of_the_same_leader_restarts_no_timer() -> None:
    """R-BEG-3: only its answers to Fetch show that it can be reached."""
    lone = Lone(log=stored_log((1, 4)), election=ElectionState(2))
    lone.follow(2, 3)
    due = lone.core.deadline_ms
    lone.now += 500
    lone.request(begin(2, 3))
    assert lone.core.deadline_ms == due


def test_a_resigned_leader_tells_each_voter_until_it_answers() -> None:
    """R-END-1: one that does not is told again after the back-off."""
    lone = _resigned()
    sent = [one for one in lone.requests if one.message.NAME == "EndQuorumEpochRequest"]
    assert {one.destination.id for one in sent} == {2, 3}
    lone.fail(sent[0])
    lone.wait(100)
    again = [one for one in lone.requests if one.message.NAME == "EndQuorumEpochRequest"][2:]
    assert {one.destination.id for one in again} == {sent[0].destination.id}


def test_a_resigned_leader_refuses_to_serve_and_still_names_itself() -> None:
    """R-END-6: its epoch has no other leader."""
    lone = _resigned()
    epoch = lone.core.epoch
    [found] = lone.request(fetch(2, lone.core.end_offset, epoch, epoch)).responses[0].partitions
    assert found.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (found.current_leader.leader_id, found.current_leader.leader_epoch) == (1, epoch)
