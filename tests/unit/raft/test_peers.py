"""One request at a time for each peer, and pauses after failures, on virtual time."""

from __future__ import annotations

from kraftwire.raft.peers import Peers
from kraftwire.raft.voters import ReplicaKey

ONE, TWO = ReplicaKey(1), ReplicaKey(2)


def test_an_unknown_peer_is_ready() -> None:
    """R-NET-4: it has not failed yet."""
    peers = Peers(20, 20)
    assert peers.is_ready(ONE, 0)
    assert not peers.any_in_flight()
    assert peers.next_due_ms(0) is None


def test_a_peer_with_a_request_is_not_asked_again_before_its_answer() -> None:
    """One request in flight for each peer; other peers are not affected."""
    peers = Peers(20, 20)
    peers.sent(ONE, 77)
    assert not peers.is_ready(ONE, 0)
    assert peers.is_ready(TWO, 0)
    assert peers.any_in_flight()
    assert peers.answered(77)
    assert peers.is_ready(ONE, 0)
    assert not peers.any_in_flight()


def test_an_answer_counts_once_and_only_for_the_current_request() -> None:
    """R-LOOP-2: anything else is dropped."""
    peers = Peers(20, 20)
    peers.sent(ONE, 77)
    peers.sent(ONE, 78)
    assert not peers.answered(77)
    assert not peers.is_ready(ONE, 0)
    assert peers.answered(78)
    assert not peers.answered(78)
    assert not peers.answered(5)


def test_a_failure_makes_a_peer_wait() -> None:
    """R-RESP-9: ready again exactly when the pause ends, and the timer with it."""
    peers = Peers(20, 20)
    peers.sent(ONE, 77)
    assert peers.answered(77)
    peers.failed(ONE, 5)
    assert not peers.is_ready(ONE, 24)
    assert peers.next_due_ms(24) == 25
    assert peers.is_ready(ONE, 25)
    assert peers.next_due_ms(25) is None


def test_pauses_double_up_to_the_maximum_and_start_over_after_a_success() -> None:
    """KIP-595's back-off; a peer that answered once is not punished for its past."""
    peers, now, pauses = Peers(20, 100), 0, []
    for request_id in range(5):
        peers.sent(ONE, request_id)
        peers.answered(request_id)
        peers.failed(ONE, now)
        due = peers.next_due_ms(now)
        assert due is not None
        pauses.append(due - now)
        now = due
    assert pauses == [20, 40, 80, 100, 100]
    peers.sent(ONE, 10)
    peers.answered(10)
    peers.sent(ONE, 11)
    peers.answered(11)
    peers.failed(ONE, now)
    assert peers.next_due_ms(now) == now + 20


def test_a_failure_ends_the_request_in_flight() -> None:
    """A late answer to it must not be taken for a current one."""
    peers = Peers(20, 20)
    peers.sent(ONE, 77)
    peers.failed(ONE, 0)
    assert not peers.any_in_flight()
    assert not peers.answered(77)


def test_a_new_role_begins_with_all_peers_ready() -> None:
    """R-NET-6: answers to the old role are stale."""
    peers = Peers(20, 20)
    peers.sent(ONE, 77)
    peers.failed(TWO, 0)
    peers.reset()
    assert peers.is_ready(ONE, 0)
    assert peers.is_ready(TWO, 0)
    assert not peers.answered(77)
    assert peers.next_due_ms(0) is None


def test_the_earliest_pause_is_the_timer() -> None:
    """The peer that is ready first is asked first."""
    peers = Peers(20, 1000)
    peers.failed(ONE, 0)
    peers.failed(ONE, 0)
    peers.failed(TWO, 10)
    assert peers.next_due_ms(10) == 30
    assert peers.next_due_ms(30) == 40


def test_many_failures_do_not_overflow_the_pause() -> None:
    """A peer may be away for days."""
    peers = Peers(20, 1000)
    for now in range(200):
        peers.failed(ONE, now)
    assert peers.next_due_ms(199) == 1199


def test_two_directories_of_one_id_are_two_peers() -> None:
    """A voter that was replaced under its id is another node, perhaps at another address."""
    peers = Peers(20, 20)
    old, new = ReplicaKey(1, b"a" * 16), ReplicaKey(1, b"b" * 16)
    peers.sent(old, 77)
    assert not peers.is_ready(old, 0)
    assert peers.is_ready(new, 0)


def test_failures_are_counted_until_an_answer() -> None:
    """It decides whether any other voter can still be reached."""
    peers = Peers(20, 20)
    assert peers.failures(ONE) == 0
    for now in range(3):
        peers.failed(ONE, now)
    assert (peers.failures(ONE), peers.failures(TWO)) == (3, 0)
    peers.sent(ONE, 77)
    assert peers.failures(ONE) == 3, "it has not answered yet"
    assert peers.answered(77)
    assert peers.failures(ONE) == 0
    peers.failed(ONE, 9)
    assert peers.failures(ONE) == 4, "the answer was a failure as well"
    peers.reset()
    assert peers.failures(ONE) == 0
