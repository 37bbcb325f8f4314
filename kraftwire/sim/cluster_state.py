"""Describes the state of a cluster's nodes: what each has stored, and its log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from kraftwire.sim import describe
from kraftwire.sim.check_elections import ElectionChecks
from kraftwire.sim.check_logs import LogChecks


class _Core(Protocol):
    """The core of a node."""

    @property
    def role(self) -> str:
        """Its role."""

    @property
    def epoch(self) -> int:
        """The epoch of its role."""


class _Storage(Protocol):
    """The storage of a node."""

    @property
    def directory_id(self) -> bytes:
        """The id of the directory."""


class _Process(Protocol):
    """One run of a node."""

    @property
    def core(self) -> _Core:
        """The Raft core."""

    @property
    def storage(self) -> _Storage:
        """Its storage."""


class _Machine(Protocol):
    """A node over all its runs."""

    @property
    def process(self) -> _Process | None:
        """The current run."""


class CheckedCluster(Protocol):
    """A cluster and its checkers."""

    @property
    def election_checks(self) -> ElectionChecks:
        """Who voted for whom."""

    @property
    def log_checks(self) -> LogChecks:
        """The contents of logs."""

    @property
    def machines(self) -> Mapping[int, _Machine]:
        """The nodes by id."""


def disagreement(
    cluster: CheckedCluster, involved: frozenset[int], *, is_of_elections: bool
) -> list[str]:
    """Describe what these nodes disagree about: their votes, or the ends of their logs, with the
    end of what is committed."""
    nodes = [node for node in sorted(cluster.machines) if node in involved]
    if is_of_elections:
        return _votes(cluster, nodes)
    logs = cluster.log_checks.logs
    lines = [
        f"node {_named(cluster, node)}: last batch {describe.batch(logs[node].batches[-1].data)}"
        for node in nodes
        if logs[node].batches
    ]
    return [*lines, f"committed: {_committed(cluster)}"]


def _votes(cluster: CheckedCluster, nodes: list[int]) -> list[str]:
    """Describe the votes of these nodes, and of all that have stored the same epochs."""
    stored = cluster.election_checks.stored
    epochs = {stored[node].epoch for node in nodes if node in stored}
    lines = []
    for voter, one in sorted(stored.items()):
        if one.epoch in epochs:
            # A leader has voted for itself, but need not store that.
            candidate = voter if one.leader == voter else one.vote
            ids = _directory(cluster, candidate), _directory(cluster, voter)
            lines.append(describe.vote(voter, one.epoch, candidate, *ids))
    return lines


def node_states(cluster: CheckedCluster, involved: frozenset[int]) -> list[str]:
    """Return a line for each node, those involved first, and one for what is committed."""
    nodes = sorted(cluster.machines, key=lambda node: (node not in involved, node))
    rows = [_row(cluster, node) for node in nodes]
    return [*describe.table(rows), f"committed: {_committed(cluster)}"]


def _committed(cluster: CheckedCluster) -> str:
    checks = cluster.log_checks
    last = checks.committed[-1].data if checks.committed else None
    return describe.committed(checks.frontier, last)


def _directory(cluster: CheckedCluster, node: int) -> bytes:
    machine = cluster.machines.get(node)
    process = machine.process if machine is not None else None
    return process.storage.directory_id if process is not None else b""


def _named(cluster: CheckedCluster, node: int) -> str:
    return describe.replica(node, _directory(cluster, node))


def _row(cluster: CheckedCluster, node: int) -> tuple[str, ...]:
    process = cluster.machines[node].process
    log, stored = cluster.log_checks.logs[node], cluster.election_checks.stored.get(node)
    role = f"{process.core.role} in epoch {process.core.epoch}" if process else "down"
    stored_text = "nothing stored"
    if stored is not None:
        vote = f"vote for {stored.vote}" if stored.vote >= 0 else "no vote"
        leader = f"leader {stored.leader}" if stored.leader >= 0 else "no leader"
        stored_text = f"stored epoch {stored.epoch}, {leader}, {vote}"
    return (
        f"{node}:",
        role,
        stored_text,
        f"log end {describe.position(log.end, log.last[0])}",
        f"durable to {log.durable_end}",
        describe.high_watermark(log.high_watermark),
    )
