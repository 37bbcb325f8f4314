"""Announcing the leader: to all voters at first, and which announcements are accepted."""

from __future__ import annotations

import pytest

from kraftwire.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from kraftwire.messages.end_quorum_epoch_request import EndQuorumEpochRequest
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.raft.effects import ElectionState
from tests.support.raft.lone import Lone, fetches
from tests.support.raft.messages import begin, directory_id, end


def _told(lone: Lone, since: int) -> list[int]:
    """The nodes that were told after this number of requests."""
    asked = lone.requests[since:]
    return [one.destination.id for one in asked if one.message.NAME == "BeginQuorumEpochRequest"]


def test_a_new_leader_tells_every_voter() -> None:
    """R-BEG-1: without an announcement they would ask others, one at a time."""
    lone = Lone(is_dynamic=True)
    lone.lead()
    assert sorted(_told(lone, 0)) == [2, 3]
    sent = next(one for one in lone.requests if one.message.NAME == "BeginQuorumEpochRequest")
    assert sent.destination.directory_id == directory_id(sent.destination.id)


def test_a_leader_reminds_those_who_do_not_fetch() -> None:
    """R-BEG-1: they may have lost the first message; the others know."""
    lone = Lone(is_dynamic=True)
    lone.lead()
    for sent in lone.requests:
        if sent.message.NAME == "BeginQuorumEpochRequest":
            lone.fail(sent)
    before = len(lone.requests)
    for _ in range(4):
        fetches(lone, 2)
        lone.wait(lone.config.timers.fetch_timeout_ms // 4)
    assert set(_told(lone, before)) == {3}


@pytest.mark.parametrize("message", [begin(2, 4), begin(3, 4), end(2, 4), end(3, 4)])
@pytest.mark.parametrize("leader", [-1, 2])
def test_an_announcement_of_an_older_epoch_is_fenced(
    message: BeginQuorumEpochRequest | EndQuorumEpochRequest, leader: int
) -> None:
    """R-BEG-2, R-END-3: it was late, or its leader does not know of the next one yet."""
    lone = Lone(election=ElectionState(5, leader))
    before = (lone.core.role, lone.core.leader_id, lone.core.deadline_ms, lone.disk.election)
    partition = lone.request(message).topics[0].partitions[0]
    assert partition.error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert (partition.leader_id, partition.leader_epoch) == (leader, 5)
    after = (lone.core.role, lone.core.leader_id, lone.core.deadline_ms, lone.disk.election)
    assert after == before
