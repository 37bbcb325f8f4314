"""The state machines on top of a Raft core: deliveries, loading and writing snapshots.

Tracks the position of each, and its work in other threads. A state machine gets nothing while it
loads a snapshot. A snapshot is requested after a delivery was applied and before the core learns of
that, so that the state machine is frozen at exactly the requested offset.

Source: R-LIS-1 to R-LIS-6, R-SNAP-7; Kafka's `KafkaRaftClient.ListenerContext`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from kraftwire.errors import InvariantError, KraftwireError, StorageError, check
from kraftwire.log.settings import SnapshotSettings
from kraftwire.raft import effects as fx
from kraftwire.raft import events as ev
from kraftwire.records.batch import RecordBatch
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.records.reader import read_batches
from kraftwire.replica.ports import Disk, SnapshotSink, SnapshotSource, Workers, WorkKind
from kraftwire.replica.state_machine import StateMachine

# A state machine is handed this much of the log at a time, so that reading a long log from its
# start does not keep the Raft core waiting: about ten milliseconds of work.
DELIVERY_BYTES = 256 * 1024

# The values of a snapshot are written in pieces of this size: after each the writer checks whether
# the node is being stopped.
SNAPSHOT_WRITE_BYTES = 256 * 1024


class _InterruptedError(KraftwireError):
    """The replica is being stopped: long work ends early."""


class _Subscription:
    """A state machine and its position.

    Everything below `applied` is in its state, the newest of it from `timestamp`. `unsaved` bytes
    were applied since `since_ms`, when the last snapshot was loaded or requested. `missed` is the
    newest change of leader while it was loading.
    """

    __slots__ = (
        "applied",
        "id",
        "is_loading",
        "is_saving",
        "machine",
        "missed",
        "policy",
        "since_ms",
        "timestamp",
        "unsaved",
    )

    def __init__(
        self, number: int, machine: StateMachine, policy: SnapshotSettings | None, now_ms: int
    ) -> None:
        self.id = number
        self.machine = machine
        self.policy = policy
        self.applied = 0
        self.timestamp = -1
        self.unsaved = 0
        self.since_ms = now_ms
        self.is_loading = self.is_saving = False
        self.missed: fx.LeaderChanged | None = None

    @property
    def due_ms(self) -> int | None:
        """Return when a snapshot is due by time; None for never."""
        policy = self.policy
        if policy is None or not policy.interval_ms or not self.unsaved:
            return None
        return None if self.is_saving or self.is_loading else self.since_ms + policy.interval_ms


class _WriteResult(NamedTuple):
    """The result of writing a snapshot: its size, or the problem."""

    size: int
    problem: str = ""


class StateMachines:
    """The state machines of a replica, by the number under which the core knows them.

    `has_interval` is True if snapshots of any are due by time. `written` are the size of the last
    snapshot and when it was complete, None before the first.
    """

    def __init__(
        self, disk: Disk, workers: Workers, submit: Callable[[ev.Event], None]
    ) -> None:
        self._disk = disk
        self._log = disk.log
        self._workers = workers
        self._submit = submit
        self._all: list[_Subscription] = []
        self.has_interval = False
        self.written: tuple[int, int] | None = None
        self._is_stopping = False
        self.now_ms = 0
        self.wall_ms = 0

    def add(
        self, machine: StateMachine, next_offset: int, policy: SnapshotSettings | None
    ) -> int:
        """Register a state machine that follows the log from an offset; returns its number."""
        subscription = _Subscription(len(self._all), machine, policy, self.now_ms)
        subscription.applied = next_offset
        self._all.append(subscription)
        self.has_interval |= policy is not None and policy.interval_ms > 0
        self._submit(ev.ListenerRegistered(subscription.id, next_offset))
        return subscription.id

    def stop(self) -> None:
        """Interrupt work in other threads; its results are discarded."""
        self._is_stopping = True

    # ---- batches and leaders

    def deliver(self, effect: fx.DeliverCommitted) -> None:
        """Deliver a bounded piece of the log; the core asks again for the rest."""
        subscription = self._all[effect.listener_id]
        if subscription.is_loading:
            raise InvariantError(f"{effect} comes while a snapshot is loaded")
        data = self._log.read(effect.start_offset, DELIVERY_BYTES, effect.end_offset)
        batches = _committed(data, effect)
        subscription.machine.apply(batches)
        last = batches[-1]
        subscription.applied = last.last_offset + 1
        subscription.timestamp = last.max_timestamp
        subscription.unsaved += len(data)
        policy = subscription.policy
        if policy is not None and not subscription.is_saving:
            due_ms = subscription.due_ms
            is_due = due_ms is not None and self.now_ms >= due_ms
            if is_due or subscription.unsaved >= policy.between_bytes:
                self._submit(self._request_snapshot(subscription))
        self._submit(ev.ListenerConsumed(subscription.id, subscription.applied))

    def leader_changed(self, effect: fx.LeaderChanged) -> None:
        """Report the leader; one that is loading a snapshot gets it afterwards."""
        subscription = self._all[effect.listener_id]
        if subscription.is_loading:
            subscription.missed = effect
        else:
            subscription.machine.leadership(effect.leader_id, effect.epoch, effect.end_offset)

    # ---- loading

    def load(self, effect: fx.LoadSnapshot) -> None:
        """Load a snapshot into a state machine, in a worker thread."""
        subscription = self._all[effect.listener_id]
        check(not subscription.is_loading, f"{effect} comes while another snapshot is loaded")
        subscription.is_loading = True
        file = self._disk.snapshots.reader(effect.id)

        def work() -> bool:
            try:
                subscription.machine.load(_Reader(effect.id, file, self._check_stopping))
            except _InterruptedError:
                return False
            finally:
                file.close()
            return not self._is_stopping

        def done(is_loaded: bool) -> None:
            if is_loaded:
                self._loaded(subscription, effect.id, file.timestamp)

        self._workers.start(WorkKind.LOAD_SNAPSHOT, work, done)

    def _loaded(self, subscription: _Subscription, loaded: OffsetAndEpoch, timestamp: int) -> None:
        subscription.is_loading = False
        subscription.applied, subscription.timestamp = loaded.offset, timestamp
        subscription.unsaved, subscription.since_ms = 0, self.now_ms
        # Tell the state machine of the leader before telling the core of the load: otherwise a
        # newer change of leader could overtake this one.
        missed, subscription.missed = subscription.missed, None
        if missed is not None:
            self.leader_changed(missed)
        self._submit(ev.ListenerConsumed(subscription.id, loaded.offset))

    # ---- writing

    @property
    def due_ms(self) -> int | None:
        """Return when the next snapshot is due by time."""
        if not self.has_interval:
            return None
        times = [at for each in self._all if (at := each.due_ms) is not None]
        return min(times, default=None)

    def take_due(self) -> Iterator[ev.SnapshotWanted]:
        """Yield the snapshots that are due by time; pass each to the core at once."""
        for subscription in self._all:
            due_ms = subscription.due_ms
            if due_ms is not None and self.now_ms >= due_ms:
                yield self._request_snapshot(subscription)

    def request_snapshot(self, number: int) -> ev.SnapshotWanted | None:
        """Return a request for a snapshot of what a state machine has applied; pass it on at once.

        None if there is nothing to write, or while a snapshot is being written or loaded.
        """
        subscription = self._all[number]
        if subscription.is_saving or subscription.is_loading or not subscription.applied:
            return None
        return self._request_snapshot(subscription)

    def _request_snapshot(self, subscription: _Subscription) -> ev.SnapshotWanted:
        subscription.is_saving = True
        subscription.unsaved, subscription.since_ms = 0, self.now_ms
        return ev.SnapshotWanted(subscription.id, subscription.applied, subscription.timestamp)

    def refused(self, effect: fx.SnapshotRefused) -> None:
        """Record that the core refused the snapshot."""
        self._all[effect.listener_id].is_saving = False

    def write(self, effect: fx.WriteSnapshot) -> None:
        """Freeze a state machine, and write its state in a worker thread."""
        subscription = self._all[effect.listener_id]
        if subscription.applied != effect.id.offset:
            raise InvariantError(f"{effect} comes to a state machine at {subscription.applied}")
        try:
            values = subscription.machine.freeze()
        except KraftwireError as error:
            self._written(subscription, effect.id, _WriteResult(0, _problem(error)))
            return
        wall_ms = self.wall_ms

        def work() -> _WriteResult:
            try:
                writer = self._disk.snapshots.writer(
                    effect.id, effect.control, effect.timestamp, wall_ms
                )
                return self._save(writer, values)
            except KraftwireError as error:
                return _WriteResult(0, _problem(error))

        def done(saved: _WriteResult) -> None:
            self._written(subscription, effect.id, saved)

        self._workers.start(WorkKind.WRITE_SNAPSHOT, work, done)

    def _save(self, writer: SnapshotSink, values: Iterable[bytes]) -> _WriteResult:
        """Runs in a worker thread."""
        try:
            for chunk in _chunks(values):
                self._check_stopping()
                writer.append(chunk)
            return _WriteResult(writer.freeze())
        except BaseException:
            writer.discard()
            raise

    def _written(
        self, subscription: _Subscription, snapshot: OffsetAndEpoch, saved: _WriteResult
    ) -> None:
        subscription.is_saving = False
        if self._is_stopping:
            return
        if saved.problem:
            self._submit(ev.SnapshotFailed(snapshot, saved.problem))
        else:
            self.written = saved.size, self.now_ms
            self._submit(ev.SnapshotWritten(snapshot, saved.size))

    def _check_stopping(self) -> None:
        if self._is_stopping:
            raise _InterruptedError("the replica is being stopped")


class _Reader:
    """A snapshot for a state machine; its iteration ends when the replica is stopped."""

    def __init__(
        self, snapshot: OffsetAndEpoch, file: SnapshotSource, check_stopping: Callable[[], None]
    ) -> None:
        self.id = snapshot
        self.timestamp = file.timestamp
        self._file = file
        self._check_stopping = check_stopping

    def __iter__(self) -> Iterator[RecordBatch]:
        for batch in self._file:
            self._check_stopping()
            yield batch


def _committed(data: bytes, effect: fx.DeliverCommitted) -> list[RecordBatch]:
    """Return the batches of a delivery. Raises: InvariantError unless they match the effect."""
    batches: list[RecordBatch] = []
    offset = effect.start_offset
    for batch in read_batches(data):
        if not isinstance(batch, RecordBatch):
            raise InvariantError(f"a batch of magic {batch.magic} at offset {offset} of the log")
        # The first one may begin before the offset that the state machine was registered with.
        is_next = batch.base_offset == offset if batches else batch.base_offset <= offset
        if not is_next or batch.last_offset < offset:
            raise InvariantError(
                f"the log has a batch of {batch.base_offset}-{batch.last_offset} where {offset} is"
            )
        batches.append(batch)
        offset = batch.last_offset + 1
    if not effect.start_offset < offset <= effect.end_offset:
        raise InvariantError(f"{effect} is answered by the log with batches up to {offset}")
    return batches


def _chunks(values: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield the values in lists of a bounded size."""
    chunk: list[bytes] = []
    size = 0
    for value in values:
        chunk.append(value)
        size += len(value)
        if size >= SNAPSHOT_WRITE_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _problem(error: KraftwireError) -> str:
    """Return why a snapshot could not be written.

    Bugs and disk failures end the replica (D9): they are raised again.
    """
    if isinstance(error, InvariantError) or (isinstance(error, StorageError) and error.fatal):
        raise error
    return str(error)
