"""One run of a node: the shipped core, runner and log directory, driven as the node drives them.

Owns what a node's event loop does: the events in their order, the timer, the requests in flight.
The network, the disk and the clock are simulated; everything that is done is told to the checkers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, cast

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
from kraftwire.replica.ports import Part, Work
from kraftwire.replica.runner import Runner
from kraftwire.replica.storage import Storage
from kraftwire.sim.clock import Clock
from kraftwire.sim.facts import VOTE, is_pre_vote
from kraftwire.sim.network import Call, Peer
from kraftwire.sim.snapshots import Digest
from kraftwire.sim.violation import Violation
from kraftwire.sim.voters import InForce
from kraftwire.sim.watch import Watch, Watched
from kraftwire.sim.workers import Job, VirtualWorkers
from kraftwire.wire.message import Message

__all__ = ["Host", "Process"]


class Host(Watched, Peer, Protocol):
    """A machine as its process needs it."""

    @property
    def clock(self) -> Clock:
        """Its clock."""

    @property
    def process(self) -> Process | None:
        """The present run, which may be another one by now."""

    def later(self, delay: int, event: Event) -> None:
        """Hand an event to this run of the process after a while."""

    def later_stop(self) -> None:
        """End the process once the present event is handled."""

    def guard(self, action: Callable[..., None], *arguments: Any) -> None:
        """Do something that may end the process."""


@dataclass(slots=True)
class _Append:
    """Records of a client that wait for the high watermark; `after` is the end of what clients had
    been told of when it asked."""

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
        self.books = machine.books
        self.scheduler = machine.cluster.scheduler
        self.clock = machine.clock
        self.role = core.role
        self.epoch = core.epoch
        self.effects_to_crash: int | None = None
        self.calls: dict[int, Call] = {}
        self.waiting: dict[int, tuple[int, tuple[bytes, ...]]] = {}
        self.appends: list[_Append] = []
        self.sent: deque[Call] = deque()
        self.workers = VirtualWorkers(self, machine.cluster.scheduler)
        self.state = Digest(self.id, machine.books.histories, machine.cluster.marks)
        self.runner = Runner(
            core,
            storage,
            self,
            self.workers,
            settings=machine.cluster.snapshot_settings,
            watcher=Watch(self),
        )
        self._slow_ms = machine.cluster.plan.slow_ms
        self._software = machine.cluster.software
        self._expiry_planned = False
        self._deadline: int | None = None
        self._trace = machine.cluster.trace
        self._stored = machine.books.ballots.stored
        self._timer_at: int | None = None
        self._model = machine.books.histories.logs[self.id]
        self._believed: VoterSet | None = None
        self._stated: InForce | None = None

    def start(self) -> None:
        """Begin: the core's first effects, and a state machine that listens."""
        now = self.clock.read(self.scheduler.now)
        self.runner.start(now, now)
        self._settle("Start")
        plan = self.cluster.plan
        if plan.with_listener or plan.snapshots:
            self.runner.add_state_machine(self.state, writes_snapshots=plan.snapshots is not None)

    def handle(self, event: Event) -> None:
        """Let the core decide on an event and do what it asks for."""
        now = self.clock.read(self.scheduler.now)
        if type(event) is TimerExpired:
            self.runner.wake(now, now)
        else:
            self.runner.handle(event, now, now)
        self._settle(type(event).__name__)

    def receive(self, call: Call, message: Message) -> None:
        """Handle a request; its call is answered when the core says so."""
        token = self.cluster.next_token()
        self.calls[token] = call
        event = RequestReceived(token, call.version, message, "CONTROLLER", self._software)
        if call.sender.is_foreign:
            self._handle_foreign(event)
        elif message.API_KEY == VOTE and is_pre_vote(message):
            self._handle_pre_vote(cast("VoteRequest", message), event)
        else:
            self.handle(event)

    def append(self, token: int, values: tuple[bytes, ...], expected: int | None) -> None:
        """Ask for records to be appended."""
        self.waiting[token] = (self.books.histories.acknowledged, values)
        self.handle(AppendRequested(token, self.core.epoch, values, expected))

    @property
    def append_end(self) -> int:
        """The offset that the next record will get, as far as this node's clients know."""
        return max(self._model.end, self.appends[-1].last + 1 if self.appends else 0)

    def _handle_foreign(self, event: RequestReceived) -> None:
        """A request of another cluster changes nothing. S17."""
        was_due, before = self._is_due(), self._standing()
        self.handle(event)
        if not was_due and self.is_running and self._standing() != before:
            now = self._standing()
            raise Violation("S17", f"another cluster changed {self.id} from {before} to {now}")

    def _is_due(self) -> bool:
        """Whether the core's timer has run out, so that any event lets the core act on it."""
        deadline = self.core.deadline_ms
        return deadline is not None and deadline <= self.clock.read(self.scheduler.now)

    def _standing(self) -> tuple[object, ...]:
        """What the messages of others can change."""
        core = self.core
        log = (core.end_offset, core.high_watermark)
        return core.role, core.epoch, core.leader_id, core.voted, core.voters, *log

    def _handle_pre_vote(self, message: VoteRequest, event: RequestReceived) -> None:
        was_due, before = self._is_due(), self.books.ballots.stored[self.id]
        self.handle(event)
        if message.topics[0].partitions[0].replica_epoch <= before.epoch:
            self.books.ballots.pre_voted(self.id, before, was_due=was_due)

    # Events and time

    def submit(self, event: Event) -> None:
        """Handle this soon; a state machine may take its time for what it was given."""
        delay = 0
        if self._slow_ms and isinstance(event, ListenerConsumed):
            delay = self.cluster.lag()
        self.machine.later(delay, event)

    def _settle(self, kind: str) -> None:
        if self.runner.flush_wanted:
            self.runner.flush_beside()
        core = self.core
        epoch, end = core.epoch, core.end_offset
        if self._stored[self.id].epoch != epoch:
            self.books.ballots.settled(self.id, epoch)
        batches = self._model.batches
        if batches and end != batches[-1].end:
            raise Violation("S13", f"{self.id} believes its log to end at {end}: {self._model.end}")
        believed, stated = core.voters, self._model.force
        if believed is not self._believed or stated is not self._stated:
            self._believed, self._stated = believed, stated
            self.books.believes(self.id, core)
        self._trace.append((self.scheduler.now, self.id, kind, epoch, end, core.high_watermark))
        deadline = self.runner.deadline_ms
        if deadline != self._deadline:
            self._deadline = deadline
            if deadline is not None:
                self._plan_timer(deadline)

    def _plan_timer(self, deadline_ms: int) -> None:
        when = self.clock.when(deadline_ms)
        if self._timer_at is None or when < self._timer_at:
            self._timer_at = when
            self.scheduler.at(when, self._timer_due, when)

    def _timer_due(self, planned: int) -> None:
        if planned != self._timer_at or not self.is_running:
            return
        self._timer_at = None
        deadline = self._deadline
        if deadline is None:
            return
        if self.clock.when(deadline) > self.scheduler.now:
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
            self.scheduler.at(call.deadline, self._expire_calls)

    def _expire_calls(self) -> None:
        """Let requests time out, in the order in which they were sent."""
        self._expiry_planned = False
        if not self.is_running:
            return
        sent, now = self.sent, self.scheduler.now
        while sent and (sent[0].is_done or sent[0].deadline <= now):
            self.cluster.network.expire(sent.popleft())
        if sent and not self._expiry_planned and self.is_running:
            self._expiry_planned = True
            self.scheduler.at(sent[0].deadline, self._expire_calls)

    def reset_connections(self, _: do.ResetConnections) -> None:
        """Forget what was sent."""
        self.cluster.network.forget(self.sent)
        self.sent.clear()

    def wants_reply(self, token: int) -> bool:
        """Whether the call still waits: a lost connection is noticed only after the answer."""
        return token in self.calls

    def reply(self, token: int, message: Message, part: Part | None) -> None:
        """Answer a request."""
        if part is not None:
            part.put()
        self.cluster.network.reply(self.id, self.calls.pop(token), message)

    # Work that takes time

    @property
    def is_running(self) -> bool:
        """Whether this run has not ended."""
        return self.machine.process is self

    def duration(self, kind: Work) -> int:
        """How long the disk needs."""
        del kind
        return self.cluster.flush_time()

    def begin(self, kind: Work) -> int:
        """How many batches at the log's start a flush makes durable."""
        return len(self._model.batches) if kind is Work.FLUSH else 0

    def guard(self, action: Callable[[Job], None], job: Job) -> None:
        """Call something that may end the process."""
        self.machine.guard(action, job)

    def finish(self, job: Job) -> None:
        """The disk is done."""
        files, model = self.machine.files, self._model
        before = files.sync_count
        result: Any = job.work()
        if job.kind is Work.FLUSH:
            is_missing = model.durable < job.mark and files.sync_count == before
            if is_missing and files.unflushed(".log"):
                raise Violation("S9", f"{self.id} flushes its log without a sync")
            self.books.histories.flushed(self.id, job.mark)
        elif job.kind is not Work.LOAD_SNAPSHOT:
            self.books.check_newest(self.id, self.storage)
            self.cluster.marks.hit(job.kind)
        job.done(result)

    # What the core says

    def committed(self, effect: do.HighWatermarkAdvanced) -> None:
        """Tell clients whose records are committed."""
        if self.role != "leader":
            return
        while self.appends and self.appends[0].last < effect.offset:
            self._acknowledge(self.appends.pop(0))

    def _acknowledge(self, append: _Append) -> None:
        """A client is told that its records are committed. S12, S21."""
        histories, base, values = self.books.histories, append.base, append.values
        histories.acked(base, append.epoch, count=len(values), after=append.after)
        batch = histories.committed_at(base)
        if batch is None or any(value not in batch.data for value in values):
            raise Violation("S12", f"other records than those appended are committed at {base}")
        self.cluster.acknowledged += len(values)

    def decided(self, effect: do.AppendAccepted | do.AppendRefused | do.UpgradeDecided) -> None:
        """A client's records have offsets, or were refused."""
        if isinstance(effect, do.AppendAccepted):
            after, values = self.waiting.pop(effect.token)
            base, last = effect.base_offset, effect.last_offset
            self.appends.append(_Append(effect.epoch, base, last, values, after))
        elif isinstance(effect, do.AppendRefused):
            del self.waiting[effect.token]
            self.cluster.marks.hit(f"append refused: {effect.reason}")

    def role_changed(self, effect: do.RoleChanged) -> None:
        """Clients of a former leader wait no longer."""
        self.role, self.epoch = effect.new, effect.epoch
        if effect.new != "leader":
            self.appends.clear()

    def voters_changed(self, effect: do.VotersChanged) -> None:
        """The checkers see that in the log."""

    def note(self, effect: do.Note) -> None:
        """Count what a node's log would show."""
        if effect.level in ("error", "critical"):
            self.cluster.marks.hit("note of an error")

    def shut_down(self, effect: do.ShutdownFinished) -> None:
        """The process may end."""
        self.cluster.marks.hit("shut down" if effect.graceful else "shut down late")
        self.machine.later_stop()
