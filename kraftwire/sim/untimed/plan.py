"""The plan of an untimed cluster and the weights of its events, drawn from a seed.

Swarm testing: every seed leaves out some kinds of events and makes others frequent.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, ClassVar

# The actions, and how often each comes by default, against each other.
KINDS: dict[str, float] = {
    "deliver": 60.0,  # a request reaches its addressee, or an answer the sender of its request
    "again": 1.5,  # a request reaches its addressee once more
    "fail": 3.0,  # the sender of a request gives it up
    "timer": 10.0,  # the next timer of a node is due
    "oversleep": 0.3,  # a node slept, and everything is due
    "work": 30.0,  # a flush, a delivery or a snapshot has finished
    "fail_work": 1.0,  # or has failed
    "append": 8.0,  # a client appends
    "crash": 0.5,  # a node dies; some of what was not flushed survives
    "cut": 0.5,  # a node will die between two effects
    "start": 6.0,  # a dead node starts
    "part": 0.4,  # messages between some nodes do not arrive any more
    "heal": 2.0,  # or do again
    "resign": 0.4,  # a state machine gives up its leadership
    "stop": 0.2,  # a node shuts down gracefully
    "snapshot": 2.0,  # a state machine wants a snapshot
    "retain": 2.0,  # a log may start later
    "add": 1.0,  # an operator adds a voter
    "remove": 0.8,  # removes one
    "wipe": 0.4,  # replaces a disk
    "upgrade": 0.5,  # raises kraft.version
}

# Where some clusters begin (`bootstrap_states.py`), with what that needs.
BOOTSTRAP_STATES: dict[str, dict[str, Any]] = {
    "cut-off change": {"voters": 3, "is_dynamic": True, "with_state": True},
    "removed before another change": {"voters": 4, "is_dynamic": True, "auto_join": True},
    "same end of another epoch": {
        "voters": 5,
        "others": 0,
        "with_state": True,
        "auto_join": False,
        "fetch_max_bytes": 1,
    },
    "snapshot read to its end": {"with_state": True},
    "voter of a later release": {"is_dynamic": True, "newer_voter": 1},
}

# One cluster in this many has a bootstrap state.
_BOOTSTRAPPED = 8
_STEPS_BOOTSTRAPPED = 800

# With short pauses, the events would be over before the nodes agree.
_TIMERS_BOOTSTRAPPED = {"append_linger_ms": 0, "retry_backoff_ms": 500, "retry_backoff_max_ms": 500}

_RARE = tuple(kind for kind in KINDS if kind not in ("deliver", "work", "timer", "start", "append"))


@dataclass(frozen=True, slots=True)
class UntimedPlan:
    """A cluster. Voters have the ids from 1 on, other nodes the ids after them.

    `is_dynamic` has its voters in the log from the start (kraft.version 1). `weights` are those of
    `KINDS` for this cluster; `timers` differ from Kafka's defaults. `with_state` gives every node a
    state machine. `fetch_max_bytes` and `chunk_bytes` bound what a leader sends at once.
    `bootstrap_state` is where it begins, empty for none. `newer_voter` is a voter whose entry has
    the versions of a later release than it runs, 0 for none. `SIMPLER` is what may suffice for a
    failure: no further nodes, no state machines, Kafka's timers.
    """

    SIMPLER: ClassVar[tuple[dict[str, Any], ...]] = (
        {"others": 0},
        {"with_state": False},
        {"auto_join": False},
        {"timers": {"append_linger_ms": 0}},
        {"fetch_max_bytes": 1 << 20, "chunk_bytes": 1 << 20},
    )

    seed: int
    voters: int
    others: int = 0
    steps: int = 400
    is_dynamic: bool = False
    with_state: bool = False
    auto_join: bool = False
    fetch_max_bytes: int = 1 << 20
    chunk_bytes: int = 1 << 20
    timers: dict[str, int] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)
    bootstrap_state: str = ""
    newer_voter: int = 0

    @property
    def nodes(self) -> range:
        """The ids of all nodes."""
        return range(1, self.voters + self.others + 1)

    @property
    def title(self) -> str:
        """What kind of cluster it is."""
        kind = "kraft.version 1" if self.is_dynamic else "static voters"
        return f"{self.voters} voters, {self.others} others, {kind}"


def draw(seed: int) -> UntimedPlan:
    """Draw the plan of a seed."""
    random = Random(f"untimed plan {seed}")
    voters = random.choice((1, 2, 3, 3, 3, 3, 3, 4, 5, 5))
    is_dynamic = random.random() < 0.5
    weights = {}
    for kind, weight in KINDS.items():
        if kind in _RARE and random.random() < 0.35:
            continue
        weights[kind] = weight * random.choice((0.3, 1.0, 1.0, 1.0, 3.0))
    plan = UntimedPlan(
        seed=seed,
        voters=voters,
        others=random.choice((0, 0, 1, 1, 2)),
        steps=random.choice((150, 300, 300, 600)),
        is_dynamic=is_dynamic,
        with_state=random.random() < 0.5,
        auto_join=is_dynamic and random.random() < 0.3,
        fetch_max_bytes=random.choice((1, 150, 1 << 20, 1 << 20)),
        chunk_bytes=random.choice((40, 200, 1 << 20)),
        timers=_timers(random),
        weights=weights,
    )
    if random.randrange(_BOOTSTRAPPED):
        return plan
    name = random.choice(list(BOOTSTRAP_STATES))
    more: dict[str, Any] = {"timers": _TIMERS_BOOTSTRAPPED, **BOOTSTRAP_STATES[name]}
    return replace(plan, bootstrap_state=name, steps=_STEPS_BOOTSTRAPPED, **more)


def _timers(random: Random) -> dict[str, int]:
    """Draw timers whose pauses are about as long as the time-outs, so that most of them matter."""
    backoff = random.choice((20, 500, 3000))
    return {
        "append_linger_ms": random.choice((0, 0, 25)),
        "election_backoff_max_ms": random.choice((100, 1000)),
        "retry_backoff_ms": backoff,
        "retry_backoff_max_ms": backoff,
        "fetch_max_wait_ms": random.choice((500, 1500)),
    }
