"""Topics and their partitions, which are kept for snapshots but not used.

Source: Kafka's `TopicsDelta` and `PartitionRegistration.merge`.
"""

from __future__ import annotations

from kraftwire.messages.clear_elr_record import ClearElrRecord
from kraftwire.messages.partition_change_record import PartitionChangeRecord
from kraftwire.messages.partition_record import PartitionRecord
from kraftwire.messages.remove_topic_record import RemoveTopicRecord
from kraftwire.messages.topic_record import TopicRecord
from kraftwire.node.image.record_store import Family, RecordStore, encode_in_version
from kraftwire.records.metadata import decode_metadata

_NO_CHANGE = -1
_SAME_LEADER = -2


class Topics:
    """Finds the records of a topic among all records."""

    def __init__(self, records: RecordStore) -> None:
        self._records = records
        self._names: dict[bytes, str] = {}
        self._ids: dict[str, bytes] = {}
        self._partitions: dict[bytes, list[int]] = {}
        self._with_elr: set[tuple[bytes, int]] = set()

    def add(self, record: TopicRecord, value: bytes) -> None:
        """Add a topic."""
        self._names[record.topic_id] = record.name
        self._ids[record.name] = record.topic_id
        self._records.put(Family.TOPICS, record.topic_id, value)

    def remove(self, record: RemoveTopicRecord) -> str | None:
        """Remove a topic and its partitions; returns its name, None if it does not exist."""
        name = self._names.pop(record.topic_id, None)
        if name is not None and self._ids.get(name) == record.topic_id:
            del self._ids[name]
        self._records.drop(Family.TOPICS, record.topic_id)
        for index in self._partitions.pop(record.topic_id, ()):
            self._records.drop(Family.PARTITIONS, (record.topic_id, index))
            self._with_elr.discard((record.topic_id, index))
        return name

    def add_partition(self, record: PartitionRecord, value: bytes) -> bool:
        """Add a partition; returns False if its topic does not exist."""
        if record.topic_id not in self._names:
            return False
        key = record.topic_id, record.partition_id
        if self._records.get(Family.PARTITIONS, key) is None:
            self._partitions.setdefault(record.topic_id, []).append(record.partition_id)
        self._keep(key, record, value)
        return True

    def change_partition(self, change: PartitionChangeRecord, version: int) -> bool:
        """Change a partition; returns False if it does not exist.

        `version` is the one to write the partition in, unless it has a newer one.
        """
        key = change.topic_id, change.partition_id
        value = self._records.get(Family.PARTITIONS, key)
        if value is None:
            return False
        decoded = decode_metadata(value)
        record = decoded.message
        assert isinstance(record, PartitionRecord)
        _merge(record, change)
        self._keep(key, record, encode_in_version(record, max(version, decoded.version or 0)))
        return True

    def clear_elr(self, record: ClearElrRecord, version: int) -> bool:
        """Clear the eligible leader replicas of a topic, or of all topics; returns False if the
        topic does not exist."""
        keys = set(self._with_elr)
        if record.topic_name:
            topic_id = self._ids.get(record.topic_name)
            if topic_id is None:
                return False
            keys = {key for key in keys if key[0] == topic_id}
        for topic_id, index in sorted(keys):
            change = PartitionChangeRecord(
                topic_id=topic_id,
                partition_id=index,
                eligible_leader_replicas=[],
                last_known_elr=[],
            )
            self.change_partition(change, version)
        return True

    def _keep(self, key: tuple[bytes, int], record: PartitionRecord, value: bytes) -> None:
        if record.eligible_leader_replicas or record.last_known_elr:
            self._with_elr.add(key)
        else:
            self._with_elr.discard(key)
        self._records.put(Family.PARTITIONS, key, value)


def _merge(record: PartitionRecord, change: PartitionChangeRecord) -> None:
    """Apply a change to a partition, and advance both epochs as Kafka does."""
    for name in ("isr", "replicas", "removing_replicas", "adding_replicas", "directories"):
        changed = getattr(change, name)
        if changed is not None:
            setattr(record, name, changed)
    for name in ("eligible_leader_replicas", "last_known_elr"):
        changed = getattr(change, name)
        if changed is not None:
            setattr(record, name, changed or None)
    if change.leader != _SAME_LEADER:
        record.leader = change.leader
        record.leader_epoch += 1
    if change.leader_recovery_state != _NO_CHANGE:
        record.leader_recovery_state = change.leader_recovery_state
    record.partition_epoch += 1
