"""AddRaftVoter: the checks in Kafka's order, the probe of the new voter, and the record."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from kraftwire.protocol.endpoint import Endpoint
from kraftwire.raft import effects, events
from kraftwire.raft.changes import CANDIDATE_MS_MIN, CANDIDATES_MAX
from kraftwire.raft.voters import ReplicaKey, Voter
from tests.support.raft.lone import Lone, caught_up, fetches, keys, leading, replies
from tests.support.raft.messages import (
    LISTENER,
    add_voter,
    directory_id,
    endpoint,
    features,
    remove_voter,
)

ZERO = bytes(16)


def answer_to(lone: Lone, request: Any) -> tuple[int, str]:
    """The immediate answer of a leader: error and message."""
    answer = lone.request(request)
    assert answer is not None, "nothing was wrong with it"
    return answer.error_code, answer.error_message or ""


# ---- the order of the checks ---------------------------------------------------------------------


def follower() -> Lone:
    """Node 1 follows node 2."""
    lone = Lone(is_dynamic=True)
    lone.follow(2, 1)
    return lone


def uncommitted_leader(*, is_dynamic: bool = True) -> Lone:
    """Node 1 leads, and nothing is committed yet."""
    lone = Lone(is_dynamic=is_dynamic)
    lone.lead()
    return lone


def pending() -> Lone:
    """Node 1 leads, and a voter is being removed."""
    lone = leading((1, 2, 3, 5))
    assert lone.request(remove_voter(5)) is None
    return lone


def unsettled() -> Lone:
    """Node 1 leads; a change took too long, and its record is still not committed."""
    lone = pending()
    lone.wait(lone.config.timers.request_timeout_ms)
    assert lone.core.role == "leader"
    return lone


# What prevents any change, in the order in which it is checked.
STATES: dict[str, Callable[[], Lone]] = {
    "not the leader": follower,
    "another change is pending": pending,
    "not committed anything": uncommitted_leader,
    "not committed anything, static": lambda: uncommitted_leader(is_dynamic=False),
    "voters can change from kraft.version 1 on": lambda: leading(is_dynamic=False),
    "the last change of voters is not committed": unsettled,
    "": leading,
}
CODES = {
    "the cluster is": 104,
    "not the leader": 6,
    "needs an id and a directory id": 42,
    "no usable address": 42,
    "another change is pending": 7,
    "not committed anything": 7,
    "voters can change from kraft.version 1 on": 35,
    "the last change of voters is not committed": 7,
    "is already in the set": 126,
}
FAULTS: dict[str, dict[str, Any]] = {
    "the cluster is": {"cluster_id": "foreign"},
    "needs an id and a directory id": {"directory": ZERO},
    "no usable address": {"listeners": ("OTHER",)},
    "is already in the set": {"node_id": 2},
    "": {},
}


def first_of(*texts: str) -> str:
    """The fault that Kafka finds first."""
    return min((one for one in texts if one), key=list(CODES).index, default="")


@pytest.mark.parametrize("state", STATES)
def test_the_first_of_several_errors_is_reported(state: str) -> None:
    """R-ADD-1: two faults at once, in every pair, with every state of the leader."""
    for first, second in itertools.combinations_with_replacement(FAULTS, 2):
        wanted = first_of(state.removesuffix(", static"), first, second)
        if not wanted:
            continue
        fields = {"node_id": 4, **FAULTS[second], **FAULTS[first]}
        found = answer_to(STATES[state](), add_voter(fields.pop("node_id"), **fields))
        assert found[0] == CODES[wanted], (first, second)
        assert wanted in found[1], (first, second)


@pytest.mark.parametrize("port", [0, -1, 65536])
def test_an_impossible_address_is_refused(port: int) -> None:
    """The voter would be in the set, but no peer could reach it."""
    assert answer_to(leading(), add_voter(4, port=port))[0] == 42


def test_a_negative_id_is_invalid() -> None:
    """R-ADD-1: -1 is the id of consumers."""
    assert answer_to(leading(), add_voter(-1, directory=b"d" * 16))[0] == 42


def test_the_same_id_with_another_directory_is_a_duplicate() -> None:
    """R-ADD-1: at most one entry for an id; the old directory has to be removed first."""
    code, text = answer_to(leading(), add_voter(2, directory=b"another one dir."))
    assert code == 126
    assert ReplicaKey(2, directory_id(2)).directory_text in text


def test_a_voter_that_has_just_failed_is_not_asked_again_at_once() -> None:
    """R-ADD-1: the last check is that of the connection."""
    lone = leading()
    caught_up(lone, 4)
    assert lone.request(add_voter(4)) is None
    [refused] = replies(lone.fail(probe(lone)))
    assert refused.error_code == 7
    assert answer_to(lone, add_voter(4)) == (7, "the connection to 4 is busy, or has just failed")
    lone.wait(lone.config.timers.retry_backoff_ms)
    assert lone.request(add_voter(4)) is None


# ---- the probe -----------------------------------------------------------------------------------


def probe(lone: Lone) -> effects.SendRequest:
    """The request that asks the new voter which versions it supports."""
    found = lone.last_request
    assert found.message.NAME == "ApiVersionsRequest"
    return found


def probing(replica: int = 4, *, waits: bool = True) -> Lone:
    """Node 1 leads, and asks a new voter that is caught up."""
    lone = leading()
    caught_up(lone, replica)
    assert lone.request(add_voter(replica, waits=waits)) is None
    return lone


def test_a_new_voter_is_asked_at_the_address_that_it_will_have() -> None:
    """R-ADD-1: a voter that the leader cannot reach could not be asked for votes either."""
    sent = probe(probing())
    place = sent.destination
    assert (place.id, place.directory_id) == (4, directory_id(4))
    assert (place.host, place.port) == ("node4", 9004)


@pytest.mark.parametrize(
    ("answer", "error", "text"),
    [
        (features(["metadata.version"]), 42, "supports kraft.version 0 to 0, not 1"),
        (features(kraft=(0, 0)), 42, "supports kraft.version 0 to 0, not 1"),
        (features(kraft=(2, 3)), 42, "supports kraft.version 2 to 3, not 1"),
    ],
)
def test_a_voter_that_does_not_know_the_version_is_not_added(
    answer: Any, error: int, text: str
) -> None:
    """R-ADD-4: it could not read the voters that the log holds."""
    lone = probing()
    [refused] = replies(lone.answer(probe(lone), answer))
    assert (refused.error_code, text in refused.error_message) == (error, True)
    assert keys(lone.core.voters) == keys(leading().core.voters)


@pytest.mark.parametrize("error", [35, 58, -1])
def test_a_voter_that_refuses_to_be_asked_is_not_added(error: int) -> None:
    """R-ADD-3: it is treated as missing, and left alone for the back-off."""
    lone = probing()
    answer = features()
    answer.error_code = error
    [refused] = replies(lone.answer(probe(lone), answer))
    assert refused.error_code == 7
    assert answer_to(lone, add_voter(4))[0] == 7


def test_a_voter_that_is_not_caught_up_is_not_added() -> None:
    """R-ADD-5: commits would have to wait until it is."""
    lone = leading()
    fetches(lone, 4, 0)
    code, text = answer_to(lone, add_voter(4))
    assert (code, "has not fetched the whole log" in text) == (7, True)


def test_only_the_exact_directory_is_caught_up() -> None:
    """R-REP-7: the progress of another disk under this id proves nothing."""
    lone = leading()
    fetches(lone, 4, directory=b"another one dir.")
    assert answer_to(lone, add_voter(4))[0] == 7


def test_a_replica_that_was_caught_up_an_hour_ago_no_longer_is() -> None:
    """R-REP-7: Kafka's hour, counted from the last fetch."""
    lone = probing()
    lone.answer(probe(lone), features(["metadata.version"]))
    for _ in range(2 * 3600):
        lone.wait(500)
        fetches(lone, 2)
        fetches(lone, 3)
    assert "has not fetched the whole log" in answer_to(lone, add_voter(4))[1]


def test_an_answer_that_comes_too_late_adds_no_voter() -> None:
    """R-ADD-2, R-ADD-3: the request has its answer, a time-out, so nothing may follow."""
    lone = probing()
    sent = probe(lone)
    before = len(lone.effects)
    lone.wait(lone.config.timers.request_timeout_ms)
    [refused] = replies(lone.effects[before:])
    assert refused.error_code == 7
    found = lone.answer(sent, features())
    assert not [one for one in found if isinstance(one, effects.AppendToLog | effects.SendReply)]
    assert lone.core.voters.get(4) is None


def test_an_answer_for_another_directory_is_not_for_this_change() -> None:
    """The second attempt concerns another disk than the one that was probed."""
    lone = probing()
    first = probe(lone)
    lone.wait(lone.config.timers.request_timeout_ms)
    other = b"another one dir."
    fetches(lone, 4, directory=other)
    assert lone.request(add_voter(4, directory=other)) is None
    assert not replies(lone.answer(first, features()))
    assert lone.core.voters.get(4) is None
    lone.answer(probe(lone), features())
    assert ReplicaKey(4, other) in keys(lone.core.voters)


def test_new_voters_that_do_not_answer_hold_up_no_other() -> None:
    """R-VC-1: whoever can send requests names silent ones without end. Those that were asked first
    give way, but not before an honest one could have answered (SEC-VOTERS)."""
    lone = leading()
    for n in range(CANDIDATES_MAX):
        caught_up(lone, 100 + n)
        assert lone.request(add_voter(100 + n)) is None
    caught_up(lone, 4)
    assert answer_to(lone, add_voter(4)) == (7, "too many new voters are being asked")
    lone.wait(CANDIDATE_MS_MIN)
    before = len(lone.effects)
    assert lone.request(add_voter(4)) is None
    [given_up] = replies_to_add(lone, before)
    assert (given_up.error_code, "voter 100 did not answer" in given_up.error_message) == (7, True)
    lone.answer(probe(lone), features())
    fetches(lone, 2)
    fetches(lone, 4)
    assert replies_to_add(lone)[-1].error_code == 0
    assert lone.core.voters.get(4) is not None
    lone.wait(lone.config.timers.request_timeout_ms)
    # Each has its answer: those that were refused, given up, added, and the silent ones.
    assert len(replies_to_add(lone)) == CANDIDATES_MAX + 2


def test_a_voter_is_asked_at_a_second_address_while_the_first_is_silent() -> None:
    """A false address under its id and directory id must not keep it out (SEC-VOTERS)."""
    lone = leading()
    caught_up(lone, 4)
    assert lone.request(add_voter(4, port=1)) is None
    assert lone.request(add_voter(4)) is None
    lone.answer(probe(lone), features())
    assert lone.core.voters.get(4) is not None


# ---- the record ----------------------------------------------------------------------------------


def test_the_new_voter_counts_from_the_append_on() -> None:
    """R-ADD-6, R-VC-2: one record, alone in its batch, with the data of request and probe."""
    lone = probing()
    end, mark = lone.core.end_offset, lone.core.high_watermark
    found = lone.answer(probe(lone), features(kraft=(0, 5)))
    [appended] = [one for one in found if isinstance(one, effects.AppendToLog)]
    assert (appended.base_offset, appended.end_offset) == (end, end + 1)
    added = Voter(ReplicaKey(4, directory_id(4)), (endpoint(4),), 0, 5)
    assert lone.core.voters.get(4) == added
    assert lone.core.voters_offset == end
    # Two of four are no longer a majority.
    fetches(lone, 2)
    assert lone.core.high_watermark == mark
    fetches(lone, 4)
    assert lone.core.high_watermark == end + 1


def test_the_answer_waits_for_the_commit() -> None:
    """R-ADD-8, R-ADD-9."""
    lone = probing()
    assert not replies(lone.answer(probe(lone), features()))
    before = len(lone.effects)
    fetches(lone, 2)
    fetches(lone, 3)
    [answer] = replies_to_add(lone, before)
    assert answer.error_code == 0


def replies_to_add(lone: Lone, since: int = 0) -> list[Any]:
    """The answers to AddRaftVoter."""
    return [one for one in replies(lone.effects[since:]) if one.NAME == "AddRaftVoterResponse"]


def test_the_answer_may_come_with_the_append() -> None:
    """R-ADD-7: but the change is pending until it is committed."""
    lone = probing(waits=False)
    [answer] = replies(lone.answer(probe(lone), features()))
    assert answer.error_code == 0
    assert "another change is pending: add voter 4" in answer_to(lone, add_voter(5))[1]
    fetches(lone, 2)
    fetches(lone, 3)
    assert len(replies_to_add(lone)) == 2
    caught_up(lone, 5)
    assert lone.request(add_voter(5)) is None


def test_all_listeners_of_the_request_are_kept() -> None:
    """R-ID-4: names in upper case; brokers use other listeners than controllers."""
    lone = leading()
    caught_up(lone, 4)
    lone.request(add_voter(4, listeners=("controller", "External")))
    lone.answer(probe(lone), features())
    entry = lone.core.voters.get(4)
    assert entry is not None
    names = [LISTENER, "EXTERNAL"]
    assert entry.endpoints == tuple(Endpoint(name, "node4", 9004) for name in names)


def test_a_leader_that_resigned_adds_no_voter() -> None:
    """R-ADD-3: the answer of the probe belongs to the old role."""
    lone = probing()
    sent = probe(lone)
    [refused] = replies(lone.handle(events.ResignRequested(lone.core.epoch)))
    assert refused.error_code == 6
    assert not replies(lone.answer(sent, features()))
    assert lone.core.voters.get(4) is None
