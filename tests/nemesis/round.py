"""One round: a quorum, its clients, a plan of faults, and the checks after the last fault."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.nemesis.appends import Appenders
from tests.nemesis.check import check
from tests.nemesis.committed import read_committed
from tests.nemesis.faults import Faults
from tests.nemesis.history import History
from tests.nemesis.plan import Plan
from tests.support.kafka.mixed_quorum import SNAPSHOT_KNOBS, MixedQuorum, wait_until
from tests.support.nodes.links import Links

_CLIENTS = 3

# This many must be acknowledged, by any leader, after the last fault.
_APPENDS_AFTER = 20


# An observer that nothing hits and that keeps the whole log, where others have snapshots.
_KEEPER = 9
_KEEPS_ALL: Mapping[str, object] = {"metadata.max.retention.bytes": -1}


@dataclass(frozen=True, slots=True)
class Round:
    """The set-up of one round. A dynamic quorum has its voters in the log, and snapshots."""

    kinds: Mapping[int, str]
    plan: Plan
    folder: Path
    is_dynamic: bool

    def quorum(self, links: Links) -> MixedQuorum:
        """The quorum behind its relays."""
        if not self.is_dynamic:
            return MixedQuorum(self.folder, self.kinds, relays=links.ports)
        return MixedQuorum(
            self.folder,
            {**self.kinds, _KEEPER: self.kinds[min(self.kinds)]},
            SNAPSHOT_KNOBS,
            {_KEEPER: _KEEPS_ALL},
            is_dynamic=True,
            observers=[_KEEPER],
            relays=links.ports,
        )


@dataclass(slots=True)
class Figures:
    """Figures of a round. Times in seconds; `gap_s` is the longest without an acknowledgement."""

    rounds: int = 0
    appends: int = 0
    acknowledged: int = 0
    unknown: int = 0
    looks: int = 0
    epochs: int = 0
    batches: int = 0
    gap_s: float = 0.0
    recovery_s: float = 0.0
    faults: dict[str, int] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)

    def add(self, other: Figures) -> None:
        """Add the figures of another round."""
        self.rounds += other.rounds
        self.appends += other.appends
        self.acknowledged += other.acknowledged
        self.unknown += other.unknown
        self.looks += other.looks
        self.epochs += other.epochs
        self.batches += other.batches
        self.gap_s = max(self.gap_s, other.gap_s)
        self.recovery_s = max(self.recovery_s, other.recovery_s)
        self.faults = dict(Counter(self.faults) + Counter(other.faults))
        self.violations += other.violations


def run_round(setup: Round, report: Callable[[str], None]) -> Figures:
    """Run it and check everything. Raises: AssertionError if the quorum does not come back."""
    with Links([*setup.kinds, _KEEPER]) as links, setup.quorum(links) as quorum:
        for member in quorum.controllers:
            links.aim(member.node_id, member.port)
        quorum.start()
        quorum.wait_commit(0)
        ports = {member.node_id: member.port for member in quorum.controllers}
        faults = Faults(quorum, links, report)
        with Appenders(quorum.cluster_id, ports, _CLIENTS, setup.plan.seed) as clients:
            faults.run(setup.plan)
            links.heal_all()
            calm = time.monotonic()
            wanted = clients.acknowledged() + _APPENDS_AFTER
            wait_until(
                lambda: clients.acknowledged() >= wanted,
                f"{_APPENDS_AFTER} appends after the last fault",
                quorum.last_lines,
            )
            recovery_s = time.monotonic() - calm
        figures = _judge(quorum, clients.history)
    figures.recovery_s = recovery_s
    figures.faults = dict(faults.done)
    return figures


def _judge(quorum: MixedQuorum, history: History) -> Figures:
    mark = quorum.wait_commit(0)
    violations = []
    batches = 0
    try:
        batches = quorum.check_logs_agree()
    except AssertionError as error:
        violations.append(f"logs: {error}")
    witness = _KEEPER if _KEEPER in quorum.members else quorum.leader()
    log = read_committed(quorum.members[witness], mark)
    violations += check(history, log)
    for member in quorum.members.values():
        if member.ended():
            violations.append(f"ended: node {member.node_id} ({member.kind})")
        if not member.is_java:
            violations += [f"node {member.node_id}: {line}" for line in member.complaints()]
    acknowledged = [one for one in history.appends if one.is_acknowledged]
    times = sorted(one.returned for one in acknowledged if one.returned is not None)
    return Figures(
        rounds=1,
        appends=len(history.appends),
        acknowledged=len(acknowledged),
        unknown=len(history.appends) - len(acknowledged),
        looks=len(history.looks),
        epochs=len(log.leaders),
        batches=batches,
        gap_s=max((b - a for a, b in itertools.pairwise(times)), default=0.0),
        violations=violations,
    )
