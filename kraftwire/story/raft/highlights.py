"""Descriptions of metadata records: registrations, topics, configuration, users.

Owns the choice of records that get a line; all others are only counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kraftwire.decode.body.redact import REDACTED
from kraftwire.decode.body.secret_names import is_secret_config, is_secret_value
from kraftwire.decode.text import count_text, listed, words
from kraftwire.limits import RAFT_TOPIC_COUNT_MAX
from kraftwire.messages.partition_record import PartitionRecord
from kraftwire.messages.topic_record import TopicRecord
from kraftwire.wire.json_form import uuid_to_text
from kraftwire.wire.message import Message

__all__ = ["Topics", "highlight"]

_TOPIC_RESOURCE = 2
_RESOURCES = {
    _TOPIC_RESOURCE: "topic",
    4: "broker",
    8: "broker logger",
    16: "client metrics",
    32: "group",
}
_MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
# BrokerRegistrationChange: -1 and 1 for the two directions, 0 for no change.
_FENCED = {-1: "is unfenced", 1: "is fenced"}

# The settings of a new topic are in the batch that creates it or in the next one.
_CREATION_S = 0.5


@dataclass(slots=True)
class _Topic:
    name: str
    created: float
    partitions: int = 0
    replicas: int = 0
    configs: list[str] = field(default_factory=list)


class Topics:
    """Gathers names, sizes and initial settings of the topics that the log creates."""

    def __init__(self) -> None:
        self._by_id: dict[bytes, _Topic] = {}
        self._by_name: dict[str, _Topic] = {}

    def see(self, record: Message, time: float) -> None:
        """Add a record of a topic or a partition."""
        if isinstance(record, TopicRecord) and len(self._by_id) < RAFT_TOPIC_COUNT_MAX:
            topic = _Topic(record.name, time)
            self._by_id[record.topic_id] = self._by_name[record.name] = topic
        elif isinstance(record, PartitionRecord) and record.topic_id in self._by_id:
            topic = self._by_id[record.topic_id]
            topic.partitions += 1
            topic.replicas = max(topic.replicas, len(record.replicas))

    def take_config(self, topic_name: str, text: str, time: float) -> bool:
        """Add a setting to a topic that is being created; return whether it is."""
        topic = self._by_name.get(topic_name)
        if topic is None or abs(time - topic.created) > _CREATION_S:
            return False
        topic.configs.append(text)
        return True

    def name(self, topic_id: bytes) -> str:
        """Return the name of a topic, or its id where no record has the name."""
        topic = self._by_id.get(topic_id)
        return topic.name if topic else uuid_to_text(topic_id)

    def complete(self, topic: str) -> str:
        """Return the name of a topic with its size and initial settings."""
        known = self._by_name.get(topic)
        if known is None or not known.partitions:
            return topic
        remarks = [count_text(known.partitions, "partition")]
        if known.replicas > 1:
            remarks.append(count_text(known.replicas, "replica"))
        return words(topic, remarks + known.configs)


def highlight(
    record: Message, time: float, topics: Topics, *, show_secrets: bool
) -> tuple[str, str, str] | None:
    """Return kind, subject and text of a record; None if it is only counted."""
    if record.NAME == "ConfigRecord":
        return _config(record, time, topics, show_secrets=show_secrets)
    if record.NAME == "RemoveTopicRecord":
        name = topics.name(record.topic_id)  # type: ignore[attr-defined]
        return "topic", "", f"{name} is deleted"
    if record.NAME not in _WORDS:
        return None
    kind, function = _WORDS[record.NAME]
    text = function(record)
    return None if text is None else (kind, "", text)


def _config(
    record: Any, time: float, topics: Topics, *, show_secrets: bool
) -> tuple[str, str, str] | None:
    resource = _RESOURCES.get(record.resource_type, f"resource type {record.resource_type}")
    subject = f"{resource} {record.resource_name or '(default)'}"
    if record.value is None:
        return "config", subject, f"{record.name} is reset"
    is_secret = is_secret_config(record.name) or is_secret_value(record.value)
    value = REDACTED if is_secret and not show_secrets else record.value
    text = f"{record.name}={value}"
    is_topic = record.resource_type == _TOPIC_RESOURCE
    if is_topic and topics.take_config(record.resource_name, text, time):
        return None
    return "config", subject, text


def _endpoints(record: Any) -> str:
    return listed(f"{each.name}://{each.host}:{each.port}" for each in record.end_points)


def _register_broker(record: Any) -> str:
    remarks = [_endpoints(record)]
    if record.rack:
        remarks.append(f"rack {record.rack}")
    return words(f"{record.broker_id} registers", remarks)


def _registration_change(record: Any) -> str | None:
    changes = [_FENCED[record.fenced]] if record.fenced in _FENCED else []
    if record.in_controlled_shutdown > 0:
        changes.append("begins a controlled shutdown")
    return f"{record.broker_id} {' and '.join(changes)}" if changes else None


def _acl(record: Any) -> str:
    verb = "denied" if record.permission_type == 2 else "allowed"
    return f"{record.principal} from {record.host} {verb} {record.resource_name}"


def _quota(record: Any) -> str:
    entity = listed(f"{e.entity_type} {e.entity_name or '(default)'}" for e in record.entity)
    value = " is removed" if record.remove else f"={record.value:.12g}"
    return f"{entity} {record.key}{value}"


def _scram(record: Any) -> str:
    return f"{record.name} ({_MECHANISMS.get(record.mechanism, record.mechanism)})"


_WORDS: dict[str, tuple[str, Callable[[Any], str | None]]] = {
    "AbortTransactionRecord": ("metadata transaction", lambda r: f"aborted: {r.reason}"),
    "AccessControlEntryRecord": ("ACL", _acl),
    "BrokerRegistrationChangeRecord": ("broker", _registration_change),
    "ClientQuotaRecord": ("quota", _quota),
    "DelegationTokenRecord": ("delegation token", lambda r: f"{r.token_id} of {r.owner}"),
    "FeatureLevelRecord": ("feature", lambda r: f"{r.name}={r.feature_level}"),
    "FenceBrokerRecord": ("broker", lambda r: f"{r.id} is fenced"),
    "KRaftVersionRecord": ("feature", lambda r: f"kraft.version={r.kraft_version}"),
    "RegisterBrokerRecord": ("broker", _register_broker),
    "RegisterControllerRecord": (
        "controller", lambda r: words(f"{r.controller_id} registers", [_endpoints(r)])
    ),
    "RemoveUserScramCredentialRecord": ("user", lambda r: f"{_scram(r)} is removed"),
    "TopicRecord": ("topic", lambda r: str(r.name)),
    "UnfenceBrokerRecord": ("broker", lambda r: f"{r.id} is unfenced"),
    "UnregisterBrokerRecord": ("broker", lambda r: f"{r.broker_id} is unregistered"),
    "UserScramCredentialRecord": ("user", _scram),
}
