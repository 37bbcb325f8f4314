"""Which faults come when: a pure function of seed, length and members."""

from __future__ import annotations

import random
from dataclasses import dataclass

# What is done to a node; each ends after a while. `mute`: nothing that it sends arrives. `deafen`:
# nothing that is sent to it does. `split`: the link to one other node is cut in both directions.
ACTIONS = ("kill", "stop", "pause", "isolate", "mute", "deafen", "split")

# A voter loses its disk, is removed and added again; only where voters are in the log.
REPLACE = "replace"

# The target. The leader is the best one: most bugs need a change of leader.
_VICTIMS = ("leader", "leader", "follower", "ours", "java", "any")

# Time for the first election, and for all nodes to catch up after the last fault.
_FIRST_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Step:
    """One fault. `at` and `lasts` in seconds; `pick` in [0, 1) chooses among several victims."""

    at: float
    lasts: float
    action: str
    victim: str
    pick: float

    def __str__(self) -> str:
        return f"{self.at:6.2f} s  {self.action} {self.victim} for {self.lasts:.2f} s"


@dataclass(frozen=True, slots=True)
class Plan:
    """The faults of one round, by time; all are over after `seconds`."""

    seed: int
    seconds: float
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        return "\n".join(map(str, self.steps))


def make_plan(seed: int, seconds: float, *, is_dynamic: bool = False) -> Plan:
    """Faults for this many seconds; the same for the same arguments.

    Every action comes once before one is repeated. Some faults overlap, so that two nodes of three
    are down for a while.
    """
    source = random.Random(f"nemesis {seed}")
    actions = (*ACTIONS, REPLACE) if is_dynamic else ACTIONS
    steps: list[Step] = []
    deck: list[str] = []
    at = _FIRST_SECONDS
    while True:
        if not deck:
            deck = source.sample(actions, len(actions))
        lasts = source.choice((source.uniform(0.2, 1.5), source.uniform(1.5, 4.0)))
        step = Step(at, lasts, deck.pop(), source.choice(_VICTIMS), source.random())
        if step.at + step.lasts > seconds:
            return Plan(seed, seconds, tuple(steps))
        steps.append(step)
        at += lasts * source.uniform(0.4, 1.2) + source.uniform(0.2, 1.2)
