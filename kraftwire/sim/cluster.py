"""A whole cluster on virtual time: machines, network, clients, accidents, and the checkers' books.

Everything random comes from streams that the plan's seed names, so a plan always runs the same.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass
from random import Random

from kraftwire.log.settings import SnapshotSettings
from kraftwire.raft.config import RaftTimers
from kraftwire.raft.effects import Effect
from kraftwire.raft.events import Event
from kraftwire.sim.books import Books
from kraftwire.sim.clock import MS, Clock, Scheduler
from kraftwire.sim.hunter import Hunter
from kraftwire.sim.machine import Machine
from kraftwire.sim.marks import Marks
from kraftwire.sim.members import PORT, Members
from kraftwire.sim.nemesis import Nemesis
from kraftwire.sim.network import Network
from kraftwire.sim.operators import Operators
from kraftwire.sim.plan import Plan
from kraftwire.sim.process import Append, Process
from kraftwire.sim.storage import found_batches
from kraftwire.sim.timeline import Timeline
from kraftwire.sim.violation import Violation
from kraftwire.sim.workload import Workload

__all__ = ["Cluster", "Realm"]

# Kafka looks once a minute what may go, which is half the life of a cluster here.
_CLEAN_INTERVAL_MS = 5_000

# A node whose timer fires so often at one moment does nothing else any more.
_TIMERS_AT_ONCE_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Realm:
    """What nodes of one quorum have in common: who they are, and what is known of them."""

    members: Members
    books: Books


class Cluster:
    """A cluster under a plan. Shape: `timeline` is None unless somebody wants to read it."""

    def __init__(self, plan: Plan, timeline: Timeline | None = None) -> None:
        self.plan = plan
        self.timeline = timeline
        self.scheduler = Scheduler()
        self.marks = Marks()
        self.network = Network(plan, self.scheduler, self.marks)
        ids = range(1, plan.nodes + 1)
        self.members = Members(plan)
        self.books = self.members.books()
        self.ballots, self.histories = self.books.ballots, self.books.histories
        self.software = "kraftwire"
        self.is_calm = False
        self.elections = 0
        self.crashes = 0
        self.trace: list[tuple[int, int, str, int, int, int]] = []
        self.timer_counts: Counter[int] = Counter()
        self._token = 0
        self._random = Random(f"disks {plan.seed}")
        self._lags = Random(f"lags {plan.seed}")
        self._timers_at = 0
        self._timers = 0
        rates = plan.drift or (1_000_000,) * plan.nodes
        self.realm = Realm(self.members, self.books)
        self.machines = {
            node: Machine(self, node, Clock(rates[node - 1]), self.realm) for node in ids
        }
        self.strangers = self._strangers()
        for node, machine in self.machines.items():
            self.network.peers[node] = machine
            self.network.addresses[f"node{node}", PORT] = node
        self.operators = Operators(self)
        self.hunter = Hunter(self)
        self.nemesis = Nemesis(self)
        self.workload = Workload(self)

    def _strangers(self) -> list[Machine]:
        """A node of another cluster, whose configuration names nodes of this one."""
        if not self.plan.stranger:
            return []
        members = Members(self.plan, is_stranger=True)
        node = self.plan.nodes + 1
        machine = Machine(self, node, Clock(), Realm(members, members.books()))
        self.network.peers[node] = machine
        self.network.addresses[f"node{node}", PORT] = node
        return [machine]

    def run(self) -> None:
        """Start all nodes and let everything happen that the plan has."""
        for machine in (*self.machines.values(), *self.strangers):
            self.scheduler.after(self._random.randrange(200 * MS), machine.start)
        self.nemesis.plan()
        self.workload.begin()
        self.scheduler.run_until(self.plan.length_ms * MS)

    @property
    def events(self) -> int:
        """How many events cores have handled."""
        return len(self.trace)

    @property
    def timers(self) -> RaftTimers:
        """The timers that all nodes are configured with."""
        return self.members.timers

    @property
    def snapshot_settings(self) -> SnapshotSettings:
        """What all nodes are told about snapshots."""
        wanted = self.plan.snapshots
        return SnapshotSettings(
            between_bytes=wanted.between if wanted else 1 << 62,
            interval_ms=0,
            retention_bytes=wanted.retention if wanted else -1,
            retention_ms=-1,
            clean_interval_ms=_CLEAN_INTERVAL_MS,
        )

    def leaders(self) -> list[Machine]:
        """The machines whose processes lead. Order: by epoch."""
        leading = [m for m in self.machines.values() if m.process and m.process.role == "leader"]
        return sorted(leading, key=_epoch)

    def next_token(self) -> int:
        """A number that nobody has."""
        self._token += 1
        return self._token

    def flush_time(self) -> int:
        """How long the next flush takes. Units: microseconds."""
        weather = self.network.weather
        random = self._random.random
        time = random() * 2 * weather.flush_ms * MS
        if weather.flush_tail and random() < weather.flush_tail:
            self.marks.hit("slow flush")
            time += random() * weather.flush_tail_ms * MS
        return int(time)

    def lag(self) -> int:
        """How long a state machine takes for what it was given. Units: microseconds."""
        if self.is_calm:
            return 0
        self.marks.hit("state machine lagged")
        return int(self._lags.random() * self.plan.slow_ms * MS)

    def acknowledge(self, append: Append) -> None:
        """A client is told that its records are committed. S12, S21."""
        base, values = append.base, append.values
        self.histories.acked(base, append.epoch, count=len(values), after=append.after)
        batch = self.histories.committed_at(base)
        if batch is None or any(value not in batch.data for value in values):
            raise Violation("S12", f"other records than those appended are committed at {base}")
        self.workload.acknowledged += len(values)

    def count_timer(self, node: int) -> None:
        """Notice a node whose timer is due again and again. L9."""
        now = self.scheduler.now
        if now != self._timers_at:
            self._timers_at, self._timers = now, 0
        self.timer_counts[node] += 1
        self._timers += 1
        if self._timers > _TIMERS_AT_ONCE_MAX:
            raise Violation("L9", f"{node} is busy without end")

    def check_end(self, *, is_whole: bool) -> None:
        """Read all logs from disk: what is committed is in each of them, byte for byte. S7, S12.

        If not all could recover, what a node knows to be committed is in its log.
        """
        for machine in self.machines.values():
            if machine.process is not None:
                log = machine.process.storage.log
                found = found_batches(log)
                start, end = log.start_offset, machine.process.core.high_watermark
                committed = [
                    batch.data
                    for batch in self.histories.committed
                    if batch.base >= start and (is_whole or batch.end <= end)
                ]
                if found[: len(committed)] != committed:
                    raise Violation("S12", f"the log of {machine.id} is not what was committed")

    def trace_hash(self) -> str:
        """SHA-256 of everything that happened. S22."""
        return hashlib.sha256(repr(self.trace).encode()).hexdigest()

    def say(self, text: str) -> None:
        """Put a line into the timeline, if there is one."""
        if self.timeline is not None:
            self.timeline.say(self.scheduler.now, text)

    def tell(self, process: Process, event: Event | None, effects: list[Effect]) -> None:
        """Put an event and its effects into the timeline."""
        if self.timeline is not None:
            self.timeline.step(self.scheduler.now, process, event, effects)

def _epoch(machine: Machine) -> int:
    return machine.process.epoch if machine.process else -1
