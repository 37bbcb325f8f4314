"""What brokers do in scripts, and what becomes of the controller that they are at."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any

from kraftwire.security.principal import ANONYMOUS, encode_principal
from tests.oracle.clusters import rack_of
from tests.oracle.forwarding import ADDRESS

# The broker of the shared scripts that has two log directories, and the second of them.
WITH_TWO, _SECOND = 3, 33

_LATER = 1 << 40

# What may be wrong with a registration; directories by number.
WRONG: Mapping[str, Mapping[str, Any]] = {
    "cluster": {"cid": "x" * 22},
    "features": {"features": {"metadata.version": (7, 33)}},
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
ENVELOPED: Mapping[str, tuple[bytes, bytes, bytes]] = {
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


def _cluster(_: Any, run: Any, __: int, racks: int) -> None:
    """The cluster of a script begins."""
    run.racks = racks


def _up(oracle: Any, run: Any, broker: int, process: int, _: int) -> Any:
    """A broker registers for the first time."""
    directories = [broker, _SECOND] if broker == WITH_TWO else [broker]
    rack = rack_of(broker, getattr(run, "racks", 0))
    made = oracle.Broker(run.c, broker, process, [*map(oracle.u, directories)], rack)
    run.b[broker] = made
    return [made.reg(), made.hb()]


def _again(_: Any, run: Any, broker: int) -> Any:
    """The same process registers again."""
    return [run.b[broker].reg(), run.b[broker].hb()]


def _wrong(oracle: Any, run: Any, broker: int, what: str) -> Any:
    """The process registers with something that may be wrong."""
    given = dict(WRONG[what])
    if "LogDirs" in given:
        given["LogDirs"] = [oracle.u(number) for number in given["LogDirs"]]
    return [run.b[broker].reg(**given)]


def _old(_: Any, run: Any, broker: int) -> Any:
    """Requests with an epoch from before; one reports on what the broker leads."""
    one, epoch = run.b[broker], run.b[broker].epoch - 1
    block = {"BrokerId": broker, "BrokerEpoch": epoch}
    places = ((run.tid[name], index) for name in sorted(run.tid) for index in range(4))
    led = [place for place in places if place in run.p and run.p[place]["Leader"] == broker]
    reports = []
    for place in led[:2]:
        epochs = run.p[place]["LeaderEpoch"], run.p[place]["PartitionEpoch"]
        reports.append(one.alter(*place, [broker], *epochs, epoch=epoch))
    return [one.hb(epoch=epoch), run.c.call("AllocateProducerIds", 0, block), *reports]


def _early(_: Any, run: Any, broker: int) -> Any:
    """A heartbeat of a broker that has read nothing yet, and its next one."""
    return [run.b[broker].hb(off=0), run.b[broker].hb(off=_LATER)]


def _lost(oracle: Any, run: Any, _: int) -> Any:
    """A broker that is not fenced loses the second of its directories."""
    one = run.b[WITH_TWO]
    return [one.hb(), one.hb(offline=[oracle.u(_SECOND)])]


def _all_lost(oracle: Any, run: Any, broker: int) -> Any:
    """A broker that is not fenced loses all of its directories, and says so twice."""
    one = run.b[broker]
    directories = [broker, _SECOND] if broker == WITH_TWO else [broker]
    offline = [*map(oracle.u, directories)]
    return [one.hb(), one.hb(offline=offline), one.hb(offline=offline)]


def _rejoin(oracle: Any, run: Any, broker: int, process: int) -> Any:
    """A broker is removed; another process comes under its id."""
    answers = [run.c.call("UnregisterBroker", 0, {"BrokerId": broker})]
    run.b[broker].inc = oracle.u(process)
    return [*answers, run.b[broker].reg(), run.b[broker].hb()]


def _abandoned(oracle: Any, run: Any, _: int, process: int) -> Any:
    """The broker is removed that could lead a partition without a leader, once others may."""
    places = ((name, index) for name in sorted(run.tid) for index in range(4))
    for name, index in places:
        found = run.p.get((run.tid[name], index), {"Leader": 0})
        eligible = [each for each in found.get("EligibleLeaderReplicas") or () if each in run.b]
        if found["Leader"] < 0 and eligible:
            change = ["unclean.leader.election.enable", 0, "true"]
            codes = [code for code, _ in oracle.configs(run.c, 2, name, [change])]
            return [codes, *_rejoin(oracle, run, eligible[0], process)]
    return None


def _recovering(_: Any, run: Any, __: int, topic: str, index: int) -> Any:
    """A leader says that it recovers, whether it does or not."""
    topic_id = run.tid.get(topic)
    found = run.p.get((topic_id, index))
    if not found or found["Leader"] < 0:
        return None
    leader, epochs = found["Leader"], (found["LeaderEpoch"], found["PartitionEpoch"])
    return run.b[leader].alter(topic_id, index, [leader], *epochs, rec=1)


def _time(_: Any, run: Any, __: int, beating: int, steps: int) -> list[Any]:
    """Some brokers tell that they are there, and time passes."""
    answers = [
        broker.hb()
        for place, broker in enumerate(run.b.values())
        if beating >> place & 1
    ]
    run.c.pass_time(steps)
    return answers


def _enveloped(_: Any, run: Any, __: int, fault: str) -> int:
    """A broker sends an envelope that may be wrong."""
    data, principal, address = ENVELOPED[fault]
    return int(run.c.envelope(data, principal, address)["ErrorCode"])


STEPS: dict[str, Callable[..., Any]] = {
    "cluster": _cluster,
    "up": _up,
    "again": _again,
    "wrong": _wrong,
    "old": _old,
    "early": _early,
    "lost": _lost,
    "all lost": _all_lost,
    "rejoin": _rejoin,
    "abandoned": _abandoned,
    "recovering": _recovering,
    "envelope": _enveloped,
    "time": _time,
    "deposed": lambda _, run, *__: run.failover(),
    "restarted": lambda _, run, *__: run.c.restart(),
}
