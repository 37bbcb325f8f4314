"""No node can replace a leader within its epoch (SEC-ADDRESS)."""

from __future__ import annotations

import pytest

from kraftwire.messages.begin_quorum_epoch_request import LeaderEndpoint
from kraftwire.raft.effects import ElectionState
from kraftwire.wire.message import Message
from tests.support.raft.lone import Lone, stored_log
from tests.support.raft.messages import LISTENER, begin, end

EPOCH = 3


def _forged(make: type[Message], *names: str) -> Message:
    """The leader's message, with an impostor's address for each of these listeners."""
    message = make(2, EPOCH)
    message.leader_endpoints = [
        LeaderEndpoint(name=name, host="elsewhere", port=1) for name in names
    ]
    return message


@pytest.mark.parametrize("names", [(LISTENER,), (LISTENER, "OTHER"), ("OTHER", "THIRD")])
def test_an_announcement_does_not_move_the_leader(names: tuple[str, ...]) -> None:
    """More addresses than were known used to replace them: two forged ones ended a leadership."""
    lone = Lone(log=stored_log((1, 4)), election=ElectionState(2))
    lone.follow(2, EPOCH)
    known = lone.core._state.role.leader_endpoints
    lone.request(_forged(begin, *names))
    assert known
    assert lone.core._state.role.leader_endpoints == known


def test_an_announcement_may_add_addresses() -> None:
    """A leader that was found through one listener names the others later (KAFKA-16927)."""
    lone = Lone(log=stored_log((1, 4)), election=ElectionState(2))
    lone.follow(2, EPOCH)
    known = set(lone.core._state.role.leader_endpoints)
    lone.request(begin(2, EPOCH, listeners=(LISTENER, "OTHER")))
    assert set(lone.core._state.role.leader_endpoints) > known


def test_a_leader_that_resigns_stays_where_it_is() -> None:
    """EndQuorumEpoch names addresses too."""
    lone = Lone(log=stored_log((1, 4)), election=ElectionState(2))
    lone.follow(2, EPOCH)
    known = lone.core._state.role.leader_endpoints
    lone.request(_forged(end, LISTENER, "OTHER"))
    assert lone.core._state.role.leader_endpoints == known
