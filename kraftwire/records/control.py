"""Control records: markers that Kafka itself writes to a log.

Layout: the key is a version and a type, 16 bits each. The value is a message whose first field is
its version; the markers that end a transaction have a version of 16 bits before theirs.

Source: Kafka's `ControlRecordType`, `ControlRecordUtils` and `EndTransactionMarker`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from enum import IntEnum

from kraftwire.errors import UsageError, WireError
from kraftwire.records.builder import BatchHeader, build_columns
from kraftwire.records.messages import Body, Decoded, read_body
from kraftwire.wire.message import Message

__all__ = [
    "ControlType",
    "control_batch",
    "control_key",
    "control_type",
    "control_value",
    "decode_control",
]

_KEY = struct.Struct(">hh")
_KEY_VERSION = 0
_VERSION = struct.Struct(">h")


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
    if key is None or len(key) < _KEY.size:
        found = "null" if key is None else f"{len(key)} bytes"
        raise _key_error("a control record's key is too short", "4 bytes", found)
    version, number = _KEY.unpack_from(key)
    # As in Java, a later version of the key is read as the known one.
    if version < _KEY_VERSION:
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
    return _KEY.pack(_KEY_VERSION, kind)


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
