"""The effect of each type of metadata record: which entity it creates, removes or changes.

The image applies the effects, and the check of a log looks for records without their entity.

Source: the replay methods of Kafka's `MetadataDelta`, and the order of `MetadataImage.write`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, IntEnum, auto
from operator import attrgetter
from typing import Any, NamedTuple

from kraftwire.controller.versions import METADATA_VERSION

# Its level is in the voters' control records; feature records for it are ignored.
_KRAFT_VERSION = "kraft.version"


class Family(IntEnum):
    """Entities with keys of one form, in the order of a snapshot."""

    METADATA_VERSION = auto()
    ZK_MIGRATION = auto()
    FEATURES = auto()  # by name
    BROKERS = auto()  # by id
    CONTROLLERS = auto()  # by id
    TOPICS = auto()  # by topic id; each is followed by its partitions
    PARTITIONS = auto()  # by topic id and index
    CONFIGS = auto()  # by resource type, resource name and name
    QUOTAS = auto()  # by entity and key
    PRODUCER_IDS = auto()
    ACLS = auto()  # by id
    SCRAM = auto()  # by user and mechanism
    TOKENS = auto()  # by token id


class Action(Enum):
    """What a record does to its entity: create or replace it, remove it, or change a part of it."""

    PUT = auto()
    REMOVE = auto()
    CHANGE = auto()


class Effect(NamedTuple):
    """An action on the entity of a family that has a key."""

    action: Action
    family: Family
    key: Any


def effect_of(record: Any) -> Effect | None:
    """Return the effect of a record, None for one that changes no entity, such as a control record.
    """
    effect = RECORD_EFFECTS.get(record.NAME)
    return None if effect is None else effect(record)


def _effect(action: Action, family: Family, *fields: str) -> Callable[[Any], Effect]:
    """Return the function from a record to its effect; `fields` are those with the entity's key."""
    key_of = attrgetter(*fields) if fields else _no_key
    return lambda record: Effect(action, family, key_of(record))


def _no_key(_: Any) -> None:
    return None


def _feature(record: Any) -> Effect | None:
    if record.name == _KRAFT_VERSION:
        return None
    is_version = record.name == METADATA_VERSION
    family = Family.METADATA_VERSION if is_version else Family.FEATURES
    return Effect(Action.PUT if record.feature_level else Action.REMOVE, family, record.name)


def _config(record: Any) -> Effect:
    key = record.resource_type, record.resource_name, record.name
    return Effect(Action.REMOVE if record.value is None else Action.PUT, Family.CONFIGS, key)


def _quota(record: Any) -> Effect:
    entity = frozenset((part.entity_type, part.entity_name) for part in record.entity)
    action = Action.REMOVE if record.remove else Action.PUT
    return Effect(action, Family.QUOTAS, (entity, record.key))


def _no_effect(_: Any) -> None:
    return None


_PARTITION = "topic_id", "partition_id"
_CREDENTIAL = "name", "mechanism"

RECORD_EFFECTS: Mapping[str, Callable[[Any], Effect | None]] = {
    "AbortTransactionRecord": _no_effect,
    "AccessControlEntryRecord": _effect(Action.PUT, Family.ACLS, "id"),
    "BeginTransactionRecord": _no_effect,
    "BrokerRegistrationChangeRecord": _effect(Action.CHANGE, Family.BROKERS, "broker_id"),
    # It changes all partitions of a topic, or of all topics.
    "ClearElrRecord": _effect(Action.CHANGE, Family.PARTITIONS, "topic_name"),
    "ClientQuotaRecord": _quota,
    "ConfigRecord": _config,
    "DelegationTokenRecord": _effect(Action.PUT, Family.TOKENS, "token_id"),
    "EndTransactionRecord": _no_effect,
    "FeatureLevelRecord": _feature,
    "FenceBrokerRecord": _effect(Action.CHANGE, Family.BROKERS, "id"),
    "NoOpRecord": _no_effect,
    "PartitionChangeRecord": _effect(Action.CHANGE, Family.PARTITIONS, *_PARTITION),
    "PartitionRecord": _effect(Action.PUT, Family.PARTITIONS, *_PARTITION),
    "ProducerIdsRecord": _effect(Action.PUT, Family.PRODUCER_IDS),
    "RegisterBrokerRecord": _effect(Action.PUT, Family.BROKERS, "broker_id"),
    "RegisterControllerRecord": _effect(Action.PUT, Family.CONTROLLERS, "controller_id"),
    "RemoveAccessControlEntryRecord": _effect(Action.REMOVE, Family.ACLS, "id"),
    "RemoveDelegationTokenRecord": _effect(Action.REMOVE, Family.TOKENS, "token_id"),
    "RemoveTopicRecord": _effect(Action.REMOVE, Family.TOPICS, "topic_id"),
    "RemoveUserScramCredentialRecord": _effect(Action.REMOVE, Family.SCRAM, *_CREDENTIAL),
    "TopicRecord": _effect(Action.PUT, Family.TOPICS, "topic_id"),
    "UnfenceBrokerRecord": _effect(Action.CHANGE, Family.BROKERS, "id"),
    "UnregisterBrokerRecord": _effect(Action.REMOVE, Family.BROKERS, "broker_id"),
    "UnregisterControllerRecord": _effect(Action.REMOVE, Family.CONTROLLERS, "controller_id"),
    "UserScramCredentialRecord": _effect(Action.PUT, Family.SCRAM, *_CREDENTIAL),
    "ZkMigrationStateRecord": _effect(Action.PUT, Family.ZK_MIGRATION),
}
