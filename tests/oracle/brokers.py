"""Simulated brokers and their clients, at a Java controller and at ours.

Owns the comparison. The scripts, and what makes two traces of them comparable (C-ORD-4), come from
`ctlfuzz` among the shared tools. Where Kafka writes something else on purpose, our log gets that
instead, so that offsets and epochs stay equal and the comparison goes on.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from itertools import groupby
from random import Random
from typing import Any

import trio
import trio.testing

from kraftwire.controller.placement import is_usable
from tests.oracle import clusters, placements
from tests.oracle.comparison import Comparison, Difference, Step
from tests.oracle.operations import mixed, plain
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
from tests.support.node_stub import control_batch, raw_batch

_STALE = "from a stale index (C-PCB-11)"
_COMES_OR_GOES = {"RegisterBrokerRecord", "UnregisterBrokerRecord"}
_RETURNS = "a replica that comes back is eligible (C-REA-8)"
_UNCLEAN = "a partition recovers after a cancelled reassignment (C-REA-6)"
_LEFT_ALONE = (_STALE, _RETURNS, _UNCLEAN)
_PLACING = ("placed", "spread")
_RESIGNED = "Kafka's controller resigns (C-PCB-11)"
_BY_CHANCE = "placed by chance on no active broker (C-PLA-3)"
_FINAL = {_RESIGNED, _BY_CHANCE}
_AT_RANDOM = "placed at random (C-PLA-3)"
_SHIFTED = "another offset after that"
_UNKNOWN_ERROR = {"ErrorCode": -1}
_NO_LEADER = "nobody as the last leader (C-PCB-8)"
_NOBODY = -1

# A topic id as in a trace, and the number of a partition.
_Place = tuple[Any, Any]

# What the Java controller runs with: a session does not end by itself.
PROPERTIES: Mapping[str, str] = {"broker.session.timeout.ms": "3600000"}


def operations(tools: Tools, seed: int, count: int) -> list[Any]:
    """A cluster with brokers that register, and then so many operations."""
    return [clusters.drawn(Random(seed)), *mixed(tools.fuzz.gen(seed, count), seed)]


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
    comparison = trio.run(_compare, tools, clusters.level_of(script), java)
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

    def __init__(self, tools: Tools, node: OurNode, comparison: Comparison) -> None:
        self._tools, self._node, self._comparison = tools, node, comparison
        self._connection = Connection(tools, node, comparison)
        self._run = tools.script(self._connection, node.raft.end_offset)
        self._run.failover = self._failover
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
        self._remember(java)
        before = len(node.batches), deepcopy((run.p, run.tid)), run.off
        (line,) = run.go([java["op"]])
        ours = json.loads(line)
        for step in (java, ours):
            step["re"] = _sorted(step["re"])
        if any(java[key] != ours[key] for key in ("end", "re", "rec")):
            reasons = self._reasons(java, ours)
            self._comparison.known.update(reasons)
            if not _FINAL.isdisjoint(reasons):
                return False
            if not reasons or _answered(java, reasons) != _answered(ours, reasons):
                self._comparison.difference = Difference(java, ours)
                return False
            count, (run.p, run.tid), run.off = before
            self._registered = {
                fields["BrokerId"]: fields
                for _, _, name, _, fields in self._connection.dump(run.off)
                if name == "RegisterBrokerRecord"
            }
            trio.from_thread.run_sync(rewind, node, count)
            self._add(java["rec"])
        return True

    def _remember(self, java: Step) -> None:
        """Note what is looked at after a step, if it differs."""
        cluster = self._node.controller._cluster
        brokers = cluster.image.brokers.values()
        self._fenced = {broker.id for broker in brokers if broker.is_fenced}
        self._held = self._partitions_of(plain(java["op"])[1])
        self._returning = self._with_others()
        self._candidates = {
            broker.id: placements.Candidate(
                broker.rack, broker.is_fenced, cluster.is_active(broker.id)
            )
            for broker in cluster.image.brokers.values()
            if is_usable(cluster, broker)
        }
        self._levels = dict(cluster.image.features)
        self._connection.is_refused_by_java = [STALE_SESSION, -1] in _answers(java)

    def _partitions_of(self, broker: Any) -> set[tuple[str, int]]:
        """Return the partitions in which a broker is in sync or eligible, as a trace has them."""
        topics = self._node.image.topics
        return {
            (self._run.norm(topic_id), index)
            for topic_id, index in (*topics.in_isr(broker), *topics.in_elr(broker))
        }

    def _with_others(self) -> set[_Place]:
        """Return the partitions in which brokers are eligible that have no replica any more."""
        topics = self._node.image.topics
        keys = {key for broker in self._run.b for key in topics.in_elr(broker)}
        found = ((key, topics.partition(key)) for key in keys)
        return {
            (self._run.norm(topic_id), index)
            for (topic_id, index), one in found
            if one and not set(one.eligible_leader_replicas or ()) <= set(one.replicas)
        }

    def _failover(self) -> None:
        run = self._run
        led = (q for (t, _), q in run.p.items() if t in run.tid.values())
        if any(q["Leader"] in run.b for q in led):
            trio.from_thread.run_sync(begin_epoch, self._node)
            trio.from_thread.run(trio.testing.wait_all_tasks_blocked)

    def _reasons(self, java: Step, ours: Step) -> list[str]:
        """Return why the records of a step differ, if all of that is known."""
        if java["re"] == _UNKNOWN_ERROR:
            return [_RESIGNED]
        if plain(java["op"])[0] in _PLACING:
            half = (not one.is_fenced and not one.is_active for one in self._candidates.values())
            if java["re"] != ours["re"] and any(half):
                return [_BY_CHANCE]
            return [_AT_RANDOM] if self._is_placed(java, ours) else []
        theirs, own = (Counter(map(_text, step["rec"])) for step in (java, ours))
        missing = [json.loads(text) for text in (theirs - own).elements()]
        more = [json.loads(text) for text in (own - theirs).elements()]
        found = {_text(record): self._reason(java, record, more) for record in missing}
        known = [_alike(record) for record in missing]
        excused = {_place(one) for one in missing if found[_text(one)] in _LEFT_ALONE}
        failed = self._excuse(java, ours)
        if any(_alike(one) not in known and _place(one) not in excused | failed for one in more):
            return []
        reasons = [*found.values(), *([_RETURNS] * len(failed))]
        if not reasons and self._begins_stale(java):
            return [_STALE]
        return reasons if all(reasons) and set(reasons) != {_SHIFTED} else []

    def _is_placed(self, java: Step, ours: Step) -> bool:
        """Return whether both have placed as many replicas, by the laws."""
        records = [step["rec"] for step in (java, ours)]
        theirs, own = map(placements.without, records)
        return theirs == own and all(
            placements.is_lawful(some, self._candidates) for some in records
        )

    def _excuse(self, java: Step, ours: Step) -> set[_Place]:
        """Answer as Kafka does where it fails to add a replica that was eligible (C-REA-8); returns
        the partitions."""
        found = set()
        told, own = (_partitions(step["re"]) for step in (java, ours))
        for (name, index), result in told.items():
            place = self._run.norm(self._run.tid.get(name)), index
            if result["ErrorCode"] == -1 and place in self._returning and (name, index) in own:
                own[name, index]["ErrorCode"] = -1
                found.add(place)
        return found

    def _reason(self, java: Step, record: list[Any], more: list[Any]) -> str:
        """Return why Kafka writes a record and ours does not, if that is on purpose; `more` is
        what only ours writes."""
        name, _, fields = record
        if name == "BrokerRegistrationChangeRecord" and fields.get("Fenced") == 1:
            return "fenced again (C-HB-7)" if fields["BrokerId"] in self._fenced else ""
        if name == "FeatureLevelRecord":
            is_equal = self._levels.get(fields["Name"], 0) == fields["FeatureLevel"]
            return "a level is written again (C-FEA-4)" if is_equal else ""
        if _place(record) in self._returning and _place(record) in map(_place, more):
            return _RETURNS
        if plain(java["op"])[0] == "cancel" and any(_recovered(one) == record for one in more):
            return _UNCLEAN
        if any(_alike(record) == _alike(one) for one in more):
            return _NO_LEADER if fields.get("LastKnownElr") == [_NOBODY] else _SHIFTED
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
        return any(self._reason(java, record, []) == _STALE for record in first)

    def _add(self, records: list[Any]) -> None:
        """Append records of a trace to our log."""
        for is_control, group in groupby(records, lambda record: record[0] == "control"):
            some = () if is_control else tuple(group)
            node, values = self._node, [*map(self._value, some)]
            end, epoch = node.raft.end_offset, node.raft.epoch
            batch = raw_batch(values, end, epoch) if values else control_batch(end, epoch=epoch)
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


def _answers(step: Step) -> list[Any]:
    return step["re"] if isinstance(step["re"], list) else []


def _answered(step: Step, reasons: Collection[str]) -> Any:
    """Return the answers of a step; without epochs of brokers, which are offsets, where those
    differ."""
    answers = _answers(step)
    if _SHIFTED not in reasons or not answers:
        return step["re"]
    return [each[0] if isinstance(each, list) else each for each in answers]


def _alike(record: list[Any]) -> list[Any]:
    """Return a record without what may differ: the epoch of a broker, which is an offset, and the
    last leader of a partition that had none."""
    name, version, fields = record
    plain = {key: value for key, value in fields.items() if key != "BrokerEpoch"}
    if plain.get("LastKnownElr") == [_NOBODY]:
        plain["LastKnownElr"] = None
    return [name, version, plain]


def _recovered(record: list[Any]) -> list[Any]:
    """Return a record without the recovery of the leader."""
    name, version, fields = record
    return [name, version, fields | {"LeaderRecoveryState": -1}]


def _partitions(answer: Any) -> dict[tuple[str, int], dict[str, Any]]:
    """Return the results of an answer about reassignments by partition."""
    topics = answer.get("Responses", ()) if isinstance(answer, dict) else ()
    return {
        (topic["Name"], one["PartitionIndex"]): one
        for topic in topics
        for one in topic.get("Partitions", ())
    }


def _place(record: list[Any]) -> _Place:
    """Return the partition that a record is about."""
    return record[2].get("TopicId"), record[2].get("PartitionId")


def _text(record: Any) -> str:
    return json.dumps(record, sort_keys=True)


def _sorted(answer: Any) -> Any:
    """Return an answer with the results of elections by partition, which Kafka has in the order of
    a hash table (C-ORD-2)."""
    results = answer.get("ReplicaElectionResults", ()) if isinstance(answer, dict) else ()
    for each in results:
        each["PartitionResult"].sort(key=lambda one: one["PartitionId"])
    return answer
