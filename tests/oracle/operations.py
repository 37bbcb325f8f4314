"""Operations of brokers and clients that the shared scripts lack, mixed into them.

Brokers register again, wrongly or with an old epoch, report too little or lost directories, and
are removed and come back; clients move several partitions at once and list what moves. Some
operations ask in other versions, and their clients through a broker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from tests.oracle import broker_steps, client_steps

_STEPS = broker_steps.STEPS | client_steps.STEPS

# How many of the shared operations are followed by one of these.
_SHARE = 0.2

# How many operations ask in another way, and those that do not: they begin a script, or wait for an
# election.
_ANOTHER_WAY = 0.3
_USUAL_WAY = ("up", "bounce", "deposed", "restarted")

_WEIGHTS = {
    "again": 6,
    "wrong": 8,
    "old": 4,
    "early": 4,
    "lost": 3,
    "all lost": 2,
    "rejoin": 1.5,
    "abandoned": 2,
    "listed": 3,
    "moves": 4,
    "drop": 0.3,
    "absent": 1,
    "uneven": 3,
    "recovering": 3,
    "own": 1,
    "shrunk": 2,
    "stranded": 3,
    "eligible": 2,
    "deposed": 0.5,
    "restarted": 0.3,
    "envelope": 1,
    "time": 6,
    "metadata": 1,
    "placed": 2,
    "spread": 1,
}

# Topics whose replicas the controller places.
_PLACED = [f"p{number}" for number in range(9)]


def mixed(script: Sequence[Any], seed: int) -> list[Any]:
    """As many operations as the script has, with these among them."""
    random = Random(seed)
    ids = [op[1] for op in script if op[0] == "up"]
    topics = [op[1] for op in script if op[0] == "create"] or ["none"]
    topics += _PLACED[:2]

    def moves() -> list[list[Any]]:
        indexes = random.sample(range(4), 2)
        return [[index, random.sample(ids, random.randint(1, len(ids)))] for index in indexes]

    def more() -> list[Any]:
        (kind,) = random.choices(list(_WEIGHTS), list(_WEIGHTS.values()))
        arguments: Mapping[str, list[Any]] = {
            "wrong": [random.choice(list(broker_steps.WRONG))],
            "rejoin": [20_000 + random.getrandbits(13)],
            "abandoned": [30_000 + random.getrandbits(13)],
            "moves": [random.choice(topics), moves()],
            "drop": [random.choice(topics)],
            "absent": [f"absent{random.getrandbits(8)}"],
            "uneven": [f"uneven{random.getrandbits(16)}", random.choice(topics)],
            "recovering": [random.choice(topics), random.randint(0, 3)],
            "metadata": [random.randint(6, 34), random.choices((1, 2, 3), (6, 2, 1))[0]],
            "placed": [
                random.choice([*_PLACED, topics[0]]),
                (
                    random.choice((-1, 0, 1, 2, 3, 5, 9)),
                    random.choice((-1, 0, 1, 2, 2, 3, 3, 4, 9)),
                ),
            ],
            "spread": [random.choice([*_PLACED, *topics]), random.randint(1, 12)],
            "shrunk": [random.getrandbits(8)],
            "stranded": [random.getrandbits(8)],
            "eligible": [random.randint(0, 1)],
            "time": [random.getrandbits(5), random.randint(1, 6)],
            "envelope": [random.choice(list(broker_steps.ENVELOPED))],
        }
        return [kind, random.choice(ids), *arguments.get(kind, [])]

    found = []
    for op in script:
        found.append(op)
        if op[0] != "up" and random.random() < _SHARE:
            found.append(more())
    return [
        ["way", random.getrandbits(8), *op]
        if op[0] not in _USUAL_WAY and random.random() < _ANOTHER_WAY
        else op
        for op in found[: len(script)]
    ]


def plain(op: Sequence[Any]) -> Sequence[Any]:
    """Return an operation without the way in which it asks."""
    return op[2:] if op[0] == "way" else op


def step(tools: Any, run: Any, op: Sequence[Any]) -> Any:
    """Do an operation; returns the answers."""
    kind, *arguments = plain(op)
    run.c.way = op[1] if op[0] == "way" else None
    if kind == "grow" and not client_steps.is_even(run, arguments[0]):
        return None
    if kind == "feature" and arguments[0] == "metadata.version":
        kind = "metadata"
        arguments[0] = 0
    if kind in _STEPS:
        return _STEPS[kind](tools.oracle, run, *arguments)
    return type(run).step(run, [kind, *arguments])
