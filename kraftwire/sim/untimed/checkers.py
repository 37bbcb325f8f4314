"""All checks of an untimed cluster: they hear of events and raise violations."""

from __future__ import annotations

from typing import Any

from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.sim import describe
from kraftwire.sim.invariants import Violation
from kraftwire.sim.untimed import replica_events as did
from kraftwire.sim.untimed.check_elections import ElectionChecks
from kraftwire.sim.untimed.check_logs import LogChecks
from kraftwire.sim.untimed.cluster_history import ClusterHistory
from kraftwire.sim.untimed.replica_model import ReplicaModel
from kraftwire.sim.voters import Key, Voters


class Checkers:
    """The checks of a cluster. `models` has what is known of each node."""

    __slots__ = ("elections", "history", "logs", "models", "static")

    def __init__(self, static: Voters, history: ClusterHistory | None = None) -> None:
        """Start with a cluster whose configuration names these voters; none for a dynamic quorum.
        """
        self.static = static
        self.history = history or ClusterHistory()
        self.elections = ElectionChecks(self.history)
        self.logs = LogChecks(self.history)
        self.models: dict[int, ReplicaModel] = {}

    def on(self, node: int, seen: list[did.ReplicaEvent]) -> None:
        """Check what a node did, in order. Raises: Violation."""
        for event in seen:
            kind = type(event)
            if kind is did.StepEnded:
                self._on_step_ended(node, event)  # type: ignore[arg-type]
            elif kind is did.Started:
                self._on_started(node, event)  # type: ignore[arg-type]
            else:
                self._on_other(self.models[node], kind, event)

    def _on_other(self, model: ReplicaModel, kind: type, event: Any) -> None:
        if kind is did.RequestSent:
            self.elections.on_request_sent(model, event.message)
        elif kind is did.ResponseSent:
            self.elections.on_response_sent(model, event)
            self.logs.on_response_sent(model, event)
        elif kind is did.Persisted:
            self.elections.on_persisted(model, event)
        elif kind is did.HighWatermarkAdvanced:
            last = self.logs.on_high_watermark_advanced(model, event)
            if last is not None:
                holding = tuple([one.key for one in self.models.values() if one.is_durable(last)])
                self.history.commits_on(model.key[0], model.voters, holding)
        else:
            getattr(self.logs, _NAMES[kind])(model, event)

    def _on_started(self, node: int, event: did.Started) -> None:
        key: Key = (node, event.directory_id)
        model = self.models.get(node)
        if model is None or model.key != key:
            model = self.models[node] = ReplicaModel(key, self.static)
            if event.election.epoch or event.entries:
                raise Violation("S12", f"the empty disk of {node} is not empty")
        elif event.election != model.stored:
            raise Violation(
                "S2",
                f"{node} finds another quorum state than it stored",
                f"stored: {describe.election(model.stored)}",
                f"found: {describe.election(event.election)}",
            )
        self.logs.on_started(model, event)

    def _on_step_ended(self, node: int, event: did.StepEnded) -> None:
        model = self.models[node]
        self.elections.on_step_ended(model, event)
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
        if not model.version:
            theirs, ours = tuple((k[0], b"") for k in theirs), tuple((k[0], b"") for k in ours)
        if theirs != ours:
            raise Violation(
                "S16",
                f"{node} takes other voters for those in force",
                f"in force: {describe.voters(ours)}",
                f"node {node} believes: {describe.voters(theirs)}",
            )

    def ends(self) -> list[OffsetAndEpoch]:
        """The end offsets of all logs."""
        return [OffsetAndEpoch(one.end, one.last_epoch) for one in self.models.values()]


_NAMES: dict[type, str] = {
    did.Elected: "on_elected",
    did.Appended: "on_appended",
    did.Truncated: "on_truncated",
    did.Flushed: "on_flushed",
    did.Reset: "on_reset",
    did.PrefixDropped: "on_prefix_dropped",
    did.SnapshotStored: "on_snapshot_stored",
    did.Delivered: "on_delivered",
    did.Loaded: "on_loaded",
    did.LeaderReported: "on_leader_reported",
    did.Acknowledged: "on_acknowledged",
}
