"""Subscriptions and assignments of a classic group, inside its record in __consumer_offsets.

Source: Kafka's `ConsumerProtocol`; protocols other than the consumers' are opaque.
"""

from __future__ import annotations

import struct
from typing import Any

from kraftwire import messages
from kraftwire.errors import WireError
from kraftwire.wire.message import Message
from kraftwire.wire.size_estimate import decode_bounded

__all__ = ["members_in"]

_CONSUMER = "consumer"
_VERSION = struct.Struct(">h")
_FIELDS = (
    ("subscription", "ConsumerProtocolSubscription"),
    ("assignment", "ConsumerProtocolAssignment"),
)


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
