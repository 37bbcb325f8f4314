"""Which parts of its log and which snapshots a replica deletes, and when."""

from __future__ import annotations

import pytest

from kraftwire.log.settings import SnapshotSettings
from kraftwire.raft import effects as fx
from kraftwire.raft import events as ev
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.replica.runner import Runner
from tests.support.nodes.fake_core import WALL_MS, FakeCore, Host, Workers, World

_DAY_MS = 24 * 3600 * 1000
_IDS = [OffsetAndEpoch(10, 1), OffsetAndEpoch(20, 1), OffsetAndEpoch(30, 2)]


class _Bench:
    """A runner over three snapshots of 100 bytes each; the core agrees to every proposal."""

    def __init__(self, settings: SnapshotSettings, log_bytes: int = 0) -> None:
        self.world = World()
        self.world.log.size_bytes = log_bytes
        for one in _IDS:
            self.world.snapshots.stored_values[one] = [bytes(100)]
        self.core = FakeCore(self._agree)
        self.runner = Runner(
            self.core, self.world, Host(self.world), Workers(), settings=settings
        )
        self.runner.start(0, WALL_MS)

    @staticmethod
    def _agree(event: ev.Event) -> list[fx.Effect]:
        assert isinstance(event, ev.LogStartProposed)
        start = event.snapshot
        return [fx.DropLogPrefix(start.offset, tuple(one for one in _IDS if one < start))]

    @property
    def left(self) -> list[OffsetAndEpoch]:
        return [one.id for one in self.world.snapshots.stored()]


@pytest.mark.parametrize(
    ("log_bytes", "left"),
    [(0, _IDS), (51, _IDS[1:]), (150, _IDS[1:]), (151, _IDS[2:]), (10_000, _IDS[2:])],
)
def test_too_many_bytes_cost_the_oldest_snapshots_and_never_the_last(
    log_bytes: int, left: list[OffsetAndEpoch]
) -> None:
    """R-SNAP-6: once a minute, as many as are too many."""
    bench = _Bench(SnapshotSettings(retention_bytes=350), log_bytes)
    bench.runner.wake(59_999, WALL_MS)
    assert bench.left == _IDS
    bench.runner.wake(60_000, WALL_MS)
    assert bench.left == left
    assert bench.runner.deadline_ms == 120_000


def test_old_snapshots_go_by_the_wall_clock() -> None:
    """R-SNAP-6: their records have timestamps from the clock of the leader at that time."""
    bench = _Bench(SnapshotSettings(retention_ms=_DAY_MS))
    bench.world.snapshots.timestamps = {_IDS[0]: WALL_MS - 1, _IDS[1]: WALL_MS}
    bench.runner.wake(60_000, WALL_MS + _DAY_MS)
    assert bench.left == _IDS[1:]
    bench.runner.wake(120_000, WALL_MS + _DAY_MS + 1)
    assert bench.left == _IDS[2:]


def test_a_core_that_refuses_is_asked_again_only_later() -> None:
    """A state machine may not be that far yet: proposing at once would never end."""
    bench = _Bench(SnapshotSettings(retention_bytes=0))
    bench.core.answer = lambda _: []
    bench.runner.wake(60_000, WALL_MS)
    assert bench.core.events == [ev.LogStartProposed(_IDS[1])]
    bench.runner.wake(120_000, WALL_MS)
    assert len(bench.core.events) == 2


def test_files_that_were_given_up_are_removed_later() -> None:
    """A reader may still be using them."""
    bench = _Bench(SnapshotSettings())
    bench.runner.wake(60_000, WALL_MS)
    bench.runner.wake(61_000, WALL_MS)
    assert bench.world.done == ["purge at 60000"]


def test_an_emptied_log_costs_all_older_snapshots() -> None:
    """They end before this replica's log begins, and may belong to another history."""
    bench = _Bench(SnapshotSettings(delete_delay_ms=5))
    bench.core.answer = lambda _: [fx.ResetLog(_IDS[1])]
    bench.runner.handle(ev.ShutdownRequested(), 7, WALL_MS)
    assert bench.world.done == ["empty to 20-1", "delete 10-1, due at 12"]
    assert bench.left == _IDS[1:]
