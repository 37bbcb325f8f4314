"""Topics and their partitions, and the indexes by which the controller finds partitions.

Partitions are `PartitionRecord`s with all changes merged into them. A partition is never changed in
place: a change replaces it.

Source: Kafka's `TopicsDelta`, `PartitionRegistration.merge` and `BrokersToIsrs`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from copy import copy

from kraftwire.controller.image.record_store import RecordStore, encode_in_version
from kraftwire.controller.record_effects import Family
from kraftwire.messages.clear_elr_record import ClearElrRecord
from kraftwire.messages.partition_change_record import PartitionChangeRecord
from kraftwire.messages.partition_record import PartitionRecord
from kraftwire.messages.remove_topic_record import RemoveTopicRecord
from kraftwire.messages.topic_record import TopicRecord

NO_LEADER = -1
_NO_CHANGE = -1
_SAME_LEADER = -2
_RECOVERING = 1

# A partition by topic id and index.
PartitionKey = tuple[bytes, int]


class TopicsImage:
    """The topics of the log, by id and by name, and their partitions.

    `names` and `ids` lead from id to name and back. `without_leader` and `reassigning` are
    partitions in that state; `away` those that the first of their replicas does not lead.
    `unclean_elections` and `elr_elections` count the leaders chosen among replicas that could lack
    records, and among the eligible ones.
    """

    def __init__(self, records: RecordStore) -> None:
        """`records` keeps every topic and partition as its newest record."""
        self.names: dict[bytes, str] = {}
        self.ids: dict[str, bytes] = {}
        self.without_leader: set[PartitionKey] = set()
        self.reassigning: set[PartitionKey] = set()
        self.away: set[PartitionKey] = set()
        self.unclean_elections = self.elr_elections = 0
        # Names with a dot or an underscore, by what metrics make of them.
        self._in_metrics: dict[str, dict[str, None]] = {}
        self._records = records
        self._partitions: dict[bytes, dict[int, PartitionRecord]] = {}
        self._with_elr: set[PartitionKey] = set()
        self._by_isr: defaultdict[int, set[PartitionKey]] = defaultdict(set)
        self._by_elr: defaultdict[int, set[PartitionKey]] = defaultdict(set)
        self._by_leader: defaultdict[int, int] = defaultdict(int)

    def colliding(self, name: str) -> str | None:
        """Return a topic that metrics cannot tell from another name, None without one (C-TOP-3).
        """
        return next(iter(self._in_metrics.get(_in_metrics(name), ())), None)

    def partitions(self, topic_id: bytes) -> Mapping[int, PartitionRecord]:
        """Return the partitions of a topic by index, none for an unknown id."""
        return self._partitions.get(topic_id, {})

    def partition(self, key: PartitionKey) -> PartitionRecord | None:
        """Return a partition, None if it does not exist."""
        return self.partitions(key[0]).get(key[1])

    def in_isr(self, broker_id: int) -> list[PartitionKey]:
        """Return the partitions with a broker among their in-sync replicas, in order."""
        return sorted(self._by_isr.get(broker_id, ()), key=self.order)

    def in_elr(self, broker_id: int) -> list[PartitionKey]:
        """Return the partitions with a broker among their eligible leader replicas, in order."""
        return sorted(self._by_elr.get(broker_id, ()), key=self.order)

    def leads_any(self, broker_id: int) -> bool:
        """Return whether a broker leads a partition."""
        return self._by_leader.get(broker_id, 0) > 0

    @property
    def partition_count(self) -> int:
        """The number of partitions, at a cost that depends on the brokers alone."""
        return sum(self._by_leader.values())

    def order(self, key: PartitionKey) -> tuple[str, int]:
        """Return the sort key of a partition: the name of its topic, then its index."""
        return self.names.get(key[0], ""), key[1]

    def all(self) -> Iterator[tuple[PartitionKey, PartitionRecord]]:
        """Yield all partitions, those of a topic together."""
        for topic_id, partitions in self._partitions.items():
            for index, partition in partitions.items():
                yield (topic_id, index), partition

    def add(self, record: TopicRecord, value: bytes) -> None:
        """Add a topic."""
        self.names[record.topic_id] = record.name
        self.ids[record.name] = record.topic_id
        if "_" in _in_metrics(record.name):
            self._in_metrics.setdefault(_in_metrics(record.name), {})[record.name] = None
        self._partitions.setdefault(record.topic_id, {})
        self._records.put(Family.TOPICS, record.topic_id, value)

    def remove(self, record: RemoveTopicRecord) -> str | None:
        """Remove a topic and its partitions; returns its name, None if it does not exist."""
        name = self.names.pop(record.topic_id, None)
        if name is not None and self.ids.get(name) == record.topic_id:
            del self.ids[name]
            alike = self._in_metrics.get(_in_metrics(name), {})
            alike.pop(name, None)
            if not alike:
                self._in_metrics.pop(_in_metrics(name), None)
        self._records.drop(Family.TOPICS, record.topic_id)
        for index, partition in self._partitions.pop(record.topic_id, {}).items():
            key = record.topic_id, index
            self._records.drop(Family.PARTITIONS, key)
            self._unlist(key, partition)
        return name

    def add_partition(self, record: PartitionRecord, value: bytes) -> bool:
        """Add a partition; returns False if its topic does not exist."""
        if record.topic_id not in self.names:
            return False
        self._keep((record.topic_id, record.partition_id), record, value)
        return True

    def change_partition(self, change: PartitionChangeRecord, version: int) -> bool:
        """Change a partition; returns False if it does not exist.

        `version` is the one to write the partition in, unless it has a newer one.
        """
        key = change.topic_id, change.partition_id
        old, value = self.partition(key), self._records.get(Family.PARTITIONS, key)
        if old is None or value is None:
            return False
        self.unclean_elections += change.leader_recovery_state == _RECOVERING
        self.elr_elections += change.leader in (old.eligible_leader_replicas or ())
        merged = changed_partition(old, change)
        written = self._records.version(value)
        self._keep(key, merged, encode_in_version(merged, max(version, written)))
        return True

    def clear_elr(self, record: ClearElrRecord, version: int) -> bool:
        """Clear the eligible leader replicas of a topic, or of all topics; returns False if the
        topic does not exist."""
        keys: Iterable[PartitionKey] = self._with_elr
        if record.topic_name:
            found = self.ids.get(record.topic_name)
            if found is None:
                return False
            # A request may clear thousands of topics: none of them looks at the others.
            keys = self._with_elr.intersection((found, index) for index in self._partitions[found])
        for topic_id, index in sorted(keys):
            change = PartitionChangeRecord(
                topic_id=topic_id,
                partition_id=index,
                eligible_leader_replicas=[],
                last_known_elr=[],
            )
            self.change_partition(change, version)
        return True

    def _keep(self, key: PartitionKey, record: PartitionRecord, value: bytes) -> None:
        partitions = self._partitions[key[0]]
        old = partitions.get(key[1])
        if old is not None:
            self._unlist(key, old)
        partitions[key[1]] = record
        self._list(key, record)
        self._records.put(Family.PARTITIONS, key, value)

    def _list(self, key: PartitionKey, partition: PartitionRecord) -> None:
        """Enter a partition into the indexes."""
        for replica in partition.isr:
            self._by_isr[replica].add(key)
        for replica in partition.eligible_leader_replicas or ():
            self._by_elr[replica].add(key)
        self._by_leader[partition.leader] += 1
        if partition.leader == NO_LEADER:
            self.without_leader.add(key)
        if is_reassigning(partition):
            self.reassigning.add(key)
        if partition.leader not in partition.replicas[:1]:
            self.away.add(key)
        if partition.eligible_leader_replicas or partition.last_known_elr:
            self._with_elr.add(key)

    def _unlist(self, key: PartitionKey, partition: PartitionRecord) -> None:
        """Remove a partition from the indexes."""
        for replica in partition.isr:
            self._by_isr[replica].discard(key)
        for replica in partition.eligible_leader_replicas or ():
            self._by_elr[replica].discard(key)
        self._by_leader[partition.leader] -= 1
        for listed in (self.without_leader, self.reassigning, self.away, self._with_elr):
            listed.discard(key)


def _in_metrics(name: str) -> str:
    """Return a topic's name as Kafka's metrics have it."""
    return name.replace(".", "_")


def is_reassigning(partition: PartitionRecord) -> bool:
    """Return whether replicas are being added to a partition or removed from it."""
    return bool(partition.adding_replicas or partition.removing_replicas)


def changed_partition(partition: PartitionRecord, change: PartitionChangeRecord) -> PartitionRecord:
    """Return a partition after a change, with both epochs advanced as Kafka does (C-PCB-7)."""
    record = copy(partition)
    for name in ("isr", "replicas", "removing_replicas", "adding_replicas", "directories"):
        value = getattr(change, name)
        if value is not None:
            setattr(record, name, value)
    for name in ("eligible_leader_replicas", "last_known_elr"):
        value = getattr(change, name)
        if value is not None:
            setattr(record, name, value or None)
    if change.leader != _SAME_LEADER:
        record.leader = change.leader
        record.leader_epoch += 1
    if change.leader_recovery_state != _NO_CHANGE:
        record.leader_recovery_state = change.leader_recovery_state
    record.partition_epoch += 1
    return record
