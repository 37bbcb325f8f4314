"""All checks of one quorum: they are told what its replicas do, and raise violations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kraftwire.messages.fetch_snapshot_response import FetchSnapshotResponse
from kraftwire.sim import describe
from kraftwire.sim.checks import replica_events as did
from kraftwire.sim.checks.cluster_history import ClusterHistory
from kraftwire.sim.checks.elections import ElectionChecks
from kraftwire.sim.checks.logs import LogChecks
from kraftwire.sim.checks.replica_model import ReplicaModel
from kraftwire.sim.checks.voters import Voters, is_majority
from kraftwire.sim.invariants import Violation


class Checkers:
    """The checks of a quorum.

    `models` has what is known of each node, `replaced` what was known of those that have lost their
    disks since.
    """

    __slots__ = ("_checks", "elections", "history", "logs", "models", "replaced")

    def __init__(self, history: ClusterHistory) -> None:
        self.history = history
        self.elections = ElectionChecks(history)
        self.logs = LogChecks(history)
        self.models: dict[int, ReplicaModel] = {}
        self.replaced: list[ReplicaModel] = []
        elections, logs = self.elections, self.logs
        self._checks: dict[type, Callable[[ReplicaModel, Any], None]] = {
            did.Acknowledged: logs.on_acknowledged,
            did.Appended: logs.on_appended,
            did.Delivered: logs.on_delivered,
            did.Elected: logs.on_elected,
            did.Flushed: logs.on_flushed,
            did.HighWatermarkAdvanced: self._on_high_watermark_advanced,
            did.LeaderReported: logs.on_leader_reported,
            did.Loaded: logs.on_loaded,
            did.Persisted: elections.on_persisted,
            did.PrefixDropped: logs.on_prefix_dropped,
            did.RequestSent: elections.on_request_sent,
            did.Reset: logs.on_reset,
            did.ResponseSent: self._on_response_sent,
            did.SnapshotStored: logs.on_snapshot_stored,
            did.StepEnded: self._on_step_ended,
            did.Truncated: logs.on_truncated,
            did.Truncating: logs.on_truncating,
        }

    def on(self, node: int, seen: Iterable[did.ReplicaEvent]) -> None:
        """Check what a node did, in order. Raises: Violation."""
        for event in seen:
            if type(event) is did.Started:
                self._on_started(node, event)
            else:
                self.check(self.models[node], event)

    def check_of(self, kind: type[did.ReplicaEvent]) -> Callable[[ReplicaModel, Any], None]:
        """Return what checks events of a kind."""
        return self._checks[kind]

    def check(self, model: ReplicaModel, event: did.ReplicaEvent) -> None:
        """Check anything but the start of a run. Raises: Violation."""
        self._checks[type(event)](model, event)

    def replace(self, model: ReplicaModel) -> None:
        """Note that a node has an empty disk, which makes it another replica."""
        node = model.key[0]
        if node in self.models:
            self.replaced.append(self.models[node])
        self.models[node] = model

    def _on_started(self, node: int, event: did.Started) -> None:
        model = self.models[node]
        if event.election != model.stored:
            raise Violation(
                "S2",
                f"{node} finds another quorum state than it stored",
                f"stored: {describe.election(model.stored)}",
                f"found: {describe.election(event.election)}",
            )
        self.logs.on_started(model, event)

    def _on_response_sent(self, model: ReplicaModel, event: did.ResponseSent) -> None:
        self.elections.on_response_sent(model, event)
        if type(event.message) is FetchSnapshotResponse:
            self.logs.on_snapshot_served(model, event.message)

    def _on_high_watermark_advanced(
        self, model: ReplicaModel, event: did.HighWatermarkAdvanced
    ) -> None:
        last = self.logs.on_high_watermark_advanced(model, event)
        if last is not None:
            # A disk that was replaced since then has acknowledged what it held to the leader.
            known = (*self.models.values(), *self.replaced)
            holding = tuple([one.key for one in known if one.is_durable(last)])
            self.history.commits_on(model.key[0], model.voters, holding)

    def _on_step_ended(self, model: ReplicaModel, event: did.StepEnded) -> None:
        self.elections.on_step_ended(model, event)
        node = model.key[0]
        if event.end != model.end:
            raise Violation("S13", f"{node} takes {event.end} for its log end, not {model.end}")
        if event.high_watermark > max(model.high_watermark, model.start.offset):
            raise Violation(
                "S8", f"{node} answers with {event.high_watermark}, known is {model.high_watermark}"
            )
        if event.version != model.version:
            raise Violation(
                "S16", f"{node} believes kraft.version {event.version}, in force is {model.version}"
            )
        theirs, ours = event.voters, model.voters
        if theirs is ours or theirs == ours:
            return
        if not model.version:
            theirs, ours = tuple((k[0], b"") for k in theirs), tuple((k[0], b"") for k in ours)
        if theirs != ours:
            raise Violation(
                "S16",
                f"{node} takes other voters for those in force",
                f"in force: {describe.voters(ours)}",
                f"node {node} believes: {describe.voters(theirs)}",
            )

    # Questions of the worlds

    def can_elect(self) -> bool:
        """Return whether a replica that may stand has a log that a majority of its voter set may
        vote for.

        There may be none: of the two voters that are left after a third was removed, one may have
        lost its disk before, so that its present replica is not in the set.
        """
        models = self.models.values()
        return any(
            model.may_stand()
            and is_majority(model.voters, [one.key for one in models if one.last <= model.last])
            for model in models
        )

    def sets_of(self, model: ReplicaModel) -> Iterable[Voters]:
        """The voter sets that a replica has or may fall back to after a crash: its log is kept up
        to what it knows to be committed and has flushed."""
        kept = min(model.high_watermark, model.durable)
        for offset, voters in reversed(model.sets):
            yield voters
            if offset < kept:
                return
