"""Simulated brokers and their clients, at a Java controller and at ours.

Owns the comparison. The scripts, and what makes two traces of them comparable (C-ORD-4), come from
`ctlfuzz` among the shared tools. Where Kafka writes something else on purpose, our log gets that
instead, so that offsets and epochs stay equal and the comparison goes on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from copy import deepcopy
from itertools import groupby
from random import Random
from typing import Any

import trio
import trio.testing

from tests.oracle import clusters, passing_time
from tests.oracle.comparison import Comparison, Difference, Step
from tests.oracle.known_differences import (
    RESIGNED,
    UNKNOWN_ERROR,
    KnownDifferences,
    answered,
)
from tests.oracle.operations import mixed
from tests.oracle.our_controller import (
    STALE_SESSION,
    Connection,
    OurNode,
    begin_epoch,
    our_controller,
    register,
    rewind,
)
from tests.oracle.shared_scripts import Tools
from tests.support.nodes.stub import control_batch, raw_batch

# What the Java controller runs with.
PROPERTIES: Mapping[str, str] = passing_time.PROPERTIES

# How ids begin that Kafka has given to topics, and ours has not.
_ONLY_KAFKAS = b"topic id"


def operations(tools: Tools, seed: int, count: int) -> list[Any]:
    """A cluster with brokers that register, and then so many operations."""
    return [clusters.drawn(Random(seed)), *mixed(tools.fuzz.gen(seed, count), seed)]


def java_steps(tools: Tools, connection: Any, end: int, script: Sequence[Any]) -> list[Step]:
    """What a fresh Java controller does, whose log ends at an offset.

    Where an operation lets it resign, it starts again, so that it does not resign time after time.
    """
    run = tools.script(connection, end)
    failover = run.failover
    run.failover = lambda: connection.in_time(failover)
    return [_java_step(run, number, op) for number, op in enumerate(script)]


def _java_step(run: Any, number: int, op: Any) -> Step:
    try:
        (line,) = run.go([op])
        step: Step = json.loads(line)
    except AssertionError as error:
        # A fetch that Kafka refuses.
        if "'ErrorCode': 6," not in str(error):
            raise
        step = {"re": UNKNOWN_ERROR, "rec": []}
    if step["re"] == UNKNOWN_ERROR:
        (line,) = run.go([["restarted"]])
        again = json.loads(line)
        epochs = {broker: one.epoch for broker, one in run.b.items()}
        step = again | {"rec": step["rec"] + again["rec"], "re": UNKNOWN_ERROR, "epochs": epochs}
    # Both write configurations in one order if they are asked in the order of the keys (C-ORD-3).
    return step | {"i": number, "op": json.loads(_text(op))}


def compare(tools: Tools, script: Sequence[Any], java: list[Step]) -> Comparison:
    """Send a script to our controller; ends at the first unknown difference, and at a known one
    that cannot be evened out."""
    return trio.run(_compare, tools, clusters.level_of(script), java)


async def _compare(tools: Tools, level: int, java: list[Step]) -> Comparison:
    async with our_controller(tools, level, **passing_time.CONFIG) as (node, comparison):
        script = _Script(tools, node, comparison)
        await trio.to_thread.run_sync(script.run, java)
    return comparison


class _Script:
    """One run of a script at our controller."""

    def __init__(self, tools: Tools, node: OurNode, comparison: Comparison) -> None:
        self._tools, self._node, self._comparison = tools, node, comparison
        self._connection = Connection(tools, node, comparison)
        self._run = tools.script(self._connection, node.raft.end_offset)
        self._run.failover = self._failover
        self._known = KnownDifferences(self._run, node)
        self._run.settle = lambda: trio.from_thread.run(register, node)

    def run(self, java: list[Step]) -> None:
        """Compare step after step."""
        for step in java:
            self._comparison.records += len(step["rec"])
            self._comparison.operations += 1
            if not self._goes_on(step):
                return

    def _goes_on(self, java: Step) -> bool:
        """Compare one step; known differences are evened out. Returns whether both agree."""
        node, run = self._node, self._run
        self._known.remember(java)
        self._connection.is_refused_by_java = [STALE_SESSION, -1] in _answers(java)
        node.sessions.order = [
            fields["BrokerId"]
            for name, _, fields in java["rec"]
            if name == "BrokerRegistrationChangeRecord" and fields["Fenced"] == 1
        ]
        before = len(node.batches), deepcopy((run.p, run.tid)), dict(run.nm), run.off
        (line,) = run.go([java["op"]])
        ours = json.loads(line)
        if "epochs" in java:
            self._comparison.known[RESIGNED] += 1
            self._take_back(before)
            self._start_again(java)
            return True
        for step in (java, ours):
            step["re"] = _sorted(step["re"])
        if any(java[key] != ours[key] for key in ("end", "re", "rec")):
            reasons = self._known.reasons(java, ours)
            self._comparison.known.update(reasons)
            if not reasons or answered(java, reasons) != answered(ours, reasons):
                self._comparison.difference = Difference(java, ours)
                return False
            self._take_back(before)
            self._add(java["rec"])
        return True

    def _take_back(self, before: Any) -> None:
        """Shorten our log to what it was before a step."""
        run = self._run
        count, (run.p, run.tid), run.nm, run.off = before
        self._registered = {
            fields["BrokerId"]: fields
            for _, _, name, _, fields in self._connection.dump(run.off)
            if name == "RegisterBrokerRecord"
        }
        trio.from_thread.run_sync(rewind, self._node, count)

    def _start_again(self, java: Step) -> None:
        """Write what Kafka wrote before it resigned, and start again as it did."""
        names = [name for name, *_ in java["rec"]]
        last = len(names) - 1 - names[::-1].index("control")
        for broker, epoch in java["epochs"].items():
            self._run.b[broker].epoch = epoch
        self._add(java["rec"][:last])
        self._connection.restart()
        # Ids have their names in the order in which they appear.
        self._run.norm([fields for *_, fields in self._connection.dump(self._run.off)])
        self._run.off = self._node.raft.end_offset
        assert self._run.off - self._run.base == java["end"], java

    def _failover(self) -> None:
        run = self._run
        led = (q for (t, _), q in run.p.items() if t in run.tid.values())
        if any(q["Leader"] in run.b for q in led):
            trio.from_thread.run_sync(begin_epoch, self._node)
            trio.from_thread.run(trio.testing.wait_all_tasks_blocked)

    def _add(self, records: list[Any]) -> None:
        """Append records of a trace to our log."""
        node = self._node
        for is_control, group in groupby(records, lambda record: record[0] == "control"):
            some = list(group)
            if is_control:
                for _ in some:
                    end, epoch = node.raft.end_offset, node.raft.epoch
                    trio.from_thread.run_sync(node.commit, control_batch(end, epoch=epoch))
                continue
            values = [*map(self._value, some)]
            batch = raw_batch(values, node.raft.end_offset, node.raft.epoch)
            trio.from_thread.run_sync(node.commit, batch)
            for name, _, fields in some:
                if name == "RegisterBrokerRecord":
                    self._follow(fields["BrokerId"], fields["BrokerEpoch"] + self._run.base)
        run = self._run
        run.fold(self._connection.dump(run.off))
        run.off = self._node.raft.end_offset

    def _follow(self, broker: int, epoch: int) -> None:
        """Let a broker and its session have the epoch that Kafka gave it."""
        one, sessions = self._run.b[broker], self._node.controller._sessions.last_ms
        if (broker, one.epoch) in sessions:
            sessions[broker, epoch] = sessions.pop((broker, one.epoch))
            times = sorted(sessions.items(), key=lambda item: item[1])
            sessions.clear()
            sessions.update(times)
        one.epoch = epoch

    def _value(self, record: list[Any]) -> bytes:
        """Return a record of a trace as it is written."""
        name, version, fields = record
        proto, given = self._tools.proto, self._denormalised(fields)
        if name == "RegisterBrokerRecord":
            # A trace has neither endpoints nor features.
            given = self._registered[fields["BrokerId"]] | given
        (number,) = (key for key, meta in proto.META.items() if meta["name"] == name)
        frame = b"".join(map(proto.uvar, (1, number, version)))
        return bytes(frame + proto.encode(name, given, version))

    def _denormalised(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a record with our ids and offsets."""
        ids = {name: value for value, name in self._run.nm.items()}

        def id_of(name: str) -> Any:
            if name not in ids:
                # Only Kafka has this topic.
                ids[name] = _ONLY_KAFKAS + int(name[1:]).to_bytes(8, "big")
                self._run.nm[ids[name]] = name
            return ids[name]

        def value_of(value: Any) -> Any:
            if isinstance(value, list):
                return [value_of(each) for each in value]
            if isinstance(value, str) and value[:1] in "dru" and value[1:].isdigit():
                if value[0] == "u":
                    return id_of(value)
                number = int(value[1:])
                is_ours = value[0] == "d"
                return self._tools.oracle.u(number) if is_ours else number.to_bytes(16, "big")
            return value

        plain = {key: value_of(value) for key, value in fields.items()}
        if "BrokerEpoch" in plain:
            plain["BrokerEpoch"] += self._run.base
        return plain


def _answers(step: Step) -> list[Any]:
    return step["re"] if isinstance(step["re"], list) else []


def _text(record: Any) -> str:
    return json.dumps(record, sort_keys=True)


def _sorted(answer: Any) -> Any:
    """Return an answer with the results of elections by partition, which Kafka has in the order of
    a hash table (C-ORD-2)."""
    results = answer.get("ReplicaElectionResults", ()) if isinstance(answer, dict) else ()
    for each in results:
        each["PartitionResult"].sort(key=lambda one: one["PartitionId"])
    return answer
