"""One run of a node: the shipped core, runner and log directory, driven as the node drives them.

Owns a node's event loop: the order of events, the timer, the requests in flight. Network, disk and
clock are simulated, and every action is reported to the checkers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from kraftwire.messages.vote_request import VoteRequest
from kraftwire.raft import effects as do
from kraftwire.raft.core import RaftCore
from kraftwire.raft.events import (
    AppendRequested,
    Event,
    ListenerConsumed,
    RequestReceived,
    TimerExpired,
)
from kraftwire.raft.voters import VoterSet
from kraftwire.replica.ports import ResponsePart, WorkKind
from kraftwire.replica.runner import Runner
from kraftwire.replica.storage import Storage
from kraftwire.sim.checks import replica_events as did
from kraftwire.sim.clock import Clock
from kraftwire.sim.invariants import Violation
from kraftwire.sim.network import Call, Peer
from kraftwire.sim.state_machine import Digest
from kraftwire.sim.storage import stored_snapshot
from kraftwire.sim.watch import Watch, Watched
from kraftwire.sim.workers import Job, VirtualWorkers
from kraftwire.wire.message import Message


class Host(Watched, Peer, Protocol):
    """A machine, as its process sees it."""

    @property
    def clock(self) -> Clock:
        """Its clock."""

    @property
    def process(self) -> Process | None:
        """The current run, which may be another one by now."""

    def later(self, delay: int, event: Event) -> None:
        """Pass an event to this run of the process after a delay."""

    def later_stop(self) -> None:
        """End the process after the current event."""

    def guard(self, action: Callable[..., None], *arguments: Any) -> None:
        """Call something that may end the process."""


@dataclass(slots=True)
class _Append:
    """Records of a client that wait for the high watermark; `after` is the end of what had been
    acknowledged when it sent them."""

    epoch: int
    base: int
    last: int
    values: tuple[bytes, ...]
    after: int


class Process:
    """A run of a node; the host of its runner."""

    def __init__(self, machine: Host, storage: Storage, core: RaftCore) -> None:
        self.machine = machine
        self.id = machine.id
        self.core = core
        self.storage = storage
        self.cluster = machine.cluster
        self.checkers = machine.checkers
        self.queue = machine.cluster.queue
        self.clock = machine.clock
        self.role = core.role
        self.epoch = core.epoch
        self.effects_to_crash: int | None = None
        self.requests: dict[int, Call] = {}
        self.waiting: dict[int, tuple[int, tuple[bytes, ...]]] = {}
        self.appends: list[_Append] = []
        self.sent: deque[Call] = deque()
        self.workers = VirtualWorkers(self, machine.cluster.queue)
        self.state = Digest(self._report, lambda: self.role, machine.cluster.coverage)
        self.in_pre_vote = False
        self.is_due = False
        self._watch = Watch(self)
        self.runner = Runner(
            core,
            storage,
            self,
            self.workers,
            settings=machine.cluster.snapshot_settings,
            watcher=self._watch,
        )
        self._slow_ms = machine.cluster.plan.slow_ms
        self._software = machine.cluster.software
        self._expiry_planned = False
        self._deadline: int | None = None
        self._trace = machine.cluster.trace
        self._timer_at: int | None = None
        self._model = machine.checkers.models[self.id]
        self._settled: tuple[int, int, int, VoterSet] | None = None

    def start(self) -> None:
        """Start the core, and register a state machine."""
        now = self.now_ms
        self.runner.start(now, now)
        self._settle("Start")
        plan = self.cluster.plan
        if plan.with_listener or plan.snapshots:
            self.runner.add_state_machine(self.state, writes_snapshots=plan.snapshots is not None)

    @property
    def now_ms(self) -> int:
        """The time by this node's clock."""
        return self.clock.read(self.queue.now)

    def handle(self, event: Event) -> None:
        """Let the core decide on an event, and carry out the effects."""
        now = self.now_ms
        if type(event) is TimerExpired:
            self.runner.wake(now, now)
        else:
            self.runner.handle(event, now, now)
        self._settle(type(event).__name__)

    def receive(self, call: Call, message: Message) -> None:
        """Handle a request; its call is answered when the core decides."""
        token = self.cluster.next_token()
        self.requests[token] = call
        event = RequestReceived(token, call.version, message, "CONTROLLER", self._software)
        if call.sender.is_foreign:
            self._handle_foreign(event)
        elif type(message) is VoteRequest:
            self._handle_vote_request(message, event)
        else:
            self.handle(event)

    def append(self, token: int, values: tuple[bytes, ...], expected: int | None) -> None:
        """Append records."""
        self.waiting[token] = (self.checkers.history.acknowledged, values)
        self.handle(AppendRequested(token, self.core.epoch, values, expected))

    @property
    def append_end(self) -> int:
        """Return the offset of the next record, as far as this node's clients know."""
        return max(self._model.end, self.appends[-1].last + 1 if self.appends else 0)

    def _handle_foreign(self, event: RequestReceived) -> None:
        """Handle a request from another cluster, which must change nothing. S17."""
        was_due, before = self._is_due(), self._standing()
        self.handle(event)
        if not was_due and self.is_running and self._standing() != before:
            now = self._standing()
            raise Violation("S17", f"another cluster changed {self.id} from {before} to {now}")

    def _is_due(self) -> bool:
        """Return whether the core's timer has expired, so that it acts on it with any event."""
        deadline = self.core.deadline_ms
        return deadline is not None and deadline <= self.now_ms

    def _standing(self) -> tuple[object, ...]:
        """Return the state that messages from others can change."""
        core = self.core
        log = (core.end_offset, core.high_watermark)
        return core.role, core.epoch, core.leader_id, core.voted, core.voters, *log

    def _handle_vote_request(self, message: VoteRequest, event: RequestReceived) -> None:
        """Handle a request for a vote. Order: what is stored meanwhile is stored because of it."""
        partition = message.topics[0].partitions[0]
        is_known = partition.replica_epoch <= self._model.stored.epoch
        self.in_pre_vote, self.is_due = partition.pre_vote and is_known, self._is_due()
        self.handle(event)
        self.in_pre_vote = False

    def _report(self, event: did.ReplicaEvent) -> None:
        self.checkers.check(self._model, event)

    # Events and time

    def submit(self, event: Event) -> None:
        """Handle an event soon; state machines may be slow."""
        delay = 0
        if self._slow_ms and isinstance(event, ListenerConsumed):
            delay = self.cluster.lag()
        self.machine.later(delay, event)

    def _settle(self, kind: str) -> None:
        if self.runner.flush_wanted:
            self.runner.flush_in_worker()
        core, watch = self.core, self._watch
        epoch, end, mark, believed = standing = core.standing
        if watch.has_changed_state or standing != self._settled:
            self._settled = standing
            voters = tuple([(one.key.id, one.key.directory_id) for one in believed])
            version, role = core.kraft_version, self.role
            self._report(did.StepEnded(epoch, end, mark, voters, version, role))
            watch.has_changed_state = False
        self._trace.append((self.queue.now, self.id, kind, epoch, end, mark))
        deadline = self.runner.deadline_ms
        if deadline != self._deadline:
            self._deadline = deadline
            if deadline is not None:
                self._plan_timer(deadline)

    def _plan_timer(self, deadline_ms: int) -> None:
        when = self.clock.when(deadline_ms)
        if self._timer_at is None or when < self._timer_at:
            self._timer_at = when
            self.queue.at(when, self._timer_due, when)

    def _timer_due(self, planned: int) -> None:
        if planned != self._timer_at or not self.is_running:
            return
        self._timer_at = None
        deadline = self._deadline
        if deadline is None:
            return
        if self.clock.when(deadline) > self.queue.now:
            self._plan_timer(deadline)
            return
        self._deadline = None
        self.cluster.count_timer(self.id)
        self.machine.take(TimerExpired())

    # Network

    def send(self, request: do.SendRequest) -> None:
        """Send a request; it times out by this node's clock."""
        call = self.cluster.network.send(self.machine, request)
        self.sent.append(call)
        if not self._expiry_planned:
            self._expiry_planned = True
            self.queue.at(call.deadline, self._expire_calls)

    def _expire_calls(self) -> None:
        """Time requests out, in the order in which they were sent."""
        self._expiry_planned = False
        if not self.is_running:
            return
        sent, now = self.sent, self.queue.now
        while sent and (sent[0].is_done or sent[0].deadline <= now):
            self.cluster.network.expire(sent.popleft())
        if sent and not self._expiry_planned and self.is_running:
            self._expiry_planned = True
            self.queue.at(sent[0].deadline, self._expire_calls)

    def reset_connections(self, _: do.ResetConnections) -> None:
        """Forget what was sent."""
        self.cluster.network.forget(self.sent)
        self.sent.clear()

    def wants_reply(self, token: int) -> bool:
        """Return whether the call is still open: a lost connection is noticed only after the
        answer."""
        return token in self.requests

    def reply(self, token: int, message: Message, part: ResponsePart | None) -> None:
        """Answer a request."""
        if part is not None:
            part.put()
        call = self.requests.pop(token)
        self._watch.replies(call, message)
        self.cluster.network.reply(self.id, call, message)

    # Work that takes time

    @property
    def is_running(self) -> bool:
        """Whether this run has not ended."""
        return self.machine.process is self

    def duration(self, kind: WorkKind) -> int:
        """How long the disk needs."""
        del kind
        return self.cluster.flush_time()

    def begin(self, kind: WorkKind) -> int:
        """Return the offset up to which a flush makes the log durable."""
        return self._model.end if kind is WorkKind.FLUSH else 0

    def guard(self, action: Callable[[Job], None], job: Job) -> None:
        """Call something that may end the process."""
        self.machine.guard(action, job)

    def finish(self, job: Job) -> None:
        """Tell the runner that a disk operation has finished."""
        files, model = self.machine.files, self._model
        before = files.sync_count
        result: Any = job.work()
        if job.kind is WorkKind.FLUSH:
            is_missing = model.durable < job.mark and files.sync_count == before
            if is_missing and files.unflushed(".log"):
                raise Violation("S9", f"{self.id} flushes its log without a sync")
            self._report(did.Flushed(job.mark))
        elif job.kind is not WorkKind.LOAD_SNAPSHOT:
            self.checkers.on(self.id, stored_snapshot(self.storage))
            self.cluster.coverage.hit(job.kind)
        job.done(result)

    # Decisions of the core

    def committed(self, effect: do.HighWatermarkAdvanced) -> None:
        """Tell clients whose records are committed."""
        if self.role != "leader":
            return
        while self.appends and self.appends[0].last < effect.offset:
            self._acknowledge(self.appends.pop(0))

    def _acknowledge(self, append: _Append) -> None:
        """Acknowledge a client's records."""
        values = append.values
        self._report(did.Acknowledged(append.base, append.epoch, values, append.after))
        self.cluster.acknowledged += len(values)

    def decided(self, effect: do.AppendAccepted | do.AppendRefused | do.UpgradeDecided) -> None:
        """Handle the decision on a client's records: they have offsets, or were refused."""
        if isinstance(effect, do.AppendAccepted):
            after, values = self.waiting.pop(effect.token)
            base, last = effect.base_offset, effect.last_offset
            self.appends.append(_Append(effect.epoch, base, last, values, after))
        elif isinstance(effect, do.AppendRefused):
            del self.waiting[effect.token]
            self.cluster.coverage.hit(f"append refused: {effect.reason}")

    def role_changed(self, effect: do.RoleChanged) -> None:
        """End the waits of a former leader's clients."""
        self.role, self.epoch = effect.new, effect.epoch
        if effect.new != "leader":
            self.appends.clear()

    def voters_changed(self, effect: do.VotersChanged) -> None:
        """Do nothing: the checkers see it in the log."""

    def note(self, effect: do.Note) -> None:
        """Count the note as a node would log it."""
        if effect.level in ("error", "critical"):
            self.cluster.coverage.hit("note of an error")

    def shut_down(self, effect: do.ShutdownFinished) -> None:
        """End the process after the current event."""
        self.cluster.coverage.hit("shut down" if effect.graceful else "shut down late")
        self.machine.later_stop()
