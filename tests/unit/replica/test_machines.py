"""State machines: what they are given, when their state is written, and how they load one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from kraftwire.errors import InvariantError, StorageError, UsageError
from kraftwire.log.settings import SnapshotSettings
from kraftwire.raft import effects as fx
from kraftwire.raft import events as ev
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.replica import StateMachine
from kraftwire.replica.ports import WorkKind
from kraftwire.replica.runner import Runner
from tests.support.nodes.fake_core import WALL_MS, FakeCore, Host, Listener, Workers, World, batch

_CLEANING_MS = SnapshotSettings().clean_interval_ms
_EARLY, _LATE = OffsetAndEpoch(2, 1), OffsetAndEpoch(9, 4)


class _Bench:
    """A runner with one state machine; the log holds `data`."""

    def __init__(
        self, machine: StateMachine | None = None, settings: SnapshotSettings | None = None
    ) -> None:
        self.world = World()
        self.host = Host(self.world)
        self.workers = Workers()
        self.core = FakeCore()
        self.runner = Runner(self.core, self.world, self.host, self.workers, settings=settings)
        self.runner.start(0, WALL_MS)
        self.listener = Listener()
        self.runner.add_state_machine(machine or self.listener, writes_snapshots=bool(settings))

    def do(self, *effects: fx.Effect, now_ms: int = 0) -> None:
        self.core.answer = lambda _: list(effects)
        self.runner.handle(ev.ShutdownRequested(), now_ms, WALL_MS + now_ms)

    def deliver(self, start: int, end: int, data: bytes, now_ms: int = 0) -> list[ev.Event]:
        """Deliver a part of the log; returns the events for the core."""
        self.world.data = data
        self.host.submitted.clear()
        self.do(fx.DeliverCommitted(0, start, end), now_ms=now_ms)
        return list(self.host.submitted)

    def write(self, id: OffsetAndEpoch) -> None:
        self.do(fx.WriteSnapshot(0, id, (), 55))


def test_batches_come_with_their_offsets_and_the_core_learns_how_far() -> None:
    """Each once, in order, a bounded piece at a time."""
    bench = _Bench()
    assert bench.host.submitted == [ev.ListenerRegistered(0, 0)]
    told = bench.deliver(3, 20, batch(3, b"a", b"b") + batch(5, b"c"))
    assert [one.base_offset for one in bench.listener.batches] == [3, 5]
    assert told == [ev.ListenerConsumed(0, 6)]


def test_a_delivery_may_begin_inside_a_batch() -> None:
    """A state machine that was registered with an offset may have a part of it already."""
    bench = _Bench()
    assert bench.deliver(4, 5, batch(3, b"a", b"b")) == [ev.ListenerConsumed(0, 5)]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "batches up to 3"),
        (batch(3, b"a")[:-1], "batches up to 3"),
        (batch(4, b"a"), "a batch of 4-4 where 3 is"),
        (batch(1, b"a", b"b"), "a batch of 1-2 where 3 is"),
        (batch(3, b"a") + batch(3, b"a"), "a batch of 3-3 where 4 is"),
        (batch(3, b"a") + batch(5, b"a"), "a batch of 5-5 where 4 is"),
        (batch(3, *[b"a"] * 8), "batches up to 11"),
    ],
)
def test_a_log_without_what_is_committed_is_an_error(
    data: bytes, problem: str
) -> None:
    """A state machine that misses a record, or gets one twice, differs from all others for ever."""
    bench = _Bench()
    with pytest.raises(InvariantError, match=problem):
        bench.deliver(3, 10, data)
    assert bench.listener.batches == []


def test_a_snapshot_is_wanted_after_enough_bytes_and_before_the_core_continues() -> None:
    """R-SNAP-7: with this order the state machine is frozen at exactly the named offset."""
    data = batch(0, b"a" * 100, b"b")
    bench = _Bench(settings=SnapshotSettings(between_bytes=2 * len(data)))
    assert bench.deliver(0, 9, data) == [ev.ListenerConsumed(0, 2)]
    again = batch(2, b"a" * 100, b"b")
    wanted = ev.SnapshotWanted(0, 4, 0)
    assert bench.deliver(2, 9, again) == [wanted, ev.ListenerConsumed(0, 4)]
    third = batch(4, b"a" * 300, b"b")
    assert bench.deliver(4, 9, third) == [ev.ListenerConsumed(0, 6)], "one at a time"


def test_a_snapshot_is_wanted_after_enough_time_with_something_new() -> None:
    """R-SNAP-7: even if nothing else comes that would trigger it."""
    bench = _Bench(settings=SnapshotSettings(interval_ms=1000))
    assert bench.runner.deadline_ms == _CLEANING_MS
    bench.deliver(0, 9, batch(0, b"a"), now_ms=300)
    assert bench.runner.deadline_ms == 1000
    bench.core.answer = lambda _: []
    bench.runner.wake(999, WALL_MS)
    assert bench.core.events[-1:] == [ev.ShutdownRequested()]
    bench.runner.wake(1000, WALL_MS)
    assert bench.core.events[-1:] == [ev.SnapshotWanted(0, 1, 0)]
    assert bench.runner.deadline_ms == _CLEANING_MS


def test_no_interval_means_never() -> None:
    """As in Kafka for metadata.log.max.snapshot.interval.ms=0."""
    bench = _Bench(settings=SnapshotSettings(interval_ms=0))
    bench.deliver(0, 9, batch(0, b"a"))
    assert bench.runner.deadline_ms == _CLEANING_MS


def test_a_snapshot_holds_the_state_of_the_moment_and_is_written_by_a_worker() -> None:
    """Batches are applied meanwhile; their changes must not get into the snapshot."""
    bench = _Bench()
    bench.deliver(0, 9, batch(0, b"a", b"b"))
    bench.write(_EARLY)
    bench.deliver(2, 9, batch(2, b"c"))
    bench.workers.finish(WorkKind.WRITE_SNAPSHOT)
    assert bench.world.snapshots.stored_values == {_EARLY: [b"a", b"b"]}
    assert f"write 2-1 of 55 at {WALL_MS}" in bench.world.done
    assert bench.host.submitted[-1] == ev.SnapshotWritten(_EARLY, 2)


def test_a_snapshot_of_another_offset_is_a_bug() -> None:
    """Its name would promise what is not in it."""
    bench = _Bench()
    bench.deliver(0, 9, batch(0, b"a", b"b", b"c"))
    with pytest.raises(InvariantError, match="a state machine at 3"):
        bench.write(_EARLY)


def test_a_refused_snapshot_is_asked_for_again_later() -> None:
    """The next bytes trigger it again."""
    bench = _Bench(settings=SnapshotSettings(between_bytes=1))
    bench.deliver(0, 9, batch(0, b"a"))
    bench.do(fx.SnapshotRefused(0, 1, "the log starts at 7"))
    assert isinstance(bench.host.notes[-1], fx.Note)
    assert bench.deliver(1, 9, batch(1, b"a"))[0] == ev.SnapshotWanted(0, 2, 0)


def test_a_snapshot_can_be_asked_for_at_any_time() -> None:
    """By an operator or a test; not if there is nothing to write, and not two at once."""
    bench = _Bench()
    assert not bench.runner.write_snapshot(0, 5, WALL_MS)
    bench.deliver(0, 9, batch(0, b"a"))
    bench.core.answer = lambda _: []
    assert bench.runner.write_snapshot(0, 5, WALL_MS)
    assert bench.core.events[-1] == ev.SnapshotWanted(0, 1, 0)
    assert not bench.runner.write_snapshot(0, 5, WALL_MS)


class _Stubborn(Listener):
    """Cannot be written: at once, or in the middle."""

    def __init__(self, *, at_once: bool) -> None:
        super().__init__()
        self._at_once = at_once

    def freeze(self) -> Any:
        if self._at_once:
            raise UsageError("a record of type 99 is not known here")
        return self._values()

    def _values(self) -> Iterator[bytes]:
        yield b"a"
        raise UsageError("a record of type 99 is not known here")


@pytest.mark.parametrize("at_once", [True, False])
def test_a_state_that_cannot_be_written_is_reported_and_leaves_no_file(at_once: bool) -> None:
    """No snapshot is better than an incomplete one."""
    bench = _Bench(_Stubborn(at_once=at_once))
    bench.deliver(0, 9, batch(0, b"a", b"b"))
    bench.write(_EARLY)
    if not at_once:
        bench.workers.finish(WorkKind.WRITE_SNAPSHOT)
        assert bench.world.done[-1] == "give up 2-1"
    failed = ev.SnapshotFailed(_EARLY, "a record of type 99 is not known here")
    assert bench.host.submitted[-1] == failed
    assert bench.world.snapshots.stored_values == {}


def test_a_full_disk_only_prevents_the_snapshot() -> None:
    """The log may have room where a snapshot has none."""
    bench = _Bench()
    bench.deliver(0, 9, batch(0, b"a", b"b"))
    bench.write(_EARLY)
    bench.world.failure = StorageError("writing failed: no space", file="2-1.checkpoint.part")
    bench.workers.finish(WorkKind.WRITE_SNAPSHOT)
    told = bench.host.submitted[-1]
    assert isinstance(told, ev.SnapshotFailed)
    assert "no space" in told.problem
    assert bench.world.done[-1] == "give up 2-1"


def test_a_sync_of_a_snapshot_that_fails_ends_the_replica() -> None:
    """D9: it is unknown which pages of which file are lost."""
    bench = _Bench()
    bench.deliver(0, 9, batch(0, b"a", b"b"))
    bench.write(_EARLY)
    bench.world.failure = StorageError("syncing failed", file="x", fatal=True)
    with pytest.raises(StorageError):
        bench.workers.finish(WorkKind.WRITE_SNAPSHOT)


def test_a_snapshot_is_loaded_by_a_worker_and_reported_to_the_core() -> None:
    """Votes and fetches continue; batches wait, because the core sends none before."""
    bench = _Bench()
    bench.world.snapshots.stored_values[_LATE] = [b"x", b"y"]
    bench.do(fx.LoadSnapshot(0, _LATE))
    assert bench.listener.batches == []
    bench.workers.finish(WorkKind.LOAD_SNAPSHOT)
    assert bench.listener.freeze() == [b"x", b"y"]
    assert bench.host.submitted[-1] == ev.ListenerConsumed(0, 9)
    assert bench.world.done[-1] == "close"
    assert bench.deliver(9, 10, batch(9, b"z")) == [ev.ListenerConsumed(0, 10)]


def test_a_loaded_snapshot_counts_as_written() -> None:
    """What was just read need not be written again at once."""
    bench = _Bench(settings=SnapshotSettings(interval_ms=1000))
    bench.world.snapshots.stored_values[_LATE] = [b"x"]
    bench.deliver(0, 9, batch(0, b"a"))
    bench.do(fx.LoadSnapshot(0, _LATE), now_ms=900)
    bench.workers.finish(WorkKind.LOAD_SNAPSHOT)
    assert bench.runner.deadline_ms == _CLEANING_MS
    bench.deliver(9, 12, batch(9, b"a"), now_ms=950)
    assert bench.runner.deadline_ms == 1900


def test_the_leader_is_reported_after_a_load() -> None:
    """No call overlaps another one; of several changes the newest counts."""
    bench = _Bench()
    bench.world.snapshots.stored_values[_LATE] = []
    bench.do(
        fx.LoadSnapshot(0, _LATE),
        fx.LeaderChanged(0, 2, 5, 9),
        fx.LeaderChanged(0, 3, 6, 9),
    )
    assert bench.listener.leaders == []
    bench.workers.finish(WorkKind.LOAD_SNAPSHOT)
    assert bench.listener.leaders == [(3, 6, 9)]


def test_a_delivery_during_a_load_is_a_bug() -> None:
    """It would be lost when the loaded state takes the place of the old one."""
    bench = _Bench()
    bench.world.snapshots.stored_values[_LATE] = []
    bench.do(fx.LoadSnapshot(0, _LATE))
    with pytest.raises(InvariantError, match="while a snapshot is loaded"):
        bench.deliver(0, 9, batch(0, b"a"))


def test_a_damaged_snapshot_ends_the_replica() -> None:
    """It was whole when it was stored; a state machine cannot continue without it."""

    class Reading(Listener):
        def load(self, snapshot: Any) -> None:
            list(snapshot)
            raise StorageError("wrong checksum", file="9-4.checkpoint")

    bench = _Bench(Reading())
    bench.world.snapshots.stored_values[_LATE] = [b"x"]
    bench.do(fx.LoadSnapshot(0, _LATE))
    with pytest.raises(StorageError):
        bench.workers.finish(WorkKind.LOAD_SNAPSHOT)
    assert bench.world.done[-1] == "close"


class _Endless(Listener):
    """Its state and what it reads are endless."""

    def freeze(self) -> Iterable[bytes]:
        while True:
            yield bytes(1000)


def test_a_stop_ends_long_work() -> None:
    """Ctrl-C must not wait for a gigabyte to be written; unfinished files are discarded."""
    bench = _Bench(_Endless())
    bench.deliver(0, 9, batch(0, b"a", b"b"))
    bench.world.snapshots.stored_values[_LATE] = [b"x"]
    bench.write(_EARLY)
    bench.do(fx.LoadSnapshot(0, _LATE))
    bench.host.submitted.clear()
    bench.runner.stop()
    bench.workers.finish(WorkKind.WRITE_SNAPSHOT)
    bench.workers.finish(WorkKind.LOAD_SNAPSHOT)
    assert "give up 2-1" in bench.world.done
    assert bench.host.submitted == []
