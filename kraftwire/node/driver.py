"""The one task that owns a Raft core and its log: events in, effects carried out.

Owns the order of effects and their durability: what stands behind a `PersistQuorumState` or a
`TruncateLog` happens only once that is on disk (D1, D5), and flushes run beside other work, one at
a time, for everything appended before they began (D2, D3). A `StorageError` leaves `run` and ends
the node: nothing is tried again on files that may have lost pages (D9).

Order: everything here runs in trio's thread; only a flush may run in another one.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol, cast

import trio

from kraftwire.errors import ApiError
from kraftwire.limits import DELIVERY_BYTES, EVENTS_PER_TURN, FLUSH_INLINE_SECONDS
from kraftwire.node.context import CommitListener
from kraftwire.node.logs import RateLimit, log
from kraftwire.node.waiting import CommitWaiters, Outcome
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.raft import effects as fx
from kraftwire.raft import events as ev
from kraftwire.records.batch import RecordBatch
from kraftwire.records.reader import read_batches
from kraftwire.wire.message import Message

__all__ = ["Core", "Driver", "LogStore", "Network", "StateStore"]

AppendDone = Callable[[fx.AppendAccepted | fx.AppendRefused], None]


class Core(Protocol):
    """What the driver needs of `RaftCore`."""

    @property
    def deadline_ms(self) -> int | None:
        """When `TimerExpired` is due next."""

    @property
    def high_watermark(self) -> int:
        """Everything below is committed."""

    def start(self, now_ms: int) -> list[fx.Effect]:
        """Begin."""

    def handle(self, event: ev.Event, now_ms: int) -> list[fx.Effect]:
        """Take one event."""


class LogStore(Protocol):
    """What the driver needs of `MetadataLog`."""

    def append(self, data: bytes | memoryview, base_offset: int, end_offset: int) -> None:
        """Write whole batches at the end."""

    def flush(self) -> int:
        """Make everything appended so far durable."""

    def truncate(self, end_offset: int) -> int:
        """Cut the log, durably."""

    def read(self, offset: int, max_bytes: int, end_offset: int) -> bytes:
        """Whole batches from the one that contains `offset` on."""


class StateStore(Protocol):
    """Where the quorum state is kept."""

    def __call__(self, effect: fx.PersistQuorumState) -> None:
        """Write it, durably."""


class Network(Protocol):
    """How requests leave; answers come back as events."""

    def send(self, request: fx.SendRequest) -> None:
        """Send a request some time soon."""

    def reset(self) -> None:
        """Nobody wants the answers to what was sent so far."""


class Driver:
    """Runs a core. Order: `add_listener` before `run`; everything else at any time."""

    def __init__(
        self, core: Core, store: LogStore, persist: StateStore, network: Network, *, wall_ms: int
    ) -> None:
        """Take over a core that has not been started.

        Units: `wall_ms` is the wall clock's time now, the anchor of the core's clock.
        """
        self.core = core
        self.shutdown_finished = trio.Event()
        self.was_graceful = True
        self.waiters = CommitWaiters()
        self.flush_count = 0
        self._log = store
        self._persist = persist
        self._network = network
        self._anchor = wall_ms
        self._anchor_time = trio.current_time()
        self._queue: deque[ev.Event] = deque()
        self._wake: trio.Event | None = None
        self._listeners: dict[int, CommitListener] = {}
        self._next_token = 0
        self._replies: dict[int, Outcome[Message]] = {}
        self._appends: dict[int, AppendDone] = {}
        self._rounds = 0
        self._logged_epoch = -1
        self._notes = RateLimit(trio.current_time)
        self._flush_wanted: fx.FlushLog | None = None
        self._flush_wake = trio.Event()
        self._is_flushing = False
        self._has_replied = False
        self._flush_seconds: deque[float] = deque(maxlen=8)
        # Held while files are synced, so that none is closed meanwhile.
        self._flush_lock = threading.Lock()
        self._perform: dict[type, Callable[[fx.Effect], None]] = self._table()

    def now_ms(self) -> int:
        """The core's clock: wall-clock milliseconds that never go back."""
        return self._anchor + int((trio.current_time() - self._anchor_time) * 1000)

    def add_listener(self, listener: CommitListener, next_offset: int = 0) -> None:
        """Let a state machine follow the log from an offset on."""
        listener_id = len(self._listeners)
        self._listeners[listener_id] = listener
        self.submit(ev.ListenerRegistered(listener_id, next_offset))

    def submit(self, event: ev.Event) -> None:
        """Hand an event to the core, soon and in order."""
        self._queue.append(event)
        if self._wake is not None:
            self._wake.set()

    async def request(
        self, message: Message, version: int, *, listener: str = "", software: str = ""
    ) -> Message:
        """Let the core answer a raft request."""
        token = self._take_token()
        outcome = self._replies[token] = Outcome[Message]()
        self.submit(ev.RequestReceived(token, version, message, listener, software))
        try:
            return await outcome.wait()
        finally:
            self._replies.pop(token, None)

    def append_nowait(
        self,
        values: Sequence[bytes],
        epoch: int,
        done: AppendDone,
        expected_end_offset: int | None = None,
    ) -> None:
        """Append records as one batch; `done` is called with the core's decision."""
        token = self._take_token()
        self._appends[token] = done
        self.submit(ev.AppendRequested(token, epoch, values, expected_end_offset))

    async def append(
        self, values: Sequence[bytes], *, epoch: int, expected_end_offset: int | None = None
    ) -> int:
        """Append records as one batch; returns the offset of the last one.

        Raises: ApiError if the core refuses.
        """
        outcome = Outcome[fx.AppendAccepted | fx.AppendRefused]()
        self.append_nowait(values, epoch, outcome.set, expected_end_offset)
        decision = await outcome.wait()
        if isinstance(decision, fx.AppendRefused):
            code = _REFUSALS.get(decision.reason, ErrorCode.NOT_CONTROLLER)
            raise ApiError(code, f"{decision.reason}: {decision.detail}")
        return decision.last_offset

    def read_committed(self, offset: int, max_bytes: int) -> bytes:
        """Whole batches below the high watermark, from the one that contains `offset` on."""
        end_offset = self.core.high_watermark
        if offset >= end_offset:
            return b""
        return self._log.read(offset, max_bytes, end_offset)

    async def run(self) -> None:
        """Start the core and serve it until cancelled. Raises: StorageError, InvariantError."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._flush_beside)
            self._carry_out(self.core.start(self.now_ms()))
            while True:
                self._turn()
                if self._flush_wanted is not None and not self._is_flushing:
                    await self._begin_flush()
                if self._queue:
                    await trio.lowlevel.checkpoint()
                else:
                    await self._sleep()

    def close(self) -> None:
        """Flush what is left. Order: after `run` has ended without an error."""
        with self._flush_lock:
            self._log.flush()

    def _turn(self) -> None:
        """Handle what is waiting, a bounded number of events."""
        self._has_replied = False
        handle = self.core.handle
        queue = self._queue
        deadline = self.core.deadline_ms
        now = self.now_ms()
        if deadline is not None and now >= deadline:
            self._carry_out(handle(ev.TimerExpired(), now))
        for _ in range(EVENTS_PER_TURN):
            if not queue:
                break
            self._carry_out(handle(queue.popleft(), now))

    async def _sleep(self) -> None:
        """Wait for an event or the core's next deadline."""
        deadline = self.core.deadline_ms
        wake = self._wake = trio.Event()
        if deadline is None:
            await wake.wait()
        else:
            at = self._anchor_time + (deadline - self._anchor) / 1000 + _ROUNDING
            with trio.CancelScope(deadline=at):
                await wake.wait()
        self._wake = None

    def _carry_out(self, effects: list[fx.Effect]) -> None:
        perform = self._perform
        for effect in effects:
            perform[type(effect)](effect)

    async def _begin_flush(self) -> None:
        """Flush here where the disk is fast, else in a thread.

        The quickest of the last flushes decides: a thread also waits for the interpreter's lock.
        """
        if min(self._flush_seconds, default=0.0) > FLUSH_INLINE_SECONDS:
            self._is_flushing = True
            self._flush_wake.set()
            return
        if self._has_replied:
            # Answers go out first: what they carry is then written there and here at the same
            # time. Whoever sends them has its turn before the second of two checkpoints.
            await trio.lowlevel.checkpoint()
            await trio.lowlevel.checkpoint()
        wanted, self._flush_wanted = self._flush_wanted, None
        assert wanted is not None
        self._flush()
        self.submit(ev.LogFlushed(wanted.end_offset, wanted.generation))

    async def _flush_beside(self) -> None:
        """Flush in a thread whenever asked; appends go on meanwhile and wait for the next one."""
        while True:
            await self._flush_wake.wait()
            self._flush_wake = trio.Event()
            wanted, self._flush_wanted = self._flush_wanted, None
            assert wanted is not None
            await trio.to_thread.run_sync(self._flush)
            self._is_flushing = False
            self.submit(ev.LogFlushed(wanted.end_offset, wanted.generation))

    def _flush(self) -> None:
        """Runs in a thread or inline."""
        began = time.perf_counter()
        with self._flush_lock:
            self._log.flush()
        self._flush_seconds.append(time.perf_counter() - began)
        self.flush_count += 1

    def _table(self) -> dict[type, Callable[[fx.Effect], None]]:
        table: dict[type, object] = {
            fx.PersistQuorumState: self._on_persist,
            fx.AppendToLog: self._on_append_to_log,
            fx.TruncateLog: self._on_truncate,
            fx.FlushLog: self._on_flush,
            fx.SendRequest: self._network.send,
            fx.ResetConnections: self._on_reset,
            fx.SendReply: self._on_reply,
            fx.HighWatermarkAdvanced: self._on_high_watermark,
            fx.DeliverCommitted: self._on_deliver,
            fx.LeaderChanged: self._on_leader_changed,
            fx.AppendAccepted: self._on_append_decided,
            fx.AppendRefused: self._on_append_decided,
            fx.RoleChanged: self._on_role_changed,
            fx.Note: self._on_note,
            fx.ShutdownFinished: self._on_shutdown_finished,
        }
        return cast("dict[type, Callable[[fx.Effect], None]]", table)

    def _on_persist(self, effect: fx.PersistQuorumState) -> None:
        self._persist(effect)

    def _on_append_to_log(self, effect: fx.AppendToLog) -> None:
        self._log.append(effect.data, effect.base_offset, effect.end_offset)

    def _on_truncate(self, effect: fx.TruncateLog) -> None:
        with self._flush_lock:
            self._log.truncate(effect.end_offset)

    def _on_flush(self, effect: fx.FlushLog) -> None:
        self._flush_wanted = effect

    def _on_reset(self, _: fx.ResetConnections) -> None:
        self._network.reset()

    def _on_reply(self, effect: fx.SendReply) -> None:
        outcome = self._replies.pop(effect.token, None)
        if outcome is None:  # the connection is gone
            return
        part = effect.part
        if isinstance(part, fx.LogSlice):
            part.put(effect.message, self._log.read(part.offset, part.max_bytes, part.end_offset))
        self._has_replied = True
        outcome.set(effect.message)

    def _on_high_watermark(self, effect: fx.HighWatermarkAdvanced) -> None:
        self.waiters.advance(effect.offset)

    def _on_deliver(self, effect: fx.DeliverCommitted) -> None:
        """Hand a listener a bounded piece; the core asks again for the rest."""
        data = self._log.read(effect.start_offset, DELIVERY_BYTES, effect.end_offset)
        batches = [batch for batch in read_batches(data) if isinstance(batch, RecordBatch)]
        next_offset = batches[-1].last_offset + 1 if batches else effect.end_offset
        self._listeners[effect.listener_id].handle_commit(batches)
        self.submit(ev.ListenerConsumed(effect.listener_id, next_offset))

    def _on_leader_changed(self, effect: fx.LeaderChanged) -> None:
        listener = self._listeners[effect.listener_id]
        listener.handle_leader_change(effect.leader_id, effect.epoch, effect.end_offset)

    def _on_append_decided(self, effect: fx.AppendAccepted | fx.AppendRefused) -> None:
        done = self._appends.pop(effect.token, None)
        if done is not None:
            done(effect)

    def _on_role_changed(self, effect: fx.RoleChanged) -> None:
        if effect.old == "leader" and effect.new != "leader":
            self.waiters.fail(ErrorCode.NOT_CONTROLLER, "this node no longer leads")
        # Without a majority a voter goes to and fro for hours; the first rounds tell enough.
        self._rounds = self._rounds + 1 if effect.epoch == self._logged_epoch else 0
        self._logged_epoch = effect.epoch
        level = "info" if self._rounds < ROUNDS_LOGGED else "debug"
        fields = {"old": effect.old, "new": effect.new, "epoch": effect.epoch}
        log(level, "role", **fields, leader=effect.leader_id, reason=effect.reason)

    def _on_note(self, effect: fx.Note) -> None:
        if effect.level == "info":
            log(effect.level, "note", text=effect.text)
        else:
            # What a peer can provoke, and as often as it likes.
            self._notes.log(" ".join(effect.text.split()[:3]), "note", text=effect.text)

    def _on_shutdown_finished(self, effect: fx.ShutdownFinished) -> None:
        self.was_graceful = effect.graceful
        self.shutdown_finished.set()

    def _take_token(self) -> int:
        self._next_token += 1
        return self._next_token


# Deadlines are whole milliseconds; waking a little late saves a second look at the clock.
_ROUNDING = 0.0001

# Changes of role within one epoch that are logged as information.
ROUNDS_LOGGED = 12

_REFUSALS = {
    fx.RefusalReason.RECORD_BATCH_TOO_LARGE: ErrorCode.MESSAGE_TOO_LARGE,
    fx.RefusalReason.TOO_MANY_PENDING: ErrorCode.THROTTLING_QUOTA_EXCEEDED,
}
