"""The check of a metadata record against the state that the records before it describe.

It finds what Kafka's controller cannot replay: there, it is a fatal fault. How much of the log is
known decides what is a contradiction: after a gap, or where the log does not begin at offset 0 or
with a snapshot, an entity that no record has created may exist all the same.

Source: `replay` of Kafka's `ClusterControlManager`, `ReplicationControlManager`,
`FeatureControlManager`, `ScramControlManager`, `AclControlManager`, `ProducerIdControlManager` and
`OffsetControlManager`; `PartitionRegistration`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from kraftwire.controller.entities import NEXT_PRODUCER_ID, Broker, Entities
from kraftwire.controller.record_effects import Action, Family, effect_of
from kraftwire.controller.versions import (
    CHANGED_METADATA,
    METADATA_VERSION,
    SUPPORTED_FEATURES,
)
from kraftwire.wire.json_form import uuid_to_text
from kraftwire.wire.message import Message


class Contradiction(NamedTuple):
    """A record that cannot be applied: what it says, and what the state says.

    `is_unsupported` is whether that is a level of a feature that this software does not support.
    """

    offset: int
    record: str
    state: str
    is_unsupported: bool = False

    def __str__(self) -> str:
        return f"offset {self.offset}: {self.record}, but {self.state}"


class MetadataCheck:
    """Checks records one after the other, in the order of the log or of a snapshot.

    Order: `begin_batch`, then `check_record` for each of its records. `is_whole` is
    whether everything before is known; `next_offset` is the end of what was checked. A record that
    contradicts the state does not change it; only the second topic of a name is remembered, so that
    its partitions are not reported as well.
    """

    def __init__(self, *, in_snapshot: bool = False) -> None:
        """With `in_snapshot`, the records are those of a snapshot, whose offsets are its own."""
        self.is_whole = True
        self.next_offset = 0
        self.entities = Entities()
        self._in_snapshot = in_snapshot

    def after_snapshot(self, end_offset: int) -> MetadataCheck:
        """Return the check of the log after this snapshot, and give it the state. Order: once."""
        check = MetadataCheck()
        check.is_whole, check.next_offset, check.entities = self.is_whole, end_offset, self.entities
        return check

    def begin_batch(self, base_offset: int, last_offset: int) -> bool:
        """Begin a batch; returns whether it follows the one before it without a gap."""
        follows = base_offset == self.next_offset
        if not follows:
            self.forget()
        self.next_offset = last_offset + 1
        return follows

    def forget(self) -> None:
        """Drop the state: a record was missing, damaged or of an unknown type."""
        self.is_whole = False
        self.entities = Entities()

    def check_record(self, offset: int, message: Message) -> Contradiction | None:
        """Check a record and add it to the state."""
        rule = _RULES.get(message.NAME)
        found = self._check_existence(message) if rule is None else rule(self, offset, message)
        return None if found is None else Contradiction(offset, *found)

    def _check_existence(self, record: Message) -> _Sides | None:
        """Check that the entity that a record removes exists. A control record removes none."""
        effect = effect_of(record)
        table = None if effect is None else self.entities.keys.get(effect.family)
        if effect is None or table is None:
            return None
        if effect.action is Action.PUT:
            self.entities.put(table, effect.key, None)
        elif not self.entities.drop(table, effect.key):
            says, state = _MISSING[effect.family]
            return self._missing(f"{record.NAME} is of {says(record)}", state)
        return None

    # ---- brokers

    def _register_broker(self, _: int, record: Any) -> _Sides | None:
        known, id = self.entities, record.broker_id
        taken = _check_directories(known, id, record.log_dirs)
        if taken is not None:
            return f"broker {id} registers {taken[0]}", taken[1]
        self._replace_broker(id, Broker(record.broker_epoch, tuple(record.log_dirs)))
        return None

    def _replace_broker(self, id: int, new: Broker | None) -> None:
        known = self.entities
        old = known.brokers.get(id)
        for directory in old.log_dirs if old else ():
            known.drop(known.directories, directory)
        for directory in new.log_dirs if new else ():
            known.put(known.directories, directory, id)
        if new is None:
            known.drop(known.brokers, id)
        else:
            known.put(known.brokers, id, new)

    def _check_broker_epoch(self, record: Any, id: int, epoch: int) -> _Sides | None:
        """Return the sides where a broker is not registered with the epoch of a record."""
        broker = self.entities.brokers.get(id)
        says = f"{record.NAME} is of broker {id} with broker epoch {epoch}"
        if broker is None:
            return self._missing(says, f"broker {id} is not registered")
        if broker.epoch != epoch:
            return says, f"broker {id} is registered with broker epoch {broker.epoch}"
        return None

    def _fence_broker(self, _: int, record: Any) -> _Sides | None:
        return self._check_broker_epoch(record, record.id, record.epoch)

    def _unregister_broker(self, _: int, record: Any) -> _Sides | None:
        found = self._check_broker_epoch(record, record.broker_id, record.broker_epoch)
        if found is None:
            self._replace_broker(record.broker_id, None)
        return found

    def _change_broker(self, _: int, record: Any) -> _Sides | None:
        known, id = self.entities, record.broker_id
        found = self._check_broker_epoch(record, id, record.broker_epoch)
        if found is not None:
            return found
        for name in ("fenced", "in_controlled_shutdown"):
            value, allowed = getattr(record, name), _CHANGES[name]
            if value not in allowed:
                values = ", ".join(map(str, allowed))
                return f"broker {id} changes {name} by {value}", f"Kafka's values are {values}"
        if record.log_dirs and id in known.brokers:
            taken = _check_directories(known, id, record.log_dirs)
            if taken is not None:
                return f"broker {id} changes to {taken[0]}", taken[1]
            self._replace_broker(id, Broker(record.broker_epoch, tuple(record.log_dirs)))
        return None

    # ---- topics

    def _create_topic(self, _: int, record: Any) -> _Sides | None:
        known, topic_id = self.entities, record.topic_id
        says = f"topic {_shortened(record.name)} is created with id {uuid_to_text(topic_id)}"
        name, other = known.topic_names.get(topic_id), known.topic_ids.get(record.name)
        if name is not None:
            return says, f"that id is of topic {_shortened(name)}, which exists"
        known.put(known.topic_names, topic_id, record.name)
        known.put(known.topic_ids, record.name, topic_id)
        known.put(known.partitions, topic_id, {})
        if other is not None:
            return says, f"a topic of that name exists with id {uuid_to_text(other)}"
        return None

    def _remove_topic(self, _: int, record: Any) -> _Sides | None:
        known, topic_id = self.entities, record.topic_id
        name = known.topic_names.get(topic_id)
        if name is None:
            says = f"{record.NAME} is of topic id {uuid_to_text(topic_id)}"
            return self._missing(says, _NO_TOPIC)
        known.drop(known.topic_names, topic_id)
        known.drop(known.partitions, topic_id)
        if known.topic_ids.get(name) == topic_id:
            known.drop(known.topic_ids, name)
        return None

    def _partition_text(self, record: Any) -> str:
        name = self.entities.topic_names.get(record.topic_id)
        topic = f"topic id {uuid_to_text(record.topic_id)}" if name is None else (
            f"topic {_shortened(name)}"
        )
        return f"{record.NAME} is of partition {record.partition_id} of {topic}"

    def _create_partition(self, _: int, record: Any) -> _Sides | None:
        known = self.entities
        partitions = known.partitions.get(record.topic_id)
        if partitions is None:
            return self._missing(self._partition_text(record), _NO_TOPIC)
        replicas = len(record.replicas)
        return self._replace_partition(partitions, record, replicas)

    def _change_partition(self, _: int, record: Any) -> _Sides | None:
        known = self.entities
        partitions = known.partitions.get(record.topic_id)
        if partitions is None:
            return self._missing(self._partition_text(record), _NO_TOPIC)
        replicas = partitions.get(record.partition_id)
        if replicas is None:
            return self._partition_text(record), "that topic has no such partition"
        if record.replicas is not None:
            replicas = len(record.replicas)
        return self._replace_partition(partitions, record, replicas)

    def _replace_partition(
        self, partitions: dict[int, int], record: Any, replicas: int
    ) -> _Sides | None:
        state = record.leader_recovery_state
        # In a change, -1 is none.
        if state not in _RECOVERY_STATES and (state != -1 or record.NAME == "PartitionRecord"):
            says = f"{self._partition_text(record)} with leader recovery state {state}"
            return says, "Kafka's values are 0 and 1"
        directories = len(record.directories or ())
        if directories and directories != replicas:
            says = f"{self._partition_text(record)} with {directories} directories"
            return says, f"it has {replicas} replicas"
        if partitions.get(record.partition_id) != replicas:
            self.entities.put(partitions, record.partition_id, replicas)
        return None

    def _clear_elr(self, _: int, record: Any) -> _Sides | None:
        name = record.topic_name
        if not name or name in self.entities.topic_ids:
            return None
        says = f"{record.NAME} is of topic {_shortened(name)}"
        return self._missing(says, "no topic has that name")

    # ---- the rest

    def _set_feature_level(self, _: int, record: Any) -> _Sides | None:
        name, level = record.name, record.feature_level
        says = f"{_shortened(name)} is set to level {level}"
        low, high = _LEVELS.get(name, (0, 0))
        if not low <= level <= high:
            return says, f"known levels are {low} to {high}", True
        if name != METADATA_VERSION:
            return None
        current = self.entities.singles.get(name, level)
        lost = [each for each in CHANGED_METADATA if level < each <= current]
        if lost:
            return says, f"it is {current}, and records of level {min(lost)} may exist"
        self.entities.put(self.entities.singles, name, level)
        return None

    def _allocate_producer_ids(self, _: int, record: Any) -> _Sides | None:
        known, new = self.entities, record.next_producer_id
        next_id = known.singles.get(NEXT_PRODUCER_ID)
        if next_id is not None and new <= next_id:
            return f"the next producer id is {new}", f"ids below {next_id} are handed out"
        known.put(known.singles, NEXT_PRODUCER_ID, new)
        return None

    def _begin_transaction(self, offset: int, record: Any) -> _Sides | None:
        if self._in_snapshot:
            return f"{record.NAME} begins a transaction", _NOT_IN_SNAPSHOTS
        began = self.entities.transaction_offset
        if began >= 0:
            text = f"the transaction that began at offset {began} is still open"
            return f"{record.NAME} begins a transaction", text
        self.entities.begin(offset)
        return None

    def _end_transaction(self, _: int, record: Any) -> _Sides | None:
        says = f"{record.NAME} ends a transaction"
        if self._in_snapshot:
            return says, _NOT_IN_SNAPSHOTS
        is_aborted = record.NAME == "AbortTransactionRecord"
        if self.entities.transaction_offset >= 0:
            self.entities.end(is_aborted=is_aborted)
            return None
        if not self.is_whole and is_aborted:
            # It began before what is known, so all that is known may be undone.
            self.forget()
        return self._missing(says, "no transaction is open")

    def _missing(self, record: str, state: str) -> _Sides | None:
        """Return the sides of a record whose entity is missing, if all before it is known."""
        return (record, state) if self.is_whole else None


# The texts of a `Contradiction`: of the record and of the state; and whether it is unsupported.
_Sides = tuple[str, str] | tuple[str, str, bool]

_NO_TOPIC = "no topic has that id"
_NOT_IN_SNAPSHOTS = "a snapshot holds no transactions"
_NAME_SHOWN_MAX = 100

# Values that a change of a registration may carry.
_CHANGES = {"fenced": (-1, 0, 1), "in_controlled_shutdown": (0, 1)}
_RECOVERY_STATES = (0, 1)

# Levels of metadata.version below those that are supported are in logs of Kafka 3.0 to 3.2.
_LEVELS = {**SUPPORTED_FEATURES, METADATA_VERSION: (1, SUPPORTED_FEATURES[METADATA_VERSION][1])}

# Entities of which only the existence counts: how a record names one, and the state without it.
_MISSING: Mapping[Family, tuple[Callable[[Any], str], str]] = {
    Family.CONTROLLERS: (
        lambda record: f"controller {record.controller_id}",
        "no such one is registered",
    ),
    Family.ACLS: (lambda record: f"ACL id {uuid_to_text(record.id)}", "no ACL has that id"),
    Family.SCRAM: (
        lambda record: f"user {_shortened(record.name)}, mechanism {record.mechanism}",
        "that user has no such credential",
    ),
}


def _check_directories(known: Entities, id: int, log_dirs: list[bytes]) -> _Sides | None:
    """Return the sides where a log directory of a broker belongs to another one."""
    for directory in log_dirs:
        owner = known.directories.get(directory, id)
        if owner != id:
            return f"log directory {uuid_to_text(directory)}", f"that is of broker {owner}"
    return None


def _shortened(name: str) -> str:
    return name if len(name) <= _NAME_SHOWN_MAX else f"{name[:_NAME_SHOWN_MAX]}..."


_RULES: Mapping[str, Callable[[MetadataCheck, int, Any], _Sides | None]] = {
    "AbortTransactionRecord": MetadataCheck._end_transaction,
    "BeginTransactionRecord": MetadataCheck._begin_transaction,
    "BrokerRegistrationChangeRecord": MetadataCheck._change_broker,
    "ClearElrRecord": MetadataCheck._clear_elr,
    "EndTransactionRecord": MetadataCheck._end_transaction,
    "FeatureLevelRecord": MetadataCheck._set_feature_level,
    "FenceBrokerRecord": MetadataCheck._fence_broker,
    "PartitionChangeRecord": MetadataCheck._change_partition,
    "PartitionRecord": MetadataCheck._create_partition,
    "ProducerIdsRecord": MetadataCheck._allocate_producer_ids,
    "RegisterBrokerRecord": MetadataCheck._register_broker,
    "RemoveTopicRecord": MetadataCheck._remove_topic,
    "TopicRecord": MetadataCheck._create_topic,
    "UnfenceBrokerRecord": MetadataCheck._fence_broker,
    "UnregisterBrokerRecord": MetadataCheck._unregister_broker,
}
