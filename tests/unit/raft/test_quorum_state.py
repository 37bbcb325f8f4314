"""What is written into the quorum-state file, when, and in which version."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.raft import effects, events
from kraftwire.raft.effects import ElectionState, PersistQuorumState
from kraftwire.raft.voters import ReplicaKey
from tests.support.raft.lone import Lone, fetches, leading
from tests.support.raft.messages import (
    begin,
    directory_id,
    end,
    fetched,
    remove_voter,
    update_voter,
    vote,
)

TWO = ReplicaKey(2, directory_id(2))


def written(found: list[effects.Effect]) -> list[PersistQuorumState]:
    """The quorum states among effects."""
    return [one for one in found if isinstance(one, PersistQuorumState)]


def after(lone: Lone, message: Any) -> list[effects.Effect]:
    """All effects of a request."""
    before = len(lone.effects)
    lone.request(message)
    return lone.effects[before:]


def test_epoch_and_vote_of_one_step_are_one_write() -> None:
    """A candidate in a higher epoch is two changes and one file, before the answer (D1)."""
    found = after(Lone(), vote(2, 7))
    assert written(found) == [PersistQuorumState(ElectionState(7, -1, TWO), 0, (1, 2, 3))]
    kinds = [type(one) for one in found]
    assert kinds.index(PersistQuorumState) < kinds.index(effects.SendReply)


def test_the_result_of_a_step_is_written_once() -> None:
    """The only voter leads in the step in which it starts, through three roles."""
    lone = Lone(voters=(1,))
    assert [one.state for one in written(lone.effects)] == [ElectionState(1, 1)]
    assert [one.new for one in lone.all_of(effects.RoleChanged)] == [
        "prospective",
        "candidate",
        "leader",
    ]


def test_no_step_writes_twice() -> None:
    """Over the life of a node: a vote, a leader, its end, an election, a deposition."""
    lone = Lone()
    epoch = 1
    steps: list[Any] = [vote(2, epoch), begin(2, epoch), end(2, epoch, 1), vote(3, epoch + 4)]
    for message in steps:
        assert len(written(after(lone, message))) <= 1, message
    lone.lead()
    assert len(written(after(lone, begin(3, lone.core.epoch + 1)))) == 1


def test_what_is_written_already_is_not_written_again() -> None:
    """Each write flushes file and directory: followers must not make needless ones."""
    lone = Lone()
    lone.request(begin(2, 1))
    assert not written(after(lone, begin(2, 1)))
    assert not written(after(lone, vote(3, 1)))
    assert not written(lone.fetch_gets(fetched(2, 1)))


def test_pre_votes_write_nothing() -> None:
    """S19: neither asking nor answering."""
    lone = Lone()
    lone.effects.clear()
    lone.wait(2000)
    assert lone.core.role == "prospective"
    assert not written(lone.effects)
    assert not written(after(lone, vote(2, 0, pre_vote=True)))


@pytest.mark.parametrize("is_dynamic", [False, True])
def test_the_files_version_is_that_of_the_quorum(is_dynamic: bool) -> None:
    """R-ID-9: version 1 keeps the voted directory; version 0 the ids of the voters instead."""
    [one] = written(after(Lone(is_dynamic=is_dynamic), vote(2, 7)))
    assert (one.kraft_version, one.voters) == (int(is_dynamic), (1, 2, 3))
    assert one.state.voted == TWO


def test_an_upgrade_shows_in_the_file_at_the_next_write() -> None:
    """R-UPG-2: not by itself, as on a Java node."""
    lone = leading(is_dynamic=False)
    for one in (2, 3):
        lone.request(update_voter(one, lone.core.epoch))
    found = lone.handle(events.UpgradeRequested(7, lone.core.epoch, 1))
    assert lone.core.kraft_version == 1
    assert not written(found)
    [persisted] = written(after(lone, vote(2, lone.core.epoch + 1, (lone.core.epoch, 99))))
    assert persisted.kraft_version == 1


def test_the_voters_in_the_file_are_those_in_force() -> None:
    """This holds even if they are not committed yet."""
    lone = leading()
    lone.request(remove_voter(3))
    [persisted] = written(after(lone, vote(2, lone.core.epoch + 2)))
    assert persisted.voters == (1, 2)


def test_a_vote_is_kept_while_the_leader_of_its_epoch_is_followed() -> None:
    """R-ID-9: both are in the file; after a restart neither is forgotten."""
    lone = Lone()
    lone.request(vote(2, 7))
    lone.request(begin(2, 7))
    assert lone.disk.election == ElectionState(7, 2, TWO)
    lone.restart()
    assert (lone.core.role, lone.core.leader_id, lone.core.voted) == ("follower", 2, TWO)


def test_a_leaders_commits_write_no_quorum_state() -> None:
    """Only elections do."""
    lone = leading()
    lone.effects.clear()
    fetches(lone, 2)
    lone.request(remove_voter(3))
    fetches(lone, 2)
    assert not written(lone.effects)
