"""Clients that append records at a leader, or at another node by mistake."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from kraftwire.sim.clock import SECOND
from kraftwire.sim.environment import Environment
from kraftwire.sim.machine import Machine, leading

_MISTAKES = 0.03
_EXACT = 0.1
_WRONG = 0.02


class Workload:
    """The clients of a cluster. `appended` counts the records that they sent."""

    def __init__(self, cluster: Environment, machines: Mapping[int, Machine]) -> None:
        self._cluster = cluster
        self._machines = machines
        self._random = Random(f"workload {cluster.plan.seed}")
        self._is_over = False
        self.appended = 0

    def begin(self) -> None:
        """Let clients append, at random moments from now on."""
        if self._cluster.plan.appends_per_second:
            self._next()

    def end(self) -> None:
        """Let no more clients append."""
        self._is_over = True

    def append(self) -> bool:
        """Append something at the newest leader; False if no node leads."""
        leaders = leading(self._machines)
        if leaders:
            self._append(leaders[-1])
        return bool(leaders)

    def _next(self) -> None:
        delay = self._random.expovariate(self._cluster.plan.appends_per_second)
        self._cluster.scheduler.after(int(delay * SECOND), self._come)

    def _come(self) -> None:
        if self._is_over:
            return
        machines = list(self._machines.values())
        leaders = leading(self._machines)
        if leaders and self._random.random() >= _MISTAKES:
            self._append(self._random.choice(leaders))
        else:
            self._append(self._random.choice(machines))
        self._next()

    def _append(self, machine: Machine) -> None:
        process = machine.process
        if process is None:
            return
        count = self._random.choice((1, 1, 1, 2, 5))
        size = self._cluster.plan.record_bytes
        values = tuple(self._value(size) for _ in range(count))
        expected = None
        if self._random.random() < _EXACT:
            expected = process.append_end
            if self._random.random() < _WRONG:
                expected += 1
        self.appended += count
        machine.append(self._cluster.next_token(), values, expected)

    def _value(self, size: int) -> bytes:
        return b"record %d." % self._cluster.next_token() + bytes(size)
