"""Metadata records: the values of __cluster_metadata.

Layout: frame version (1), type and version of the record as unsigned varints, then the record.
The records of __remote_log_metadata have the same frame and their own types.

Source: Kafka's `AbstractApiMessageSerde`.
"""

from __future__ import annotations

from functools import cache

from kraftwire import messages
from kraftwire.errors import WireError
from kraftwire.records.messages import Body, Decoded, read_body
from kraftwire.wire.message import Message
from kraftwire.wire.size_estimate import SHORT_BYTES
from kraftwire.wire.varint import read_uvarint, uvarint

__all__ = ["REMOTE_LOG_RECORDS", "decode_metadata", "encode_metadata"]

_FRAME_VERSION = 1

# Frames of records that were read before, in their shortest form, and what they say.
_FRAME_BYTES = 3
_FOUND: dict[bytes, tuple[type[Message], int]] = {}

# Type -> schema of the records in __remote_log_metadata. Source: `RemoteLogMetadataSerde`.
REMOTE_LOG_RECORDS = {
    0: "RemoteLogSegmentMetadataRecord",
    1: "RemoteLogSegmentMetadataUpdateRecord",
    2: "RemotePartitionDeleteMetadataRecord",
    3: "RemoteLogSegmentMetadataSnapshotRecord",
}


def decode_metadata(value: bytes | None, types: dict[int, str] | None = None) -> Decoded:
    """Return the message of a metadata record.

    `types` maps type to schema, by default that of __cluster_metadata. Raises: WireError for
    another frame version, an unknown type or version, and damaged bytes.
    """
    if value is None:
        raise _error("a metadata record has no value", "a frame", "null")
    if types is None:
        # A log has the same few frames over and over, of three bytes each.
        found = _FOUND.get(value[:_FRAME_BYTES])
        if found is not None and len(value) < SHORT_BYTES:
            cls, version = found
            message, end = cls.decode(value, version, _FRAME_BYTES)
            if end == len(value):
                return Decoded(cls.NAME, version, message)
        types = messages.METADATA_RECORDS
    frame_version, position = read_uvarint(value, 0)
    if frame_version != _FRAME_VERSION:
        raise _error("unknown frame version", str(_FRAME_VERSION), str(frame_version))
    number, position = read_uvarint(value, position)
    version, position = read_uvarint(value, position)
    name = types.get(number)
    if name is None:
        raise _error("unknown type of a metadata record", "a type of the schemas", str(number))
    message = read_body(Body(name, version, value, position))
    if position == _FRAME_BYTES and types is messages.METADATA_RECORDS:
        _FOUND[bytes(value[:position])] = type(message), version
    return Decoded(name, version, message)


def encode_metadata(message: Message, version: int) -> bytes:
    """Return the value of a metadata record. Raises: WireError if a field does not fit."""
    return _frame(message.API_KEY, version) + message.encode(version)


@cache
def _frame(number: int, version: int) -> bytes:
    return uvarint(_FRAME_VERSION) + uvarint(number) + uvarint(version)


def _error(problem: str, expected: str, found: str) -> WireError:
    return WireError(problem, message="MetadataRecord", expected=expected, found=found)
