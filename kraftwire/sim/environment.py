"""What the nodes of a cluster share: time, network, checkers, counts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from random import Random

from kraftwire.log.settings import SnapshotSettings
from kraftwire.raft.config import RaftTimers
from kraftwire.raft.effects import Effect
from kraftwire.raft.events import Event
from kraftwire.sim.checks.checkers import Checkers
from kraftwire.sim.clock import MS, EventQueue
from kraftwire.sim.coverage import Coverage
from kraftwire.sim.invariants import Violation
from kraftwire.sim.leader_killer import LeaderKiller
from kraftwire.sim.members import Members
from kraftwire.sim.network import Network
from kraftwire.sim.plan import Plan
from kraftwire.sim.timeline import Timeline

# Kafka cleans once a minute, which is half the lifetime of a cluster here.
_CLEAN_INTERVAL_MS = 5_000

# A node whose timer fires this often at one moment is in a busy loop.
_TIMERS_AT_ONCE_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Quorum:
    """What the nodes of one quorum have in common: their members and their checkers."""

    members: Members
    checkers: Checkers


class Environment:
    """A cluster as its nodes see it.

    `timeline` is None unless a report is wanted; `acknowledged` counts the records acknowledged as
    committed.
    """

    def __init__(self, plan: Plan, timeline: Timeline | None = None) -> None:
        self.plan = plan
        self.timeline = timeline
        self.queue = EventQueue()
        self.coverage = Coverage()
        self.network = Network(plan, self.queue, self.coverage)
        self.members = Members(plan)
        self.checkers = self.members.checkers()
        self.quorum = Quorum(self.members, self.checkers)
        self.history = self.checkers.history
        self.leader_killer = LeaderKiller(plan, self.queue, self.checkers, self.coverage)
        self.software = "kraftwire"
        self.is_quiet = False
        self.elections = 0
        self.crashes = 0
        self.acknowledged = 0
        self.trace: list[tuple[int, int, str, int, int, int]] = []
        self.timer_counts: Counter[int] = Counter()
        self._token = 0
        self._random = Random(f"disks {plan.seed}")
        self._lags = Random(f"lags {plan.seed}")
        self._timers_at = 0
        self._timers = 0

    @property
    def timers(self) -> RaftTimers:
        """The timers that all nodes are configured with."""
        return self.members.timers

    @property
    def snapshot_settings(self) -> SnapshotSettings:
        """The snapshot settings of all nodes."""
        wanted = self.plan.snapshots
        return SnapshotSettings(
            between_bytes=wanted.between if wanted else 1 << 62,
            interval_ms=0,
            retention_bytes=wanted.retention if wanted else -1,
            retention_ms=-1,
            clean_interval_ms=_CLEAN_INTERVAL_MS,
        )

    def next_token(self) -> int:
        """Return a new number."""
        self._token += 1
        return self._token

    def flush_time(self) -> int:
        """Draw the duration of the next flush. Units: microseconds."""
        weather = self.network.weather
        random = self._random.random
        time = random() * 2 * weather.flush_ms * MS
        if weather.flush_tail and random() < weather.flush_tail:
            self.coverage.hit("slow flush")
            time += random() * weather.flush_tail_ms * MS
        return int(time)

    def lag(self) -> int:
        """Draw how long a state machine takes for a delivery. Units: microseconds."""
        if self.is_quiet:
            return 0
        self.coverage.hit("state machine lagged")
        return int(self._lags.random() * self.plan.slow_ms * MS)

    def count_timer(self, node: int) -> None:
        """Detect a node whose timer is due repeatedly at one moment. L9."""
        now = self.queue.now
        if now != self._timers_at:
            self._timers_at, self._timers = now, 0
        self.timer_counts[node] += 1
        self._timers += 1
        if self._timers > _TIMERS_AT_ONCE_MAX:
            raise Violation("L9", f"{node} is busy without end")

    def note(self, text: str) -> None:
        """Add a line to the timeline, if there is one."""
        if self.timeline is not None:
            self.timeline.note(self._head(), text)

    def record(self, node: int, event: Event | None, effects: list[Effect]) -> None:
        """Add a node's event and its effects to the timeline."""
        if self.timeline is not None:
            self.timeline.step(self._head(), node, event, effects)

    def _head(self) -> str:
        """The time in seconds, as lines begin with it."""
        return f"{self.queue.now / 1e6:11.6f}  "
