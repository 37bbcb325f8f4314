"""Carries out the decisions of a Raft core: the only place where effects become files and calls.

It keeps the order of effects and their durability: the effects after a `PersistQuorumState` or a
`TruncateLog` happen only once that is on disk (D1, D5), and flushes run in parallel with other
work, one at a time, for everything appended before they began (D2, D3). A `StorageError` propagates
and ends the replica: nothing is retried on files that may have lost pages (D9).

A node runs it with sockets and threads, a simulation with a simulated network, disk and clock.
Everything here runs in one thread; `Workers` does what may run in another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from kraftwire.errors import InvariantError, StorageError, UsageError, WireError
from kraftwire.log.settings import SnapshotSettings
from kraftwire.raft import effects as fx
from kraftwire.raft import events as ev
from kraftwire.replica.cleaning import Cleaner
from kraftwire.replica.machines import StateMachines
from kraftwire.replica.ports import Core, Disk, Host, Watcher, Workers, WorkKind
from kraftwire.replica.state_machine import StateMachine
from kraftwire.wire.message import Message

_Perform = Callable[[fx.Effect], None]


class Runner:
    """Runs a core over a disk, for a host.

    Order: `start` once, then `handle` for each event, and `wake` when `deadline_ms` has come. After
    each of them the host checks `flush_wanted` and calls `flush` or `flush_in_worker` soon. Times
    are those of `RaftCore.handle`.
    """

    def __init__(
        self,
        core: Core,
        disk: Disk,
        host: Host,
        workers: Workers,
        *,
        settings: SnapshotSettings | None = None,
        watcher: Watcher | None = None,
    ) -> None:
        """Take over a core that has not been started, and what its replica has on disk.

        `settings` control when snapshots are written, and how much of them and of the log is kept.
        `cuts` counts how often the end of the log has been truncated; `unflushed_bytes` is what was
        appended since the last flush began.
        """
        self.core = core
        self._disk = disk
        self._log = disk.log
        self._host = host
        self._workers = workers
        self._watcher = watcher
        self._flush: fx.FlushLog | None = None
        self.unflushed_bytes = 0
        self.cuts = 0
        self._is_flushing = False
        self._settings = settings or SnapshotSettings()
        self._cleaner = Cleaner(disk, self._settings)
        self.machines = StateMachines(disk, workers, host.submit)
        self._perform = self._table()

    # ---- events and time

    @property
    def deadline_ms(self) -> int:
        """When `wake` must be called next."""
        due = self._cleaner.due_ms
        core_ms = self.core.deadline_ms
        if core_ms is not None and core_ms < due:
            due = core_ms
        if self.machines.has_interval:
            own_ms = self.machines.due_ms
            if own_ms is not None and own_ms < due:
                due = own_ms
        return due

    def start(self, now_ms: int, wall_ms: int) -> None:
        """Start the core."""
        self.machines.now_ms, self.machines.wall_ms = now_ms, wall_ms
        self._cleaner.start(now_ms)
        self._carry_out(None, self.core.start(now_ms, wall_ms))

    def handle(self, event: ev.Event, now_ms: int, wall_ms: int) -> None:
        """Pass an event to the core, and carry out its effects."""
        self.machines.now_ms, self.machines.wall_ms = now_ms, wall_ms
        self._carry_out(event, self.core.handle(event, now_ms, wall_ms))

    def wake(self, now_ms: int, wall_ms: int) -> None:
        """Do what is due by time."""
        deadline = self.core.deadline_ms
        if deadline is not None and now_ms >= deadline:
            self.handle(ev.TimerExpired(), now_ms, wall_ms)
        due = self.machines.due_ms
        if due is not None and now_ms >= due:
            self.machines.now_ms = now_ms
            for wanted in self.machines.take_due():
                self.handle(wanted, now_ms, wall_ms)
        if now_ms >= self._cleaner.due_ms:
            for proposed in self._cleaner.proposals(now_ms, wall_ms):
                self.handle(proposed, now_ms, wall_ms)

    def _carry_out(self, event: ev.Event | None, effects: list[fx.Effect]) -> None:
        perform = self._perform
        watcher = self._watcher
        if watcher is not None and watcher.step(event, effects):
            for effect in effects:
                watcher.every(effect)
                perform[type(effect)](effect)
            return
        for effect in effects:
            perform[type(effect)](effect)

    def stop(self) -> None:
        """Interrupt work in other threads. Order: after the last event."""
        self.machines.stop()

    def close(self) -> None:
        """Flush the rest of the log. Order: after the last event, if there was no error."""
        with self._workers.lock:
            self._log.flush()

    # ---- state machines

    def add_state_machine(
        self,
        machine: StateMachine,
        *,
        next_offset: int = 0,
        writes_snapshots: bool = False,
    ) -> int:
        """Register a state machine that follows the log from an offset on; returns its number.

        The snapshots of a replica hold the state of one state machine: that with
        `writes_snapshots`.
        """
        policy = self._settings if writes_snapshots else None
        return self.machines.add(machine, next_offset, policy)

    def write_snapshot(self, number: int, now_ms: int, wall_ms: int) -> bool:
        """Request a snapshot of a state machine; returns False if there is nothing to write."""
        wanted = self.machines.request_snapshot(number)
        if wanted is not None:
            self.handle(wanted, now_ms, wall_ms)
        return wanted is not None

    # ---- flushing

    @property
    def flush_wanted(self) -> bool:
        """Whether a flush should begin: one is wanted, and none is running."""
        return self._flush is not None and not self._is_flushing

    def flush(self) -> None:
        """Flush, and wait for it. Order: while `flush_wanted`."""
        wanted = self._take_flush()
        self._sync()
        self._flushed(wanted)

    def flush_in_worker(self) -> None:
        """Flush in a worker; appends continue and wait for the next flush. Order: as `flush`."""
        wanted = self._take_flush()

        def done(_: None) -> None:
            self._flushed(wanted)

        self._workers.start(WorkKind.FLUSH, self._sync, done)

    def _take_flush(self) -> fx.FlushLog:
        wanted = self._flush
        if wanted is None or self._is_flushing:
            raise InvariantError("no flush is wanted, or one is running")
        self._flush = None
        self.unflushed_bytes = 0
        self._is_flushing = True
        return wanted

    def _sync(self) -> None:
        """May run in another thread."""
        with self._workers.lock:
            self._log.flush()

    def _flushed(self, wanted: fx.FlushLog) -> None:
        self._is_flushing = False
        self._host.submit(ev.LogFlushed(wanted.end_offset, wanted.generation))

    # ---- effects

    def _table(self) -> dict[type, _Perform]:
        host, machines = self._host, self.machines
        table = {
            fx.PersistQuorumState: self._disk.persist,
            fx.AppendToLog: self._append_to_log,
            fx.TruncateLog: self._truncate_log,
            fx.FlushLog: self._flush_log,
            fx.ResetLog: self._reset_log,
            fx.DropLogPrefix: self._drop_log_prefix,
            fx.AppendToSnapshot: self._append_to_snapshot,
            fx.FinishSnapshot: self._finish_snapshot,
            fx.DiscardSnapshot: self._discard_snapshot,
            fx.WriteSnapshot: machines.write,
            fx.SnapshotRefused: self._snapshot_refused,
            fx.LoadSnapshot: machines.load,
            fx.DeliverCommitted: machines.deliver,
            fx.LeaderChanged: machines.leader_changed,
            fx.SendReply: self._send_reply,
            fx.SendRequest: host.send,
            fx.ResetConnections: host.reset_connections,
            fx.HighWatermarkAdvanced: host.committed,
            fx.AppendAccepted: host.decided,
            fx.AppendRefused: host.decided,
            fx.UpgradeDecided: host.decided,
            fx.VotersChanged: host.voters_changed,
            fx.RoleChanged: host.role_changed,
            fx.Note: host.note,
            fx.ShutdownFinished: host.shut_down,
        }
        performs = cast("dict[type, _Perform]", table)
        if self._watcher is None:
            return performs
        return {kind: _watched(self._watcher, kind, do) for kind, do in performs.items()}

    def _append_to_log(self, effect: fx.AppendToLog) -> None:
        self._log.append(effect.data, effect.base_offset, effect.end_offset)
        self.unflushed_bytes += len(effect.data)

    def _truncate_log(self, effect: fx.TruncateLog) -> None:
        self.cuts += 1
        with self._workers.lock:
            self._log.truncate(effect.end_offset)

    def _flush_log(self, effect: fx.FlushLog) -> None:
        self._flush = effect  # replaces an older one: only the newest needs an answer

    def _reset_log(self, effect: fx.ResetLog) -> None:
        self.cuts += 1
        with self._workers.lock:
            self._log.reset(effect.start)
        snapshots = self._disk.snapshots
        older = [one.id for one in snapshots.stored() if one.id < effect.start]
        snapshots.delete(older, self._delete_due_ms)

    def _drop_log_prefix(self, effect: fx.DropLogPrefix) -> None:
        with self._workers.lock:
            self._log.drop_prefix(effect.start_offset)
        self._disk.snapshots.delete(effect.snapshots, self._delete_due_ms)

    @property
    def _delete_due_ms(self) -> int:
        return self.machines.now_ms + self._settings.delete_delay_ms

    def _append_to_snapshot(self, effect: fx.AppendToSnapshot) -> None:
        snapshots = self._disk.snapshots
        try:
            snapshots.append(effect.id, effect.position, effect.data)
        except StorageError as error:
            # A full disk ends the download: the log is not affected.
            if error.fatal:
                raise
            snapshots.discard(effect.id)
            self._host.submit(ev.SnapshotRejected(effect.id, str(error)))

    def _finish_snapshot(self, effect: fx.FinishSnapshot) -> None:
        def work() -> ev.SnapshotFinished | ev.SnapshotRejected:
            try:
                found = self._disk.snapshots.finish(effect.id)
            except (StorageError, WireError) as error:
                if isinstance(error, StorageError) and error.fatal:
                    raise
                return ev.SnapshotRejected(effect.id, str(error))
            return ev.SnapshotFinished(effect.id, found.size, found.control)

        self._workers.start(WorkKind.FINISH_SNAPSHOT, work, self._host.submit)

    def _discard_snapshot(self, effect: fx.DiscardSnapshot) -> None:
        self._disk.snapshots.discard(effect.id)

    def _snapshot_refused(self, effect: fx.SnapshotRefused) -> None:
        self.machines.refused(effect)
        text = f"no snapshot is written at {effect.end_offset}: {effect.reason}"
        self._host.note(fx.Note("info", text, "snapshot refused"))

    def _send_reply(self, effect: fx.SendReply) -> None:
        if not self._host.wants_reply(effect.token):
            return  # its connection is closed
        part = None
        if effect.part is not None:
            part = _ResponsePart(self, self._disk, effect.message, effect.part)
        self._host.reply(effect.token, effect.message, part)


class _ResponsePart:
    """The part of the log or of a snapshot that an answer carries."""

    __slots__ = ("_cuts", "_disk", "_message", "_runner", "_slice", "size")

    def __init__(
        self, runner: Runner, disk: Disk, message: Message, slice_: fx.LogSlice | fx.SnapshotSlice
    ) -> None:
        self._runner = runner
        self._disk = disk
        self._message = message
        self._slice = slice_
        self._cuts = runner.cuts
        self.size = slice_.max_bytes
        if isinstance(slice_, fx.LogSlice):
            self.size = disk.log.read_size(slice_.offset, slice_.max_bytes, slice_.end_offset)

    def put(self) -> None:
        """Read it, unless the log has been truncated: other records may be in its place."""
        slice_, disk = self._slice, self._disk
        if isinstance(slice_, fx.SnapshotSlice):
            data = disk.snapshots.read(slice_.id, slice_.position, slice_.max_bytes)
        elif self._cuts == self._runner.cuts:
            data = disk.log.read(slice_.offset, slice_.max_bytes, slice_.end_offset)
        else:
            raise UsageError("the log has been truncated since the answer was decided")
        slice_.put(self._message, data)


def _watched(watcher: Watcher, kind: type, perform: _Perform) -> _Perform:
    """Return the function that carries out an effect between the calls of a watcher."""
    before, after = watcher.before.get(kind), watcher.after.get(kind)
    if before is None and after is None:
        return perform

    def watched(effect: fx.Effect) -> None:
        if before is not None:
            before(effect)
        perform(effect)
        if after is not None:
            after(effect)

    return watched
