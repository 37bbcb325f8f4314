"""Draws a cluster's plan from a seed.

Swarm testing: every seed disables some kinds of faults altogether, so that the others happen more
often.
"""

from __future__ import annotations

from random import Random

from kraftwire.sim.pages import CRASH_POLICIES
from kraftwire.sim.plan.churn import draw_churn
from kraftwire.sim.plan.model import (
    FAULT_KINDS,
    LEADER,
    STATIC,
    Fault,
    Plan,
    Snapshots,
    Weather,
)

# How long the faults last.
LENGTH_MS = 25_000

# Kinds that only make sense in larger clusters.
_NEEDS_THREE = {"split", "bridge"}


def draw(seed: int, length_ms: int = LENGTH_MS) -> Plan:
    """Draw the plan of a seed. Units: `length_ms` is how long the faults last."""
    random = Random(f"plan {seed}")
    voters = random.choice((1, 2, 3, 3, 3, 3, 3, 4, 5, 5, 5, 6, 7))
    observers = random.choice((0, 0, 0, 1, 1, 2, 3))
    churn = draw_churn(seed)
    if churn.quorum != STATIC:
        observers = max(observers, churn.observers)
    nodes = voters + observers
    lowest_vote = 0 if churn.quorum == STATIC else 1
    old_peers = _old_peers(random, nodes, lowest_vote) if random.random() < 0.08 else {}
    weather = _weather(random)
    faults = _faults(random, voters, nodes, length_ms)
    return Plan(
        seed=seed,
        voters=voters,
        observers=observers,
        length_ms=length_ms,
        weather=weather,
        faults=churn.merge(faults, nodes, length_ms),
        appends_per_second=random.choice((0.5, 1, 2, 3, 5, 10)) / (1 + voters // 5),
        record_bytes=random.choice((0, 20, 100, 700, 3000)),
        with_bytes=bool(old_peers) or random.random() < 0.22,
        with_listener=random.random() < 0.4,
        with_late_answers=random.random() < 0.3,
        drift=_drift(random, nodes),
        skew_ms=tuple(random.randint(-60_000, 60_000) for _ in range(nodes)),
        old_peers=old_peers,
        timers=_timers(random),
        snapshots=_snapshots(Random(f"snapshots {seed}")),
        segment_bytes=random.choice((4096, 16384, 1 << 20, 1 << 20)),
        crash_policies=tuple(p for p in CRASH_POLICIES if random.random() < 0.6) or ("none",),
        quorum=churn.quorum,
        auto_join=churn.auto_join,
        stranger=churn.stranger,
        slow_ms=churn.slow_ms,
    )


def _some(random: Random, chance: float, low: float, high: float) -> float:
    """Draw, with this probability, a value between `low` and `high`, else 0."""
    return random.uniform(low, high) if random.random() < chance else 0.0


def _weather(random: Random) -> Weather:
    return Weather(
        latency_ms=random.choice((0.2, 1, 1, 5, 20)),
        drop=_some(random, 0.4, 0.001, 0.2),
        duplicate=_some(random, 0.4, 0.001, 0.3),
        tail=_some(random, 0.5, 0.0005, 0.05),
        tail_ms=random.choice((300, 1500, 6000)),
        reset=_some(random, 0.3, 0.0005, 0.05),
        flush_ms=random.choice((0, 0, 0.5, 1, 5, 30)),
        flush_tail=_some(random, 0.3, 0.001, 0.05),
        flush_tail_ms=random.choice((500, 3000)),
    )


def _drift(random: Random, nodes: int) -> tuple[int, ...]:
    """Draw clock rates in millionths; in most clusters all clocks are correct."""
    if random.random() < 0.6:
        return (1_000_000,) * nodes
    spread = random.choice((1_000, 50_000, 200_000))
    return tuple(1_000_000 + random.randint(-spread, spread) for _ in range(nodes))


def _old_peers(random: Random, nodes: int, lowest_vote: int) -> dict[int, dict[int, int]]:
    """Draw the highest versions of Vote (52) and Fetch (1) that some of the nodes support."""
    return {
        node: {52: random.choice((lowest_vote, 1)), 1: random.choice((17, 17, 18))}
        for node in range(1, nodes + 1)
        if random.random() < 0.5
    }


def _timers(random: Random) -> dict[str, int]:
    if random.random() < 0.6:
        return {}
    return {
        "election_timeout_ms": random.choice((300, 1000, 2000)),
        "fetch_timeout_ms": random.choice((1000, 2000, 3000)),
        "request_timeout_ms": random.choice((1000, 2000)),
        "append_linger_ms": random.choice((0, 5, 25, 100)),
        "election_backoff_max_ms": random.choice((0, 100, 1000)),
    }


def _snapshots(random: Random) -> Snapshots | None:
    if random.random() < 0.5:
        return None
    between = random.choice((500, 2_000, 10_000))
    retention = between * random.choice((0, 2, 5))
    return Snapshots(between, retention, random.choice((200, 1_000, 1 << 20)))


def _faults(random: Random, voters: int, nodes: int, length_ms: int) -> tuple[Fault, ...]:
    kinds = [kind for kind in FAULT_KINDS if random.random() < 0.5]
    if voters < 3:
        kinds = [kind for kind in kinds if kind not in _NEEDS_THREE]
    gap_ms = random.choice((1_000, 2_500, 5_000, 15_000))
    if not kinds or random.random() < 0.05:
        return ()
    faults = []
    at = random.randint(500, 5_000)
    while at < length_ms:
        kind = random.choice(kinds)
        if kind != "wipe" or nodes > voters:
            faults.append(_fault(random, at, kind, voters, nodes))
        at += int(random.expovariate(1 / gap_ms)) + 1
    return tuple(faults)


def _fault(random: Random, at_ms: int, kind: str, voters: int, nodes: int) -> Fault:
    node = LEADER if random.random() < 0.4 else random.randint(1, nodes)
    if kind == "wipe":
        node = random.randint(voters + 1, nodes)
    others: tuple[int, ...] = ()
    if kind in ("split", "bridge"):
        everybody = list(range(1, nodes + 1))
        random.shuffle(everybody)
        others = tuple(everybody[: random.randint(1, nodes - 1)])
    elif kind == "oneway":
        others = (random.randint(1, nodes),)
    length = int(random.choice((200, 1_500, 4_000, 10_000)) * random.uniform(0.5, 1.5))
    return Fault(at_ms, kind, node, length, others, random.getrandbits(32))
