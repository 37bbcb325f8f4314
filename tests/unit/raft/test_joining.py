"""Auto-join: an observer asks to become a voter, and has its own old directory removed first."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.messages.add_raft_voter_response import AddRaftVoterResponse
from kraftwire.messages.remove_raft_voter_response import RemoveRaftVoterResponse
from kraftwire.protocol.endpoint import Endpoint
from kraftwire.raft import effects
from kraftwire.raft.histories import voters_record
from kraftwire.raft.voters import ReplicaKey
from kraftwire.records.control import ControlType, control_batch
from kraftwire.records.offsets import OffsetAndEpoch
from tests.support.raft.cluster import Cluster
from tests.support.raft.downloads import file_of, take
from tests.support.raft.lone import Lone
from tests.support.raft.messages import (
    LISTENER,
    begin,
    directory_id,
    dynamic_set,
    fetched,
    voters_control,
)

OTHER = b"another one dir."


def observing(node_id: int = 4, *, kraft_version: int = 1, **config: Any) -> Lone:
    """An observer that joins by itself follows node 2, and has read the log."""
    lone = Lone(node_id, is_dynamic=False, auto_join=True, **config)
    lone.request(begin(2, 1))
    voters = control_batch(0, 1, 0, voters_control(dynamic_set([1, 2, 3])))
    lone.fetch_gets(fetched(2, 1, voters if kraft_version else b""))
    return lone


def joins(lone: Lone) -> list[effects.SendRequest]:
    """The requests to change the voters so far."""
    names = ("AddRaftVoterRequest", "RemoveRaftVoterRequest")
    return [one for one in lone.requests if one.message.NAME in names]


def fetch_for(lone: Lone, duration_ms: int, epoch: int = 1) -> None:
    """Let time pass while the leader answers every fetch."""
    end = lone.now + duration_ms
    while lone.now < end:
        lone.wait(500)
        if lone.last_request.message.NAME == "FetchRequest":
            lone.fetch_gets(fetched(2, epoch))


def test_an_observer_asks_to_be_added() -> None:
    """R-JOIN-1: after a fetch timeout, with all its listeners, and without waiting for a commit."""
    places = (Endpoint(LISTENER, "node4", 9004), Endpoint("OTHER", "node4", 9104))
    lone = observing(endpoints=places)
    fetch_for(lone, 1500)
    assert not joins(lone)
    fetch_for(lone, 500)
    [sent] = joins(lone)
    message: Any = sent.message
    assert message.NAME == "AddRaftVoterRequest"
    assert sent.destination.id == 2
    assert (message.voter_id, message.voter_directory_id) == (4, directory_id(4))
    assert [(at.name, at.port) for at in message.listeners] == [(LISTENER, 9004), ("OTHER", 9104)]
    assert not message.ack_when_committed
    assert message.timeout_ms == lone.config.timers.request_timeout_ms


def test_an_old_directory_of_the_same_id_is_removed_first() -> None:
    """R-JOIN-1: the disk was lost, and its voter would be missing for ever."""
    lone = observing(3, key=ReplicaKey(3, OTHER))
    fetch_for(lone, 2000)
    [sent] = joins(lone)
    message: Any = sent.message
    assert message.NAME == "RemoveRaftVoterRequest"
    assert (message.voter_id, message.voter_directory_id) == (3, directory_id(3))


@pytest.mark.parametrize("error", [0, 7, 126])
def test_an_answer_that_may_be_right_is_waited_for(error: int) -> None:
    """R-JOIN-2: the log will show it; it asks again only after the fetch timeout."""
    lone = observing()
    fetch_for(lone, 2000)
    lone.answer(joins(lone)[0], AddRaftVoterResponse(error_code=error))
    assert lone.last_request.message.NAME == "FetchRequest"
    fetch_for(lone, 1500)
    assert len(joins(lone)) == 1
    fetch_for(lone, 1000)
    assert len(joins(lone)) == 2


@pytest.mark.parametrize("error", [6, 42, 31, -1])
def test_a_refusal_is_reported_and_the_leader_left_alone(error: int) -> None:
    """R-JOIN-2, R-FET-3: for the back-off, in which another node is asked who leads; then fetching
    continues, and the next attempt is a timeout later."""
    lone = observing()
    fetch_for(lone, 2000)
    found = lone.answer(joins(lone)[0], AddRaftVoterResponse(error_code=error))
    assert [one.key for one in found if isinstance(one, effects.Note)] == ["join"]
    assert (lone.last_request.message.NAME, lone.last_request.destination.id) == ("FetchRequest", 1)
    lone.wait(20)
    lone.fetch_gets(fetched(2, 1, error=6))
    assert (lone.last_request.message.NAME, lone.last_request.destination.id) == ("FetchRequest", 2)
    assert len(joins(lone)) == 1


def test_a_removal_of_a_missing_voter_is_not_a_failure() -> None:
    """R-JOIN-2: the old directory has already been removed by another request."""
    lone = observing(3, key=ReplicaKey(3, OTHER))
    fetch_for(lone, 2000)
    found = lone.answer(joins(lone)[0], RemoveRaftVoterResponse(error_code=127))
    assert not [one for one in found if isinstance(one, effects.Note)]


def test_a_quorum_of_configured_voters_cannot_be_joined() -> None:
    """R-JOIN-1: at kraft.version 0 the answer could only be a refusal."""
    lone = observing(kraft_version=0)
    fetch_for(lone, 6000)
    assert not joins(lone)


def test_a_replica_joins_only_if_configured() -> None:
    """R-JOIN-1: `controller.quorum.auto.join.enable` is false by default."""
    lone = Lone(4)
    lone.request(begin(2, 1))
    lone.fetch_gets(fetched(2, 1, control_batch(0, 1, 0, voters_control(dynamic_set([1, 2])))))
    fetch_for(lone, 6000)
    assert not joins(lone)


def test_a_broker_does_not_join() -> None:
    """Only a process with the controller role can be a voter."""
    lone = observing(can_be_voter=False)
    fetch_for(lone, 6000)
    assert not joins(lone)


def _reads(lone: Lone, ids: list[int]) -> None:
    """Let it fetch another set."""
    record = (ControlType.KRAFT_VOTERS, voters_record(dynamic_set(ids)))
    lone.fetch_gets(fetched(2, 1, control_batch(lone.core.end_offset, 1, 0, [record])))


def test_a_voter_that_was_removed_stays_out() -> None:
    """KAFKA-19850: until its next start, joining would undo the removal at once."""
    lone = observing()
    _reads(lone, [1, 2, 3, 4])
    assert lone.core.is_voter
    _reads(lone, [1, 2, 3])
    fetch_for(lone, 6000)
    assert not joins(lone)
    lone.restart()
    lone.request(begin(2, 1))
    fetch_for(lone, 2000)
    assert len(joins(lone)) == 1


def test_a_voter_whose_joining_was_undone_asks_again() -> None:
    """It was not removed: the record was cut off with the leader that wrote it."""
    lone = observing()
    end = lone.core.end_offset
    _reads(lone, [1, 2, 3, 4])
    lone.fetch_gets(fetched(2, 1, diverging=(1, end)))
    assert not lone.core.is_voter
    fetch_for(lone, 2500)
    assert len(joins(lone)) == 1


class _Joining(Cluster):
    """A cluster with auto-join on every node."""

    joins = True


def test_an_observer_becomes_a_voter_by_itself() -> None:
    """Both sides together: it asks, is probed, catches up, is added, and counts."""
    cluster = _Joining([1, 2, 3], [4], dynamic=True)
    cluster.start(1, 2, 3, 4)
    assert cluster.run_until(lambda: cluster.core(4).is_voter, 10_000)
    [leader] = cluster.leaders()
    end = cluster.core(leader).end_offset
    assert cluster.run_until(lambda: cluster.core(leader).high_watermark >= end)
    assert sorted(cluster.core(leader).voters.voters) == [1, 2, 3, 4]


def test_a_voter_with_a_wiped_disk_comes_back_by_itself() -> None:
    """Both steps: its old directory is removed, then the new one added; nothing is missing then."""
    cluster = _Joining([1, 2, 3], dynamic=True)
    cluster.start(1, 2, 3)
    cluster.run(4000)
    wiped = next(one for one in (1, 2, 3) if one not in cluster.leaders())
    cluster.kill(wiped)
    cluster.wipe(wiped)
    new = cluster.key(wiped)
    cluster.start(wiped)
    [leader] = cluster.leaders()

    def is_back() -> bool:
        voters = cluster.core(leader).voters
        return cluster.core(wiped).is_voter and voters.is_voter(new)

    assert cluster.run_until(is_back, 20_000)
    assert cluster.run_until(lambda: cluster.core(wiped).high_watermark > 3)
    assert len(cluster.core(leader).voters) == 3
    assert cluster.log_of(wiped) == cluster.log_of(leader)


def test_a_voter_that_was_removed_stays_out_when_the_others_change() -> None:
    """KAFKA-19850: it was removed deliberately, whatever becomes of the others; not so if it is
    added again, and that is undone."""
    lone = observing()
    _reads(lone, [1, 2, 3, 4])
    _reads(lone, [1, 2, 3])
    for others in ([1, 2], [1, 2, 5], [1, 2, 3, 5]):
        _reads(lone, others)
        fetch_for(lone, 4500)
        assert not joins(lone), others
    end = lone.core.end_offset
    _reads(lone, [1, 2, 3, 4, 5])
    assert lone.core.is_voter
    lone.fetch_gets(fetched(2, 1, diverging=(1, end)))
    assert not lone.core.is_voter
    fetch_for(lone, 2500)
    assert len(joins(lone)) == 1


def test_a_voter_whose_joining_a_snapshot_undid_asks_again() -> None:
    """It was not removed: the set in the snapshot stands where the record of its joining stood,
    which was never committed."""
    lone = observing()
    _reads(lone, [1, 2, 3, 4])
    snapshot = OffsetAndEpoch(lone.core.end_offset, 2)
    lone.request(begin(2, 3))
    lone.fetch_gets(fetched(2, 3, snapshot=snapshot))
    found = take(
        lone, file_of(snapshot, voters_control(dynamic_set([1, 2, 3]))), leader=2, epoch=3
    )
    assert effects.ResetLog(snapshot) in found
    assert lone.core.voters_offset == snapshot.offset - 1
    assert not lone.core.is_voter
    fetch_for(lone, 2500, epoch=3)
    assert len(joins(lone)) == 1
