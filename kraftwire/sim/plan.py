"""A cluster's plan: its size, its weather and its accidents, drawn from a seed.

A plan describes everything that will happen to a cluster, as plain data: it can be printed, edited,
reduced and run again. `draw(seed)` creates one.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from random import Random
from typing import Any

from kraftwire.sim.crash_model import CRASH_POLICIES

# In place of a fault's node: the node that leads when the fault happens.
LEADER = -1

# How the voters of a cluster are specified: configured, in the log from the start, or configured
# and written to the log later.
STATIC, DYNAMIC, UPGRADED = "static", "dynamic", "upgraded"

# The last one needs voters that change.
HUNT_STAGES = ("elected", "append", "fetch", "commit", "change")

FAULT_KINDS = (
    "kill",  # the process dies, the machine keeps running
    "power",  # the machine loses power
    "effect",  # power loss between two effects
    "cut",  # power loss during a disk operation
    "stop",  # graceful shutdown
    "storm",  # all machines lose power
    "isolate",  # no message reaches a node, and none of its own arrives
    "deaf",  # a node sends messages but gets none
    "mute",  # a node gets messages but none of its own arrive
    "split",  # two sides that cannot reach each other
    "bridge",  # two sides with one node in both
    "oneway",  # one link, one direction
    "reset",  # all connections of a node break
    "pause",  # a process is suspended
    "full",  # a disk is full for a while
    "broken",  # a flush fails
    "hunt",  # the leader dies at the worst moment
    "wipe",  # a node gets an empty disk, where the quorum can lose its old one
)

# The changes that operators make, some of them by mistake.
CHANGE_KINDS = (
    "add",  # an observer becomes a voter
    "remove",  # a voter becomes an observer
    "replace",  # a voter gets an empty disk: its old replica is removed, the new one added
    "twice",  # two operators change the voters at once
    "upgrade",  # kraft.version 0 to 1
)


@dataclass(frozen=True, slots=True)
class Fault:
    """One accident.

    `node` is a node's id, or `LEADER`; `others` are further nodes: one side of a split or a
    bridge, the far end of a cut link, the second node of two changes; `salt` is a random number
    that decides the details. Units: `at_ms` counts from the cluster's start, `length_ms` from then
    until the repair.
    """

    at_ms: int
    kind: str
    node: int
    length_ms: int
    others: tuple[int, ...] = ()
    salt: int = 0


@dataclass(frozen=True, slots=True)
class Weather:
    """The permanent behaviour of network and disks.

    `tail` and `flush_tail` are the chances of a further delay, of up to `tail_ms` and
    `flush_tail_ms`. Units: chances in 0-1, times in milliseconds.
    """

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
    """When nodes write snapshots and what they keep.

    Units: bytes of log between two snapshots (`between`), bytes of log and snapshots that are kept
    (`retention`), bytes of a snapshot in one answer (`chunk`).
    """

    between: int
    retention: int
    chunk: int


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that happens to a cluster.

    The first voters have the ids from 1 on, observers those after them. `with_bytes` sends every
    message as bytes; `with_listener` gives nodes a state machine; `with_late_answers` lets answers
    arrive although their requests were forgotten. `drift` has the rates of the clocks in
    millionths, `skew_ms` by how much a start may set a clock wrong. `old_peers` has, by node and
    API key, the highest version that the node supports. `stranger` adds a node of another cluster
    that sends requests to this one; `slow_ms` is how long a state machine takes at most for a
    delivery.
    """

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
    quorum: str = STATIC
    auto_join: bool = False
    stranger: bool = False
    slow_ms: int = 0
    crash_policies: tuple[str, ...] = CRASH_POLICIES

    @property
    def nodes(self) -> int:
        """Voters and observers."""
        return self.voters + self.observers

    @property
    def has_changes(self) -> bool:
        """Whether the voters may change."""
        return self.quorum != STATIC

    def to_json(self) -> dict[str, Any]:
        """As an object that JSON can hold."""
        return asdict(self)

    @staticmethod
    def from_json(data: dict[str, Any]) -> Plan:
        """Restore a plan from the result of `to_json`."""
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
