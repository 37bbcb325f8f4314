"""The input of a batch: the caller's part of the header, and the records field by field."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kraftwire.records.record import NO_SEQUENCE, Headers

__all__ = ["BatchHeader", "Columns"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchHeader:
    """The header fields that a caller sets; all others are derived from the records.

    Timestamps are in milliseconds. `base_offset` defaults to the first record's offset,
    `last_offset` to the last one's, `max_timestamp` to the largest. `append_time` gives the batch
    LogAppendTime. `level` is on the codec's own scale.
    """

    base_offset: int | None = None
    last_offset: int | None = None
    partition_leader_epoch: int = -1
    compression: str = "none"
    level: int | None = None
    append_time: int | None = None
    max_timestamp: int | None = None
    delete_horizon_ms: int | None = None
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = NO_SEQUENCE
    is_transactional: bool = False
    is_control: bool = False


@dataclass(slots=True)
class Columns:
    """The records to write, field by field; without offsets, they are consecutive."""

    timestamps: Sequence[int]
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    headers: Sequence[Headers] | None
    offsets: Sequence[int] | None
