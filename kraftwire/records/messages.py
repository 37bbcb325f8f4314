"""The messages inside records, and which topic determines how to read them.

Control batches hold control records in any topic. Otherwise the topic decides the family: metadata
records, coordinator records of groups, transactions or share groups, or none that is known.

Metadata records are the values of __cluster_metadata: frame version (1), type and version of the
record as unsigned varints, then the record. The records of __remote_log_metadata have the same
frame and their own types.

Control records are markers that Kafka itself writes to a log. The key is a version and a type, 16
bits each. The value is a message whose first field is its version; the markers that end a
transaction have a version of 16 bits before theirs.

Coordinator records are in the topics in which coordinators keep their state. The key is its type
(16 bits) and a message of version 0; the value is a version (16 bits) and a message, or null for a
tombstone. Subscriptions and assignments of a classic group are inside its record; protocols other
than the consumers' are opaque.

Source: Kafka's `AbstractApiMessageSerde`, `ControlRecordType`, `ControlRecordUtils`,
`EndTransactionMarker`, `CoordinatorRecordSerde` and `ConsumerProtocol`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

from kraftwire import messages
from kraftwire.errors import UsageError, WireError
from kraftwire.records.builder import BatchHeader, build_columns
from kraftwire.wire.message import Message
from kraftwire.wire.size_estimate import decode_bounded
from kraftwire.wire.varint import read_uvarint, uvarint

__all__ = [
    "FAMILIES",
    "REMOTE_LOG_RECORDS",
    "Body",
    "ControlType",
    "Decoded",
    "control_batch",
    "control_key",
    "control_type",
    "control_value",
    "coordinator_key",
    "coordinator_value",
    "decode_control",
    "decode_coordinator",
    "decode_metadata",
    "encode_metadata",
    "family_of_topic",
    "members_in",
    "read_body",
]

# Topic -> family of its records.
FAMILIES = {
    "__cluster_metadata": "metadata",
    "__consumer_offsets": "group",
    "__transaction_state": "transaction",
    "__share_group_state": "share",
    "__remote_log_metadata": "remote-log",
}

_VERSION = struct.Struct(">h")

_FRAME_VERSION = 1

# Type -> schema of the records in __remote_log_metadata. Source: `RemoteLogMetadataSerde`.
REMOTE_LOG_RECORDS = {
    0: "RemoteLogSegmentMetadataRecord",
    1: "RemoteLogSegmentMetadataUpdateRecord",
    2: "RemotePartitionDeleteMetadataRecord",
    3: "RemoteLogSegmentMetadataSnapshotRecord",
}

_CONTROL_KEY = struct.Struct(">hh")
_CONTROL_KEY_VERSION = 0

_COORDINATOR_KEY_VERSION = 0

_CONSUMER = "consumer"
_FIELDS = (
    ("subscription", "ConsumerProtocolSubscription"),
    ("assignment", "ConsumerProtocolAssignment"),
)


def family_of_topic(topic: str) -> str | None:
    """Return the family of the records in a topic; None for users' topics."""
    return FAMILIES.get(topic)


@dataclass(frozen=True, slots=True)
class Decoded:
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


def decode_metadata(value: bytes | None, types: dict[int, str] | None = None) -> Decoded:
    """Return the message of a metadata record.

    `types` maps type to schema, by default that of __cluster_metadata. Raises: WireError for
    another frame version, an unknown type or version, and damaged bytes.
    """
    if value is None:
        raise _metadata_error("a metadata record has no value", "a frame", "null")
    types = messages.METADATA_RECORDS if types is None else types
    frame_version, position = read_uvarint(value, 0)
    if frame_version != _FRAME_VERSION:
        raise _metadata_error("unknown frame version", str(_FRAME_VERSION), str(frame_version))
    number, position = read_uvarint(value, position)
    version, position = read_uvarint(value, position)
    name = types.get(number)
    if name is None:
        raise _metadata_error(
            "unknown type of a metadata record", "a type of the schemas", str(number)
        )
    return Decoded(name, version, read_body(Body(name, version, value, position)))


def encode_metadata(message: Message, version: int) -> bytes:
    """Return the value of a metadata record. Raises: WireError if a field does not fit."""
    frame = uvarint(_FRAME_VERSION) + uvarint(message.API_KEY) + uvarint(version)
    return frame + message.encode(version)


def _metadata_error(problem: str, expected: str, found: str) -> WireError:
    return WireError(problem, message="MetadataRecord", expected=expected, found=found)


class ControlType(IntEnum):
    """The type in a control record's key."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


_END_TXN_MARKER = "EndTxnMarker"
_END_TXN_VERSION = 0
_SCHEMAS = {
    ControlType.ABORT: _END_TXN_MARKER,
    ControlType.COMMIT: _END_TXN_MARKER,
    ControlType.LEADER_CHANGE: "LeaderChangeMessage",
    ControlType.SNAPSHOT_HEADER: "SnapshotHeaderRecord",
    ControlType.SNAPSHOT_FOOTER: "SnapshotFooterRecord",
    ControlType.KRAFT_VERSION: "KRaftVersionRecord",
    ControlType.KRAFT_VOTERS: "VotersRecord",
}


def control_type(key: bytes | None) -> ControlType:
    """Return the type in a control record's key.

    Raises: WireError if the key is too short, has a negative version or an unknown type.
    """
    if key is None or len(key) < _CONTROL_KEY.size:
        found = "null" if key is None else f"{len(key)} bytes"
        raise _key_error("a control record's key is too short", "4 bytes", found)
    version, number = _CONTROL_KEY.unpack_from(key)
    # As in Java, a later version of the key is read as the known one.
    if version < _CONTROL_KEY_VERSION:
        raise _key_error("negative version of a control record's key", "0", str(version))
    try:
        return ControlType(number)
    except ValueError:
        raise _key_error("unknown type of a control record", "0 to 6", str(number)) from None


def decode_control(key: bytes | None, value: bytes | None) -> Decoded:
    """Return the message of a control record.

    Raises: WireError on an unknown type or version and on damaged bytes.
    """
    kind = control_type(key)
    name = _SCHEMAS[kind]
    if value is None or len(value) < _VERSION.size:
        found = "null" if value is None else f"{len(value)} bytes"
        raise WireError(
            "a control record's value is too short", message=name, expected="2 bytes", found=found
        )
    (version,) = _VERSION.unpack_from(value)
    start = 0
    if name == _END_TXN_MARKER:
        # As in Java, a later version of a marker is read as the known one.
        start, version = _VERSION.size, min(version, _END_TXN_VERSION)
    return Decoded(name, version, read_body(Body(name, version, value, start)), None, kind.name)


def control_key(kind: ControlType) -> bytes:
    """Return the key of a control record."""
    return _CONTROL_KEY.pack(_CONTROL_KEY_VERSION, kind)


def control_value(message: Message, version: int = 0) -> bytes:
    """Return the value of a control record.

    Raises: UsageError for a message of another kind or a message that contradicts the version;
    WireError if a value does not fit.
    """
    if message.NAME == _END_TXN_MARKER:
        return _VERSION.pack(version) + message.encode(version)
    said = getattr(message, "version", None)
    if message.NAME not in _SCHEMAS.values() or said != version:
        raise UsageError(
            f"a control record of version {version} with {message.NAME} of version {said}"
        )
    return message.encode(version)


def control_batch(
    base_offset: int, epoch: int, timestamp: int, records: Sequence[tuple[ControlType, Message]]
) -> bytes:
    """Return a batch of control records with one timestamp, as a quorum writes it (R-ACC-4).

    Raises: WireError or UsageError if a message does not fit.
    """
    return build_columns(
        [timestamp] * len(records),
        [control_key(kind) for kind, _ in records],
        [control_value(message) for _, message in records],
        header=BatchHeader(
            base_offset=base_offset, partition_leader_epoch=epoch, is_control=True
        ),
    )


def _key_error(problem: str, expected: str, found: str) -> WireError:
    return WireError(
        problem, message="ControlRecord", path="key", expected=expected, found=found
    )


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
