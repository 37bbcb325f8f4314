"""One run of a node: the shipped core, log and quorum-state file, driven as the node drives them.

Owns the carrying out of effects, in their order, each finished before the next begins; a flush
takes virtual time. Everything that is done is told to the checkers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from kraftwire.messages.vote_request import VoteRequest
from kraftwire.raft import effects as do
from kraftwire.raft.core import RaftCore
from kraftwire.raft.events import (
    AppendRequested,
    Event,
    ListenerConsumed,
    ListenerRegistered,
    LogFlushed,
    RequestReceived,
    TimerExpired,
)
from kraftwire.sim.disk import PowerCut
from kraftwire.sim.facts import VOTE, diverging_epoch_of, is_pre_vote
from kraftwire.sim.network import Call
from kraftwire.sim.storage import Storage
from kraftwire.sim.violation import Violation
from kraftwire.wire.message import Message

if TYPE_CHECKING:
    from kraftwire.sim.machine import Machine

__all__ = ["Process"]

_LISTENER = 1
_READ_BYTES = 1 << 20


@dataclass(slots=True)
class _Flush:
    """A flush under way. Shape: `count` batches at the log's start will be durable by it."""

    count: int
    effect: do.FlushLog


@dataclass(slots=True)
class _Append:
    """Records of a client that wait for the high watermark."""

    token: int
    epoch: int
    base: int
    last: int
    values: tuple[bytes, ...]


class Process:
    """A run of a node."""

    def __init__(self, machine: Machine, storage: Storage, core: RaftCore) -> None:
        self.machine = machine
        self.id = machine.id
        self.core = core
        self.storage = storage
        self.cluster = machine.cluster
        self.scheduler = machine.cluster.scheduler
        self.clock = machine.clock
        self.role = core.role
        self.epoch = core.epoch
        self.effects_to_crash: int | None = None
        self.consumed = 0
        self.calls: dict[int, Call] = {}
        self.waiting: dict[int, tuple[int, tuple[bytes, ...]]] = {}
        self.appends: list[_Append] = []
        self._event: Event | None = None
        self._software = machine.cluster.software
        self._is_told = machine.cluster.timeline is not None
        self.sent: deque[Call] = deque()
        self._flushes: list[_Flush] = []
        self._expiry_planned = False
        self._deadline: int | None = None
        self._trace = machine.cluster.trace
        self._stored = machine.cluster.ballots.stored
        self._timer_at: int | None = None
        self._model = machine.cluster.histories.logs[self.id]
        self._actions: dict[type, Callable[[Any], None]] = {
            do.SendRequest: self._send_request,
            do.SendReply: self._send_reply,
            do.AppendToLog: self._append,
            do.FlushLog: self._flush,
            do.HighWatermarkAdvanced: self._advance,
            do.PersistQuorumState: self._persist,
            do.TruncateLog: self._truncate,
            do.ResetConnections: self._reset,
            do.DeliverCommitted: self._deliver,
            do.LeaderChanged: self._leader_changed,
            do.AppendAccepted: self._accepted,
            do.AppendRefused: self._refused,
            do.RoleChanged: self._role_changed,
            do.Note: self._note,
            do.ShutdownFinished: self._shut_down,
        }

    def start(self) -> None:
        """Begin: the core's first effects, and a state machine that listens."""
        self._carry_out(self.core.start(self.clock.read(self.scheduler.now)))
        self._settle("Start")
        if self.cluster.plan.with_listener:
            self.handle(ListenerRegistered(_LISTENER, 0))

    def handle(self, event: Event) -> None:
        """Let the core decide on an event and do what it asks for."""
        self._event = event
        self._carry_out(self.core.handle(event, self.clock.read(self.scheduler.now)))
        self._settle(type(event).__name__)

    def receive(self, call: Call, message: Message) -> None:
        """Handle a request; its call is answered when the core says so."""
        token = self.cluster.next_token()
        self.calls[token] = call
        event = RequestReceived(token, call.version, message, "CONTROLLER", self._software)
        if message.API_KEY == VOTE and is_pre_vote(message):
            self._handle_pre_vote(cast("VoteRequest", message), event)
        else:
            self.handle(event)

    def append(self, token: int, values: tuple[bytes, ...], expected: int | None) -> None:
        """Ask for records to be appended."""
        self.waiting[token] = (token, values)
        self.handle(AppendRequested(token, self.core.epoch, values, expected))

    @property
    def append_end(self) -> int:
        """The offset that the next record will get, as far as this node's clients know."""
        return max(self._model.end, self.appends[-1].last + 1 if self.appends else 0)

    def _handle_pre_vote(self, message: VoteRequest, event: RequestReceived) -> None:
        before = self.cluster.ballots.stored[self.id]
        self.handle(event)
        if message.topics[0].partitions[0].replica_epoch <= before.epoch:
            self.cluster.ballots.pre_voted(self.id, before)

    # Driving

    def _carry_out(self, effects: list[do.Effect]) -> None:
        actions = self._actions
        if self._is_told:
            self.cluster.tell(self, self._event, effects)
        if self.effects_to_crash is None:
            for effect in effects:
                actions[type(effect)](effect)
            return
        for effect in effects:
            self.effects_to_crash -= 1
            if self.effects_to_crash < 0:
                raise PowerCut
            actions[type(effect)](effect)

    def _settle(self, kind: str) -> None:
        core = self.core
        epoch, end = core.epoch, core.end_offset
        if self._stored[self.id].epoch != epoch:
            self.cluster.ballots.settled(self.id, epoch)
        batches = self._model.batches
        if batches and end != batches[-1].end:
            raise Violation("S13", f"{self.id} believes its log to end at {end}: {self._model.end}")
        self._trace.append((self.scheduler.now, self.id, kind, epoch, end, core.high_watermark))
        deadline = core.deadline_ms
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
        if planned != self._timer_at or self.machine.process is not self:
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

    def _send_request(self, effect: do.SendRequest) -> None:
        self.cluster.checks.request(self.id, effect.message)
        call = self.cluster.network.send(self.machine, effect)
        self.sent.append(call)
        if not self._expiry_planned:
            self._expiry_planned = True
            self.scheduler.at(call.deadline, self._expire_calls)

    def _expire_calls(self) -> None:
        """Let requests time out, in the order in which they were sent."""
        self._expiry_planned = False
        if self.machine.process is not self:
            return
        sent, now = self.sent, self.scheduler.now
        while sent and (sent[0].is_done or sent[0].deadline <= now):
            self.cluster.network.expire(sent.popleft())
        if sent and not self._expiry_planned and self.machine.process is self:
            self._expiry_planned = True
            self.scheduler.at(sent[0].deadline, self._expire_calls)

    def _reset(self, _effect: do.ResetConnections) -> None:
        self.cluster.network.forget(self.sent)
        self.sent.clear()

    def _send_reply(self, effect: do.SendReply) -> None:
        call = self.calls.pop(effect.token, None)
        if call is None:
            raise Violation("REPLY", f"{self.id} answers {effect.token} twice, or unasked")
        message = effect.message
        part = effect.part
        if isinstance(part, do.LogSlice):
            part.put(message, self.storage.log.read(part.offset, part.max_bytes, part.end_offset))
            self.cluster.hunter.served(self.machine, call)
        self.cluster.checks.reply(self.id, message)
        if message.API_KEY == VOTE:
            self.cluster.checks.vote(self.id, call.message, message, self.machine.vote_before)
        self.cluster.network.reply(self.id, call, message)

    # Disk

    def _append(self, effect: do.AppendToLog) -> None:
        # The checker is told first: if the power fails in the midst, the batches may be there.
        self.cluster.histories.appended(self.id, effect.data, self.core.epoch)
        self.storage.log.append(effect.data, effect.base_offset, effect.end_offset)
        if self.role == "leader":
            self.cluster.hunter.appended(self.machine)

    def _flush(self, effect: do.FlushLog) -> None:
        flush = _Flush(len(self._model.batches), effect)
        self._flushes.append(flush)
        self.scheduler.after(self.cluster.flush_time(), self._flush_due, flush)

    def _flush_due(self, flush: _Flush) -> None:
        """The disk is done, and with it all flushes that were asked for before."""
        if self.machine.process is not self or flush not in self._flushes:
            return
        done = self._flushes[: self._flushes.index(flush) + 1]
        del self._flushes[: len(done)]
        self.machine.guard(self._sync, flush)
        # Only the newest has to be answered.
        for each in done if self.cluster.plan.seed % 2 else done[-1:]:
            effect = each.effect
            self.machine.later(0, LogFlushed(effect.end_offset, effect.generation))

    def _sync(self, flush: _Flush) -> None:
        files, model = self.storage.files, self._model
        before = files.sync_count
        self.storage.log.flush()
        is_missing = model.durable < flush.count and files.sync_count == before
        if is_missing and files.unflushed(".log"):
            raise Violation("S9", f"{self.id} flushes its log without a sync")
        self.cluster.histories.flushed(self.id, flush.count)

    def _truncate(self, effect: do.TruncateLog) -> None:
        histories, end = self.cluster.histories, effect.end_offset
        histories.truncating(self.id, end, self.core.epoch, diverging_epoch_of(self._event))
        if self._flushes:
            # A flush runs beside all but this: it ends first, and its answer comes later.
            self._flush_due(self._flushes[-1])
        self.storage.log.truncate(end)
        is_durable = not self.storage.files.unflushed(".log")
        histories.truncated(self.id, end, is_durable=is_durable)
        self.cluster.marks.hit("truncated")

    def _persist(self, effect: do.PersistQuorumState) -> None:
        self.storage.write_state(effect)
        self.cluster.ballots.persisted(self.id, self.storage.durable_state())

    # What the core says

    def _advance(self, effect: do.HighWatermarkAdvanced) -> None:
        offset = effect.offset
        is_leader = self.role == "leader"
        self.cluster.histories.advanced(self.id, offset, self.epoch if is_leader else None)
        if is_leader:
            self._acknowledge(offset)
            self.cluster.hunter.committed(self.machine)

    def _acknowledge(self, offset: int) -> None:
        while self.appends and self.appends[0].last < offset:
            append = self.appends.pop(0)
            self.cluster.acknowledge(append.base, append.epoch, append.values)

    def _deliver(self, effect: do.DeliverCommitted) -> None:
        start, end = effect.start_offset, effect.end_offset
        if start != self.consumed or end > self._model.high_watermark:
            raise Violation("S15", f"{self.id} delivers {start}-{end} after {self.consumed}")
        data = self.storage.log.read(start, _READ_BYTES, end)
        self.consumed = self.cluster.histories.delivered(start, end, data)
        self.machine.later(0, ListenerConsumed(effect.listener_id, self.consumed))

    def _leader_changed(self, effect: do.LeaderChanged) -> None:
        start = self.core.epoch_start_offset
        if effect.leader_id == self.id and self.consumed <= start:
            raise Violation("S15", f"{self.id} is told to lead at {self.consumed}, before {start}")

    def _accepted(self, effect: do.AppendAccepted) -> None:
        _, values = self.waiting.pop(effect.token)
        append = _Append(
            effect.token, effect.epoch, effect.base_offset, effect.last_offset, values
        )
        self.appends.append(append)

    def _refused(self, effect: do.AppendRefused) -> None:
        del self.waiting[effect.token]
        self.cluster.marks.hit(f"append refused: {effect.reason}")

    def _role_changed(self, effect: do.RoleChanged) -> None:
        self.role, self.epoch = effect.new, effect.epoch
        cluster = self.cluster
        cluster.marks.hit(f"{effect.old} to {effect.new}")
        if effect.new != "leader":
            self.appends.clear()
            return
        cluster.elections += 1
        cluster.ballots.elected(self.id, effect.epoch)
        cluster.histories.elected(self.id, effect.epoch)
        cluster.hunter.elected(self.machine)

    def _note(self, effect: do.Note) -> None:
        if effect.level in ("error", "critical"):
            self.cluster.marks.hit("note of an error")

    def _shut_down(self, effect: do.ShutdownFinished) -> None:
        self.cluster.marks.hit("shut down" if effect.graceful else "shut down late")
        self.machine.later_stop()
