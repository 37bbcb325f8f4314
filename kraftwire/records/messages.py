"""The messages inside records, and which topic determines how to read them.

Control batches hold control records (`control`) in any topic. Otherwise the topic decides the
family: metadata records (`metadata`), coordinator records of groups, transactions or share groups,
or none that is known.

Coordinator records are in the topics in which coordinators keep their state. The key is its type
(16 bits) and a message of version 0; the value is a version (16 bits) and a message, or null for a
tombstone. Subscriptions and assignments of a classic group are inside its record; protocols other
than the consumers' are opaque.

Source: Kafka's `CoordinatorRecordSerde` and `ConsumerProtocol`.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

from kraftwire import messages
from kraftwire.errors import WireError
from kraftwire.wire.message import Message
from kraftwire.wire.size_estimate import decode_bounded

# Topic -> family of its records.
FAMILIES = {
    "__cluster_metadata": "metadata",
    "__consumer_offsets": "group",
    "__transaction_state": "transaction",
    "__share_group_state": "share",
    "__remote_log_metadata": "remote-log",
}

_VERSION = struct.Struct(">h")


_COORDINATOR_KEY_VERSION = 0

_CONSUMER = "consumer"
_FIELDS = (
    ("subscription", "ConsumerProtocolSubscription"),
    ("assignment", "ConsumerProtocolAssignment"),
)


def family_of_topic(topic: str) -> str | None:
    """Return the family of the records in a topic; None for users' topics."""
    return FAMILIES.get(topic)


class Decoded(NamedTuple):
    """The message or messages inside a record.

    `type` is the schema's name of a control or metadata record, and of a coordinator
    record the key schema's without ``Key``. `message` is the value; None where a coordinator's
    record is a tombstone, and then `version` is None too. `key` is a coordinator's key, and
    `control_type` the name of a control record's type.
    """

    type: str
    version: int | None
    message: Message | None
    key: Message | None = None
    control_type: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return ``{type, version, data}``: data in the form of Kafka's JSON converters.

        Data of a coordinator record is ``{key, value}``. Commit and abort share a schema, so only
        the record's key (`control_type` here) distinguishes them. The contents of a consumer
        group's members are in ``nested``, by the path of their field in the value.
        """
        data = None
        if self.message is not None and self.version is not None:
            data = self.message.to_json(self.version)
        if self.key is not None:
            # Keys have one version each.
            data = {"key": self.key.to_json(self.key.VERSIONS.high), "value": data}
        json = {"type": self.type, "version": self.version, "data": data}
        nested = members_in(self.message) if self.key is not None else None
        return {**json, "nested": nested} if nested else json


class Body(NamedTuple):
    """Where a message begins in a record's key or value."""

    name: str
    version: int
    data: bytes
    start: int


def read_body(body: Body) -> Message:
    """Read a message that fills the rest of a key or value.

    Raises: WireError if the schema has no such version, the bytes are wrong, some are left, or they
    hold far more values than any record of Kafka's.
    """
    cls = messages.find(body.name)
    if body.version not in cls.VERSIONS:
        raise WireError(
            "unknown version of a record",
            message=body.name,
            expected=str(cls.VERSIONS),
            found=str(body.version),
        )
    message, end = decode_bounded(cls, body.data, body.version, body.start)
    if end != len(body.data):
        raise WireError(
            "bytes are left after a record",
            message=body.name,
            version=body.version,
            offset=end,
            expected="the end",
            found=f"{len(body.data) - end} bytes",
        )
    return message


def decode_coordinator(family: str, key: bytes | None, value: bytes | None) -> Decoded:
    """Return the messages of a coordinator record.

    `family` is ``group``, ``transaction`` or ``share``. Raises: WireError on an unknown
    type or version and on damaged bytes.
    """
    number = _prefix(key, "key")
    names = messages.COORDINATOR_RECORDS[family].get(number)
    if key is None or names is None:
        raise WireError(
            "unknown type of a coordinator record",
            message="CoordinatorRecord",
            path="key",
            expected=f"a type of the family {family}",
            found=str(number),
        )
    key_name, value_name = names
    key_message = read_body(Body(key_name, _COORDINATOR_KEY_VERSION, key, _VERSION.size))
    kind = key_name.removesuffix("Key")
    if value is None:
        return Decoded(kind, None, None, key_message)
    version = _prefix(value, "value")
    body = Body(value_name, version, value, _VERSION.size)
    return Decoded(kind, version, read_body(body), key_message)


def coordinator_key(message: Message) -> bytes:
    """Return the key of a coordinator record. Raises: WireError if a field does not fit."""
    return _VERSION.pack(message.API_KEY) + message.encode(_COORDINATOR_KEY_VERSION)


def coordinator_value(message: Message, version: int) -> bytes:
    """Return the value of a coordinator record. Raises: WireError if a field does not fit."""
    return _VERSION.pack(version) + message.encode(version)


def _prefix(data: bytes | None, path: str) -> int:
    if data is None or len(data) < _VERSION.size:
        raise WireError(
            "a coordinator record is too short",
            message="CoordinatorRecord",
            path=path,
            expected=f"{_VERSION.size} bytes",
            found="null" if data is None else f"{len(data)} bytes",
        )
    (number,) = _VERSION.unpack_from(data)
    return int(number)


def members_in(value: Message | None) -> dict[str, Any]:
    """Return subscriptions and assignments by field path; empty for all other records.

    Each is ``{type, version, data}``. Unreadable ones are omitted.
    """
    found: dict[str, Any] = {}
    if value is None or value.NAME != "GroupMetadataValue":
        return found
    group: Any = value
    if group.protocol_type != _CONSUMER:
        return found
    for number, member in enumerate(group.members):
        for field, name in _FIELDS:
            inside = _inside(name, bytes(getattr(member, field)))
            if inside is not None:
                found[f"members[{number}].{field}"] = inside
    return found


def _inside(name: str, data: bytes) -> dict[str, Any] | None:
    if len(data) < _VERSION.size:
        return None
    (version,) = _VERSION.unpack_from(data)
    cls = messages.find(name)
    # As in Kafka, a later version is read as the latest known one.
    schema = min(version, cls.VERSIONS.high)
    if schema not in cls.VERSIONS:
        return None
    try:
        message, _ = decode_bounded(cls, data, schema, _VERSION.size)
    except WireError:
        return None
    return {"type": name, "version": version, "data": message.to_json(schema)}
