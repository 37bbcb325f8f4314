"""How long a node stays after it was asked to stop."""

from __future__ import annotations

from kraftwire.raft import events
from kraftwire.raft.effects import ShutdownFinished
from tests.support.raft.lone import Lone

_SECONDS = 1000


def _stopped(node: Lone) -> list[bool]:
    return [one.graceful for one in node.all_of(ShutdownFinished)]


def _play(node: Lone, duration_ms: int, *gone: int) -> None:
    """Let time pass; requests to these nodes fail, others stay without an answer."""
    end = node.now + duration_ms
    failed = set[int]()
    while node.now < end:
        for sent in node.requests:
            is_end = sent.message.NAME == "EndQuorumEpochRequest"
            if is_end and sent.destination.key.id in gone and sent.request_id not in failed:
                failed.add(sent.request_id)
                node.fail(sent)
        node.wait(5)


def test_a_voter_that_knows_no_leader_stops_at_once() -> None:
    """Ctrl-C on the first node of a quorum that is being set up: no other node needs it."""
    node = Lone(1)
    node.handle(events.ShutdownRequested())
    assert _stopped(node) == [True]


def test_a_resigned_leader_stays_while_a_voter_can_be_reached() -> None:
    """With the third one gone, the remaining one needs its vote."""
    node = Lone(1)
    node.lead()
    node.handle(events.ShutdownRequested())
    _play(node, 4 * _SECONDS, 3)
    assert _stopped(node) == []
    _play(node, 2 * _SECONDS, 3)
    assert _stopped(node) == [False]


def test_a_resigned_leader_without_reachable_voters_does_not_wait() -> None:
    """Ctrl-C on all nodes at once: the followers stop first, and the leader soon."""
    node = Lone(1)
    node.lead()
    node.handle(events.ShutdownRequested())
    _play(node, _SECONDS, 2, 3)
    assert _stopped(node) == [False]


def test_one_failed_request_does_not_make_a_resigned_leader_leave() -> None:
    """A voter that is restarting will vote in a moment."""
    node = Lone(1)
    node.lead()
    node.handle(events.ShutdownRequested())
    for sent in node.requests[-2:]:
        node.fail(sent)
    _play(node, 4 * _SECONDS)
    assert _stopped(node) == []
