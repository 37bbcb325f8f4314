"""Records that Kafka itself wrote, decoded without secrets, each distinct value once.

A quorum sends each record to every replica, and most records repeat the same few bytes.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, NamedTuple

from kraftwire.decode.body.secrets import redact
from kraftwire.errors import WireError
from kraftwire.records.json_form import decode_record
from kraftwire.records.reader import Batch
from kraftwire.records.record import Record

__all__ = ["OwnRecord", "own_records"]

_KNOWN_MAX = 4096


class OwnRecord(NamedTuple):
    """A decoded record. Units: `time_ms` milliseconds since the epoch. `data` is JSON."""

    offset: int
    epoch: int | None
    time_ms: int | None
    type: str
    version: int | None
    data: str


def own_records(batch: Batch, family: str) -> tuple[list[OwnRecord], bool]:
    """Return the records of a batch that can be decoded, and whether some could not."""
    rows, damage = batch.salvage()
    has_problems = damage is not None
    epoch = batch.partition_leader_epoch
    is_control = batch.is_control
    found = []
    for row in rows:
        try:
            meaning = _meaning(family, is_control, row.key, row.value)
        except WireError:
            has_problems = True
            continue
        if meaning is not None:
            found.append(OwnRecord(row.offset, epoch, row.timestamp, *meaning))
    return found, has_problems


@lru_cache(maxsize=_KNOWN_MAX)
def _meaning(
    family: str, is_control: bool, key: bytes | None, value: bytes | None
) -> tuple[str, int | None, str] | None:
    """Return type, version and JSON of a record; None for a user's record. Raises: WireError."""
    decoded = decode_record(Record(0, 0, key, value), family, is_control=is_control)
    if decoded is None:
        return None
    data: Any = decoded.to_json()["data"]
    if isinstance(data, dict):
        redact(decoded.type, data)
    return decoded.type, decoded.version, json.dumps(data, separators=(",", ":"))
