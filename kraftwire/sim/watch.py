"""Reports what a running node's core does to the checks, and counts the situations it gets into."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, cast

from kraftwire.messages.fetch_request import FetchRequest
from kraftwire.messages.fetch_response import FetchResponse
from kraftwire.messages.vote_request import VoteRequest
from kraftwire.raft import effects as do
from kraftwire.raft.core import RaftCore
from kraftwire.raft.events import Event
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.replica.storage import Storage
from kraftwire.sim.checks import replica_events as did
from kraftwire.sim.checks.checkers import Checkers
from kraftwire.sim.checks.entries import entries_of
from kraftwire.sim.checks.updates import UpdateChecks
from kraftwire.sim.coverage_probes import CoverageProbes
from kraftwire.sim.disk import PowerCut, SimFiles
from kraftwire.sim.environment import Environment
from kraftwire.sim.invariants import Violation
from kraftwire.sim.leader_killer import Victim
from kraftwire.sim.network import Call
from kraftwire.sim.state_machine import Digest
from kraftwire.sim.storage import durable_election, durable_snapshot, reset
from kraftwire.sim.workers import VirtualWorkers
from kraftwire.wire.message import Message

_Hooks = dict[type, Callable[[do.Effect], None]]


class Watched(Victim, Protocol):
    """A machine, as checks see it.

    `vote_before` is the node's vote, before the latest Vote request came, in the epoch of
    that request; -1 for none.
    """

    vote_before: int

    @property
    def cluster(self) -> Environment:
        """The environment that it shares with other machines."""

    @property
    def checkers(self) -> Checkers:
        """The checks of its quorum."""

    @property
    def files(self) -> SimFiles:
        """Its disk."""


class _Process(Protocol):
    """The run of a node, as checks see it.

    It handles a pre-vote of a known epoch if `in_pre_vote`, its timer having expired if `is_due`.
    """

    id: int
    role: str
    epoch: int
    effects_to_crash: int | None
    in_pre_vote: bool
    is_due: bool

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
    def requests(self) -> Mapping[int, Call]:
        """The requests without an answer yet, by token."""


class Watch:
    """The watcher of one process. `has_changed_state`: a step may end otherwise than the last."""

    def __init__(self, process: _Process) -> None:
        self._process = process
        self._machine = process.machine
        self._node = process.id
        cluster = self._cluster = process.machine.cluster
        checkers = process.machine.checkers
        self._leader_killer = cluster.leader_killer
        self._probes = CoverageProbes(cluster.coverage, checkers.history)
        self._check = checkers.check
        self._check_request = checkers.check_of(did.RequestSent)
        self._check_response = checkers.check_of(did.ResponseSent)
        self._model = checkers.models[self._node]
        self._updates = UpdateChecks(self._node, cluster.timers.fetch_timeout_ms)
        self._has_changed_voters = False
        self.has_changed_state = True
        self._event: Event | None = None
        self._reset: did.Reset | None = None
        self._has_timeline = cluster.timeline is not None
        before: dict[type, Callable[[Any], None]] = {
            do.SendRequest: self._before_request,
            do.SendReply: self._before_reply,
            do.AppendToLog: self._before_append,
            do.TruncateLog: self._before_truncate,
            do.ResetLog: self._before_reset,
            do.DropLogPrefix: self._before_drop,
            do.HighWatermarkAdvanced: self._before_advance,
            do.LeaderChanged: self._before_leader_change,
            do.WriteSnapshot: lambda effect: self._probes.writes_snapshot(effect.id.offset),
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
        process = self._process
        self._updates.handled(event, process)
        if self._has_timeline:
            self._cluster.record(self._node, event, effects)
        return process.effects_to_crash is not None

    def every(self, _: do.Effect) -> None:
        """Cut the power if it is due."""
        process = self._process
        if process.effects_to_crash is not None:
            process.effects_to_crash -= 1
            if process.effects_to_crash < 0:
                raise PowerCut

    def _report(self, event: did.ReplicaEvent) -> None:
        """Report something that changes what the checks know of the replica."""
        self.has_changed_state = True
        self._check(self._model, event)

    # Network

    def _before_request(self, effect: do.SendRequest) -> None:
        message = effect.message
        self._check_request(self._model, did.RequestSent(message))
        if type(message) is not FetchRequest:
            self._updates.requests(effect)
            self._probes.asks(self._model, message)

    def _before_reply(self, effect: do.SendReply) -> None:
        call = self._process.requests.get(effect.token)
        if call is None:
            raise Violation("REPLY", f"{self._node} answers {effect.token} twice, or unasked")
        if type(effect.part) is do.LogSlice:
            self._leader_killer.served(self._machine, call)

    def replies(self, call: Call, message: Message) -> None:
        """Report an answer that is about to be sent, with its records."""
        voted, is_foreign = self._machine.vote_before, call.sender.is_foreign
        sent = did.ResponseSent(call.message, message, voted, is_foreign)
        self._check_response(self._model, sent)
        if type(message) is FetchResponse and message.responses:
            self._probes.fetched(message.responses[0].partitions[0])
            return
        if type(call.message) is VoteRequest:
            self._probes.compares(self._model.last, call.message, message)
        self._probes.answers(call.message, message, voted)

    # Disk

    def _before_append(self, effect: do.AppendToLog) -> None:
        # Before it is done: if the power fails meanwhile, the batches may be on disk.
        process, model = self._process, self._model
        is_leader, before = process.role == "leader", (model.voters, model.version)
        self._report(did.Appended(entries_of(effect.data), process.epoch, is_leader))
        self._has_changed_voters = model.voters != before[0]
        if is_leader and (self._has_changed_voters or model.version != before[1]):
            self._probes.states(model, *before)

    def _after_append(self, _: do.AppendToLog) -> None:
        if self._process.role == "leader":
            self._leader_killer.appended(self._machine, has_changed=self._has_changed_voters)

    def _before_truncate(self, effect: do.TruncateLog) -> None:
        epoch, ordered_by = self._process.epoch, did.ordered_by(self._event)
        self._report(did.Truncating(effect.end_offset, epoch, ordered_by))

    def _after_truncate(self, effect: do.TruncateLog) -> None:
        self._no_flush("cuts a file")
        before = self._model.voters
        is_durable = not self._machine.files.unflushed(".log")
        self._report(did.Truncated(effect.end_offset, is_durable))
        self._cluster.coverage.hit("truncated")
        if self._model.voters != before:
            self._cluster.coverage.hit("change cut off")

    def _before_reset(self, effect: do.ResetLog) -> None:
        # The snapshot has to be durable before: emptying the log may make it so.
        storage, files = self._process.storage, self._machine.files
        self._reset = reset(storage, files, effect.start, self._process.epoch)

    def _after_reset(self, _: do.ResetLog) -> None:
        self._no_flush("empties the log")
        before = self._model.voters
        assert self._reset is not None
        self._report(self._reset)
        self._cluster.coverage.hit("log begun at a snapshot")
        if self._model.voters != before:
            self._cluster.coverage.hit("voters taken from a snapshot")

    def _before_drop(self, effect: do.DropLogPrefix) -> None:
        offset, files = effect.start_offset, self._machine.files
        stored = [one.id for one in self._process.storage.snapshots.stored()]
        at = next((one for one in stored if one.offset == offset), OffsetAndEpoch(offset, -1))
        is_kept = at in stored and at not in effect.snapshots
        self._report(did.PrefixDropped(at, is_kept and durable_snapshot(files, at)))

    def _after_drop(self, _: do.DropLogPrefix) -> None:
        self._no_flush("drops files")
        self._cluster.coverage.hit("log prefix dropped")

    def _no_flush(self, what: str) -> None:
        if self._process.workers.is_flushing:
            raise Violation("FLUSH", f"{self._node} {what} during a flush")

    def _after_persist(self, _: do.PersistQuorumState) -> None:
        process, election = self._process, durable_election(self._machine.files)
        self._report(did.Persisted(election, process.in_pre_vote, process.is_due))

    # Decisions of the core

    def _before_advance(self, effect: do.HighWatermarkAdvanced) -> None:
        process = self._process
        is_leader = process.role == "leader"
        self._report(did.HighWatermarkAdvanced(effect.offset, process.epoch if is_leader else -1))
        if is_leader:
            self._probes.commits(self._model, effect.offset)

    def _after_advance(self, _: do.HighWatermarkAdvanced) -> None:
        if self._process.role == "leader":
            self._leader_killer.committed(self._machine)

    def _before_leader_change(self, effect: do.LeaderChanged) -> None:
        consumed = self._process.state.applied
        named = effect.leader_id, effect.epoch, effect.end_offset
        self._report(did.LeaderReported(*named, consumed))
        if effect.leader_id == self._node:
            self._cluster.coverage.hit("told to lead")

    def _after_role_change(self, effect: do.RoleChanged) -> None:
        cluster = self._cluster
        self.has_changed_state = True
        cluster.coverage.hit(f"{effect.old} to {effect.new}")
        if self._updates.role_changed(effect, self._process.now_ms):
            cluster.coverage.hit("leader lost after an update")
        if effect.new == "leader":
            cluster.elections += 1
            self._report(did.Elected(effect.epoch))
            self._leader_killer.elected(self._machine)
