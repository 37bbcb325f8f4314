"""Reports every effect of a running node's core to the checkers, before and after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, cast

from kraftwire.messages.fetch_request import FetchRequest
from kraftwire.messages.fetch_response import FetchResponse
from kraftwire.raft import effects as do
from kraftwire.raft.core import RaftCore
from kraftwire.raft.events import Event
from kraftwire.replica.storage import Storage
from kraftwire.sim.check_messages import VOTE, diverging_epoch_of
from kraftwire.sim.check_updates import UpdateChecks
from kraftwire.sim.checker_set import CheckerSet
from kraftwire.sim.coverage_probes import CoverageProbes
from kraftwire.sim.disk import PowerCut, SimFiles
from kraftwire.sim.environment import Environment
from kraftwire.sim.invariants import Violation
from kraftwire.sim.leader_killer import Victim
from kraftwire.sim.network import Call
from kraftwire.sim.state_machine import Digest
from kraftwire.sim.storage import durable_snapshot, durable_state
from kraftwire.sim.workers import VirtualWorkers

_Hooks = dict[type, Callable[[do.Effect], None]]


class Watched(Victim, Protocol):
    """A machine, as checkers see it.

    `vote_before` is the node's vote, before the latest Vote request came, in the epoch of
    that request; -1 for none.
    """

    vote_before: int

    @property
    def cluster(self) -> Environment:
        """The environment that it shares with other machines."""

    @property
    def checkers(self) -> CheckerSet:
        """The checkers of its quorum."""

    @property
    def files(self) -> SimFiles:
        """Its disk."""


class _Process(Protocol):
    """The run of a node, as checkers see it."""

    id: int
    role: str
    epoch: int
    effects_to_crash: int | None

    @property
    def machine(self) -> Watched:
        """Where it runs."""

    @property
    def core(self) -> RaftCore:
        """The Raft core."""

    @property
    def now_ms(self) -> int:
        """The time by its clock."""

    @property
    def storage(self) -> Storage:
        """Its storage."""

    @property
    def state(self) -> Digest:
        """Its state machine."""

    @property
    def workers(self) -> VirtualWorkers:
        """The workers that flush its log."""

    @property
    def calls(self) -> Mapping[int, Call]:
        """The requests without an answer yet, by token."""


class Watch:
    """The watcher of one process."""

    def __init__(self, process: _Process) -> None:
        self._process = process
        self._machine = process.machine
        self._node = process.id
        cluster = self._cluster = process.machine.cluster
        self._checkers = process.machine.checkers
        self._log_checks = self._checkers.log_checks
        self._leader_killer = cluster.leader_killer
        self._checks = self._checkers.checks
        self._probes = CoverageProbes(cluster.coverage, self._log_checks)
        self._log = self._log_checks.logs[self._node]
        self._updates = UpdateChecks(self._node, cluster.timers.fetch_timeout_ms)
        self._has_changed = False
        self._event: Event | None = None
        self._has_timeline = cluster.timeline is not None
        before: dict[type, Callable[[Any], None]] = {
            do.SendRequest: self._before_request,
            do.SendReply: self._before_reply,
            do.AppendToLog: self._before_append,
            do.TruncateLog: self._before_truncate,
            do.ResetLog: self._before_reset,
            do.DropLogPrefix: self._before_drop,
            do.HighWatermarkAdvanced: self._before_advance,
            do.DeliverCommitted: self._before_deliver,
            do.LeaderChanged: self._before_leader_change,
            do.LoadSnapshot: self._before_load,
            do.WriteSnapshot: self._before_write,
            do.SnapshotRefused: lambda _: cluster.coverage.hit("snapshot refused"),
            do.DiscardSnapshot: lambda _: cluster.coverage.hit("snapshot discarded"),
        }
        after: dict[type, Callable[[Any], None]] = {
            do.AppendToLog: self._after_append,
            do.TruncateLog: self._after_truncate,
            do.ResetLog: self._after_reset,
            do.DropLogPrefix: self._after_drop,
            do.PersistQuorumState: self._after_persist,
            do.HighWatermarkAdvanced: self._after_advance,
            do.RoleChanged: self._after_role_change,
        }
        self.before = cast("_Hooks", before)
        self.after = cast("_Hooks", after)

    def step(self, event: Event | None, effects: list[do.Effect]) -> bool:
        """Note the event that causes the next effects; returns whether `every` counts them."""
        self._event = event
        self._updates.handled(event, self._process.core, self._process.now_ms)
        if self._has_timeline:
            self._cluster.record(self._node, event, effects)
        return self._process.effects_to_crash is not None

    def every(self, _: do.Effect) -> None:
        """Cut the power if it is due."""
        process = self._process
        if process.effects_to_crash is not None:
            process.effects_to_crash -= 1
            if process.effects_to_crash < 0:
                raise PowerCut

    # Network

    def _before_request(self, effect: do.SendRequest) -> None:
        message = effect.message
        if type(message) is FetchRequest:
            self._checks.fetch(self._node, message)
        else:
            self._checks.request(self._node, message)
            self._updates.requests(effect)
            self._probes.asks(self._log, message)

    def _before_reply(self, effect: do.SendReply) -> None:
        call = self._process.calls.get(effect.token)
        if call is None:
            raise Violation("REPLY", f"{self._node} answers {effect.token} twice, or unasked")
        message = effect.message
        if type(effect.part) is do.LogSlice:
            self._leader_killer.served(self._machine, call)
        if type(message) is FetchResponse and message.responses and not call.sender.is_foreign:
            partition = message.responses[0].partitions[0]
            self._checks.fetched(self._node, partition)
            self._probes.fetched(partition)
            return
        self._checks.reply(self._node, message)
        if call.sender.is_foreign:
            self._checks.foreign(self._node, message)
        if message.API_KEY == VOTE:
            self._checks.vote(self._node, call.message, message, self._machine.vote_before)
            self._probes.compares(self._log.last, call.message, message)
        self._probes.answers(call.message, message, self._machine.vote_before)

    # Disk

    def _before_append(self, effect: do.AppendToLog) -> None:
        # Tell the checker first: if the power fails in between, the batches may be on disk.
        leads, before = self._process.role == "leader", self._log.in_force
        epoch = self._process.core.epoch
        self._has_changed = self._checkers.appended(self._node, effect.data, epoch, leads=leads)
        if leads and self._log.in_force is not before:
            self._probes.states(self._log, before)

    def _after_append(self, _: do.AppendToLog) -> None:
        if self._process.role == "leader":
            self._leader_killer.appended(self._machine, has_changed=self._has_changed)

    def _before_truncate(self, effect: do.TruncateLog) -> None:
        order = diverging_epoch_of(self._event)
        epoch = self._process.core.epoch
        self._log_checks.truncating(self._node, effect.end_offset, epoch, order)

    def _after_truncate(self, effect: do.TruncateLog) -> None:
        self._no_flush("cuts a file")
        is_durable = not self._machine.files.unflushed(".log")
        before = self._log.in_force
        self._log_checks.truncated(self._node, effect.end_offset, is_durable=is_durable)
        self._cluster.coverage.hit("truncated")
        if self._log.in_force.voters != before.voters:
            self._cluster.coverage.hit("change cut off")

    def _before_reset(self, effect: do.ResetLog) -> None:
        start = effect.start
        if not durable_snapshot(self._machine.files, start):
            raise Violation("S14", f"{self._node} gives its log up for {start}, not durable")
        before = self._log.in_force
        self._log_checks.reset(self._node, start.offset, start.epoch)
        if self._log.in_force.voters != before.voters:
            self._cluster.coverage.hit("voters taken from a snapshot")

    def _after_reset(self, _: do.ResetLog) -> None:
        self._no_flush("empties the log")
        self._cluster.coverage.hit("log begun at a snapshot")

    def _before_drop(self, effect: do.DropLogPrefix) -> None:
        stored = self._process.storage.snapshots.stored()
        kept = [one.id for one in stored if one.id not in effect.snapshots]
        start = effect.start_offset
        files = self._machine.files
        if start and not any(one.offset >= start and durable_snapshot(files, one) for one in kept):
            raise Violation("S14", f"{self._node} drops all below {start}, in no snapshot")
        self._log_checks.started(self._node, start)

    def _after_drop(self, _: do.DropLogPrefix) -> None:
        self._no_flush("drops files")
        self._cluster.coverage.hit("log prefix dropped")

    def _no_flush(self, what: str) -> None:
        if self._process.workers.is_flushing:
            raise Violation("FLUSH", f"{self._node} {what} during a flush")

    def _after_persist(self, _: do.PersistQuorumState) -> None:
        self._checkers.election_checks.persisted(self._node, durable_state(self._machine.files))

    # What the core says

    def _before_advance(self, effect: do.HighWatermarkAdvanced) -> None:
        process = self._process
        epoch = process.epoch if process.role == "leader" else None
        self._log_checks.advanced(self._node, effect.offset, epoch)
        if epoch is not None:
            self._probes.commits(self._log, effect.offset)

    def _after_advance(self, _: do.HighWatermarkAdvanced) -> None:
        if self._process.role == "leader":
            self._leader_killer.committed(self._machine)

    def _before_deliver(self, effect: do.DeliverCommitted) -> None:
        start, end, consumed = effect.start_offset, effect.end_offset, self._process.state.applied
        if start != consumed or end > self._log_checks.logs[self._node].high_watermark:
            raise Violation(
                "S15",
                f"{self._node} delivers {start}-{end} after {consumed}",
                f"delivered so far: up to {consumed}",
                f"high watermark: {self._log_checks.logs[self._node].high_watermark}",
            )

    def _before_write(self, effect: do.WriteSnapshot) -> None:
        self._probes.writes_snapshot(effect.id.offset)

    def _before_load(self, effect: do.LoadSnapshot) -> None:
        start, applied = self._log.start, self._process.state.applied
        if self._process.role == "leader" and applied >= start:
            raise Violation("S15", f"leader {self._node} loads {effect.id} at {applied}")

    def _before_leader_change(self, effect: do.LeaderChanged) -> None:
        start, applied = self._process.core.epoch_start_offset, self._process.state.applied
        if effect.leader_id == self._node and applied <= start:
            raise Violation("S15", f"{self._node} is told to lead at {applied}, before {start}")
        if effect.leader_id == self._node:
            self._cluster.coverage.hit("told to lead")

    def _after_role_change(self, effect: do.RoleChanged) -> None:
        cluster = self._cluster
        cluster.coverage.hit(f"{effect.old} to {effect.new}")
        if self._updates.role_changed(effect, self._process.now_ms):
            cluster.coverage.hit("leader lost after an update")
        election_checks, log = self._checkers.election_checks, self._log
        if effect.new in ("prospective", "candidate"):
            election_checks.stands(self._node, may_stand=log.may_stand)
        if effect.new == "leader":
            cluster.elections += 1
            election_checks.elected(self._node, effect.epoch, log.in_force.voters)
            self._log_checks.elected(self._node, effect.epoch)
            self._leader_killer.elected(self._machine)
