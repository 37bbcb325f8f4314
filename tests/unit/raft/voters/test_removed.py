"""RemoveRaftVoter: the checks in Kafka's order, and leaders that remove others or themselves."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from kraftwire.raft import effects
from tests.support.raft.lone import Lone, append, fetches, leading, replies
from tests.support.raft.messages import directory_id, remove_voter
from tests.unit.raft.voters.test_added import CODES, STATES

_CODES = {
    **{text: code for text, code in CODES.items() if code not in (126,)},
    "is in the set": 127,
}
_FAULTS: dict[str, dict[str, Any]] = {
    "the cluster is": {"cluster_id": "foreign"},
    "needs an id and a directory id": {"directory": bytes(16)},
    "is in the set": {"node_id": 9},
    "": {},
}


def first_of(*texts: str) -> str:
    """The fault that Kafka finds first."""
    return min((one for one in texts if one), key=list(_CODES).index, default="")


@pytest.mark.parametrize("state", STATES)
def test_the_first_of_several_errors_is_reported(state: str) -> None:
    """R-REM-1: two faults at once, in every pair, with every state of the leader."""
    for first, second in itertools.combinations_with_replacement(_FAULTS, 2):
        wanted = first_of(state.removesuffix(", static"), first, second)
        if not wanted:
            continue
        fields = {"node_id": 2, **_FAULTS[second], **_FAULTS[first]}
        answer = STATES[state]().request(remove_voter(fields.pop("node_id"), **fields))
        assert answer.error_code == _CODES[wanted], (first, second)
        assert wanted in answer.error_message, (first, second)


@pytest.mark.parametrize(("replica", "directory"), [(2, b"another one dir."), (9, None)])
def test_only_exactly_that_voter_is_removed(replica: int, directory: bytes | None) -> None:
    """R-REM-1: removing a directory that was already replaced must not remove the new one."""
    lone = leading()
    assert lone.request(remove_voter(replica, directory=directory)).error_code == 127
    assert len(lone.core.voters) == 3


def test_the_only_voter_is_not_removed() -> None:
    """R-REM-1: no voter would be left to decide anything."""
    answer = leading((1,)).request(remove_voter(1))
    assert (answer.error_code, "only voter" in answer.error_message) == (127, True)


def test_the_removed_voter_no_longer_counts_from_the_append_on() -> None:
    """R-VC-2: both of the two that are left are needed."""
    lone = leading()
    mark = lone.core.high_watermark
    assert lone.request(remove_voter(3)) is None
    assert sorted(lone.core.voters.voters) == [1, 2]
    fetches(lone, 3)
    assert lone.core.high_watermark == mark, "counted a voter that is not in the set"
    before = len(lone.effects)
    fetches(lone, 2)
    assert lone.core.high_watermark == mark + 1
    [answer] = [one for one in replies(lone.effects[before:]) if "Remove" in one.NAME]
    assert answer.error_code == 0


def test_one_of_two_voters_commits_the_removal_of_the_other_alone() -> None:
    """A dead voter of two can be removed only by the one that is left."""
    lone = leading((1, 2))
    before = len(lone.effects)
    lone.request(remove_voter(2))
    [answer] = replies(lone.effects[before:])
    assert (answer.NAME, answer.error_code) == ("RemoveRaftVoterResponse", 0)
    assert lone.core.high_watermark == lone.core.end_offset


def leaving() -> Lone:
    """Node 1 leads and has been asked to remove itself."""
    lone = leading()
    assert lone.request(remove_voter(1)) is None
    return lone


def test_a_removed_leader_keeps_leading_without_counting_itself() -> None:
    """R-REM-3, R-HW-4: it has to replicate its own removal."""
    lone = leaving()
    mark = lone.core.high_watermark
    assert (lone.core.role, lone.core.is_voter) == ("leader", False)
    append(lone, b"one more")
    fetches(lone, 2, mark + 1)
    assert (lone.core.role, lone.core.high_watermark) == ("leader", mark)


def test_a_removed_leader_stays_while_only_older_records_are_committed() -> None:
    """R-REM-3: if it left now, its successor might lack the removal, and it would lead again."""
    lone = leading()
    append(lone, b"x")
    end = lone.core.end_offset
    assert lone.request(remove_voter(1)) is None
    for follower in (2, 3):
        fetches(lone, follower, end)
    assert (lone.core.high_watermark, lone.core.end_offset) == (end, end + 1)
    assert lone.core.role == "leader"


def test_a_removed_leader_answers_and_resigns_once_that_is_committed() -> None:
    """R-REM-5: answer first, then EndQuorumEpoch to those that are left."""
    lone = leaving()
    fetches(lone, 2)
    assert lone.core.role == "leader"
    before = len(lone.effects)
    fetches(lone, 3)
    found = lone.effects[before:]
    [answer] = [one for one in replies(found) if one.NAME == "RemoveRaftVoterResponse"]
    assert answer.error_code == 0
    assert lone.core.role == "resigned"
    sent = [one for one in found if isinstance(one, effects.SendRequest)]
    asked = [(one.destination.id, one.message.NAME) for one in sent]
    assert asked == [(2, "EndQuorumEpochRequest"), (3, "EndQuorumEpochRequest")]


def test_a_removed_leader_never_stands_again() -> None:
    """It is an observer now, with the epoch after the last one that it led."""
    lone = leaving()
    fetches(lone, 2)
    fetches(lone, 3)
    lone.effects.clear()
    lone.wait(60_000)
    roles = {one.new for one in lone.all_of(effects.RoleChanged)}
    assert roles == {"unattached"}
    assert directory_id(1) not in {one.key.directory_id for one in lone.core.voters}


def test_a_leader_outside_the_set_needs_a_majority_of_the_others_to_stay() -> None:
    """R-CQ-2, S17: one of two voters does not keep it, although one was enough before."""
    lone = leaving()
    for _ in range(8):
        lone.wait(500)
        fetches(lone, 2, 3)
    assert lone.core.role != "leader"
