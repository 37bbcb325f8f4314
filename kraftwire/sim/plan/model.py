"""What happens to a cluster: its size, its weather and its accidents.

A plan is plain data; a reduced plan runs as well as a drawn one.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

from kraftwire.sim.pages import CRASH_POLICIES

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

# What operators do, some of it by mistake.
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
