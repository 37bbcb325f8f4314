"""Simulated brokers and their clients, at a Java controller and at ours.

Owns the comparison. The scripts, and what makes two traces of them comparable (C-ORD-4), come from
`ctlfuzz` among the shared tools. Where Kafka writes more than ours on purpose, those records are
added to our log, so that offsets and epochs stay equal and the comparison goes on.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from copy import copy
from random import Random
from typing import Any

import trio
import trio.testing

from kraftwire.records.metadata import encode_metadata
from tests.oracle import levels
from tests.oracle.comparison import Comparison, Difference, Step
from tests.oracle.operations import mixed, plain
from tests.oracle.our_controller import STALE_SESSION, Connection, begin_epoch, our_controller
from tests.oracle.shared_scripts import Tools
from tests.support.node_stub import StubNode, raw_batch

_STALE = "from a stale index (C-PCB-11)"
_COMES_OR_GOES = {"RegisterBrokerRecord", "UnregisterBrokerRecord"}
_SHIFTED = "another offset after that"
_RESIGNED = "Kafka's controller resigns (C-PCB-11)"
_UNKNOWN_ERROR = {"ErrorCode": -1}
_NOBODY = -1

# What the Java controller runs with: a session does not end by itself.
PROPERTIES: Mapping[str, str] = {"broker.session.timeout.ms": "3600000"}


def operations(tools: Tools, seed: int, count: int) -> list[Any]:
    """A cluster with brokers that register, and then so many operations."""
    return [levels.drawn(Random(seed)), *mixed(tools.fuzz.gen(seed, count), seed)]


def java_steps(tools: Tools, connection: Any, end: int, script: Sequence[Any]) -> list[Step]:
    """What a fresh Java controller does, whose log ends at an offset; up to an operation on which
    it resigns."""
    steps: list[Step] = []
    try:
        steps.extend(json.loads(line) for line in tools.script(connection, end).go(script))
    except AssertionError as error:
        # A fetch that Kafka refuses.
        if "'ErrorCode': 6," not in str(error):
            raise
    return steps


def compare(tools: Tools, script: Sequence[Any], java: list[Step]) -> Comparison:
    """Send a script to our controller; ends at the first unknown difference, and at a known one
    that cannot be evened out."""
    comparison = trio.run(_compare, tools, levels.level_of(script), java)
    if len(java) < len(script):
        comparison.known[_RESIGNED] += 1
    return comparison


async def _compare(tools: Tools, level: int, java: list[Step]) -> Comparison:
    async with our_controller(tools, level) as (node, comparison):
        script = _Script(tools, node, comparison)
        await trio.to_thread.run_sync(script.run, java)
    return comparison


class _Script:
    """One run of a script at our controller."""

    def __init__(self, tools: Tools, node: StubNode, comparison: Comparison) -> None:
        self._tools, self._node, self._comparison = tools, node, comparison
        self._connection = Connection(tools, node, comparison)
        self._run = tools.script(self._connection, node.raft.end_offset)
        self._run.failover = self._failover

    def run(self, java: list[Step]) -> None:
        """Compare step after step."""
        for step in java:
            brokers = self._node.image.brokers.values()
            self._fenced = {broker.id for broker in brokers if broker.is_fenced}
            self._held = self._partitions_of(plain(step["op"])[1])
            self._levels = dict(self._node.image.features)
            self._connection.is_refused_by_java = [STALE_SESSION, -1] in _answers(step)
            (line,) = self._run.go([step["op"]])
            self._comparison.records += len(step["rec"])
            self._comparison.operations += 1
            if not self._is_same(step, json.loads(line)):
                return
            self._forget_offsets(step)

    def _partitions_of(self, broker: Any) -> set[tuple[str, int]]:
        """Return the partitions in which a broker is in sync or eligible, as a trace has them."""
        topics = self._node.image.topics
        return {
            (self._run.norm(topic_id), index)
            for topic_id, index in (*topics.in_isr(broker), *topics.in_elr(broker))
        }

    def _failover(self) -> None:
        run = self._run
        led = (q for (t, _), q in run.p.items() if t in run.tid.values())
        if any(q["Leader"] in run.b for q in led):
            trio.from_thread.run_sync(begin_epoch, self._node)
            trio.from_thread.run(trio.testing.wait_all_tasks_blocked)

    def _is_same(self, java: Step, ours: Step) -> bool:
        """Compare one step; known differences are evened out."""
        self._forget_nobody(java)
        theirs, own = (Counter(map(_text, step["rec"])) for step in (java, ours))
        missing = [json.loads(text) for text in (theirs - own).elements()]
        shifted = {_text(_without_epoch(json.loads(text))) for text in own - theirs}
        reasons = [
            self._reason(java, record)
            or (_SHIFTED if _text(_without_epoch(record)) in shifted else "")
            for record in missing
        ]
        if missing and all(reasons):
            self._comparison.known.update(reasons)
            if own - theirs:
                # What Kafka wrote from a stale index has changed what it wrote next.
                return _STALE not in reasons and self._differs(java, ours)
            self._add(missing)
            ours |= {"end": self._run.off - self._run.base, "rec": java["rec"]}
        if own == theirs and java["rec"] != ours["rec"] and self._begins_stale(java):
            # The same changes, but one of them earlier.
            self._comparison.known[_STALE] += 1
            ours["rec"] = java["rec"]
        for step in (java, ours):
            step["re"] = _sorted(step["re"])
        is_same = all(java[key] == ours[key] for key in ("end", "re", "rec"))
        if not is_same and java["re"] == _UNKNOWN_ERROR:
            self._comparison.known[_RESIGNED] += 1
            return False
        return is_same or self._differs(java, ours)

    def _differs(self, java: Step, ours: Step) -> bool:
        """Note an unknown difference; returns False."""
        self._comparison.difference = Difference(java, ours)
        return False

    def _forget_nobody(self, java: Step) -> None:
        """Drop what Kafka stores as the last leader of a partition that had none before
        (C-PCB-8)."""
        topics, run = self._node.image.topics, self._run
        ids = {name: value for value, name in run.nm.items()}
        for name, _, fields in java["rec"]:
            if name == "PartitionChangeRecord" and fields.get("LastKnownElr") == [_NOBODY]:
                self._comparison.known["nobody as the last leader (C-PCB-8)"] += 1
                fields["LastKnownElr"] = None
                key = ids[fields["TopicId"]], fields["PartitionId"]
                run.p[key]["LastKnownElr"] = [_NOBODY]
                partition = topics.partition(key)
                assert partition is not None
                changed = copy(partition)
                changed.last_known_elr = [_NOBODY]
                topics.add_partition(changed, encode_metadata(changed, 2))

    def _reason(self, java: Step, record: list[Any]) -> str:
        """Return why Kafka writes a record and ours does not, if that is on purpose."""
        name, _, fields = record
        if name == "BrokerRegistrationChangeRecord" and fields.get("Fenced") == 1:
            return "fenced again (C-HB-7)" if fields["BrokerId"] in self._fenced else ""
        if name == "FeatureLevelRecord":
            is_equal = self._levels.get(fields["Name"], 0) == fields["FeatureLevel"]
            return "a level is written again (C-FEA-4)" if is_equal else ""
        if name == "PartitionChangeRecord" and _COMES_OR_GOES & {one[0] for one in java["rec"]}:
            is_repeated = java["rec"].count(record) > 1
            is_stale = (fields["TopicId"], fields["PartitionId"]) not in self._held
            return _STALE if is_repeated or is_stale else ""
        return ""

    def _begins_stale(self, java: Step) -> bool:
        """Return whether Kafka changes a partition before it registers a broker that is not in
        it."""
        names = [name for name, *_ in java["rec"]]
        if "RegisterBrokerRecord" not in names:
            return False
        first = java["rec"][: names.index("RegisterBrokerRecord")]
        return any(self._reason(java, record) == _STALE for record in first)

    def _add(self, records: list[Any]) -> None:
        """Append records of a trace to our log."""
        if not records:
            return
        proto, run = self._tools.proto, self._run
        numbers = {meta["name"]: number for number, meta in proto.META.items()}
        values = [
            b"".join(
                (
                    *map(proto.uvar, (1, numbers[name], version)),
                    proto.encode(name, self._denormalised(fields), version),
                )
            )
            for name, version, fields in records
        ]
        batch = raw_batch(values, self._node.raft.end_offset, self._node.raft.epoch)
        trio.from_thread.run_sync(self._node.commit, batch)
        added = [one for one in self._connection.dump(run.off) if one[0] >= run.off]
        run.fold(added)
        run.off = added[-1][0] + 1

    def _denormalised(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a record with our ids and offsets."""
        ids = {name: value for value, name in self._run.nm.items()}

        def value_of(value: Any) -> Any:
            if isinstance(value, list):
                return [value_of(each) for each in value]
            if isinstance(value, str) and value[:1] in "dru" and value[1:].isdigit():
                number = int(value[1:])
                reserved = number.to_bytes(16, "big")
                return {"u": ids.get(value), "d": self._tools.oracle.u(number), "r": reserved}[
                    value[0]
                ]
            return value

        plain = {key: value_of(value) for key, value in fields.items()}
        if "BrokerEpoch" in plain:
            plain["BrokerEpoch"] += self._run.base
        return plain

    def _forget_offsets(self, java: Step) -> None:
        """Forget the offset that a broker has reported where Kafka does (C-HB-10)."""
        for name, _, fields in java["rec"]:
            if name == "BrokerRegistrationChangeRecord":
                self._node.controller._sessions.offsets.pop(fields["BrokerId"], None)


def _answers(step: Step) -> list[Any]:
    return step["re"] if isinstance(step["re"], list) else []


def _without_epoch(record: list[Any]) -> list[Any]:
    """Return a record without the epoch of a broker, which is an offset."""
    name, version, fields = record
    return [name, version, {key: fields[key] for key in fields if key != "BrokerEpoch"}]


def _text(record: Any) -> str:
    return json.dumps(record, sort_keys=True)


def _sorted(answer: Any) -> Any:
    """Return an answer with the results of elections by partition, which Kafka has in the order of
    a hash table (C-ORD-2)."""
    results = answer.get("ReplicaElectionResults", ()) if isinstance(answer, dict) else ()
    for each in results:
        each["PartitionResult"].sort(key=lambda one: one["PartitionId"])
    return answer
