"""A whole cluster in virtual time: machines, network, clients, accidents, and checkers.

All randomness comes from streams derived from the plan's seed, so a plan always runs the same way.
"""

from __future__ import annotations

import hashlib

from kraftwire.sim.clients import Operators, Workload
from kraftwire.sim.clock import MS, Clock
from kraftwire.sim.environment import Environment, Quorum
from kraftwire.sim.invariants import Violation
from kraftwire.sim.machine import Machine, leading
from kraftwire.sim.members import Members
from kraftwire.sim.nemesis import Nemesis
from kraftwire.sim.plan import Plan
from kraftwire.sim.replicas import endpoint
from kraftwire.sim.storage import batches_of
from kraftwire.sim.timeline import Timeline


class Cluster(Environment):
    """A cluster under a plan: its nodes and what they share, operators, clients, accidents.

    `machines` are by id; `strangers` are nodes of another cluster that talk to this one.
    """

    def __init__(self, plan: Plan, timeline: Timeline | None = None) -> None:
        super().__init__(plan, timeline)
        rates = plan.drift or (1_000_000,) * plan.nodes
        self.machines = {
            node: Machine(self, node, Clock(rates[node - 1]), self.quorum)
            for node in range(1, plan.nodes + 1)
        }
        self.strangers = self._strangers()
        for machine in (*self.machines.values(), *self.strangers):
            self.network.peers[machine.id] = machine
            at = endpoint(machine.id)
            self.network.addresses[at.host, at.port] = machine.id
        self.operators = Operators(self, self.machines)
        self.nemesis = Nemesis(self, self.machines, self.operators)
        self.workload = Workload(self, self.machines)

    def _strangers(self) -> list[Machine]:
        """A node of another cluster, whose configuration names nodes of this one."""
        if not self.plan.stranger:
            return []
        members = Members(self.plan, is_stranger=True)
        return [Machine(self, self.plan.nodes + 1, Clock(), Quorum(members, members.checkers()))]

    def run(self) -> None:
        """Start all nodes and run the plan."""
        for machine in (*self.machines.values(), *self.strangers):
            self.queue.after(self._random.randrange(200 * MS), machine.start)
        self.nemesis.plan()
        self.workload.begin()
        self.queue.run_until(self.plan.length_ms * MS)

    @property
    def events(self) -> int:
        """How many events cores have handled."""
        return len(self.trace)

    def leaders(self) -> list[Machine]:
        """The machines whose processes lead. Order: by epoch."""
        return leading(self.machines)

    def check_end(self, *, is_whole: bool) -> None:
        """Check all logs on disk: each has what is committed, byte for byte. S7, S12.

        If not all could recover, each log has what its own node knows to be committed.
        """
        for machine in self.machines.values():
            if machine.process is not None:
                log = machine.process.storage.log
                start, end = log.start_offset, machine.process.core.high_watermark
                committed = tuple([
                    entry
                    for entry in self.history.committed
                    if entry.base >= start and (is_whole or entry.end <= end)
                ])
                if batches_of(log)[: len(committed)] != committed:
                    raise Violation("S12", f"the log of {machine.id} is not what was committed")

    def trace_hash(self) -> str:
        """SHA-256 of everything that happened. S22."""
        return hashlib.sha256(repr(self.trace).encode()).hexdigest()
