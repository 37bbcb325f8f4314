"""One cluster: which brokers, which levels, and what happens next, all drawn from a seed."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from random import Random

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
_LINES_MAX = 40
_NUMBER_BITS = 16


class World:
    """A cluster. `counts` is how often each kind of step happened, `history` the last of them."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._random = random = Random(seed)
        level = random.choice(_LEVELS)
        has_elr = level >= _ELR_FROM and random.random() < 0.8
        count = random.randint(1, 5)
        self.title = f"metadata.version {level}, ELR {has_elr}, {count} brokers"
        self.counts: Counter[str] = Counter()
        self.history: deque[str] = deque(maxlen=_LINES_MAX)
        self.controller = ActiveController(random, level, has_elr=has_elr)
        self._brokers = brokers = Brokers(self.controller, random, count)
        self._admin = admin = Administrator(self.controller, random, count)
        self._steps: dict[str, tuple[int, Callable[[], None]]] = {
            "heartbeat": (40, self._by_running(brokers.heartbeat)),
            "heartbeats of all": (8, brokers.heartbeat_together),
            "in-sync replicas": (20, self._by_running(brokers.change_isr)),
            "start": (5, self._start),
            "crash": (2, self._by_running(brokers.crash)),
            "controlled shutdown": (2, self._by_running(self._stop)),
            "old epoch": (2, self._by_any(brokers.send_old_epoch)),
            "producer ids": (2, self._by_running(brokers.allocate)),
            "directory lost": (1, self._by_running(brokers.lose_directory)),
            "directory assigned": (3, self._by_running(brokers.assign)),
            "topic created": (4, admin.create),
            "topic deleted": (1, admin.delete),
            "partitions added": (1, admin.grow),
            "reassignment": (3, admin.reassign),
            "reassignment cancelled": (1, admin.cancel),
            "preferred leaders": (1, admin.elect),
            "configuration": (3, admin.configure),
            "unregistration": (1, admin.unregister),
            "preferred leaders by timer": (1, lambda: self._periodic(elect_preferred)),
            "unclean elections by timer": (1, lambda: self._periodic(elect_unclean)),
            "failover": (1, self.controller.fail_over),
            "snapshot": (2, self.controller.take_snapshot),
        }
        self._names = list(self._steps)
        self._weights = [weight for weight, _ in self._steps.values()]
        for broker in brokers.all:
            brokers.start(broker)

    def step(self, number: int, *, is_left_out: bool = False) -> None:
        """Let time pass and something happen, and check what must hold. Raises: Violation.

        Each step draws from its own number, so that the others do the same where one is left out:
        then only time passes.
        """
        random, controller = self._random, self.controller
        random.seed(self._seed << _NUMBER_BITS | number)
        longest = _PAUSE_MS_MAX if random.random() < _PAUSES else _STEP_MS_MAX
        controller.now_ms += random.randint(0, longest)
        controller.fence_expired()
        if is_left_out:
            return
        name = random.choices(self._names, self._weights)[0]
        self.counts[name] += 1
        failovers = controller.failovers
        offset = controller.image.next_offset
        self.history.append(f"{controller.now_ms:8} ms  offset {offset}: {name}")
        self._steps[name][1]()
        if controller.failovers > failovers:
            self._admin.check()

    def finish(self) -> None:
        """Check at the end what is checked at failovers. Raises: Violation."""
        self.controller.check_replays()
        self._admin.check()

    def _by_any(self, act: Callable[[Broker], None]) -> Callable[[], None]:
        return lambda: act(self._random.choice(self._brokers.all))

    def _by_running(self, act: Callable[[Broker], None]) -> Callable[[], None]:
        def run() -> None:
            running = [broker for broker in self._brokers.all if broker.is_running]
            if running:
                act(self._random.choice(running))

        return run

    def _start(self) -> None:
        down = [broker for broker in self._brokers.all if not broker.is_running]
        if down:
            self._brokers.start(self._random.choice(down))

    @staticmethod
    def _stop(broker: Broker) -> None:
        broker.stops = True

    def _periodic(self, decide: Callable[[Cluster], Sequence[VersionedRecord]]) -> None:
        self.controller.submit(lambda cluster, _: StepResult(None, decide(cluster)))
