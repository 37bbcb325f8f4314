"""Batches up a leader's records: offsets are assigned at once, the write comes later.

Records wait until the linger time is over or a batch is complete, so that many share a batch and a
flush. The records of one call are always in one batch. Callers check who may append.

Source: Kafka's `BatchAccumulator`; its two-step appends have no counterpart here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kraftwire.errors import UsageError
from kraftwire.raft.effects import RefusalReason
from kraftwire.records.control import ControlType, control_batch
from kraftwire.records.header import HEADER_SIZE
from kraftwire.records.plain import RECORD_OVERHEAD_MAX, data_batch
from kraftwire.wire.message import Message

# Complete batches that a leader holds unwritten before it refuses appends: Kafka's number.
WAITING_BATCHES_MAX = 10

# A leader's batch of this size is complete before the linger time is over; only a single append can
# make it longer. A batch as long as an answer to a Fetch is sent while the next one is filled; with
# Kafka's 8 MiB leader and followers wait for each other, and a fifth to a half less is committed.
BATCH_COMPLETE_BYTES = 2 * 1024 * 1024


class DrainedBatch(NamedTuple):
    """A complete batch to be written. `end_offset` is the offset after its last record."""

    base: int
    end_offset: int
    data: bytes
    is_control: bool = False


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why nothing was appended."""

    reason: RefusalReason
    detail: str


class Accumulator:
    """The batches of one leader epoch between append and write.

    `end_offset` is the next offset to assign; `drain_due_ms` is when `drain` returns something,
    None while no records wait.
    """

    __slots__ = (
        "_batch_max_bytes",
        "_complete",
        "_epoch",
        "_linger_ms",
        "_open",
        "_open_base",
        "_open_size",
        "_opened_at",
        "drain_due_ms",
        "end_offset",
    )

    def __init__(
        self, base_offset: int, epoch: int, *, linger_ms: int, batch_max_bytes: int
    ) -> None:
        """Start empty, assigning offsets from `base_offset` on."""
        self._epoch = epoch
        self._linger_ms = linger_ms
        self._batch_max_bytes = batch_max_bytes
        self._complete: list[DrainedBatch] = []
        self._open: list[bytes] = []
        self._open_base = base_offset
        self._open_size = HEADER_SIZE
        self._opened_at = 0
        self.drain_due_ms: int | None = None
        self.end_offset = base_offset

    def append(
        self, values: Sequence[bytes], now_ms: int, timestamp: int
    ) -> tuple[int, int] | Refusal:
        """Assign offsets to records with these values, all in one batch (R-ACC-1).

        A batch has the timestamp of its first records. Returns: the first and the last offset.
        Raises: UsageError without values, or for an empty value, which a Java follower could not
        read.
        """
        if not values or not all(values):
            raise UsageError("expected one or more records with non-empty values")
        if len(self._complete) >= WAITING_BATCHES_MAX:
            detail = f"{len(self._complete)} complete batches are already waiting"
            return Refusal(RefusalReason.TOO_MANY_PENDING, detail)
        size = sum(map(len, values)) + RECORD_OVERHEAD_MAX * len(values)
        if self._open_size + size > self._batch_max_bytes:
            refusal = self._refusal(values, size)
            if refusal is not None:
                return refusal
            if self._open:
                self._close(now_ms)
        base = self.end_offset
        if not self._open:
            self._open_base = base
            self._opened_at = timestamp
            if self.drain_due_ms is None:
                self.drain_due_ms = now_ms + self._linger_ms
        self._open.extend(values)
        self._open_size += size
        self.end_offset = base + len(values)
        if self._open_size >= BATCH_COMPLETE_BYTES:
            self._close(now_ms)
        return base, self.end_offset - 1

    def append_control(
        self, records: Sequence[tuple[ControlType, Message]], now_ms: int, timestamp: int
    ) -> tuple[int, int]:
        """Assign offsets to control records, in a separate batch that is due at once (R-ACC-4).

        Never refused, as a leader writes few of them. Returns: the first and the last offset.
        """
        if self._open:
            self._close(now_ms)
        base = self.end_offset
        self.end_offset = base + len(records)
        data = control_batch(base, self._epoch, timestamp, records)
        self._complete.append(DrainedBatch(base, self.end_offset, data, is_control=True))
        self._due_now(now_ms)
        return base, self.end_offset - 1

    def drain(self, now_ms: int) -> list[DrainedBatch]:
        """Return all waiting batches if they are due; the open batch is completed (R-ACC-3)."""
        due = self.drain_due_ms
        if due is None or now_ms < due:
            return []
        if self._open:
            self._close(now_ms)
        drained = self._complete
        self._complete = []
        self.drain_due_ms = None
        return drained

    def _refusal(self, values: Sequence[bytes], size: int) -> Refusal | None:
        """Refuse records that do not fit into one batch; the exact size is computed only if
        necessary."""
        limit = self._batch_max_bytes
        if HEADER_SIZE + size <= limit:
            return None
        # The bound is at most nine bytes too high for each record.
        if HEADER_SIZE + size - 9 * len(values) <= limit:
            exact = len(data_batch(self.end_offset, self._epoch, 0, values))
            if exact <= limit:
                return None
        detail = f"{len(values)} records with {sum(map(len, values))} bytes exceed {limit} bytes"
        return Refusal(RefusalReason.RECORD_BATCH_TOO_LARGE, detail)

    def _close(self, now_ms: int) -> None:
        """Complete the open batch."""
        data = data_batch(self._open_base, self._epoch, self._opened_at, self._open)
        end = self._open_base + len(self._open)
        self._complete.append(DrainedBatch(self._open_base, end, data))
        self._open = []
        self._open_size = HEADER_SIZE
        self._due_now(now_ms)

    def _due_now(self, now_ms: int) -> None:
        if self.drain_due_ms is None or self.drain_due_ms > now_ms:
            self.drain_due_ms = now_ms
