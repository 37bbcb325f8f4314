"""What happens to a cluster: its size, its weather and its accidents, all drawn from a seed.

Swarm testing: every seed turns some kinds of trouble off altogether, so that the others get room.
A plan is plain data; a reduced plan runs as well as a drawn one.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from random import Random
from typing import Any

from kraftwire.sim.pages import CRASH_POLICIES

__all__ = ["FAULT_KINDS", "HUNT_STAGES", "LEADER", "Fault", "Plan", "Snapshots", "Weather", "draw"]

# A fault's node may be this: whoever leads when the time has come.
LEADER = -1

HUNT_STAGES = ("elected", "append", "fetch", "commit")

FAULT_KINDS = (
    "kill",  # the process dies, the machine goes on
    "power",  # the machine loses power
    "effect",  # power loss between two effects
    "cut",  # power loss in the midst of a disk operation
    "stop",  # graceful shutdown
    "storm",  # all machines lose power
    "isolate",  # a node hears and is heard by nobody
    "deaf",  # messages reach others, but none comes in
    "mute",  # messages come in, but none goes out
    "split",  # two sides
    "bridge",  # two sides with one node in both
    "oneway",  # one link, one direction
    "reset",  # all connections of a node break
    "pause",  # a process is suspended
    "full",  # a full disk
    "broken",  # a flush fails
    "hunt",  # the leader dies at the worst moment
    "wipe",  # an observer gets an empty disk
)

# Kinds that only make sense in larger clusters.
_NEEDS_THREE = {"split", "bridge"}


@dataclass(frozen=True, slots=True)
class Fault:
    """One accident. Shape: `others` are the nodes on its side; `salt` decides the details.

    Units: milliseconds from the cluster's start, and until it is repaired.
    """

    at_ms: int
    kind: str
    node: int
    length_ms: int
    others: tuple[int, ...] = ()
    salt: int = 0


@dataclass(frozen=True, slots=True)
class Weather:
    """What the network and the disks do all the time. Units: chances in 0-1, times in ms."""

    latency_ms: float = 1.0
    drop: float = 0.0
    duplicate: float = 0.0
    tail: float = 0.0
    tail_ms: int = 6000
    reset: float = 0.0
    flush_ms: float = 0.0
    flush_tail: float = 0.0
    flush_tail_ms: int = 3000


@dataclass(frozen=True, slots=True)
class Snapshots:
    """When snapshots are written, what is kept, in what pieces they are fetched. Units: bytes."""

    between: int
    retention: int
    chunk: int


@dataclass(frozen=True, slots=True)
class Plan:
    """A cluster's whole fate. Shape: voters have the ids from 1 on, observers those behind."""

    seed: int
    voters: int
    observers: int
    length_ms: int
    weather: Weather
    faults: tuple[Fault, ...]
    appends_per_second: float = 10.0
    record_bytes: int = 40
    with_bytes: bool = False
    with_listener: bool = False
    with_late_answers: bool = False
    drift: tuple[int, ...] = ()
    skew_ms: tuple[int, ...] = ()
    old_peers: dict[int, dict[int, int]] = field(default_factory=dict)
    timers: dict[str, int] = field(default_factory=dict)
    snapshots: Snapshots | None = None
    segment_bytes: int = 1 << 20
    crash_policies: tuple[str, ...] = CRASH_POLICIES

    @property
    def nodes(self) -> int:
        """Voters and observers."""
        return self.voters + self.observers

    def to_json(self) -> dict[str, Any]:
        """As an object that JSON can hold."""
        return asdict(self)

    @staticmethod
    def from_json(data: dict[str, Any]) -> Plan:
        """The plan that `to_json` made the object of."""
        plan = Plan(**data)
        old = {int(k): {int(a): v for a, v in caps.items()} for k, caps in plan.old_peers.items()}
        faults = tuple(
            Fault(**{**fault, "others": tuple(fault["others"])}) for fault in data["faults"]
        )
        return replace(
            plan,
            weather=Weather(**data["weather"]),
            faults=faults,
            snapshots=Snapshots(**data["snapshots"]) if data.get("snapshots") else None,
            old_peers=old,
            drift=tuple(plan.drift),
            skew_ms=tuple(plan.skew_ms),
            crash_policies=tuple(plan.crash_policies),
        )


def draw(seed: int, length_ms: int = 120_000) -> Plan:
    """The plan of a seed."""
    random = Random(f"plan {seed}")
    voters = random.choice((1, 2, 3, 3, 3, 3, 3, 4, 5, 5, 5, 6, 7))
    observers = random.choice((0, 0, 0, 1, 1, 2, 3))
    nodes = voters + observers
    old_peers = _old_peers(random, nodes) if random.random() < 0.08 else {}
    return Plan(
        seed=seed,
        voters=voters,
        observers=observers,
        length_ms=length_ms,
        weather=_weather(random),
        faults=_faults(random, voters, nodes, length_ms),
        appends_per_second=random.choice((0.5, 2, 5, 10, 20, 40)) / (1 + voters // 5),
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
    )


def _some(random: Random, chance: float, low: float, high: float) -> float:
    """A value in the range with this chance, else none of it."""
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
    """Clock rates in millionths; in most clusters all clocks are right."""
    if random.random() < 0.6:
        return (1_000_000,) * nodes
    spread = random.choice((1_000, 50_000, 200_000))
    return tuple(1_000_000 + random.randint(-spread, spread) for _ in range(nodes))


def _old_peers(random: Random, nodes: int) -> dict[int, dict[int, int]]:
    """Highest versions of Vote (52) and Fetch (1) that some nodes know."""
    return {
        node: {52: random.choice((0, 1)), 1: random.choice((17, 17, 18))}
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
    between = random.choice((1_000, 5_000, 30_000))
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
