"""A log that begins at a fetched snapshot: voters, roles and state machines from then on."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.messages.fetch_snapshot_response import FetchSnapshotResponse
from kraftwire.raft import effects, events
from kraftwire.raft.effects import ElectionState
from kraftwire.raft.histories import voters_record
from kraftwire.records.control import ControlType, control_batch
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.records.plain import data_batch
from kraftwire.sim.untimed.node import LISTENER
from tests.support.raft.cluster import Cluster
from tests.support.raft.downloads import (
    EPOCH,
    LEADER,
    SNAPSHOT,
    behind,
    file_of,
    sent_to,
    serve,
    take,
)
from tests.support.raft.lone import Lone, fetches, stored_log
from tests.support.raft.messages import dynamic_set, fetched, voters_control

MACHINE = 7


def brought_up(control: Any = (), **config: Any) -> tuple[Lone, list[effects.Effect]]:
    """A follower that has loaded its leader's snapshot, and the effects of that."""
    lone = behind(**config)
    sent_to(lone)
    return lone, take(lone, file_of(control=control))


# ---- voters --------------------------------------------------------------------------------------


def test_the_voters_are_those_of_the_snapshot() -> None:
    """R-ID-6: under its last offset, they replace all that was known."""
    control = voters_control(dynamic_set([1, 2, 5]))
    lone, found = brought_up(control)
    assert (lone.core.voters, lone.core.kraft_version) == (dynamic_set([1, 2, 5]), 1)
    [changed] = [one for one in found if isinstance(one, effects.VotersChanged)]
    assert (changed.offset, changed.kraft_version, changed.is_voter) == (9, 1, True)


def test_a_snapshot_without_voters_leaves_the_configured_ones() -> None:
    """R-SNAP-3: at kraft.version 0 it states none."""
    lone, found = brought_up()
    assert not [one for one in found if isinstance(one, effects.VotersChanged)]
    assert (lone.core.kraft_version, len(lone.core.voters)) == (0, 3)


def test_a_voter_of_an_uncommitted_record_is_forgotten_with_it() -> None:
    """KAFKA-19850: the log that said so is gone."""
    records = [*voters_control(dynamic_set([1, 2, 3, 4]))]
    log = [*stored_log((1, 4)), control_batch(4, 1, 0, records)]
    lone = Lone(log=log, election=ElectionState(1))
    lone.follow(LEADER, EPOCH)
    assert lone.core.voters.get(4) is not None
    sent_to(lone)
    take(lone, file_of(control=voters_control(dynamic_set([1, 2, 3]))))
    assert lone.core.voters == dynamic_set([1, 2, 3])


def test_a_voter_that_has_been_removed_no_longer_stands() -> None:
    """S17, S18, L2: even if it was just about to. It goes on as an observer of its leader."""
    for wait_ms in (0, 3000):
        lone = behind()
        sent_to(lone)
        data = file_of(control=voters_control(dynamic_set([2, 3])))
        serve(lone, data, len(data))
        lone.wait(wait_ms)
        assert lone.core.role == ("prospective" if wait_ms else "follower")
        found = lone.finish_snapshot()
        told = [one.text for one in found if isinstance(one, effects.Note) and one.key == "voter"]
        assert told == ["this node is no longer a voter; the voters are 2, 3"]
        assert not lone.core.is_voter
        assert (lone.core.role, lone.core.leader_id) == ("follower", LEADER)
        lone.wait(60_000)
        assert lone.core.role == "follower"
        assert lone.core.epoch == EPOCH


def test_records_after_the_snapshot_change_its_voters() -> None:
    """Cutting them off restores the voters of the snapshot, not the configured ones."""
    lone, _ = brought_up(voters_control(dynamic_set([1, 2, 3])))
    record = (ControlType.KRAFT_VOTERS, voters_record(dynamic_set([1, 2, 3, 4])))
    lone.fetch_gets(fetched(LEADER, EPOCH, control_batch(10, EPOCH, 0, [record])))
    assert lone.core.voters == dynamic_set([1, 2, 3, 4])
    lone.fetch_gets(fetched(LEADER, EPOCH, diverging=(2, 10)))
    assert (lone.core.end_offset, lone.core.voters) == (10, dynamic_set([1, 2, 3]))


def test_nothing_is_cut_off_below_the_snapshot() -> None:
    """S11: the log ends there at least, also after a restart, when no high watermark is known."""
    lone, _ = brought_up()
    lone.fetch_gets(fetched(LEADER, EPOCH, data_batch(10, EPOCH, 0, [b"x"])))
    lone.restart()
    lone.follow(3, EPOCH + 1)
    lone.fetch_gets(fetched(3, EPOCH + 1, diverging=(1, 4)))
    assert (lone.core.start_offset, lone.core.end_offset, lone.core.last_epoch) == (10, 10, 2)
    lone.fetch_gets(fetched(3, EPOCH + 1, diverging=(1, 4)))
    assert (lone.core.start_offset, lone.core.end_offset) == (10, 10)
    assert lone.last_request.destination.id != 3, "asks again at once"


def test_an_own_snapshot_protects_what_it_holds_after_a_restart() -> None:
    """S11: it holds only what is committed, and the log still begins before it."""
    lone = Lone(log=stored_log((1, 12)), election=ElectionState(2), log_start=10)
    lone.disk.batches[:0] = stored_log((1, 10))
    lone.disk.flushed += 10
    lone.disk.start_offset = 0
    lone.restart()
    assert (lone.core.start_offset, lone.core.end_offset) == (0, 12)
    lone.follow(2, 3)
    found = lone.fetch_gets(fetched(2, 3, diverging=(0, 5)))
    assert [one.key for one in found if isinstance(one, effects.Note)] == ["cut-refused"]
    lone.wait(20)
    lone.fetch_gets(fetched(2, 3, error=6))
    lone.fetch_gets(fetched(2, 3, diverging=(1, 11)))
    assert lone.core.end_offset == 11


# ---- state machines ------------------------------------------------------------------------------


def test_a_state_machine_loads_the_snapshot_and_continues_after_it() -> None:
    """R-LIS-2: it gets nothing else before it reports that it has done so."""
    lone = behind()
    lone.handle(events.ListenerRegistered(MACHINE))
    sent_to(lone)
    take(lone, file_of())
    assert lone.all_of(effects.LoadSnapshot) == [effects.LoadSnapshot(MACHINE, SNAPSHOT)]
    lone.fetch_gets(
        fetched(LEADER, EPOCH, data_batch(10, EPOCH, 0, [b"x"] * 2), high_watermark=12)
    )
    assert not lone.all_of(effects.DeliverCommitted)
    lone.handle(events.ListenerConsumed(MACHINE, 10))
    assert lone.all_of(effects.DeliverCommitted) == [effects.DeliverCommitted(MACHINE, 10, 12)]


def test_a_delivery_in_flight_ends_where_it_ends() -> None:
    """What it was reading is gone: it reports how far it came, and then loads the snapshot."""
    lone = behind()
    lone.handle(events.ListenerRegistered(MACHINE))
    lone.fetch_gets(fetched(LEADER, EPOCH, high_watermark=4))
    assert lone.all_of(effects.DeliverCommitted) == [effects.DeliverCommitted(MACHINE, 0, 4)]
    sent_to(lone)
    take(lone, file_of())
    assert not lone.all_of(effects.LoadSnapshot)
    lone.handle(events.ListenerConsumed(MACHINE, 2))
    assert lone.all_of(effects.LoadSnapshot) == [effects.LoadSnapshot(MACHINE, SNAPSHOT)]


def test_a_state_machine_that_comes_later_loads_it_as_well() -> None:
    """What precedes the log's start is nowhere else."""
    lone, _ = brought_up()
    lone.handle(events.ListenerRegistered(MACHINE, 3))
    assert lone.all_of(effects.LoadSnapshot) == [effects.LoadSnapshot(MACHINE, SNAPSHOT)]


def test_a_leaders_state_machine_loads_after_a_restart_too() -> None:
    """S15 forbids a leader to fetch one, not its state machine to start from its own one."""
    lone, _ = brought_up()
    lone.restart()
    lone.lead()
    lone.handle(events.ListenerRegistered(MACHINE))
    assert not lone.all_of(effects.LoadSnapshot)

    fetches(lone, 2)
    assert lone.all_of(effects.LoadSnapshot) == [effects.LoadSnapshot(MACHINE, SNAPSHOT)]


# ---- whole clusters ------------------------------------------------------------------------------


class _Machines(Cluster):
    """A cluster whose nodes all have a state machine."""

    has_machines = True

    def snapshot(self, node_id: int) -> OffsetAndEpoch:
        """Have a node write a snapshot, and let its log start there."""
        offset = self.nodes[node_id].applied.offset
        self.handle(node_id, events.SnapshotWanted(LISTENER, offset, 0))
        self.run(100)
        snapshot = self.core(node_id).snapshots[-1]
        assert snapshot.offset == offset
        self.handle(node_id, events.LogStartProposed(snapshot))
        assert self.core(node_id).start_offset == offset
        return snapshot


def _running(count: int = 3, **fields: Any) -> tuple[_Machines, int]:
    cluster = _Machines([1, 2, 3], seed=3, **fields)
    cluster.start(*range(1, count + 1))
    assert cluster.run_until(lambda: bool(cluster.leaders()))
    cluster.run(1000)
    return cluster, cluster.leaders()[0]


def _downloads(cluster: _Machines, node_id: int, snapshot: OffsetAndEpoch) -> bool:
    part = cluster.disks[node_id].part
    return part is not None and part[0] == snapshot


def _add(cluster: _Machines, leader: int, *values: bytes) -> None:
    """Append and commit."""
    cluster.append(leader, *values)
    end = cluster.core(leader).end_offset + len(values)
    assert cluster.run_until(lambda: cluster.core(leader).high_watermark >= end)
    cluster.run(1000)


@pytest.mark.parametrize("is_dynamic", [False, True])
@pytest.mark.parametrize("chunk", [1 << 20, 20])
def test_a_follower_comes_back_after_two_snapshots_passed(is_dynamic: bool, chunk: int) -> None:
    """It ends with the same values, over parts of any size, while more records come."""
    cluster, leader = _running(dynamic=is_dynamic)
    away = next(one for one in (1, 2, 3) if one != leader)
    _add(cluster, leader, b"a")
    cluster.kill(away)
    for value in (b"b", b"c"):
        _add(cluster, leader, value)
        cluster.snapshot(leader)
    cluster.chunk = chunk
    cluster.start(away)
    for number in range(5):
        _add(cluster, leader, b"%d" % number)
    assert cluster.values(away) == cluster.values(leader)
    assert cluster.loads[away] == 1
    assert cluster.core(away).snapshots == cluster.core(leader).snapshots
    assert cluster.log_of(away) == cluster.log_of(leader)


def test_a_snapshot_that_is_deleted_while_it_is_fetched_is_followed_by_the_next() -> None:
    """The follower starts over with the newer one, and no byte of the old one remains."""
    cluster, leader = _running()
    away = next(one for one in (1, 2, 3) if one != leader)
    _add(cluster, leader, *(b"%d" % number for number in range(30)))
    first = cluster.snapshot(leader)
    cluster.kill(away)
    cluster.wipe(away)
    cluster.chunk = 10
    cluster.start(away)
    assert cluster.run_until(lambda: _downloads(cluster, away, first))
    cluster.drop = lambda _sender, _target, message: isinstance(message, FetchSnapshotResponse)
    _add(cluster, leader, b"more")
    second = cluster.snapshot(leader)
    assert _downloads(cluster, away, first)
    assert first not in cluster.disks[leader].snapshots
    cluster.heal()
    cluster.run(5000)
    assert cluster.core(away).snapshots == [second]
    assert cluster.disks[away].part is None
    assert cluster.values(away) == cluster.values(leader)


def test_a_leader_that_dies_in_the_middle_is_followed_by_another() -> None:
    """The next leader has a snapshot of its own, or the records."""
    cluster, leader = _running()
    [away, other] = [one for one in (1, 2, 3) if one != leader]
    _add(cluster, leader, *(b"%d" % number for number in range(30)))
    for one in (leader, other):
        cluster.snapshot(one)
    cluster.kill(away)
    cluster.wipe(away)
    cluster.chunk = 10
    cluster.start(away)
    assert cluster.run_until(lambda: cluster.disks[away].part is not None)
    cluster.kill(leader)
    assert cluster.run_until(lambda: cluster.leaders() == [other], 20_000)
    cluster.run(5000)
    assert cluster.values(away) == cluster.values(other)
    assert cluster.core(away).start_offset == cluster.core(other).start_offset


def test_all_nodes_restart_from_snapshot_and_log() -> None:
    """R-ID-6, R-START-2: voters, values and epochs survive a power loss of all."""
    cluster, leader = _running(dynamic=True)
    _add(cluster, leader, b"a")
    for one in (1, 2, 3):
        cluster.snapshot(one)
    _add(cluster, leader, b"b")
    for one in (1, 2, 3):
        cluster.kill(one)
    cluster.start(1, 2, 3)
    for one in (1, 2, 3):
        assert (cluster.core(one).kraft_version, cluster.core(one).start_offset) == (1, 4)
        assert cluster.core(one).voters == dynamic_set([1, 2, 3])
    assert cluster.run_until(lambda: bool(cluster.leaders()))
    _add(cluster, cluster.leaders()[0], b"c")
    assert [cluster.values(one) for one in (1, 2, 3)] == [[b"a", b"b", b"c"]] * 3
