"""What a replica does to its disk in a crash run, and what must be found after a crash.

Every kind of operation is in it, several of them in the middle of others: appends, rolls, flushes,
truncations within and over segments, votes of both versions, snapshots written and downloaded, with
a download given up, a dropped prefix, a reset to a snapshot, stops and starts. The script is the
same in every run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kraftwire.log.settings import LogSettings
from kraftwire.log.snapshots.store import SnapshotStore
from kraftwire.raft.effects import ElectionState, PersistQuorumState
from kraftwire.raft.voters import ReplicaKey
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.replica.storage import Directories, Storage
from kraftwire.sim.disk import SimFiles
from tests.support.logs.batches import batch

DIRECTORIES = Directories(
    node_id=3,
    metadata="/log",
    settings=LogSettings(segment_bytes=2600, index_interval_bytes=300, index_bytes=240),
    is_self_formatted=True,
    new_id=lambda: bytes(range(1, 17)),
)

Batches = tuple[tuple[int, bytes], ...]  # base offset and bytes, two records each
Vote = tuple[int, int, int]  # epoch, leader, vote


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a start after a crash may find.

    `logs` are the logs that may have been written, as a start offset that is reached at most and
    the batches; a log that is found is a part of one of them, without a gap, and ends at
    `durable_end` or later, unless it begins again at `reset`. `snapshots` must be there.
    """

    logs: tuple[tuple[int, Batches], ...] = ((0, ()),)
    durable_end: int = 0
    reset: OffsetAndEpoch | None = None
    votes: tuple[Vote, ...] = ((0, -1, -1),)
    snapshots: frozenset[OffsetAndEpoch] = frozenset()
    what: str = "start"


class Run:
    """The script on a disk; `expected` changes as it goes on, and `stage` counts the changes."""

    def __init__(self, files: SimFiles) -> None:
        self._files = files
        self.expected = Expectation()
        self.stage = 0
        self._storage: Storage
        self._now_ms = 1_700_000_000_000

    def go(self) -> None:
        """Do everything once."""
        self._open()
        self._grow()
        self._snapshot_and_drop()
        self._restart()
        self._be_killed()
        self._download()
        self._restart()
        self._after_reset()
        self._close()

    # ---- the parts

    def _grow(self) -> None:
        self._vote(1, -1, 2, version=0)
        self._append(1, 30)
        self._flush()
        self._append(1, 10, 300, 20)
        self._append(1, 40)
        self._append_beside_a_flush(1, 20, 30)
        self._vote(2, 1, -1)
        self._append(2, 700, 200)
        self._flush()
        self._append(2, 900, 10)
        self._append(3, 10)
        self._flush()
        self._vote(4, -1, 3)
        self._truncate(6)
        self._append(4, 10, 600, 30)
        self._flush()
        self._append(5, 300, 300)
        self._append(5, 1500)
        self._truncate(3)
        self._append(7, 10, 10)
        self._flush()

    def _snapshot_and_drop(self) -> None:
        for size in (900, 900, 700, 600, 900, 1000, 50):
            self._append(7, size)
            self._flush()
        self._write_snapshot(8, 7, size=100)
        self._give_up_a_snapshot(12)
        self._append(8, 500, 700)
        self._flush()
        self._write_snapshot(16, 7, size=1200)
        self._drop_prefix(16)
        self._append(8, 300)
        self._flush()
        end = self._storage.log.end_offset
        self._write_snapshot(end, 8, size=10)
        self._drop_prefix(end)
        self._append(9, 200)
        self._flush()

    def _download(self) -> None:
        self._append(9, 700)
        self._begin_download(OffsetAndEpoch(40, 11), 3)
        self._begin_download(OffsetAndEpoch(60, 12), 1)
        self._append(9, 300)
        self._finish_download(OffsetAndEpoch(60, 12))
        self._reset(OffsetAndEpoch(60, 12))
        self._append(12, 10, 900)
        self._flush()

    def _after_reset(self) -> None:
        self._vote(13, 3, -1)
        self._append(13, 600, 10)
        self._truncate_to(62)
        self._append(14, 20)
        self._flush()
        self._finish_download(OffsetAndEpoch(62, 20))  # as long as the log, and of a later epoch
        self._reset(OffsetAndEpoch(62, 20))
        self._append(20, 10)

    # ---- steps

    def _expect(self, what: str, **changes: object) -> None:
        self.stage += 1
        self.expected = replace(self.expected, what=what, **changes)  # type: ignore[arg-type]

    @property
    def _batches(self) -> Batches:
        return self.expected.logs[-1][1]

    @property
    def _start(self) -> int:
        return self.expected.logs[-1][0]

    def _open(self) -> None:
        self._storage = Storage.open(DIRECTORIES, self._files)
        log = self._storage.log
        self._expect("opened", logs=((log.start_offset, self._batches),))
        assert log.end_offset == log.flushed_offset

    def _close(self) -> None:
        self._expect("close")
        self._storage.close()
        self._expect("closed", durable_end=self._storage.log.end_offset)

    def _be_killed(self) -> None:
        """End the process but not the machine: what the next start finds counts as flushed."""
        self._append(9, 600, 10)
        self._expect("killed")
        self._files.kill()
        self._open()
        self._expect("opened after a kill", durable_end=self._storage.log.end_offset)

    def _restart(self) -> None:
        self._close()
        self._open()

    def _vote(self, epoch: int, leader: int, voted: int, *, version: int = 1) -> None:
        vote = (epoch, leader, voted)
        self._expect("vote", votes=(*self.expected.votes, vote))
        key = ReplicaKey(voted) if voted >= 0 else None
        state = ElectionState(epoch, leader, key)
        self._storage.persist(PersistQuorumState(state, version, (1, 2, 3)))
        self._expect("voted", votes=(vote,))

    def _append(self, epoch: int, *sizes: int) -> None:
        """Several batches of two records in one append, as a follower does."""
        log = self._storage.log
        start = log.end_offset
        new = tuple(
            (base, batch(base, 2, epoch=epoch, size=size))
            for base, size in zip(range(start, start + 2 * len(sizes), 2), sizes, strict=True)
        )
        self._expect("append", logs=((self._start, self._batches + new),))
        log.append(b"".join(data for _, data in new), start, start + 2 * len(new))

    def _flush(self) -> None:
        self._expect("flush")
        end = self._storage.log.flush()
        self._expect("flushed", durable_end=end)

    def _append_beside_a_flush(self, epoch: int, *sizes: int) -> None:
        """An append comes while a flush has synced the log, but not yet raised the mark."""
        self._expect("flush beside an append")
        before = self._storage.log.end_offset
        self._files.after_next_sync(lambda: self._append(epoch, *sizes))
        end = self._storage.log.flush()
        assert end == before < self._storage.log.end_offset
        self._expect("flushed beside an append", durable_end=end)

    def _truncate(self, number: int) -> None:
        """Truncate from the batch of this number on."""
        self._truncate_to(self._batches[number][0])

    def _truncate_to(self, end: int) -> None:
        durable = min(self.expected.durable_end, end)
        self._expect("truncate", durable_end=durable)
        self._storage.log.truncate(end)
        kept = tuple(each for each in self._batches if each[0] < end)
        self._expect("truncated", durable_end=end, logs=((self._start, kept),))

    def _values(self, size: int) -> Sequence[bytes]:
        return [b"%d" % number * size for number in range(1, 4)]

    def _write_snapshot(self, offset: int, epoch: int, *, size: int) -> None:
        snapshot = OffsetAndEpoch(offset, epoch)
        self._expect("write a snapshot")
        writer = self._storage.snapshots.writer(snapshot, (), self._now_ms, self._now_ms)
        writer.append(self._values(size))
        writer.freeze()
        self._expect("snapshot written", snapshots=self.expected.snapshots | {snapshot})

    def _give_up_a_snapshot(self, offset: int) -> None:
        self._expect("give a snapshot up")
        snapshot = OffsetAndEpoch(offset, 7)
        writer = self._storage.snapshots.writer(snapshot, (), self._now_ms, self._now_ms)
        writer.append(self._values(9))
        writer.discard()

    def _drop_prefix(self, offset: int) -> None:
        kept = frozenset(one for one in self.expected.snapshots if one.offset >= offset)
        gone = self.expected.snapshots - kept
        self._expect("drop the prefix", snapshots=kept, logs=((offset, self._batches),))
        self._storage.log.drop_prefix(offset)
        self._storage.snapshots.delete(gone, self._now_ms + 60_000)
        self._now_ms += 100_000
        self._storage.snapshots.purge(self._now_ms)

    def _made(self, snapshot: OffsetAndEpoch) -> bytes:
        """The bytes that a leader would serve."""
        store = SnapshotStore(SimFiles.holding({"/made/x": b""}), "/made")
        writer = store.writer(snapshot, (), self._now_ms, self._now_ms)
        writer.append(self._values(250))
        return store.read(snapshot, 0, writer.freeze())

    def _begin_download(self, snapshot: OffsetAndEpoch, pieces: int) -> None:
        self._expect("begin a download")
        data = self._made(snapshot)
        for position in range(0, 300 * pieces, 300):
            part = data[position : position + 300]
            self._storage.snapshots.append(snapshot, position, part)

    def _finish_download(self, snapshot: OffsetAndEpoch) -> None:
        """From its start, which abandons an earlier one; then the log ends before the snapshot."""
        self._expect("download", reset=snapshot)
        data = self._made(snapshot)
        for position in range(0, len(data), 400):
            part = data[position : position + 400]
            self._storage.snapshots.append(snapshot, position, part)
        self._storage.snapshots.finish(snapshot)
        kept = self.expected.snapshots | {snapshot}
        # A start makes the snapshot the log's new beginning and deletes the older ones.
        self._expect("downloaded", logs=((snapshot.offset, ()),), snapshots=frozenset({snapshot}))
        assert kept

    def _reset(self, start: OffsetAndEpoch) -> None:
        self._expect("reset")
        storage = self._storage
        storage.log.reset(start)
        older = [one.id for one in storage.snapshots.stored() if one.id < start]
        storage.snapshots.delete(older, self._now_ms + 60_000)
        self._expect("was reset", reset=None, durable_end=start.offset)
