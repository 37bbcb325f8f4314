"""The state as rows: one for each entity, with the record that describes it and its last change.

The JSON form is that of Kafka's converters, and secrets in it are hidden. Rows are by subject, and
within one by name or id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

from kraftwire.controller.image.topics import NO_LEADER
from kraftwire.controller.record_effects import Family
from kraftwire.decode.body.secrets import holds_secrets, redact
from kraftwire.messages.producer_ids_record import ProducerIdsRecord
from kraftwire.protocol.config_resources import RESOURCE_NAMES
from kraftwire.records.metadata import decode_metadata
from kraftwire.security.acls import ALLOW, PREFIXED, Operation, ResourceType
from kraftwire.story.metadata.leaderless import offline_directories, reason
from kraftwire.story.metadata.log_state import LogState
from kraftwire.story.raft.metadata_log import MECHANISMS
from kraftwire.wire.json_form import uuid_to_text
from kraftwire.wire.message import Message

_Data = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    """One entity.

    `name` is unique in the state. `data` is the JSON form of a record of `type` in `version` that
    describes the entity as it is; `topic` is the name that belongs to the topic id of a partition.
    `offset` is that of the record that last changed it; unless `is_exact`, the last offset that a
    snapshot covers which has the entity. `compared` is what counts for differences, if that is not
    `data`: its secrets do, what a snapshot leaves out does not. `derived` is what other records say
    of the entity: `offlineLogDirs` of a broker, `noLeader` of a partition, why it has none.
    """

    subject: str
    name: str
    type: str
    version: int
    data: _Data
    offset: int
    is_exact: bool
    topic: str | None = None
    compared: _Data | None = field(default=None, repr=False)
    derived: _Data = field(default_factory=dict)

    def to_json(self) -> _Data:
        """Return the row as a JSON object."""
        topic = {} if self.topic is None else {"topic": self.topic}
        return {
            "subject": self.subject,
            "type": self.type,
            "version": self.version,
            "lastChangedOffset": self.offset,
            "isExact": self.is_exact,
            **topic,
            **self.derived,
            "data": self.data,
        }


def rows(state: LogState, subjects: Iterable[str]) -> Iterator[Row]:
    """Yield the rows of some subjects, in their order in `SUBJECTS`."""
    wanted = set(subjects)
    for subject, parts in SUBJECTS.items():
        if subject in wanted:
            for part in parts:
                yield from part(state, subject)


def resource_text(data: _Data) -> str:
    """Return what a configuration belongs to."""
    number = data["resourceType"]
    kind = RESOURCE_NAMES.get(number, f"resource type {number}")
    return f"{kind} {data['resourceName'] or '(default)'}"


def quota_entity(data: _Data) -> str:
    """Return whom a quota limits."""
    parts = (f"{e['entityType']} {e['entityName'] or '(default)'}" for e in data["entity"])
    return ", ".join(parts)


def acl_text(data: _Data) -> tuple[str, str]:
    """Return what an ACL allows or denies, and on which resource."""
    operation = _named(Operation.NAMES, data["operation"])
    permission = "allow" if data["permissionType"] == ALLOW else "deny"
    star = "*" if data["patternType"] == PREFIXED else ""
    kind = _named(ResourceType.NAMES, data["resourceType"])
    return f"{permission} {operation}", f"{kind} {data['resourceName']}{star}"


def _named(names: tuple[str, ...], number: int) -> str:
    return names[number] if 0 <= number < len(names) else str(number)


def _acl_name(data: _Data) -> str:
    what, resource = acl_text(data)
    prefixed = " (prefixed)" if data["patternType"] == PREFIXED else ""
    return f"ACL {data['principal']} from {data['host']} {what} {resource}{prefixed}"


def _scram_name(data: _Data) -> str:
    return f"user {data['name']} {MECHANISMS.get(data['mechanism'], data['mechanism'])}"


_Name = Callable[[_Data], str]
_Part = Callable[[LogState, str], Iterator[Row]]


def _family(family: Family, name_of: _Name) -> _Part:
    """Return what makes the rows of a family of records, sorted by name."""

    def part(state: LogState, subject: str) -> Iterator[Row]:
        found = []
        for key, value in state.dated.records.items(family):
            decoded = decode_metadata(value)
            assert decoded.message is not None
            assert decoded.version is not None
            offset = state.dated.changed_at(family, key)
            row = _row(state, subject, decoded.message, decoded.version, offset)
            found.append((_order(row.data), replace(row, name=name_of(row.data))))
        for _, row in sorted(found, key=lambda each: (each[0], each[1].name)):
            yield row

    return part


def _order(data: _Data) -> int:
    """Return the id of a node, which is not sorted as text."""
    return int(data.get("brokerId") or data.get("controllerId") or 0)


def _row(state: LogState, subject: str, message: Message, version: int, offset: int) -> Row:
    """Return the row of a record, without its name."""
    data = message.to_json(version)
    compared = None
    if holds_secrets(message.NAME):
        whole = deepcopy(data)
        compared = whole if redact(message.NAME, data) else None
    elif isinstance(message, ProducerIdsRecord):
        compared = {"nextProducerId": data["nextProducerId"]}
    is_exact = offset >= state.first_known
    return Row(subject, "", message.NAME, version, data, offset, is_exact, compared=compared)


def _topics(state: LogState, subject: str) -> Iterator[Row]:
    """Yield each topic, and then its partitions."""
    topics, dated = state.image.topics, state.dated
    for name, topic_id in sorted(topics.ids.items()):
        value = dated.records.get(Family.TOPICS, topic_id)
        decoded = decode_metadata(value)
        assert decoded.message is not None
        offset = dated.changed_at(Family.TOPICS, topic_id)
        row = _row(state, subject, decoded.message, decoded.version or 0, offset)
        yield replace(row, name=f"topic {name}")
        for index, partition in sorted(topics.partitions(topic_id).items()):
            key = topic_id, index
            stored = dated.records.get(Family.PARTITIONS, key)
            assert stored is not None
            version = dated.records.version(stored)
            offset = dated.changed_at(Family.PARTITIONS, key)
            row = _row(state, subject, partition, version, offset)
            has_leader = partition.leader != NO_LEADER
            derived = {} if has_leader else {"noLeader": reason(state.image, partition)}
            yield replace(row, name=f"partition {name}-{index}", topic=name, derived=derived)


def _brokers(state: LogState, subject: str) -> Iterator[Row]:
    """Yield each broker with its log directories that are offline."""
    offline = offline_directories(state.image)
    for row in _family(Family.BROKERS, lambda data: f"broker {data['brokerId']}")(state, subject):
        ids = offline.get(row.data["brokerId"], ())
        yield replace(row, derived={"offlineLogDirs": [uuid_to_text(each) for each in ids]})


def _control(type: str, name_of: _Name, key: str = "") -> _Part:
    """Return what makes the rows of a control record, or of the elements of one of its lists."""

    def part(state: LogState, subject: str) -> Iterator[Row]:
        if type not in state.control:
            return
        decoded, offset = state.control[type]
        assert decoded.message is not None
        version = decoded.version or 0
        row = _row(state, subject, decoded.message, version, offset)
        for data in row.data[key] if key else [row.data]:
            yield replace(row, name=name_of(data), data=data)

    return part


# Subject of the command -> the functions that make its rows.
SUBJECTS: dict[str, tuple[_Part, ...]] = {
    "features": (
        _control("KRaftVersionRecord", lambda _: "feature kraft.version"),
        _family(Family.METADATA_VERSION, lambda data: f"feature {data['name']}"),
        _family(Family.FEATURES, lambda data: f"feature {data['name']}"),
        _family(Family.ZK_MIGRATION, lambda _: "migration from ZooKeeper"),
    ),
    "voters": (_control("VotersRecord", lambda data: f"voter {data['voterId']}", "voters"),),
    "controllers": (
        _family(Family.CONTROLLERS, lambda data: f"controller {data['controllerId']}"),
    ),
    "brokers": (_brokers,),
    "topics": (_topics,),
    "configs": (
        _family(Family.CONFIGS, lambda data: f"config {resource_text(data)} {data['name']}"),
    ),
    "quotas": (
        _family(Family.QUOTAS, lambda data: f"quota {quota_entity(data)} {data['key']}"),
    ),
    "users": (_family(Family.SCRAM, _scram_name),),
    "acls": (_family(Family.ACLS, _acl_name),),
    "tokens": (_family(Family.TOKENS, lambda data: f"token {data['tokenId']}"),),
    "producers": (_family(Family.PRODUCER_IDS, lambda _: "producer ids"),),
}
