"""What differs on purpose between Kafka's controller and ours, and how it is recognized.

Each reason cites its rule, which is marked **Differs** in `docs/controller-rules.md`, or says what
follows from another one.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection
from typing import Any

from kraftwire.controller.placement import is_usable
from tests.oracle import placements
from tests.oracle.broker_steps import WITH_TWO
from tests.oracle.comparison import Step
from tests.oracle.operations import plain
from tests.oracle.our_controller import OurNode

_STALE = "from a stale index (C-PCB-11)"
_COMES_OR_GOES = {"RegisterBrokerRecord", "UnregisterBrokerRecord"}
_AGAIN = "fenced again (C-HB-7)"
_RETURNS = "a replica that comes back is eligible (C-REA-8)"
_UNCLEAN = "a partition recovers after a cancelled reassignment (C-REA-6)"
_NOT_IN_SYNC = "a replica that is not in sync loses its directory (C-DIR-3)"
_LEFT_ALONE = (_STALE, _RETURNS, _UNCLEAN, _NOT_IN_SYNC)
_LOSING = ("lost", "all lost")
_CANCELLING = ("cancel", "stranded")
_PLACING = ("placed", "spread")
RESIGNED = "Kafka's controller resigns (C-PCB-11)"
BY_CHANCE = "placed by chance on no active broker (C-PLA-3)"
_AT_RANDOM = "placed at random (C-PLA-3)"
_IN_ORDER = "configurations in the order of a hash table (C-ORD-3)"
_SHIFTED = "another offset after that"
UNKNOWN_ERROR = {"ErrorCode": -1}
_NO_LEADER = "nobody as the last leader (C-PCB-8)"
_NOBODY = -1

# A topic id as in a trace, and the number of a partition.
_Place = tuple[Any, Any]


class KnownDifferences:
    """Why a step differs. Order: `remember` before our controller does it, then `reasons`."""

    def __init__(self, run: Any, node: OurNode) -> None:
        self._run, self._node = run, node

    def remember(self, java: Step) -> None:
        """Note what is looked at after a step, if it differs."""
        cluster = self._node.controller._cluster
        brokers = cluster.image.brokers.values()
        self._fenced = {broker.id for broker in brokers if broker.is_fenced}
        moving = [fields["BrokerId"] for name, _, fields in java["rec"] if name in _COMES_OR_GOES]
        kind, broker = plain(java["op"])[:2]
        self._held = self._partitions_of(moving[0] if moving else broker)
        self._in_sync = self._partitions_in_sync(WITH_TWO if kind == "lost" else broker)
        self._returning = self._with_others()
        self._candidates = {
            broker.id: placements.Candidate(
                broker.rack, broker.is_fenced, cluster.is_active(broker.id)
            )
            for broker in cluster.image.brokers.values()
            if is_usable(cluster, broker)
        }
        self._levels = dict(cluster.image.features)

    def _partitions_of(self, broker: Any) -> set[tuple[str, int]]:
        """Return the partitions in which a broker is in sync or eligible, as a trace has them."""
        topics = self._node.image.topics
        return {
            (self._run.norm(topic_id), index)
            for topic_id, index in (*topics.in_isr(broker), *topics.in_elr(broker))
        }

    def _partitions_in_sync(self, broker: Any) -> set[_Place]:
        """Return the partitions in which a broker is in sync."""
        keys = self._node.image.topics.in_isr(broker)
        return {(self._run.norm(topic_id), index) for topic_id, index in keys}

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

    def reasons(self, java: Step, ours: Step) -> list[str]:
        """Return why the records of a step differ, if all of that is known."""
        if plain(java["op"])[0] in _PLACING:
            half = (not one.is_fenced and not one.is_active for one in self._candidates.values())
            has_failed = java["re"] != ours["re"] or (java["rec"] and not ours["rec"])
            if has_failed and any(half):
                return [BY_CHANCE]
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
        if theirs == own and _without_configs(java) == _without_configs(ours):
            return [_IN_ORDER]
        if set(reasons) == {_SHIFTED} and self._begins_stale(java):
            return [_SHIFTED, _STALE]
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
            return _AGAIN if fields["BrokerId"] in self._fenced_again(java) else ""
        if name == "PartitionChangeRecord" and fields["Isr"] == []:
            # The last in-sync replica becomes eligible, now that there are such.
            eligible = set(fields.get("EligibleLeaderReplicas") or ())
            if eligible & self._fenced_again(java):
                return _AGAIN
        if name == "FeatureLevelRecord":
            is_equal = self._levels.get(fields["Name"], 0) == fields["FeatureLevel"]
            return "a level is written again (C-FEA-4)" if is_equal else ""
        if _place(record) in self._returning and _place(record) in map(_place, more):
            return _RETURNS
        is_cancelled = plain(java["op"])[0] in _CANCELLING
        if is_cancelled and _recovered(record) in map(_recovered, more):
            return _UNCLEAN
        if any(_alike(record) == _alike(one) for one in more):
            return _NO_LEADER if fields.get("LastKnownElr") == [_NOBODY] else _SHIFTED
        if name == "PartitionChangeRecord" and plain(java["op"])[0] in _LOSING:
            is_again = [*map(_place, java["rec"])].count(_place(record)) > 1
            return _NOT_IN_SYNC if is_again or _place(record) not in self._in_sync else ""
        if name == "PartitionChangeRecord" and _COMES_OR_GOES & {one[0] for one in java["rec"]}:
            is_stale = (fields["TopicId"], fields["PartitionId"]) not in self._held
            return _STALE if is_stale or _is_repeated(java, record) else ""
        return ""

    def _fenced_again(self, java: Step) -> set[int]:
        """Return the brokers that Kafka fences although they are fenced."""
        fenced = Counter(
            fields["BrokerId"]
            for name, _, fields in java["rec"]
            if name == "BrokerRegistrationChangeRecord" and fields.get("Fenced") == 1
        )
        return {broker for broker, times in fenced.items() if broker in self._fenced or times > 1}

    def _begins_stale(self, java: Step) -> bool:
        """Return whether Kafka changes a partition before it registers a broker that is not in
        it."""
        names = [name for name, *_ in java["rec"]]
        if "RegisterBrokerRecord" not in names:
            return False
        first = java["rec"][: names.index("RegisterBrokerRecord")]
        return any(self._reason(java, record, []) == _STALE for record in first)


def _is_repeated(java: Step, record: list[Any]) -> bool:
    """Return whether Kafka changes a partition once more because of a broker that goes."""
    names = [name for name, *_ in java["rec"]]
    end = names.index("RegisterBrokerRecord") if "RegisterBrokerRecord" in names else 0
    changed = [_place(one) for one in java["rec"][:end] if one[0] == "PartitionChangeRecord"]
    is_going = record in java["rec"][:end] and changed.count(_place(record)) > 1
    return is_going or java["rec"].count(record) > 1


def answered(step: Step, reasons: Collection[str]) -> Any:
    """Return the answers of a step; without epochs of brokers, which are offsets, where those
    differ."""
    answers = step["re"] if isinstance(step["re"], list) else []
    if BY_CHANCE in reasons:
        return None
    if _SHIFTED not in reasons or not answers:
        return step["re"]
    return [each[0] if isinstance(each, list) else each for each in answers]


def _without_configs(step: Step) -> list[Any]:
    """Return the records of a step but those of configurations."""
    return [record for record in step["rec"] if record[0] != "ConfigRecord"]


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
