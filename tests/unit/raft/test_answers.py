"""What any answer of a peer may do: teach epoch and leader, or be a failure and cause a pause."""

from __future__ import annotations

import pytest

from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.raft import effects
from kraftwire.raft.effects import ElectionState
from tests.support.raft.lone import Lone, stored_log
from tests.support.raft.messages import fetch, fetched, vote


def _following() -> Lone:
    lone = Lone(log=stored_log((1, 4)), election=ElectionState(2))
    lone.follow(2, 3)
    return lone


def _unattached() -> Lone:
    lone = Lone(log=stored_log((1, 4)), election=ElectionState(3))
    assert (lone.core.role, lone.core.leader_id) == ("unattached", -1)
    return lone


def _asks_others(lone: Lone) -> bool:
    """Whether the leader is left alone after its answer."""
    return lone.last_request.destination.id != 2


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
    ],
)
def test_an_error_ends_no_node_and_causes_a_pause(error: ErrorCode) -> None:
    """R-RESP-4, R-RESP-6: the leader stays, and is asked again after the back-off."""
    lone = _following()
    lone.fetch_gets(fetched(2, 3, error=error))
    assert (lone.core.role, lone.core.epoch, lone.core.leader_id) == ("follower", 3, 2)
    assert _asks_others(lone)


@pytest.mark.parametrize(
    "error", [ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_SERVER_ERROR]
)
def test_an_error_of_the_whole_answer_is_a_failure(error: ErrorCode) -> None:
    """R-RESP-7: it says nothing about the partition."""
    lone = _following()
    message = fetched(2, 9)
    message.error_code = error
    lone.fetch_gets(message)
    assert (lone.core.role, lone.core.epoch) == ("follower", 3)
    assert _asks_others(lone)


def test_a_peer_that_is_behind_teaches_no_epoch() -> None:
    """UNKNOWN_LEADER_EPOCH: what such a peer names is not this epoch's."""
    lone = _following()
    lone.fetch_gets(fetched(3, 4, error=ErrorCode.UNKNOWN_LEADER_EPOCH))
    assert (lone.core.role, lone.core.epoch, lone.core.leader_id) == ("follower", 3, 2)


def test_a_leader_that_was_unknown_is_followed_and_its_records_are_taken() -> None:
    """R-RESP-3: both in the step of the same answer."""
    lone = _unattached()
    [record] = stored_log((1, 4), (3, 1))[4:]
    found = lone.fetch_gets(fetched(2, 3, record))
    assert (lone.core.role, lone.core.leader_id, lone.core.end_offset) == ("follower", 2, 5)
    assert [one for one in found if isinstance(one, effects.AppendToLog)]


def test_a_leader_without_endpoints_is_looked_up_among_the_voters() -> None:
    """R-RESP-8: and an answer that names one outside of them is dropped."""
    lone = _unattached()
    lone.fetch_gets(fetched(9, 3))
    assert (lone.core.role, lone.core.leader_id) == ("unattached", -1)
    lone.wait(100)
    lone.fetch_gets(fetched(3, 3))
    assert (lone.core.role, lone.core.leader_id) == ("follower", 3)


def test_a_higher_epoch_keeps_the_rest_of_an_election_timer() -> None:
    """R-ROLE-4: a peer that begins epoch after epoch does not postpone this node's election."""
    lone = _unattached()
    due = lone.core.deadline_ms
    lone.request(vote(3, 4, (0, 0)))
    assert (lone.core.role, lone.core.epoch, lone.core.deadline_ms) == ("unattached", 4, due)


def test_a_higher_epoch_keeps_the_rest_of_a_pre_votes_timer() -> None:
    """R-ROLE-4: as long as the pre-vote is not lost."""
    lone = _unattached()
    lone.wait((lone.core.deadline_ms or 0) - lone.now)
    assert lone.core.role == "prospective"
    due = lone.core.deadline_ms
    lone.request(vote(3, 5, (0, 0)))
    assert (lone.core.role, lone.core.deadline_ms) == ("unattached", due)


@pytest.mark.parametrize(("share", "pauses"), [(0.4, True), (0.6, False)])
def test_an_empty_answer_is_early_before_half_of_the_wait(share: float, pauses: bool) -> None:
    """L9: a leader that answers at once, again and again, is not asked without a pause."""
    lone = _following()
    count = len(lone.requests)
    lone.wait(int(lone.config.timers.fetch_max_wait_ms * share))
    lone.fetch_gets(fetched(2, 3))
    assert len(lone.requests) == count + 1
    assert _asks_others(lone) is pauses


def test_a_refused_fetch_names_no_start_of_the_log() -> None:
    """A follower must not take one from a node that does not lead."""
    lone = _following()
    [refused] = lone.request(fetch(3, 4, 1, 3)).responses[0].partitions
    assert (refused.error_code, refused.log_start_offset) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    lone.lead()
    [served] = lone.request(fetch(3, 4, 1, lone.core.epoch, max_wait_ms=0)).responses[0].partitions
    assert (served.error_code, served.log_start_offset) == (ErrorCode.NONE, 0)


def test_no_node_asks_itself_for_the_leader() -> None:
    """R-START-4: its own address may be among the bootstrap servers, which have ids from -2 on."""
    lone = Lone(is_dynamic=True)
    for _ in range(20):
        lone.wait(100)
        assert lone.last_request.destination.port != 9001
        assert lone.last_request.destination.id <= -2 or lone.last_request.message.NAME != (
            "FetchRequest"
        )
        if lone.last_request.message.NAME == "FetchRequest":
            lone.fail(lone.last_request)
