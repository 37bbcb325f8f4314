"""The state after applying metadata records: the part that the node uses, and the rest as bytes.

A record replaces the record of the same key, removes it, or changes it. A record that cannot be
applied leaves the state incomplete, and an incomplete state cannot be written to a snapshot.

Source: Kafka's `MetadataDelta`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from kraftwire.controller.image.cluster import BrokerImage, ControllerImage, change_broker
from kraftwire.controller.image.record_store import RecordStore
from kraftwire.controller.image.topics import TopicsImage
from kraftwire.controller.record_effects import RECORD_EFFECTS, Action, Effect, Family
from kraftwire.controller.versions import METADATA_VERSION, record_version
from kraftwire.errors import KraftwireError, UsageError
from kraftwire.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraftwire.messages.clear_elr_record import ClearElrRecord
from kraftwire.messages.delegation_token_record import DelegationTokenRecord
from kraftwire.messages.fence_broker_record import FenceBrokerRecord
from kraftwire.messages.partition_change_record import PartitionChangeRecord
from kraftwire.messages.partition_record import PartitionRecord
from kraftwire.messages.register_broker_record import RegisterBrokerRecord
from kraftwire.messages.remove_topic_record import RemoveTopicRecord
from kraftwire.messages.unfence_broker_record import UnfenceBrokerRecord
from kraftwire.protocol.config_resources import TOPIC_RESOURCE
from kraftwire.records.metadata import decode_metadata, encode_metadata
from kraftwire.security.acls import Acl, AclIndex
from kraftwire.security.decoys import ScramIndex, credential_of
from kraftwire.wire.message import Message


class IncompleteImageError(KraftwireError):
    """A record could not be applied to the state, or the state cannot be written to a snapshot."""


class MetadataState:
    """The state after the records so far.

    `features` are finalized levels by name, last changed at `features_offset`; `configs` values by
    name of a resource, `acls` arranged for decisions, `scram` the users of SCRAM, `tokens`
    delegation tokens by id, new ones last. `alive` are the brokers that are not fenced,
    `directories` the owners of log directories: nothing that happens often may take time for every
    broker. `records` holds everything, these included, as records.
    """

    def __init__(self, records: RecordStore | None = None) -> None:
        self.features: dict[str, int] = {}
        self.features_offset = -1
        self.controllers: dict[int, ControllerImage] = {}
        self.brokers: dict[int, BrokerImage] = {}
        self.alive: dict[int, BrokerImage] = {}
        self.directories: dict[bytes, int] = {}
        self.configs: dict[tuple[int, str], dict[str, str]] = {}
        self.acls = AclIndex()
        self.scram = ScramIndex()
        self.tokens: dict[str, DelegationTokenRecord] = {}
        self.records = RecordStore() if records is None else records
        self.topics = TopicsImage(self.records)

    @property
    def level(self) -> int:
        """The finalized level of metadata.version, 0 before the bootstrap records."""
        return self.features.get(METADATA_VERSION, 0)

    def apply(self, offset: int, message: Message, value: bytes) -> None:
        """Apply a record to the state. `value` is the record's value with its frame.

        Raises: IncompleteImageError if it cannot be applied; the state is then unchanged.
        """
        name = message.NAME
        effect_of = RECORD_EFFECTS.get(name)
        if effect_of is None:
            raise IncompleteImageError(f"{name} is of a type that this software does not keep")
        change = _CHANGES.get(name)
        if change is not None:
            change(self, message)
            return
        effect = effect_of(message)
        if effect is None:
            return
        if effect.action is Action.PUT:
            self._put(offset, effect, message, value)
        else:
            self._remove(offset, effect, message)

    def _put(self, offset: int, effect: Effect, record: Any, value: bytes) -> None:
        """Put an entity in place of the one with its key; those that come in thousands first."""
        _, family, key = effect
        match family:
            case Family.PARTITIONS:
                if not self.topics.add_partition(record, value):
                    raise _missing_entity(record, f"topic {record.topic_id.hex()}")
                return
            case Family.TOPICS:
                self.topics.add(record, value)
                return
            case Family.CONFIGS:
                self.configs.setdefault(key[:2], {})[record.name] = record.value
            case Family.SCRAM:
                self.scram.put(record.name, record.mechanism, credential_of(record))
            case Family.ACLS:
                # One whose principal has no type concerns nobody, in Kafka neither.
                with suppress(UsageError):
                    self.acls.add(key, Acl.of(record))
            case Family.TOKENS:
                self.tokens[key] = record
            case Family.BROKERS:
                self._put_broker(BrokerImage.of(record, offset))
            case Family.CONTROLLERS:
                self.controllers[key] = ControllerImage.of(record)
            case Family.METADATA_VERSION | Family.FEATURES:
                self.features[key] = record.feature_level
                self.features_offset = offset
        self.records.put(family, key, value)

    def _remove(self, offset: int, effect: Effect, record: Any) -> None:
        """Remove an entity, if it exists."""
        _, family, key = effect
        match family:
            case Family.TOPICS:
                self._remove_topic(record)
                return
            case Family.BROKERS:
                broker = self.brokers.get(key)
                if broker is None or broker.epoch != record.broker_epoch:
                    return  # it came too late: the broker has registered again since
                self._forget_broker(key)
            case Family.METADATA_VERSION | Family.FEATURES:
                self.features.pop(key, None)
                self.features_offset = offset
            case Family.CONTROLLERS:
                self.controllers.pop(key, None)
            case Family.CONFIGS:
                self._forget_config(key)
            case Family.ACLS:
                self.acls.remove(key)
            case Family.SCRAM:
                self.scram.remove(*key)
            case Family.TOKENS:
                self.tokens.pop(key, None)
        self.records.drop(family, key)

    def _forget_config(self, key: tuple[int, str, str]) -> None:
        resource = key[:2]
        values = self.configs.get(resource, {})
        values.pop(key[2], None)
        if not values:
            self.configs.pop(resource, None)

    def _put_broker(self, broker: BrokerImage) -> None:
        self._forget_broker(broker.id)
        self.brokers[broker.id] = broker
        self.directories.update(dict.fromkeys(broker.log_dirs, broker.id))
        if not broker.is_fenced:
            self.alive[broker.id] = broker

    def _forget_broker(self, broker_id: int) -> None:
        broker = self.brokers.pop(broker_id, None)
        self.alive.pop(broker_id, None)
        for directory in broker.log_dirs if broker is not None else ():
            if self.directories.get(directory) == broker_id:
                del self.directories[directory]

    def _change_broker(self, change: BrokerRegistrationChangeRecord) -> None:
        _check_tags(change)
        broker = self.brokers.get(change.broker_id)
        if broker is None:
            raise _missing_entity(change, f"broker {change.broker_id}")
        if broker.epoch != change.broker_epoch:
            return  # it came too late: the broker has registered again since
        stored = self.records.get(Family.BROKERS, broker.id)
        assert stored is not None
        decoded = decode_metadata(stored)
        record = decoded.message
        assert isinstance(record, RegisterBrokerRecord)
        change_broker(record, change)
        version = max(record_version(record.NAME, self.level), decoded.version or 0)
        self._put_broker(BrokerImage.of(record, broker.offset))
        self.records.put(Family.BROKERS, broker.id, encode_metadata(record, version))

    def _fence(self, record: FenceBrokerRecord | UnfenceBrokerRecord) -> None:
        fenced = 1 if isinstance(record, FenceBrokerRecord) else -1
        self._change_broker(
            BrokerRegistrationChangeRecord(
                broker_id=record.id, broker_epoch=record.epoch, fenced=fenced
            )
        )

    def _remove_topic(self, record: RemoveTopicRecord) -> None:
        topic = self.topics.remove(record)
        if topic is not None:
            for name in self.configs.pop((TOPIC_RESOURCE, topic), ()):
                self.records.drop(Family.CONFIGS, (TOPIC_RESOURCE, topic, name))

    def _change_partition(self, change: PartitionChangeRecord) -> None:
        _check_tags(change)
        version = record_version(PartitionRecord.NAME, self.level)
        if not self.topics.change_partition(change, version):
            place = f"partition {change.partition_id} of topic {change.topic_id.hex()}"
            raise _missing_entity(change, place)

    def _clear_elr(self, record: ClearElrRecord) -> None:
        version = record_version(PartitionRecord.NAME, self.level)
        if not self.topics.clear_elr(record, version):
            raise _missing_entity(record, f"topic {record.topic_name}")


def _check_tags(change: BrokerRegistrationChangeRecord | PartitionChangeRecord) -> None:
    """Refuse a change with unknown tagged fields: they cannot be merged into a record."""
    if change.unknown_tagged_fields:
        raise IncompleteImageError(
            f"{change.NAME}: it has tagged fields that this software does not know"
        )


def _missing_entity(record: Message, what: str) -> IncompleteImageError:
    return IncompleteImageError(f"{record.NAME} refers to {what}, which does not exist")


_CHANGES: Mapping[str, Callable[[MetadataState, Any], None]] = {
    "BrokerRegistrationChangeRecord": MetadataState._change_broker,
    "ClearElrRecord": MetadataState._clear_elr,
    "FenceBrokerRecord": MetadataState._fence,
    "PartitionChangeRecord": MetadataState._change_partition,
    "UnfenceBrokerRecord": MetadataState._fence,
}
