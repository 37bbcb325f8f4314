"""What clients of brokers do in scripts: topics, replicas, levels of features."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kraftwire.controller.versions import WITH_CONTROLLERS


def is_even(run: Any, topic: str) -> bool:
    """Return whether all partitions of a topic have as many replicas; where not, it is a hash
    table that decides which of Kafka's counts (C-PART)."""
    ids = {topic_id for name, topic_id in run.tid.items() if name == topic}
    return len({len(one["Replicas"]) for key, one in run.p.items() if key[0] in ids}) <= 1


def _placed(oracle: Any, run: Any, _: int, topic: str, size: tuple[int, int]) -> Any:
    """A topic whose replicas the controller places: so many partitions with so many of them."""
    partitions, factor = size
    return oracle.topic(run.c, topic, n=partitions, rf=factor)


def _spread(_: Any, run: Any, __: int, topic: str, count: int) -> Any:
    """More partitions, whose replicas the controller places."""
    if not is_even(run, topic):
        return None
    more = {"Name": topic, "Count": count, "Assignments": None}
    body = {"Topics": [more], "TimeoutMs": 9000, "ValidateOnly": False}
    return run.c.call("CreatePartitions", 3, body)


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
    if not is_even(run, grown):
        return [answer["Topics"][0]["ErrorCode"]]
    count = sum(topic_id == run.tid.get(grown) for topic_id, _ in run.p)
    more = {"Name": grown, "Count": count + 1, "Assignments": [{"BrokerIds": ids}]}
    body = {"Topics": [more], "TimeoutMs": 9000, "ValidateOnly": True}
    return [answer["Topics"][0]["ErrorCode"], run.c.call("CreatePartitions", 3, body)]


def _own(oracle: Any, run: Any, broker: int) -> list[int]:
    """One broker is to have another number of in-sync replicas than the others."""
    change = ["min.insync.replicas", 0, "2"]
    return [code for code, _ in oracle.configs(run.c, 4, str(broker), [change])]


def _led(run: Any, number: int, others: int) -> Any:
    """Return one of the partitions that have a leader, and so many brokers without a replica: its
    topic, its number, its leader and what is known of it. None if there is none."""
    found = [
        (name, index, run.b[one["Leader"]], one)
        for name in sorted(run.tid)
        for (topic_id, index), one in sorted(run.p.items(), key=lambda item: item[0][1])
        if topic_id == run.tid[name]
        and one["Leader"] in run.b
        and len(set(run.b) - set(one["Replicas"])) >= others
    ]
    return found[number % len(found)] if found else None


def _alter(run: Any, led: Any, isr: list[int], changes: int) -> Any:
    """Let a leader set the in-sync replicas after so many changes of its partition."""
    name, index, leader, one = led
    epochs = one["LeaderEpoch"], one["PartitionEpoch"] + changes
    return leader.alter(run.tid[name], index, isr, *epochs)


def _shrunk(oracle: Any, run: Any, _: int, number: int) -> Any:
    """All replicas of a partition but its leader leave the in-sync replicas, and stay eligible."""
    led = _led(run, number, 0)
    if led is None:
        return None
    name, _, leader, one = led
    change = ["min.insync.replicas", 0, "3"]
    codes = [code for code, _ in oracle.configs(run.c, 2, name, [change])]
    # Where it has eligible replicas, the configuration clears them.
    before = int(any(one.get(key) for key in ("EligibleLeaderReplicas", "LastKnownElr")))
    others = [each for each in one["Replicas"] if each != leader.i]
    grown = _alter(run, led, [leader.i, *others], before)
    return [codes, grown, *(_alter(run, led, [leader.i], before + more) for more in (0, 1))]


def _stranded(oracle: Any, run: Any, _: int, number: int) -> Any:
    """A reassignment is cancelled when only a replica that it adds is in sync, where records may be
    lost or not."""
    led = _led(run, number >> 1, 2)
    if led is None:
        return None
    name, index, leader, one = led
    others = [each for each in run.b if each not in one["Replicas"]][:2]
    unclean = ["unclean.leader.election.enable", 0, "true" if number & 1 else "false"]
    answers = [code for code, _ in oracle.configs(run.c, 2, name, [unclean])]
    answers.append(_moves(oracle, run, 0, name, [[index, [*one["Replicas"], *others]]]))
    answers.append(_alter(run, led, [leader.i, others[0]], 1))
    answers.append(leader.hb(fence=True))
    answers.append(_moves(oracle, run, 0, name, [[index, None]]))
    return [*answers, leader.hb()]


def _eligible(oracle: Any, run: Any, broker: int, level: int) -> Any:
    """Eligible leader replicas are switched on, or off; then brokers may differ in how many
    in-sync replicas they want."""
    kind = 1 if level else 2
    update = {
        "Feature": "eligible.leader.replicas.version",
        "MaxVersionLevel": level,
        "UpgradeType": kind,
    }
    body = {"timeoutMs": 9000, "ValidateOnly": False, "FeatureUpdates": [update]}
    answer = run.c.call("UpdateFeatures", 2, body)["ErrorCode"]
    if level:
        return answer
    nobody = [code for code, _ in oracle.configs(run.c, 4, "", [["min.insync.replicas", 1, None]])]
    return [answer, nobody, _own(oracle, run, broker)]


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


STEPS: dict[str, Callable[..., Any]] = {
    "placed": _placed,
    "spread": _spread,
    "listed": _listed,
    "moves": _moves,
    "drop": _drop,
    "absent": _absent,
    "uneven": _uneven,
    "own": _own,
    "shrunk": _shrunk,
    "stranded": _stranded,
    "eligible": _eligible,
    "metadata": _metadata,
}
