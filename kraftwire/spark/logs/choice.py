"""Which batches of a log a query needs, by their headers: offsets, times, and transactions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kraftwire.errors import WireError
from kraftwire.records.reader import Batch
from kraftwire.spark.columns import Batches
from kraftwire.spark.logs.transactions import Transactions

__all__ = ["Choice"]

_MIN, _MAX = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True)
class Choice:
    """Excludes batches that cannot hold the requested records.

    Offsets and milliseconds, both ends included. A batch that is kept may hold other
    records too. With `transactions` only committed data is kept: no control batch, nothing of an
    aborted transaction, nothing from the last stable offset on.
    """

    offset_min: int = _MIN
    offset_max: int = _MAX
    timestamp_min: int = _MIN
    transactions: Transactions | None = None

    @property
    def is_all(self) -> bool:
        """Whether it excludes nothing."""
        return self == Choice()

    def mask(self, batches: Batches) -> Any:
        """Return which batches are kept."""
        header = batches.header
        kept = (batches.last_offsets >= self.offset_min) & (
            header["base_offset"] <= self.offset_max
        )
        if self.timestamp_min > _MIN:
            kept &= header["max_timestamp"] >= self.timestamp_min
        if self.transactions is None:
            return kept
        kept &= ~batches.is_control
        if self.transactions.last_stable is not None:
            kept &= header["base_offset"] < self.transactions.last_stable
        for index in np.flatnonzero(kept & batches.is_transactional).tolist():
            row = header[index]
            kept[index] = not self.transactions.is_aborted(
                int(row["producer_id"]), int(row["base_offset"])
            )
        return kept

    def has(self, batch: Batch) -> bool:
        """Whether one batch of any magic is kept."""
        try:
            base_offset = batch.base_offset
        except WireError:
            return False
        if not (self.offset_min <= batch.last_offset and base_offset <= self.offset_max):
            return False
        # Messages of the first format have no timestamp.
        if 0 <= batch.max_timestamp < self.timestamp_min:
            return False
        if self.transactions is None:
            return True
        stable = self.transactions.last_stable
        if batch.is_control or (stable is not None and base_offset >= stable):
            return False
        return not (
            batch.is_transactional
            and self.transactions.is_aborted(batch.producer_id, base_offset)
        )
