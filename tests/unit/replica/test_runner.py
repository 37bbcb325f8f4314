"""How effects are carried out: their order, the lock of the log's files, flushes, downloads."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.errors import InvariantError, StorageError, UsageError
from kraftwire.messages.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from kraftwire.messages.fetch_snapshot_response import (
    FetchSnapshotResponse,
    PartitionSnapshot,
    TopicSnapshot,
)
from kraftwire.messages.vote_response import VoteResponse
from kraftwire.raft import effects as fx
from kraftwire.raft import events as ev
from kraftwire.raft.voters import VoterSet
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.replica.ports import WorkKind
from kraftwire.replica.runner import Runner
from tests.support.nodes.fake_core import WALL_MS, FakeCore, Host, Workers, World, send

_SNAPSHOT = OffsetAndEpoch(100, 3)


class _Bench:
    """A runner with everything around it; `do` lets the core ask for effects."""

    def __init__(self, watcher: Any = None) -> None:
        self.world = World()
        self.host = Host(self.world)
        self.workers = Workers()
        self.core = FakeCore()
        self.runner = Runner(self.core, self.world, self.host, self.workers, watcher=watcher)
        self.runner.start(0, WALL_MS)

    @property
    def done(self) -> list[str]:
        return self.world.done

    def do(self, *effects: fx.Effect) -> None:
        self.core.answer = lambda _: list(effects)
        self.runner.handle(ev.ShutdownRequested(), 0, WALL_MS)


def test_effects_are_carried_out_in_order() -> None:
    """D1: a vote may be sent only after it is on disk; the order of the list guarantees that."""
    bench = _Bench()
    bench.do(
        fx.PersistQuorumState(fx.ElectionState(3)),
        send(1),
        fx.AppendToLog(0, 1, b"x"),
        fx.TruncateLog(0),
        fx.ResetLog(_SNAPSHOT),
        fx.DropLogPrefix(100, (OffsetAndEpoch(20, 1), OffsetAndEpoch(50, 2))),
        send(2),
    )
    assert bench.done == [
        "persist 3",
        "send 1",
        "append 0-1",
        "truncate 0",
        "empty to 100-3",
        "drop below 100",
        "delete 20-1, due at 60000",
        "delete 50-2, due at 60000",
        "send 2",
    ]


def test_nothing_happens_after_an_effect_that_failed() -> None:
    """D1, D9: the request after a failed write would be a vote that is forgotten."""
    bench = _Bench()
    bench.world.failure = StorageError("no space", file="quorum-state")
    with pytest.raises(StorageError):
        bench.do(fx.PersistQuorumState(fx.ElectionState(3)), send(1))
    assert bench.done == []


@pytest.mark.parametrize(
    ("effect", "name"),
    [
        (fx.TruncateLog(0), "truncate"),
        (fx.ResetLog(_SNAPSHOT), "reset"),
        (fx.DropLogPrefix(100, ()), "drop_prefix"),
    ],
)
def test_no_file_of_the_log_is_cut_or_closed_during_a_flush(
    effect: fx.Effect, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flush in a thread holds file descriptors: one that was closed may by then name another
    file, and a sync of the wrong file would be taken for that of the log."""
    bench = _Bench()
    held: list[tuple[str, bool]] = []

    def noting(what: str) -> Any:
        return lambda *_: held.append((what, bench.workers.lock.is_held))

    monkeypatch.setattr(bench.world.log, name, noting(name))
    monkeypatch.setattr(bench.world.log, "flush", noting("flush"))
    bench.do(fx.FlushLog(1, 0))
    bench.runner.flush_in_worker()
    bench.workers.finish(WorkKind.FLUSH)
    bench.do(effect)
    bench.runner.close()
    assert held == [("flush", True), (name, True), ("flush", True)]


def test_several_requested_flushes_are_one_flush() -> None:
    """This makes many small appends cheap; the newest one is answered, with its values."""
    bench = _Bench()
    bench.do(fx.FlushLog(1, 0), fx.FlushLog(2, 0))
    bench.do(fx.FlushLog(3, 7))
    assert bench.runner.flush_wanted
    bench.runner.flush()
    assert not bench.runner.flush_wanted
    assert bench.done == ["flush"]
    assert bench.host.submitted == [ev.LogFlushed(3, 7)]


def test_one_flush_at_a_time() -> None:
    """What is appended while the disk works is for the next flush."""
    bench = _Bench()
    bench.do(fx.FlushLog(1, 0))
    bench.runner.flush_in_worker()
    bench.do(fx.FlushLog(2, 0))
    assert not bench.runner.flush_wanted
    with pytest.raises(InvariantError):
        bench.runner.flush()
    bench.workers.finish(WorkKind.FLUSH)
    assert bench.host.submitted == [ev.LogFlushed(1, 0)]
    assert bench.runner.flush_wanted


def test_a_download_is_checked_by_a_worker() -> None:
    """200 MB take a second: votes and fetches must not wait for that."""
    bench = _Bench()
    bench.do(
        fx.AppendToSnapshot(_SNAPSHOT, 0, b"abc"),
        fx.AppendToSnapshot(_SNAPSHOT, 3, b"de"),
        fx.FinishSnapshot(_SNAPSHOT),
        send(1),
    )
    assert bench.done == ["piece of 100-3 at 0: 3", "piece of 100-3 at 3: 2", "send 1"]
    bench.workers.finish(WorkKind.FINISH_SNAPSHOT)
    assert bench.done[-1] == "finish 100-3"
    assert bench.host.submitted == [ev.SnapshotFinished(_SNAPSHOT, 1000, b"control")]


def test_a_download_that_fails_its_check_is_reported() -> None:
    """It is never loaded, and the leader is asked again."""
    bench = _Bench()
    bench.world.snapshots.broken[_SNAPSHOT] = StorageError("wrong checksum", file="x.part")
    bench.do(fx.FinishSnapshot(_SNAPSHOT))
    bench.workers.finish(WorkKind.FINISH_SNAPSHOT)
    assert bench.host.submitted == [ev.SnapshotRejected(_SNAPSHOT, "x.part: wrong checksum")]


def test_a_full_disk_ends_a_download_and_not_the_replica() -> None:
    """The log may still have room; what was written of the snapshot makes some."""
    bench = _Bench()
    snapshots = bench.world.snapshots
    snapshots.full[_SNAPSHOT] = StorageError("No space left on device", file="x.part")
    bench.do(fx.AppendToSnapshot(_SNAPSHOT, 0, b"abc"), send(1))
    assert bench.done == ["piece of 100-3 at 0: 3", "discard 100-3", "send 1"]
    problem = "x.part: No space left on device"
    assert bench.host.submitted == [ev.SnapshotRejected(_SNAPSHOT, problem)]
    snapshots.full[_SNAPSHOT] = StorageError("write", file="x.part", fatal=True)
    with pytest.raises(StorageError):
        bench.do(fx.AppendToSnapshot(_SNAPSHOT, 0, b"abc"))


def test_a_sync_of_a_download_that_fails_ends_the_replica() -> None:
    """D9, as for every other file."""
    bench = _Bench()
    bench.world.snapshots.broken[_SNAPSHOT] = StorageError("sync", file="x.part", fatal=True)
    bench.do(fx.FinishSnapshot(_SNAPSHOT))
    with pytest.raises(StorageError):
        bench.workers.finish(WorkKind.FINISH_SNAPSHOT)


def test_a_reply_takes_its_bytes_from_a_snapshot() -> None:
    """Chunks go from disk to socket; the core never holds them."""
    bench = _Bench()
    bench.host.waiting.add(5)
    topic = TopicSnapshot(partitions=[PartitionSnapshot(unaligned_records=b"")])
    reply = FetchSnapshotResponse(topics=[topic])
    bench.do(fx.SendReply(5, reply, fx.SnapshotSlice(_SNAPSHOT, 2, 3)))
    assert bench.host.replies == {5: reply}
    assert reply.topics[0].partitions[0].unaligned_records == b"aps"


@pytest.mark.parametrize("cut", [fx.TruncateLog(1), fx.ResetLog(OffsetAndEpoch(9, 1))])
def test_a_late_reply_does_not_carry_newer_records_of_the_same_place(cut: fx.Effect) -> None:
    """A node reads when the reply has its turn; the log may have been cut and extended since."""
    bench = _Bench()
    bench.world.data = b"batch"
    parts: list[Any] = []
    bench.host.waiting.add(5)
    bench.host.reply = lambda _, __, part: parts.append(part)  # type: ignore[method-assign]
    topic = FetchableTopicResponse(partitions=[PartitionData(records=b"")])
    reply = FetchResponse(responses=[topic])
    bench.do(fx.SendReply(5, reply, fx.LogSlice(4, 3, 9)))
    assert parts[0].size == 3
    assert topic.partitions[0].records == b""
    parts[0].put()
    assert topic.partitions[0].records == b"bat"
    bench.do(cut)
    with pytest.raises(UsageError, match="truncated"):
        parts[0].put()


def test_a_reply_that_is_no_longer_wanted_reads_nothing() -> None:
    """Peers disconnect while their Fetch is parked; the core need not know."""
    bench = _Bench()
    bench.do(fx.SendReply(5, VoteResponse(), fx.LogSlice(0, 1, 1)), fx.DiscardSnapshot(_SNAPSHOT))
    assert bench.done == ["discard 100-3"]
    assert bench.host.replies == {}


def test_the_host_gets_the_effects_that_do_not_concern_files() -> None:
    """In the order of the list, with what happens on disk in between."""
    bench = _Bench()
    told = [
        fx.HighWatermarkAdvanced(4),
        fx.AppendAccepted(1, 2, 3, 4),
        fx.UpgradeDecided(2, 0, "", 7),
        fx.VotersChanged(VoterSet(), 1, 3, True),
        fx.RoleChanged("follower", "prospective", 1, -1, ""),
        fx.Note("info", "text"),
        fx.ResetConnections(),
        fx.ShutdownFinished(True),
    ]
    bench.do(*told)
    assert bench.host.notes == told


class _Watcher:
    def __init__(self) -> None:
        self.seen: list[str] = []
        self.before = {fx.TruncateLog: lambda _: self.seen.append("before")}
        self.after = {fx.TruncateLog: lambda _: self.seen.append("after")}
        self.left = 100

    def step(self, event: ev.Event | None, effects: list[fx.Effect]) -> bool:
        self.seen.append(f"{type(event).__name__} {len(effects)}")
        return True

    def every(self, effect: fx.Effect) -> None:
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        self.seen.append(type(effect).__name__)


def test_a_watcher_sees_every_effect_before_and_after() -> None:
    """Checkers observe; they do not replace what ships."""
    watcher = _Watcher()
    bench = _Bench(watcher)
    bench.do(fx.TruncateLog(3), fx.DiscardSnapshot(_SNAPSHOT))
    assert watcher.seen == [
        "NoneType 0",
        "ShutdownRequested 2",
        "TruncateLog",
        "before",
        "after",
        "DiscardSnapshot",
    ]


def test_a_watcher_can_stop_a_replica_between_any_two_effects() -> None:
    """As a power failure could."""
    watcher = _Watcher()
    watcher.left = 1
    bench = _Bench(watcher)
    with pytest.raises(KeyboardInterrupt):
        bench.do(fx.TruncateLog(3), fx.DiscardSnapshot(_SNAPSHOT))
    assert bench.done == ["truncate 3"]


def test_the_core_is_woken_when_its_time_has_come_and_not_before() -> None:
    """Elections depend on it."""
    bench = _Bench()
    bench.core.deadline_ms = 50
    assert bench.runner.deadline_ms == 50
    bench.runner.wake(49, WALL_MS)
    assert bench.core.seen == []
    bench.runner.wake(50, WALL_MS + 50)
    assert bench.core.seen == [(ev.TimerExpired(), 50)]
    assert bench.core.wall == [WALL_MS + 50]
