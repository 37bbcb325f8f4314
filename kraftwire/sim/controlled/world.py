"""A cluster of brokers under the active controller: its plan, and what may happen next in it.

A cluster without time like those of replicas: `kraftwire.sim.untimed.run` walks through it, replays
and shortens the path, and reports.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from kraftwire.controller.cluster import Cluster
from kraftwire.controller.elections import elect_preferred, elect_unclean
from kraftwire.controller.step import StepResult, VersionedRecord
from kraftwire.sim.controlled.active_controller import ActiveController
from kraftwire.sim.controlled.administrator import Administrator
from kraftwire.sim.controlled.broker import Broker, Brokers

# Levels of metadata.version, those with eligible leader replicas more often than not.
_LEVELS = (7, 13, 16, 17, 23, 25, 30, 30, 30)
_ELR_FROM = 23

_STEP_MS_MAX = 600
_PAUSE_MS_MAX = 12_000
_PAUSES = 0.01


@dataclass(frozen=True, slots=True)
class BrokerPlan:
    """A cluster. `level` is its metadata.version; the brokers have the ids from 0 on."""

    SIMPLER: ClassVar[tuple[dict[str, Any], ...]] = ()

    seed: int
    level: int
    has_elr: bool
    brokers: int
    steps: int = 200

    @property
    def title(self) -> str:
        """What kind of cluster it is."""
        return f"metadata.version {self.level}, ELR {self.has_elr}, {self.brokers} brokers"


def draw(seed: int) -> BrokerPlan:
    """Draw the plan of a seed."""
    random = Random(f"brokers {seed}")
    level = random.choice(_LEVELS)
    has_elr = level >= _ELR_FROM and random.random() < 0.8
    return BrokerPlan(seed, level, has_elr, random.randint(1, 5))


class BrokerWorld:
    """A cluster. Each action happens at a time, and has a number that decides its details, so that
    it does the same where others are left out.

    `history` has the actions so far, `coverage` is how often each kind of action happened.
    """

    def __init__(self, plan: BrokerPlan) -> None:
        self.plan = plan
        self._random = random = Random(f"cluster {plan.seed}")
        self.coverage: Counter[str] = Counter()
        self.history: list[tuple[Any, ...]] = []
        self.controller = ActiveController(random, plan.level, has_elr=plan.has_elr)
        self.brokers = Brokers(self.controller, random, plan.brokers)
        self.admin = Administrator(self.controller, random, plan.brokers)

    @property
    def elections(self) -> int:
        """How many controllers followed the first one."""
        return self.controller.failovers

    @property
    def commits(self) -> int:
        """How many batches were committed."""
        return self.controller.commits

    def begin(self) -> None:
        """Start all brokers. Raises: Violation."""
        for broker in self.brokers.all:
            self.brokers.start(broker)

    def apply(self, name: str, at_ms: int, salt: int) -> bool:
        """Pass the time until an action, carry it out, and check what must hold; returns True.
        Raises: Violation."""
        controller = self.controller
        self.history.append((name, at_ms, salt))
        self.coverage[name] += 1
        self._random.seed(salt)
        controller.pass_time(at_ms)
        failovers = controller.failovers
        _ACTIONS[name][1](self)
        if controller.failovers > failovers:
            self.admin.check()
        return True

    def describe(self, what: tuple[Any, ...]) -> str:
        """Describe an action that is next."""
        return f"{what[0]} after {what[1]} ms, at offset {self.controller.image.next_offset}"

    def compare(self) -> None:
        """Check what is checked at failovers. Raises: Violation."""
        self.controller.check_replays()
        self.admin.check()

    def by_any(self, act: Callable[[Broker], None]) -> None:
        """Let one of the brokers do something."""
        act(self._random.choice(self.brokers.all))

    def by_one(self, act: Callable[[Broker], None], *, is_running: bool = True) -> None:
        """Let one of the running brokers do something, or one of those that are down."""
        found = [broker for broker in self.brokers.all if broker.is_running == is_running]
        if found:
            act(self._random.choice(found))

    def by_timer(self, decide: Callable[[Cluster], Sequence[VersionedRecord]]) -> None:
        """Commit what the controller decides from time to time."""
        self.controller.submit(lambda cluster, _: StepResult(None, decide(cluster)))


def _stop(broker: Broker) -> None:
    broker.stops = True


_LAST = "images compared"

# The actions, and how often each happens, against each other.
_ACTIONS: dict[str, tuple[int, Callable[[BrokerWorld], None]]] = {
    "heartbeat": (40, lambda world: world.by_one(world.brokers.heartbeat)),
    "heartbeats of all": (8, lambda world: world.brokers.heartbeat_together()),
    "in-sync replicas": (20, lambda world: world.by_one(world.brokers.change_isr)),
    "start": (5, lambda world: world.by_one(world.brokers.start, is_running=False)),
    "crash": (2, lambda world: world.by_one(world.brokers.crash)),
    "controlled shutdown": (2, lambda world: world.by_one(_stop)),
    "old epoch": (2, lambda world: world.by_any(world.brokers.send_old_epoch)),
    "producer ids": (2, lambda world: world.by_one(world.brokers.allocate)),
    "directory lost": (1, lambda world: world.by_one(world.brokers.lose_directory)),
    "directory assigned": (3, lambda world: world.by_one(world.brokers.assign)),
    "topic created": (4, lambda world: world.admin.create()),
    "topic deleted": (1, lambda world: world.admin.delete()),
    "partitions added": (1, lambda world: world.admin.grow()),
    "reassignment": (3, lambda world: world.admin.reassign()),
    "reassignment cancelled": (1, lambda world: world.admin.cancel()),
    "preferred leaders": (1, lambda world: world.admin.elect()),
    "configuration": (3, lambda world: world.admin.configure()),
    "unregistration": (1, lambda world: world.admin.unregister()),
    "preferred leaders by timer": (1, lambda world: world.by_timer(elect_preferred)),
    "unclean elections by timer": (1, lambda world: world.by_timer(elect_unclean)),
    "failover": (1, lambda world: world.controller.fail_over()),
    "snapshot": (2, lambda world: world.controller.take_snapshot()),
    _LAST: (1, BrokerWorld.compare),
}


def actions(plan: BrokerPlan) -> Iterator[tuple[Any, ...]]:
    """Return the actions of a plan."""
    random = Random(f"choices {plan.seed}")
    names, weights = list(_ACTIONS), [weight for weight, _ in _ACTIONS.values()]
    now_ms = 0
    for _ in range(plan.steps - 1):
        longest = _PAUSE_MS_MAX if random.random() < _PAUSES else _STEP_MS_MAX
        now_ms += random.randint(0, longest)
        yield random.choices(names, weights)[0], now_ms, random.getrandbits(32)
    yield _LAST, now_ms, 0
