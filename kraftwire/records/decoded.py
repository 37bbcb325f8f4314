"""The meaning of a record: the message inside it, and which topic determines how to read it.

Control batches hold control records in any topic. Otherwise the topic decides the family:
metadata records, coordinator records of groups, transactions or share groups, or none that is
known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from kraftwire import messages
from kraftwire.errors import WireError
from kraftwire.records.group_members import members_in
from kraftwire.wire.message import Message
from kraftwire.wire.size_estimate import decode_bounded

__all__ = ["FAMILIES", "Body", "Decoded", "family_of_topic", "read_body"]

# Topic -> family of its records.
FAMILIES = {
    "__cluster_metadata": "metadata",
    "__consumer_offsets": "group",
    "__transaction_state": "transaction",
    "__share_group_state": "share",
    "__remote_log_metadata": "remote-log",
}


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
