"""Coordinator records: keys and values of the topics in which coordinators keep their state.

Layout: the key is its type (16 bits) and a message of version 0; the value is a version (16 bits)
and a message, or null for a tombstone. The family determines the known types.

Source: Kafka's `CoordinatorRecordSerde`.
"""

from __future__ import annotations

import struct

from kraftwire import messages
from kraftwire.errors import WireError
from kraftwire.records.decoded import Body, Decoded, read_body
from kraftwire.wire.message import Message

__all__ = ["coordinator_key", "coordinator_value", "decode_coordinator"]

_PREFIX = struct.Struct(">h")
_KEY_VERSION = 0


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
    key_message = read_body(Body(key_name, _KEY_VERSION, key, _PREFIX.size))
    kind = key_name.removesuffix("Key")
    if value is None:
        return Decoded(kind, None, None, key_message)
    version = _prefix(value, "value")
    body = Body(value_name, version, value, _PREFIX.size)
    return Decoded(kind, version, read_body(body), key_message)


def coordinator_key(message: Message) -> bytes:
    """Return the key of a coordinator record. Raises: WireError if a field does not fit."""
    return _PREFIX.pack(message.API_KEY) + message.encode(_KEY_VERSION)


def coordinator_value(message: Message, version: int) -> bytes:
    """Return the value of a coordinator record. Raises: WireError if a field does not fit."""
    return _PREFIX.pack(version) + message.encode(version)


def _prefix(data: bytes | None, path: str) -> int:
    if data is None or len(data) < _PREFIX.size:
        raise WireError(
            "a coordinator record is too short",
            message="CoordinatorRecord",
            path=path,
            expected=f"{_PREFIX.size} bytes",
            found="null" if data is None else f"{len(data)} bytes",
        )
    (number,) = _PREFIX.unpack_from(data)
    return int(number)
