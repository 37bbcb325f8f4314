"""Describes the state of a cluster's nodes: what each has stored, and its log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from kraftwire.sim import words
from kraftwire.sim.ballots import Ballots
from kraftwire.sim.histories import Histories


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


class Stage(Protocol):
    """A cluster and its checkers."""

    @property
    def ballots(self) -> Ballots:
        """Who voted for whom."""

    @property
    def histories(self) -> Histories:
        """The contents of logs."""

    @property
    def machines(self) -> Mapping[int, _Machine]:
        """The nodes by id."""


def sides(stage: Stage, at_odds: frozenset[int], *, is_of_elections: bool) -> list[str]:
    """Describe what these nodes disagree about: their votes, or the ends of their logs, with the
    end of what is committed."""
    nodes = [node for node in sorted(stage.machines) if node in at_odds]
    if is_of_elections:
        return _votes(stage, nodes)
    logs = stage.histories.logs
    told = [
        f"node {_named(stage, node)}: last batch {words.batch(logs[node].batches[-1].data)}"
        for node in nodes
        if logs[node].batches
    ]
    return [*told, f"committed: {_committed(stage)}"]


def _votes(stage: Stage, nodes: list[int]) -> list[str]:
    """Describe the votes of these nodes, and of all that have stored the same epochs."""
    stored = stage.ballots.stored
    epochs = {stored[node].epoch for node in nodes if node in stored}
    told = []
    for voter, one in sorted(stored.items()):
        if one.epoch in epochs:
            # A leader has voted for itself, but need not store that.
            candidate = voter if one.leader == voter else one.vote
            ids = _directory(stage, candidate), _directory(stage, voter)
            told.append(words.vote(voter, one.epoch, candidate, *ids))
    return told


def standing(stage: Stage, at_odds: frozenset[int]) -> list[str]:
    """Return a line for each node and one for what is committed. Order: the nodes at odds first."""
    nodes = sorted(stage.machines, key=lambda node: (node not in at_odds, node))
    rows = [_row(stage, node) for node in nodes]
    return [*words.table(rows), f"committed: {_committed(stage)}"]


def _committed(stage: Stage) -> str:
    committed = stage.histories.committed
    return words.committed(stage.histories.frontier, committed[-1].data if committed else None)


def _directory(stage: Stage, node: int) -> bytes:
    machine = stage.machines.get(node)
    process = machine.process if machine is not None else None
    return process.storage.directory_id if process is not None else b""


def _named(stage: Stage, node: int) -> str:
    return words.replica(node, _directory(stage, node))


def _row(stage: Stage, node: int) -> tuple[str, ...]:
    process = stage.machines[node].process
    log, stored = stage.histories.logs[node], stage.ballots.stored.get(node)
    role = f"{process.core.role} in epoch {process.core.epoch}" if process else "down"
    told = "nothing stored"
    if stored is not None:
        vote = f"vote for {stored.vote}" if stored.vote >= 0 else "no vote"
        leader = f"leader {stored.leader}" if stored.leader >= 0 else "no leader"
        told = f"stored epoch {stored.epoch}, {leader}, {vote}"
    return (
        f"{node}:",
        role,
        told,
        f"log end {words.position(log.end, log.last[0])}",
        f"durable to {log.durable_end}",
        words.high_watermark(log.high_watermark),
    )
