"""The state after applying metadata records: the part that the node uses, and the rest as bytes.

A record replaces the record of the same key, removes it, or changes it. A record that cannot be
applied leaves the state incomplete, and an incomplete state cannot be written to a snapshot.

Source: Kafka's `MetadataDelta`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from typing import Any

from kraftwire.controller.image.cluster import BrokerImage, ControllerImage, change_broker
from kraftwire.controller.image.record_store import Family, RecordStore
from kraftwire.controller.image.topics import TopicsImage
from kraftwire.controller.versions import METADATA_VERSION, record_version
from kraftwire.errors import KraftwireError, UsageError
from kraftwire.messages.access_control_entry_record import AccessControlEntryRecord
from kraftwire.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraftwire.messages.clear_elr_record import ClearElrRecord
from kraftwire.messages.client_quota_record import ClientQuotaRecord
from kraftwire.messages.config_record import ConfigRecord
from kraftwire.messages.delegation_token_record import DelegationTokenRecord
from kraftwire.messages.feature_level_record import FeatureLevelRecord
from kraftwire.messages.fence_broker_record import FenceBrokerRecord
from kraftwire.messages.partition_change_record import PartitionChangeRecord
from kraftwire.messages.partition_record import PartitionRecord
from kraftwire.messages.register_broker_record import RegisterBrokerRecord
from kraftwire.messages.register_controller_record import RegisterControllerRecord
from kraftwire.messages.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from kraftwire.messages.remove_delegation_token_record import RemoveDelegationTokenRecord
from kraftwire.messages.remove_topic_record import RemoveTopicRecord
from kraftwire.messages.remove_user_scram_credential_record import RemoveUserScramCredentialRecord
from kraftwire.messages.topic_record import TopicRecord
from kraftwire.messages.unfence_broker_record import UnfenceBrokerRecord
from kraftwire.messages.unregister_broker_record import UnregisterBrokerRecord
from kraftwire.messages.unregister_controller_record import UnregisterControllerRecord
from kraftwire.messages.user_scram_credential_record import UserScramCredentialRecord
from kraftwire.protocol.config_resources import TOPIC_RESOURCE
from kraftwire.records.metadata import decode_metadata, encode_metadata
from kraftwire.security.acls import Acl, AclIndex
from kraftwire.security.decoys import ScramIndex, credential_of
from kraftwire.wire.message import Message

# Its level is in the voters' control records; feature records for it are ignored.
_KRAFT_VERSION = "kraft.version"

# Unknown tagged fields of a change cannot be merged into a record.
_UNKNOWN_TAGS = "it has tagged fields that this software does not know"


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
        if name in _KEPT:
            family, key_of = _KEPT[name]
            self.records.put(family, key_of(message), value)
        elif name in _APPLIED:
            _APPLIED[name](self, offset, message, value)
        elif name not in _WITHOUT_STATE:
            raise IncompleteImageError(f"{name} is of a type that this software does not keep")

    def _feature(self, offset: int, record: FeatureLevelRecord, value: bytes) -> None:
        if record.name == _KRAFT_VERSION:
            return
        self.features_offset = offset
        is_version = record.name == METADATA_VERSION
        family = Family.METADATA_VERSION if is_version else Family.FEATURES
        if record.feature_level:
            self.features[record.name] = record.feature_level
            self.records.put(family, record.name, value)
        else:
            self.features.pop(record.name, None)
            self.records.drop(family, record.name)

    def _config(self, _: int, record: ConfigRecord, value: bytes) -> None:
        resource = record.resource_type, record.resource_name
        values = self.configs.setdefault(resource, {})
        if record.value is not None:
            values[record.name] = record.value
            self.records.put(Family.CONFIGS, (*resource, record.name), value)
            return
        values.pop(record.name, None)
        self.records.drop(Family.CONFIGS, (*resource, record.name))
        if not values:
            del self.configs[resource]

    def _quota(self, _: int, record: ClientQuotaRecord, value: bytes) -> None:
        entity = frozenset((part.entity_type, part.entity_name) for part in record.entity)
        if record.remove:
            self.records.drop(Family.QUOTAS, (entity, record.key))
        else:
            self.records.put(Family.QUOTAS, (entity, record.key), value)

    def _acl(self, _: int, record: AccessControlEntryRecord, value: bytes) -> None:
        self.records.put(Family.ACLS, record.id, value)
        # One whose principal has no type concerns nobody, in Kafka neither.
        with suppress(UsageError):
            self.acls.add(record.id, Acl.of(record))

    def _remove_acl(self, _: int, record: RemoveAccessControlEntryRecord, value: bytes) -> None:
        del value
        self.records.drop(Family.ACLS, record.id)
        self.acls.remove(record.id)

    def _user(self, _: int, record: UserScramCredentialRecord, value: bytes) -> None:
        self.records.put(Family.SCRAM, (record.name, record.mechanism), value)
        self.scram.put(record.name, record.mechanism, credential_of(record))

    def _remove_user(self, _: int, record: RemoveUserScramCredentialRecord, value: bytes) -> None:
        del value
        self.records.drop(Family.SCRAM, (record.name, record.mechanism))
        self.scram.remove(record.name, record.mechanism)

    def _token(self, _: int, record: DelegationTokenRecord, value: bytes) -> None:
        self.records.put(Family.TOKENS, record.token_id, value)
        self.tokens[record.token_id] = record

    def _remove_token(self, _: int, record: RemoveDelegationTokenRecord, value: bytes) -> None:
        del value
        self.records.drop(Family.TOKENS, record.token_id)
        self.tokens.pop(record.token_id, None)

    def _controller(self, _: int, record: RegisterControllerRecord, value: bytes) -> None:
        self.controllers[record.controller_id] = ControllerImage.of(record)
        self.records.put(Family.CONTROLLERS, record.controller_id, value)

    def _drop_controller(self, _: int, record: UnregisterControllerRecord, value: bytes) -> None:
        del value
        self.controllers.pop(record.controller_id, None)
        self.records.drop(Family.CONTROLLERS, record.controller_id)

    def _broker(self, offset: int, record: RegisterBrokerRecord, value: bytes) -> None:
        self._forget_broker(record.broker_id)
        broker = self.brokers[record.broker_id] = BrokerImage.of(record, offset)
        self.directories.update(dict.fromkeys(broker.log_dirs, broker.id))
        if not broker.is_fenced:
            self.alive[broker.id] = broker
        self.records.put(Family.BROKERS, record.broker_id, value)

    def _forget_broker(self, broker_id: int) -> None:
        broker = self.brokers.pop(broker_id, None)
        self.alive.pop(broker_id, None)
        for directory in broker.log_dirs if broker is not None else ():
            if self.directories.get(directory) == broker_id:
                del self.directories[directory]

    def _change(self, _: int, change: BrokerRegistrationChangeRecord, value: bytes) -> None:
        del value
        if change.unknown_tagged_fields:
            raise IncompleteImageError(f"{change.NAME}: {_UNKNOWN_TAGS}")
        broker = self.brokers.get(change.broker_id)
        if broker is None:
            raise _missing(change, f"broker {change.broker_id}")
        if broker.epoch != change.broker_epoch:
            return  # it came too late: the broker has registered again since
        stored = self.records.get(Family.BROKERS, broker.id)
        assert stored is not None
        decoded = decode_metadata(stored)
        record = decoded.message
        assert isinstance(record, RegisterBrokerRecord)
        change_broker(record, change)
        version = max(record_version(record.NAME, self.level), decoded.version or 0)
        self._broker(broker.offset, record, encode_metadata(record, version))

    def _fence(self, offset: int, record: FenceBrokerRecord, value: bytes) -> None:
        change = BrokerRegistrationChangeRecord(
            broker_id=record.id, broker_epoch=record.epoch, fenced=1
        )
        self._change(offset, change, value)

    def _unfence(self, offset: int, record: UnfenceBrokerRecord, value: bytes) -> None:
        change = BrokerRegistrationChangeRecord(
            broker_id=record.id, broker_epoch=record.epoch, fenced=-1
        )
        self._change(offset, change, value)

    def _unregister(self, _: int, record: UnregisterBrokerRecord, value: bytes) -> None:
        del value
        broker = self.brokers.get(record.broker_id)
        if broker is not None and broker.epoch == record.broker_epoch:
            self._forget_broker(record.broker_id)
            self.records.drop(Family.BROKERS, record.broker_id)

    def _topic(self, _: int, record: TopicRecord, value: bytes) -> None:
        self.topics.add(record, value)

    def _remove_topic(self, _: int, record: RemoveTopicRecord, value: bytes) -> None:
        del value
        topic = self.topics.remove(record)
        if topic is None:
            return
        for name in self.configs.pop((TOPIC_RESOURCE, topic), ()):
            self.records.drop(Family.CONFIGS, (TOPIC_RESOURCE, topic, name))

    def _partition(self, _: int, record: PartitionRecord, value: bytes) -> None:
        if not self.topics.add_partition(record, value):
            raise _missing(record, f"topic {record.topic_id.hex()}")

    def _change_partition(self, _: int, change: PartitionChangeRecord, value: bytes) -> None:
        del value
        if change.unknown_tagged_fields:
            raise IncompleteImageError(f"{change.NAME}: {_UNKNOWN_TAGS}")
        version = record_version(PartitionRecord.NAME, self.level)
        if not self.topics.change_partition(change, version):
            place = f"partition {change.partition_id} of topic {change.topic_id.hex()}"
            raise _missing(change, place)

    def _clear_elr(self, _: int, record: ClearElrRecord, value: bytes) -> None:
        del value
        version = record_version(PartitionRecord.NAME, self.level)
        if not self.topics.clear_elr(record, version):
            raise _missing(record, f"topic {record.topic_name}")


def _missing(record: Message, what: str) -> IncompleteImageError:
    return IncompleteImageError(f"{record.NAME} refers to {what}, which does not exist")


_Key = Callable[[Any], Hashable]

# Records that replace the one with the same key.
_KEPT: Mapping[str, tuple[Family, _Key]] = {
    "ProducerIdsRecord": (Family.PRODUCER_IDS, lambda _: None),
    "ZkMigrationStateRecord": (Family.ZK_MIGRATION, lambda _: None),
}

# Records that need a method.
_APPLIED: Mapping[str, Callable[[MetadataState, int, Any, bytes], None]] = {
    "AccessControlEntryRecord": MetadataState._acl,
    "BrokerRegistrationChangeRecord": MetadataState._change,
    "ClearElrRecord": MetadataState._clear_elr,
    "ClientQuotaRecord": MetadataState._quota,
    "ConfigRecord": MetadataState._config,
    "DelegationTokenRecord": MetadataState._token,
    "FeatureLevelRecord": MetadataState._feature,
    "FenceBrokerRecord": MetadataState._fence,
    "PartitionChangeRecord": MetadataState._change_partition,
    "PartitionRecord": MetadataState._partition,
    "RegisterBrokerRecord": MetadataState._broker,
    "RegisterControllerRecord": MetadataState._controller,
    "RemoveAccessControlEntryRecord": MetadataState._remove_acl,
    "RemoveDelegationTokenRecord": MetadataState._remove_token,
    "RemoveTopicRecord": MetadataState._remove_topic,
    "RemoveUserScramCredentialRecord": MetadataState._remove_user,
    "TopicRecord": MetadataState._topic,
    "UnfenceBrokerRecord": MetadataState._unfence,
    "UnregisterBrokerRecord": MetadataState._unregister,
    "UserScramCredentialRecord": MetadataState._user,
    "UnregisterControllerRecord": MetadataState._drop_controller,
}

# Records without an effect on the state: `MetadataImage` handles transactions.
_WITHOUT_STATE = frozenset(
    (
        "AbortTransactionRecord",
        "BeginTransactionRecord",
        "EndTransactionRecord",
        "NoOpRecord",
    )
)

RECORD_TYPES = frozenset((*_KEPT, *_APPLIED, *_WITHOUT_STATE))
