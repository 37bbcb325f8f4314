"""Operations of brokers and clients that the shared scripts lack, mixed into them.

Brokers register again, wrongly or with an old epoch, report too little or a lost directory, and
are removed and come back; clients move several partitions at once and list what moves. Some
operations ask in other versions, and their clients through a broker.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from kraftwire.controller.versions import WITH_CONTROLLERS
from kraftwire.security.principal import ANONYMOUS, encode_principal
from tests.oracle.clusters import rack_of
from tests.oracle.forwarding import ADDRESS

# How many of the shared operations are followed by one of these.
_SHARE = 0.2

# How many operations ask in another way, and those that do not: they begin a script, or wait for an
# election.
_ANOTHER_WAY = 0.3
_USUAL_WAY = ("up", "bounce", "deposed", "restarted")

# The broker of the shared scripts that has two log directories, and the second of them.
_WITH_TWO, _SECOND = 3, 33

_WEIGHTS = {
    "again": 6,
    "wrong": 8,
    "old": 4,
    "early": 4,
    "lost": 3,
    "rejoin": 1.5,
    "listed": 3,
    "moves": 4,
    "drop": 0.3,
    "absent": 1,
    "uneven": 3,
    "recovering": 3,
    "own": 1,
    "deposed": 0.5,
    "restarted": 0.3,
    "envelope": 1,
    "metadata": 1,
    "placed": 2,
    "spread": 1,
}

_LATER = 1 << 40

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
            "wrong": [random.choice(list(_WRONG))],
            "rejoin": [20_000 + random.getrandbits(13)],
            "moves": [random.choice(topics), moves()],
            "drop": [random.choice(topics)],
            "absent": [f"absent{random.getrandbits(8)}"],
            "uneven": [f"uneven{random.getrandbits(16)}", random.choice(topics)],
            "recovering": [random.choice(topics), random.randint(0, 3)],
            "metadata": [random.randint(6, 31), random.choices((1, 2, 3), (6, 2, 1))[0]],
            "placed": [
                random.choice([*_PLACED, topics[0]]),
                (
                    random.choice((-1, 0, 1, 2, 3, 5, 9)),
                    random.choice((-1, 0, 1, 2, 2, 3, 3, 4, 9)),
                ),
            ],
            "spread": [random.choice([*_PLACED, *topics]), random.randint(1, 12)],
            "envelope": [random.choice(list(_ENVELOPED))],
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
    if kind == "grow" and not _is_even(run, arguments[0]):
        return None
    if kind == "feature" and arguments[0] == "metadata.version":
        return _metadata(tools, run, *arguments)
    if kind in _STEPS:
        return _STEPS[kind](tools.oracle, run, *arguments)
    return type(run).step(run, [kind, *arguments])


def _is_even(run: Any, topic: str) -> bool:
    """Return whether all partitions of a topic have as many replicas; where not, it is a hash
    table that decides which of Kafka's counts (C-PART)."""
    ids = {topic_id for name, topic_id in run.tid.items() if name == topic}
    return len({len(one["Replicas"]) for key, one in run.p.items() if key[0] in ids}) <= 1


def _cluster(_: Any, run: Any, __: int, racks: int) -> None:
    """The cluster of a script begins."""
    run.racks = racks


def _up(oracle: Any, run: Any, broker: int, process: int, _: int) -> Any:
    """A broker registers for the first time."""
    directories = [broker, _SECOND] if broker == _WITH_TWO else [broker]
    rack = rack_of(broker, getattr(run, "racks", 0))
    made = oracle.Broker(run.c, broker, process, [*map(oracle.u, directories)], rack)
    run.b[broker] = made
    return [made.reg(), made.hb()]


def _placed(oracle: Any, run: Any, _: int, topic: str, size: tuple[int, int]) -> Any:
    """A topic whose replicas the controller places: so many partitions with so many of them."""
    partitions, factor = size
    return oracle.topic(run.c, topic, n=partitions, rf=factor)


def _spread(_: Any, run: Any, __: int, topic: str, count: int) -> Any:
    """More partitions, whose replicas the controller places."""
    if not _is_even(run, topic):
        return None
    more = {"Name": topic, "Count": count, "Assignments": None}
    body = {"Topics": [more], "TimeoutMs": 9000, "ValidateOnly": False}
    return run.c.call("CreatePartitions", 3, body)


def _again(_: Any, run: Any, broker: int) -> Any:
    """The same process registers again."""
    return [run.b[broker].reg(), run.b[broker].hb()]


# What may be wrong with a registration; directories by number.
_WRONG: Mapping[str, Mapping[str, Any]] = {
    "cluster": {"cid": "x" * 22},
    "features": {"features": {"metadata.version": (7, 30)}},
    "level": {"features": {"metadata.version": (7, 20)}},
    "no level": {"features": {"group.version": (0, 1)}},
    "another's directory": {"LogDirs": [1]},
    "no directory": {"LogDirs": []},
    "twice": {"LogDirs": [44, 44]},
    "migrating": {"IsMigratingZkBroker": True},
}


_LIST, _HEARTBEAT = 46, 63


def _inner(key: int, version: int) -> bytes:
    """A request for all reassignments, with the header of an API."""
    return struct.pack(">hhih", key, version, 7, -1) + bytes((0, 0, 0, 0, 0, 0, 0))


# What may be wrong with an envelope: the request, its principal, the client's address.
_CLIENT = encode_principal(ANONYMOUS)
_ENVELOPED: Mapping[str, tuple[bytes, bytes, bytes]] = {
    "nothing": (_inner(_LIST, 0), _CLIENT, ADDRESS),
    "principal": (_inner(_LIST, 0), b"\0\1nobody", ADDRESS),
    "no principal": (_inner(_LIST, 0), b"", ADDRESS[1:]),
    "address": (_inner(_LIST, 0)[:5], _CLIENT, ADDRESS[1:]),
    "header": (_inner(_LIST, 0)[:5], _CLIENT, ADDRESS),
    "unknown": (_inner(999, 0), _CLIENT, ADDRESS),
    "not a client's": (_inner(_HEARTBEAT, 2), _CLIENT, ADDRESS),
    "version": (_inner(_LIST, 9), _CLIENT, ADDRESS),
    "body": (_inner(_LIST, 0)[:-2], _CLIENT, ADDRESS),
}


def _wrong(oracle: Any, run: Any, broker: int, what: str) -> Any:
    """The process registers with something that may be wrong."""
    given = dict(_WRONG[what])
    if "LogDirs" in given:
        given["LogDirs"] = [oracle.u(number) for number in given["LogDirs"]]
    return [run.b[broker].reg(**given)]


def _old(_: Any, run: Any, broker: int) -> Any:
    """Requests with an epoch from before."""
    one, epoch = run.b[broker], run.b[broker].epoch - 1
    block = {"BrokerId": broker, "BrokerEpoch": epoch}
    return [one.hb(epoch=epoch), run.c.call("AllocateProducerIds", 0, block)]


def _early(_: Any, run: Any, broker: int) -> Any:
    """A heartbeat of a broker that has read nothing yet, and its next one."""
    return [run.b[broker].hb(off=0), run.b[broker].hb(off=_LATER)]


def _lost(oracle: Any, run: Any, _: int) -> Any:
    """A broker that is not fenced loses the second of its directories."""
    one = run.b[_WITH_TWO]
    return [one.hb(), one.hb(offline=[oracle.u(_SECOND)])]


def _rejoin(oracle: Any, run: Any, broker: int, process: int) -> Any:
    """A broker is removed; another process comes under its id."""
    answers = [run.c.call("UnregisterBroker", 0, {"BrokerId": broker})]
    run.b[broker].inc = oracle.u(process)
    return [*answers, run.b[broker].reg(), run.b[broker].hb()]


def _listed(_: Any, run: Any, __: int) -> Any:
    """All reassignments under way, in the order of their names."""
    answer = run.c.call("ListPartitionReassignments", 0, {"TimeoutMs": 9000, "Topics": None})
    for topic in answer["Topics"]:
        topic["Partitions"].sort(key=lambda one: one["PartitionIndex"])
    return sorted(answer["Topics"], key=lambda one: one["Name"])


def _moves(_: Any, run: Any, __: int, topic: str, moves: list[Any]) -> Any:
    """Several partitions move."""
    partitions = [{"PartitionIndex": index, "Replicas": replicas} for index, replicas in moves]
    body = {
        "TimeoutMs": 9000,
        "AllowReplicationFactorChange": True,
        "Topics": [{"Name": topic, "Partitions": partitions}],
    }
    return run.c.call("AlterPartitionReassignments", 1, body)


def _drop(_: Any, run: Any, __: int, topic: str) -> Any:
    """A topic is deleted by its id."""
    wanted = {"Name": None, "TopicId": run.tid.get(topic, bytes(15) + b"\7")}
    return run.c.call("DeleteTopics", 6, {"Topics": [wanted], "TimeoutMs": 9000})


def _absent(_: Any, run: Any, __: int, topic: str) -> Any:
    """A topic is deleted that is not there."""
    wanted = {"Name": topic, "TopicId": bytes(16)}
    return run.c.call("DeleteTopics", 6, {"Topics": [wanted], "TimeoutMs": 9000})


def _uneven(oracle: Any, run: Any, _: int, created: str, grown: str) -> list[Any]:
    """A topic, and then more partitions, with other numbers of replicas than the first."""
    ids = sorted(run.b)
    answer = oracle.topic(run.c, created, [ids[:1], ids[:2]])
    if not _is_even(run, grown):
        return [answer["Topics"][0]["ErrorCode"]]
    count = sum(topic_id == run.tid.get(grown) for topic_id, _ in run.p)
    more = {"Name": grown, "Count": count + 1, "Assignments": [{"BrokerIds": ids}]}
    body = {"Topics": [more], "TimeoutMs": 9000, "ValidateOnly": True}
    return [answer["Topics"][0]["ErrorCode"], run.c.call("CreatePartitions", 3, body)]


def _recovering(_: Any, run: Any, __: int, topic: str, index: int) -> Any:
    """A leader says that it recovers, whether it does or not."""
    topic_id = run.tid.get(topic)
    found = run.p.get((topic_id, index))
    if not found or found["Leader"] < 0:
        return None
    leader, epochs = found["Leader"], (found["LeaderEpoch"], found["PartitionEpoch"])
    return run.b[leader].alter(topic_id, index, [leader], *epochs, rec=1)


def _own(oracle: Any, run: Any, broker: int) -> list[int]:
    """One broker is to have another number of in-sync replicas than the others."""
    change = ["min.insync.replicas", 0, "2"]
    return [code for code, _ in oracle.configs(run.c, 4, str(broker), [change])]


def _enveloped(_: Any, run: Any, __: int, fault: str) -> int:
    """A broker sends an envelope that may be wrong."""
    data, principal, address = _ENVELOPED[fault]
    return int(run.c.envelope(data, principal, address)["ErrorCode"])


def _metadata(_: Any, run: Any, __: Any, level: int, kind: int) -> int:
    """A client changes the level of metadata.version."""
    update = {"Feature": "metadata.version", "MaxVersionLevel": level, "UpgradeType": kind}
    body = {"timeoutMs": 9000, "ValidateOnly": False, "FeatureUpdates": [update]}
    code = int(run.c.call("UpdateFeatures", 2, body)["ErrorCode"])
    if code == 0 and level >= WITH_CONTROLLERS:
        run.settle()
    return code


def settle(run: Any) -> None:
    """Wait until Kafka's controller has registered itself, as it does once the level has that."""
    while not any(one[2] == "RegisterControllerRecord" for one in run.c.dump()):
        pass


_STEPS: Mapping[str, Callable[..., Any]] = {
    "cluster": _cluster,
    "up": _up,
    "placed": _placed,
    "spread": _spread,
    "metadata": _metadata,
    "again": _again,
    "wrong": _wrong,
    "old": _old,
    "early": _early,
    "lost": _lost,
    "rejoin": _rejoin,
    "listed": _listed,
    "moves": _moves,
    "drop": _drop,
    "absent": _absent,
    "uneven": _uneven,
    "recovering": _recovering,
    "own": _own,
    "deposed": lambda _, run, *__: run.failover(),
    "restarted": lambda _, run, *__: run.c.restart(),
    "envelope": _enveloped,
}
