"""One script after the other at both controllers, and the shortest script with a difference."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from tests.oracle import administrators, brokers, snapshots
from tests.oracle.clusters import level_of
from tests.oracle.comparison import Comparison
from tests.oracle.java_controllers import JavaControllers
from tests.oracle.shared_scripts import Tools

# What scripts are about. Each module makes them, and runs them at both controllers.
KINDS: dict[str, ModuleType] = {"brokers": brokers, "administrators": administrators}

# Of one script in so many, a controller of Kafka starts from a snapshot in the middle of the log.
_FROM_SNAPSHOT = 4


@dataclass(frozen=True)
class Outcome:
    """What became of a script. `faults` is what a standby of Kafka says of the log of ours, and how
    images of it differ."""

    kind: str
    seed: int
    comparison: Comparison
    faults: list[str]

    @property
    def is_failed(self) -> bool:
        """Whether the controllers differ, or Kafka's cannot replay what ours wrote."""
        return bool(self.comparison.difference or self.faults)

    @property
    def text(self) -> str:
        """What is wrong."""
        lines = [f"{self.kind}, seed {self.seed}:"]
        if self.comparison.difference:
            lines.append(self.comparison.difference.text)
        return "\n".join(lines + [f"  the log: {line}" for line in self.faults])


class Runner:
    """Runs scripts at both controllers."""

    def __init__(self, tools: Tools, java: JavaControllers) -> None:
        self._tools = tools
        self._java = java

    def script(self, kind: str, seed: int, count: int) -> list[Any]:
        """The operations of a seed."""
        return list(KINDS[kind].operations(self._tools, seed, count))

    def run(self, kind: str, seed: int, script: Sequence[Any]) -> Outcome:
        """Run a script at both, and let a standby of Kafka replay the log of ours."""
        comparison = self.compare(kind, script)
        log = comparison.log
        faults = self.faults(kind, log) + snapshots.differences(self._java.images, log)
        if seed % _FROM_SNAPSHOT == 0 and (cut := snapshots.cut(log)):
            found = self._java.faults(log, KINDS[kind].PROPERTIES, cut)
            faults += [f"from the snapshot at {cut.end.offset}: {fault}" for fault in found]
        return Outcome(kind, seed, comparison, faults)

    def faults(self, kind: str, log: bytes) -> list[str]:
        """What a standby of Kafka finds wrong with a log."""
        return self._java.faults(log, KINDS[kind].PROPERTIES)

    def compare(self, kind: str, script: Sequence[Any]) -> Comparison:
        """Run a script at both."""
        module = KINDS[kind]
        with self._java.fresh(module.PROPERTIES, level_of(script)) as (connection, end):
            steps = module.java_steps(self._tools, connection, end, script)
        found: Comparison = module.compare(self._tools, script, steps)
        return found

    def shortest(self, outcome: Outcome, script: Sequence[Any], seconds: float) -> list[int]:
        """The numbers of the operations that are enough for a difference; looks for so long."""
        deadline = time.monotonic() + seconds

        def differs(numbers: Sequence[int]) -> int | None:
            if time.monotonic() > deadline:
                return None
            chosen = [script[number] for number in numbers]
            try:
                difference = self.compare(outcome.kind, chosen).difference
            except (IndexError, KeyError):
                return None  # an operation needs one that was left out
            return None if difference is None else difference.number

        assert outcome.comparison.difference is not None
        return shrunk(range(outcome.comparison.difference.number + 1), differs)


def shrunk(
    numbers: Sequence[int], differs: Callable[[Sequence[int]], int | None]
) -> list[int]:
    """Leave out operations as long as a difference stays: first many at once, then one by one.

    `differs` returns the place among the given ones at which the difference shows, if any; what
    comes after it is not needed.
    """
    left = list(numbers)
    size = max(1, len(left) // 2)
    while True:
        is_shorter = False
        for start in range(len(left) - size, -1, -size):
            tried = left[:start] + left[start + size :]
            place = differs(tried) if tried else None
            if place is not None:
                left = tried[: place + 1]
                is_shorter = True
        if size > 1:
            size //= 2
        elif not is_shorter:
            return left


def ranges(numbers: Sequence[int]) -> str:
    """Numbers as a command takes them: 0-4,17."""
    found: list[list[int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in found)


def numbers_of(text: str) -> list[int]:
    """The numbers that a text of `ranges` names."""
    parts = (part.partition("-") for part in text.split(","))
    return list(_numbers(parts))


def _numbers(parts: Any) -> Iterator[int]:
    for low, dash, high in parts:
        yield from range(int(low), int(high if dash else low) + 1)
