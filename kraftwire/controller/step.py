"""The outcome of a decision of the controller: records to write first, then the answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kraftwire.messages.config_record import ConfigRecord
from kraftwire.wire.message import Message

# Records that a request of an administrator may write: more are POLICY_VIOLATION for all of it
# (C-MOD-9). Source: `QuorumController.MAX_RECORDS_PER_USER_OP`.
RECORDS_MAX = 10_000

# A record and the version to write it in.
VersionedRecord = tuple[Message, int]


@dataclass(slots=True)
class StepResult:
    """The records to write and the answer.

    `on_committed` is called once the records are committed, before the answer goes out.
    """

    response: Message | None = None
    records: Sequence[VersionedRecord] = ()
    on_committed: Callable[[], None] | None = None


def config_record(kind: int, name: str, key: str, value: str | None) -> VersionedRecord:
    """Return the record of a configuration's value; None deletes it. `kind` and `name` are those
    of the resource."""
    record = ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value)
    return record, 0
