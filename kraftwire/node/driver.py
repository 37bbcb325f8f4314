"""The one task that owns a Raft core and its files: waits for events and deadlines, in trio.

`replica.Runner` carries out what the core decides on an event; this module has the queue, the
deadline, the threads, and the tasks that wait for an answer. A `StorageError` propagates from `run`
and ends the node (D9).

Order: everything here runs in trio's thread; flushes of a slow disk, long flushes of a leader and
work on snapshots run in others.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol, TypeVar

import trio

from kraftwire.errors import ApiError, UsageError
from kraftwire.log.settings import SnapshotSettings
from kraftwire.node.context import Request
from kraftwire.node.logs import RateLimit, log
from kraftwire.node.waiting import CommitWaiters, Future
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.raft import effects as fx
from kraftwire.raft import events as ev
from kraftwire.replica.ports import Core, Disk, ResponsePart, WorkKind
from kraftwire.replica.runner import Runner
from kraftwire.replica.state_machine import StateMachine
from kraftwire.wire.message import Message

# The core handles this many events before other tasks get a turn.
EVENTS_PER_TURN = 256

# A disk whose flushes take less time is flushed without a thread: while the main thread is busy,
# each step of another thread waits up to 5 ms for the interpreter's lock. Measured at 20,000
# appends a second on a disk that takes 2.7 ms: twice the throughput of a thread.
FLUSH_INLINE_SECONDS = 0.005

# A leader with this much to flush does it in a thread, however fast the disk is, and appends and
# answers in the meantime. Measured with 3 nodes and records of 4 KiB: half as many again a second.
# A follower has nothing else to do, since its next Fetch waits for the flush.
FLUSH_IN_WORKER_BYTES_MIN = 1024 * 1024

# An answer of the core, and the part of a file that it carries.
_Reply = tuple[Message, ResponsePart | None]

AppendDone = Callable[[fx.AppendAccepted | fx.AppendRefused], None]

T = TypeVar("T")


class Network(Protocol):
    """Sends requests."""

    def send(
        self,
        request: fx.SendRequest,
        deliver: Callable[[ev.ResponseReceived | ev.RequestFailed | ev.FeaturesHeard], None],
    ) -> None:
        """Send a request soon; `deliver` gets the answer unless `reset` comes first. If a new
        connection was made, `deliver` gets the features of the other node before the answer."""

    def reset(self) -> None:
        """Discard the answers to everything sent so far."""


class _Threads:
    """Does the runner's longer work in threads. Order: set `nursery` before `start`.

    `flush_seconds` are the durations of the last flushes, in this thread or another.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.nursery: trio.Nursery | None = None
        self.flush_seconds: deque[float] = deque(maxlen=8)

    def start(self, kind: WorkKind, work: Callable[[], T], done: Callable[[T], None]) -> None:
        assert self.nursery is not None, f"{kind} before the driver runs"
        timed = partial(self.timed, work) if kind is WorkKind.FLUSH else work
        self.nursery.start_soon(self._run, timed, done, name=str(kind))

    async def _run(self, work: Callable[[], T], done: Callable[[T], None]) -> None:
        done(await trio.to_thread.run_sync(work))

    def timed(self, flush: Callable[[], T]) -> T:
        """Flush in this thread, and record how long it took."""
        began = time.perf_counter()
        result = flush()
        self.flush_seconds.append(time.perf_counter() - began)
        return result


class Driver:
    """Runs a core. Order: `add_state_machine` before `run`; everything else at any time."""

    def __init__(
        self,
        core: Core,
        disk: Disk,
        network: Network,
        *,
        settings: SnapshotSettings | None = None,
        wall_seconds: Callable[[], float] = time.time,
    ) -> None:
        """Take over a core that has not been started.

        `settings` control snapshots. `wall_seconds` is the wall clock, in seconds since the epoch;
        it may jump at any time.
        """
        self.core = core
        self.has_left = trio.Event()
        self.was_graceful = True
        self.waiters = CommitWaiters()
        self.flush_count = 0
        self._log = disk.log
        self._network = network
        self._wall_seconds = wall_seconds
        self._start_time = trio.current_time()
        self._queue: deque[ev.Event] = deque()
        self._wake: trio.Event | None = None
        self._next_token = 0
        self._replies: dict[int, Future[_Reply]] = {}
        self._appends: dict[int, AppendDone] = {}
        self._rounds = 0
        self._logged_epoch = -1
        self._notes = RateLimit(trio.current_time)
        self._upgrades: dict[int, Future[fx.UpgradeDecided]] = {}
        self._snapshots_requested: deque[int] = deque()
        self._has_replied = False
        self._leads = False
        self._threads = _Threads()
        self._runner = Runner(core, disk, self, self._threads, settings=settings)

    def now_ms(self) -> int:
        """The clock of all timers: milliseconds since this driver was made; monotonic."""
        return int((trio.current_time() - self._start_time) * 1000)

    def wall_ms(self) -> int:
        """The wall clock: milliseconds since the epoch."""
        return int(self._wall_seconds() * 1000)

    def add_state_machine(
        self,
        machine: StateMachine,
        next_offset: int = 0,
        *,
        writes_snapshots: bool = False,
    ) -> int:
        """Register a state machine that follows the log from an offset; returns its number."""
        return self._runner.add_state_machine(
            machine, next_offset=next_offset, writes_snapshots=writes_snapshots
        )

    @property
    def snapshot_written(self) -> tuple[int, int] | None:
        """The size of the last snapshot that was written, and when; None before the first."""
        return self._runner.machines.written

    def write_snapshot(self, number: int) -> None:
        """Request a snapshot of a state machine; it is written soon."""
        self._snapshots_requested.append(number)
        if self._wake is not None:
            self._wake.set()

    async def request(self, request: Request) -> Message | None:
        """Pass a raft request to the core, and return its response.

        The part of a file that the answer carries is read when the request's connection gets its
        turn. Returns None if it is no longer there.
        """
        token = self._new_token()
        future = self._replies[token] = Future[_Reply]()
        version, message = request.version, request.message
        listener, software = request.listener, request.software
        self.submit(ev.RequestReceived(token, version, message, listener, software))
        try:
            message, part = await future.wait()
        finally:
            if self._replies.pop(token, None) is not None:
                self.submit(ev.RequestAbandoned(token))
        if part is not None:
            await request.admit(part.size)
            try:
                part.put()
            except UsageError as gone:
                log("debug", "answer-gone", problem=gone)
                return None
        return message

    def append_nowait(
        self,
        values: Sequence[bytes],
        epoch: int,
        done: AppendDone,
        expected_end_offset: int | None = None,
    ) -> None:
        """Append records as one batch; `done` is called with the core's decision."""
        token = self._new_token()
        self._appends[token] = done
        self.submit(ev.AppendRequested(token, epoch, values, expected_end_offset))

    async def append(
        self, values: Sequence[bytes], *, epoch: int, expected_end_offset: int | None = None
    ) -> int:
        """Append records as one batch; returns the offset of the last one.

        Raises: ApiError if the core refuses; UsageError for values that a record cannot have.
        """
        # The core would treat this as a bug of the node and end it.
        if not values or not all(type(value) is bytes and value for value in values):
            raise UsageError("expected one or more records, each of them non-empty bytes")
        future = Future[fx.AppendAccepted | fx.AppendRefused]()
        self.append_nowait(values, epoch, future.set, expected_end_offset)
        decision = await future.wait()
        if isinstance(decision, fx.AppendRefused):
            code = _REFUSALS.get(decision.reason, ErrorCode.NOT_CONTROLLER)
            raise ApiError(code, f"{decision.reason}: {decision.detail}")
        return decision.last_offset

    async def upgrade(self, version: int, *, epoch: int, validate_only: bool = False) -> None:
        """Raise kraft.version as the leader of an epoch, and wait until that is committed.

        Raises: ApiError if the core refuses, or if the leadership ends first.
        """
        token = self._new_token()
        future = self._upgrades[token] = Future[fx.UpgradeDecided]()
        self.submit(ev.UpgradeRequested(token, epoch, version, validate_only))
        decision = await future.wait()
        if decision.error:
            raise ApiError(decision.error, decision.detail)
        if decision.offset >= 0:
            await self.waiters.committed(decision.offset)

    def read_committed(self, offset: int, max_bytes: int) -> bytes:
        """Return whole batches below the high watermark, starting with the one that contains
        `offset`."""
        end_offset = self.core.high_watermark
        if offset >= end_offset:
            return b""
        return self._log.read(offset, max_bytes, end_offset)

    def committed_size(self, offset: int, max_bytes: int) -> int:
        """Return how many bytes `read_committed` would return."""
        return self._log.read_size(offset, max_bytes, self.core.high_watermark)

    # ---- waiting

    async def run(self) -> None:
        """Start the core and serve it until cancelled. Raises: StorageError, InvariantError."""
        async with trio.open_nursery() as nursery:
            self._threads.nursery = nursery
            try:
                self._runner.start(self.now_ms(), self.wall_ms())
                while True:
                    self._handle_events()
                    if self._runner.flush_wanted:
                        await self._flush()
                    if self._queue or self._snapshots_requested:
                        await trio.lowlevel.checkpoint()
                    else:
                        await self._sleep()
            finally:
                self._runner.stop()

    def close(self) -> None:
        """Flush the rest of the log. Order: after `run` has ended without an error."""
        self._runner.close()

    def _handle_events(self) -> None:
        """Handle waiting events, up to a limit."""
        self._has_replied = False
        runner, queue = self._runner, self._queue
        deadline = runner.deadline_ms
        now, wall = self.now_ms(), self.wall_ms()
        if now >= deadline:
            runner.wake(now, wall)
        while self._snapshots_requested:
            runner.write_snapshot(self._snapshots_requested.popleft(), now, wall)
        for _ in range(EVENTS_PER_TURN):
            if not queue:
                break
            runner.handle(queue.popleft(), now, wall)

    async def _sleep(self) -> None:
        """Wait for an event or the next deadline."""
        wake = self._wake = trio.Event()
        at = self._start_time + self._runner.deadline_ms / 1000 + _ROUNDING
        with trio.CancelScope(deadline=at):
            await wake.wait()
        self._wake = None

    async def _flush(self) -> None:
        """Flush in this thread if the disk is fast and little is waiting for it.

        Otherwise flush in another thread.
        """
        self.flush_count += 1
        if self._flushes_in_worker():
            self._runner.flush_in_worker()
            return
        if self._has_replied:
            # Answers go out first, so that followers write what they carry at the same time as this
            # node. Two checkpoints give the sending tasks their turn.
            await trio.lowlevel.checkpoint()
            await trio.lowlevel.checkpoint()
        self._threads.timed(self._runner.flush)

    def _flushes_in_worker(self) -> bool:
        """Whether to flush in another thread, which also waits for the interpreter's lock.

        The fastest of the last flushes shows how fast the disk is.
        """
        if self._leads and self._runner.unflushed_bytes >= FLUSH_IN_WORKER_BYTES_MIN:
            return True
        return min(self._threads.flush_seconds, default=0.0) > FLUSH_INLINE_SECONDS

    # ---- the runner's host

    def submit(self, event: ev.Event) -> None:
        self._queue.append(event)
        if self._wake is not None:
            self._wake.set()

    def send(self, request: fx.SendRequest) -> None:
        self._network.send(request, self.submit)

    def reset_connections(self, _: fx.ResetConnections) -> None:
        self._network.reset()

    def wants_reply(self, token: int) -> bool:
        return token in self._replies

    def reply(self, token: int, message: Message, part: ResponsePart | None) -> None:
        self._has_replied = True
        self._replies.pop(token).set((message, part))

    def committed(self, effect: fx.HighWatermarkAdvanced) -> None:
        self.waiters.advance(effect.offset)

    def decided(self, effect: fx.AppendAccepted | fx.AppendRefused | fx.UpgradeDecided) -> None:
        if isinstance(effect, fx.UpgradeDecided):
            self._upgrades.pop(effect.token).set(effect)
            return
        done = self._appends.pop(effect.token, None)
        if done is not None:
            done(effect)

    def role_changed(self, effect: fx.RoleChanged) -> None:
        """Log the change; if leadership ends, fail the tasks that wait for commits."""
        self._leads = effect.new == "leader"
        if effect.old == "leader" and not self._leads:
            self.waiters.fail(ErrorCode.NOT_CONTROLLER, "this node no longer leads")
        # Without a majority a voter may change roles for hours; the first rounds are enough to log.
        self._rounds = self._rounds + 1 if effect.epoch == self._logged_epoch else 0
        self._logged_epoch = effect.epoch
        level = "info" if self._rounds < ROUNDS_LOGGED else "debug"
        fields = {"old": effect.old, "new": effect.new, "epoch": effect.epoch}
        log(level, "role", **fields, leader=effect.leader_id, reason=effect.reason)

    def voters_changed(self, effect: fx.VotersChanged) -> None:
        voters = ",".join(str(voter.key.id) for voter in effect.voters)
        fields = {"voters": voters, "kraft_version": effect.kraft_version, "offset": effect.offset}
        log("info", "voters", **fields, is_voter=effect.is_voter)

    def note(self, effect: fx.Note) -> None:
        if effect.level == "info":
            log(effect.level, "note", text=effect.text)
        else:
            # Peers can provoke these at any rate.
            kind = f"{effect.level} {effect.key}"
            self._notes.log(kind, "note", level=effect.level, text=effect.text)

    def shut_down(self, effect: fx.ShutdownFinished) -> None:
        """Mark that this node has left the quorum, so that it ends."""
        self.was_graceful = effect.graceful
        self.has_left.set()

    def _new_token(self) -> int:
        self._next_token += 1
        return self._next_token


# Deadlines are whole milliseconds; waking a little late avoids reading the clock twice.
_ROUNDING = 0.0001

# Changes of role within one epoch that are logged as information.
ROUNDS_LOGGED = 12

_REFUSALS = {
    fx.RefusalReason.RECORD_BATCH_TOO_LARGE: ErrorCode.MESSAGE_TOO_LARGE,
    fx.RefusalReason.UNEXPECTED_END_OFFSET: ErrorCode.OPERATION_NOT_ATTEMPTED,
    fx.RefusalReason.TOO_MANY_PENDING: ErrorCode.THROTTLING_QUOTA_EXCEEDED,
}
