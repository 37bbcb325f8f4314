"""A voter whose whole set does not answer: the quorum may have moved on without it."""

from __future__ import annotations

from kraftwire.messages.fetch_response import NodeEndpoint
from kraftwire.raft import effects
from tests.support.raft.lone import Lone
from tests.support.raft.messages import fetched


def unanswered() -> Lone:
    """A voter of three whose pre-votes have timed out without an answer."""
    lone = Lone(is_dynamic=True)
    while lone.core.role != "prospective":
        lone.wait(100)
    while lone.core.role == "prospective":
        lone.wait(10)
    return lone


def test_a_voter_asks_its_bootstrap_servers_before_it_stands_again() -> None:
    """Its set may have been replaced while it was down: no vote would ever come."""
    lone = unanswered()
    assert lone.core.role == "unattached"
    assert lone.last_request.message.NAME == "FetchRequest"
    assert lone.last_request.destination.id < -1
    answer = fetched(7, 9, error=6)
    answer.node_endpoints = [NodeEndpoint(node_id=7, host="new", port=9)]
    lone.fetch_gets(answer)
    assert (lone.core.role, lone.core.leader_id, lone.core.epoch) == ("follower", 7, 9)


def test_a_voter_that_learns_nothing_stands_again_soon() -> None:
    """Half an election timeout is enough to be told who leads, and not long to wait."""
    lone = unanswered()
    lone.wait(lone.config.timers.election_timeout_ms // 2)
    assert lone.core.role == "prospective"
    assert {one.message.NAME for one in lone.all_of(effects.SendRequest)[-2:]} == {"VoteRequest"}
