"""Draws what happens to a cluster's voters: how they are specified, and when operators change them.

It uses a separate stream of random numbers, so that additions here change no other part of a plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from kraftwire.sim.plan.model import CHANGE_KINDS, DYNAMIC, LEADER, STATIC, UPGRADED, Fault


@dataclass(frozen=True, slots=True)
class Churn:
    """The drawn voter changes of a plan. `observers` is the minimum number of observers."""

    seed: int
    quorum: str
    observers: int
    auto_join: bool
    stranger: bool
    slow_ms: int

    def merge(self, faults: tuple[Fault, ...], nodes: int, length_ms: int) -> tuple[Fault, ...]:
        """Return these accidents together with the voter changes. Order: by time."""
        random = Random(f"changes {self.seed}")
        if self.quorum == STATIC:
            return faults
        changes = _changes(random, nodes, length_ms)
        if self.quorum == UPGRADED:
            at = length_ms // 20 + random.randrange(length_ms // 3 + 1)
            changes.append(Fault(at, "upgrade", LEADER, 0))
        if random.random() < 0.3:
            changes += [_wipe(random, nodes, length_ms) for _ in range(random.randint(1, 4))]
        return tuple(sorted([*faults, *changes], key=lambda one: one.at_ms))


def draw_churn(seed: int) -> Churn:
    """Draw the voter changes for a seed."""
    random = Random(f"churn {seed}")
    quorum = random.choice((STATIC, STATIC, STATIC, DYNAMIC, DYNAMIC, DYNAMIC, UPGRADED))
    return Churn(
        seed,
        quorum,
        observers=random.choice((0, 1, 1, 2)),
        auto_join=quorum != STATIC and random.random() < 0.2,
        stranger=random.random() < 0.1,
        slow_ms=random.choice((50, 500, 3_000)) if random.random() < 0.2 else 0,
    )


def _changes(random: Random, nodes: int, length_ms: int) -> list[Fault]:
    kinds = [kind for kind in CHANGE_KINDS if kind != "upgrade" and random.random() < 0.7]
    gap_ms = random.choice((1_500, 4_000, 10_000))
    found = []
    at = random.randint(1_000, 8_000)
    while kinds and at < length_ms:
        node = LEADER if random.random() < 0.25 else random.randint(1, nodes)
        length = int(random.choice((200, 1_500, 4_000)) * random.uniform(0.5, 1.5))
        other = (random.randint(1, nodes),)
        found.append(Fault(at, random.choice(kinds), node, length, other, random.getrandbits(32)))
        at += int(random.expovariate(1 / gap_ms)) + 1
    return found


def _wipe(random: Random, nodes: int, length_ms: int) -> Fault:
    at, node = random.randrange(length_ms + 1), random.randint(1, nodes)
    return Fault(at, "wipe", node, random.randint(100, 6_000), (), random.getrandbits(32))
