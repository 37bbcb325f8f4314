"""Snapshots of a whole replica: written, kept, deleted and loaded, by the shipped core and disk."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kraftwire.log.settings import SnapshotSettings
from kraftwire.raft import effects as fx
from kraftwire.records.batch import RecordBatch
from kraftwire.replica import SnapshotReader
from kraftwire.sim.disk import SimFiles
from tests.support.raft.replica import LoneReplica


class _Sums:
    """Counts how often each value was applied; records what else it was told."""

    def __init__(self) -> None:
        self.counts: dict[bytes, int] = {}
        self.loaded: list[str] = []
        self.leaders: list[tuple[int, int, int]] = []
        self.next_offset = 0

    def apply(self, batches: Sequence[RecordBatch]) -> None:
        for batch in batches:
            assert batch.base_offset == self.next_offset
            self.next_offset = batch.last_offset + 1
            if not batch.is_control:
                for record in batch.records():
                    assert record.value is not None
                    self.counts[record.value] = self.counts.get(record.value, 0) + 1

    def load(self, snapshot: SnapshotReader) -> None:
        self.loaded.append(str(snapshot.id))
        pairs = [r.value.split(b"=") for batch in snapshot for r in batch.records() if r.value]
        self.counts = {key: int(count) for key, count in pairs}
        self.next_offset = snapshot.id.offset

    def freeze(self) -> Iterable[bytes]:
        return [b"%s=%d" % pair for pair in self.counts.items()]

    def leadership(self, leader_id: int, epoch: int, end_offset: int) -> None:
        assert self.next_offset == end_offset
        self.leaders.append((leader_id, epoch, end_offset))


def _stored(replica: LoneReplica) -> list[str]:
    return [str(one.id) for one in replica.storage.snapshots.stored()]


_VALUES = [b"value %d" % (number % 7) + bytes(500) for number in range(40)]


def test_a_replica_writes_snapshots_drops_what_is_below_and_starts_from_them() -> None:
    """The whole life of a log that must not grow for ever."""
    files = SimFiles()
    settings = SnapshotSettings(between_bytes=4000, retention_bytes=12_000)
    machine = _Sums()
    replica = LoneReplica(files, machine, settings)
    for value in _VALUES:
        replica.append(value)
    assert machine.leaders == [(1, 1, 1)]
    stored = _stored(replica)
    assert len(stored) >= 4
    assert replica.core.start_offset == 0
    replica.wait(60_000)
    assert _stored(replica) == stored[-len(_stored(replica)) :] != stored
    assert replica.core.start_offset == replica.storage.log.start_offset > 0
    replica.storage.close()
    again = _Sums()
    replica = LoneReplica(files, again, settings)
    assert again.loaded == [_stored(replica)[-1]]
    assert again.counts == machine.counts
    assert again.leaders == [(1, 2, 42)]


def test_batches_that_come_while_a_snapshot_is_written_are_not_in_it() -> None:
    """The frozen state belongs to the offset in the snapshot's name."""
    machine = _Sums()
    replica = LoneReplica(SimFiles(), machine, SnapshotSettings())
    replica.append(b"early")
    replica.is_busy = True
    assert replica.runner.write_snapshot(replica.number, replica.now_ms, replica.wall_ms)
    replica.append(b"late")
    assert machine.counts == {b"early": 1, b"late": 1}
    assert not replica.runner.write_snapshot(replica.number, replica.now_ms, replica.wall_ms)
    replica.is_busy = False
    replica.settle()
    (stored,) = replica.storage.snapshots.stored()
    assert stored.id.offset == 2
    reader = replica.storage.snapshots.reader(stored.id)
    assert [record.value for batch in reader for record in batch.records()] == [b"early=1"]
    reader.close()


def test_time_alone_brings_a_snapshot_of_what_is_new() -> None:
    """R-SNAP-7: without anything new there is none."""
    replica = LoneReplica(SimFiles(), _Sums(), SnapshotSettings(interval_ms=10_000))
    replica.append(b"a")
    replica.wait(10_000)
    assert _stored(replica) == ["2-1"]
    replica.wait(60_000)
    assert _stored(replica) == ["2-1"]


def test_a_second_snapshot_of_the_same_offset_is_refused_and_logged() -> None:
    """A second request for it is told that it exists."""
    replica = LoneReplica(SimFiles(), _Sums(), SnapshotSettings())
    replica.append(b"a")
    for _ in range(2):
        replica.runner.write_snapshot(replica.number, replica.now_ms, replica.wall_ms)
        replica.settle()
    assert _stored(replica) == ["2-1"]
    assert "no snapshot is written at 2" in replica.notes[-1]


def test_a_late_state_machine_is_told_where_the_leader_writes_next() -> None:
    """An append at an offset other than the log's end deposes the leader."""
    replica = LoneReplica(SimFiles(), _Sums(), SnapshotSettings())
    for _ in range(4):
        replica.append(b"a")
    late = _Sums()
    replica.runner.add_state_machine(late)
    replica.settle()
    assert late.leaders == [(1, 1, 5)]
    assert late.counts == {b"a": 4}


def test_a_snapshot_by_bytes_is_exact_while_more_is_committed() -> None:
    """Deliveries follow one another without a pause here: none may come before the state is frozen.
    """
    files = SimFiles()
    replica = LoneReplica(files, _Sums(), SnapshotSettings(interval_ms=0), segment_bytes=4000)
    for value in _VALUES:
        replica.append(value)
    replica.storage.close()
    machine = _Sums()
    replica = LoneReplica(files, machine, SnapshotSettings(between_bytes=1), segment_bytes=4000)
    replica.wait(1000)
    assert len(_stored(replica)) > 5
    assert not [note for note in replica.notes if "no snapshot" in note]
    assert isinstance(replica.append(b"more"), fx.AppendAccepted)
