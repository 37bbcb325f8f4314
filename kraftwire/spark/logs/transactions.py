"""The aborted and open transactions of a partition, and which batches of a log a query needs.

A transaction may begin in one segment and end in another. So what the reader of one range omits is
determined beforehand, from the headers of the whole partition and from the indexes of aborted
transactions next to the segments. Offsets and times exclude batches by their headers too.

Source: Kafka's `ProducerStateManager` and `TransactionIndex`; `read_committed` of its consumer.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from kraftwire.decode.files import FileKind, FileReport, open_source
from kraftwire.decode.files.entries import read_entries
from kraftwire.decode.files.kinds import parse_file_name
from kraftwire.errors import StorageError, WireError
from kraftwire.records.batch import RecordBatch
from kraftwire.records.control import ControlType, control_type
from kraftwire.records.reader import Batch
from kraftwire.spark.columns import Batches
from kraftwire.spark.logs.plan import pieces_of

_CHUNK_BYTES = 8 * 1024 * 1024

_MIN, _MAX = -(2**63), 2**63 - 1


@dataclass(frozen=True)
class Transactions:
    """What `read_committed` must know about a partition.

    `aborted` has the first and last offset of each aborted transaction, by producer id;
    `last_stable` is where the first open transaction begins, None if none is open.
    """

    aborted: dict[int, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    last_stable: int | None = None

    def is_aborted(self, producer_id: int, base_offset: int) -> bool:
        """Whether a transactional batch belongs to an aborted transaction."""
        spans = self.aborted.get(producer_id, ())
        # They ascend and do not overlap, so the last that begins before the batch decides.
        place = bisect_right(spans, base_offset, key=itemgetter(0))
        return place > 0 and base_offset <= spans[place - 1][1]


def transactions_of(folder: Path) -> Transactions:
    """Return the transactions of a partition's folder; unreadable files are skipped."""
    names = sorted(path for path in folder.iterdir() if not parse_file_name(path.name).state)
    indexed = set(_indexed(names))
    walk = _HeaderScan(indexed)
    for path in names:
        if parse_file_name(path.name).suffix == "log":
            walk.segment(path)
    return walk.result()


def _indexed(paths: Iterable[Path]) -> Iterator[tuple[int, int, int]]:
    """Return producer id, first and last offset of every entry of the indexes."""
    for path in paths:
        if parse_file_name(path.name).suffix != "txnindex":
            continue
        try:
            with open_source(path) as source:
                sink = FileReport().sink(str(path))
                for entry in read_entries(FileKind.TXN_INDEX, source, 0, sink):
                    fields = entry.fields
                    yield fields["producerId"], fields["firstOffset"], fields["lastOffset"]
        except StorageError:
            continue


class _HeaderScan:
    """Walks the batches of all segments, in order."""

    def __init__(self, indexed: set[tuple[int, int, int]]) -> None:
        self._aborted = set(indexed)
        self._open: dict[int, int] = {}
        # Ends of transactions whose markers may be damaged in the log.
        self._ends = {(producer, first): last for producer, first, last in indexed}

    def segment(self, path: Path) -> None:
        """Add a segment."""
        try:
            with open_source(path) as source:
                sink = FileReport().sink(str(path))
                for piece in pieces_of(source, sink, chunk=_CHUNK_BYTES):
                    if piece.batches is not None:
                        self._batches(piece.batches)
        except StorageError:
            return

    def result(self) -> Transactions:
        """Return the transactions."""
        by_producer: dict[int, list[tuple[int, int]]] = {}
        for producer, first, last in sorted(self._aborted):
            by_producer.setdefault(producer, []).append((first, last))
        still_open = [
            first
            for producer, first in self._open.items()
            if (producer, first) not in self._ends
        ]
        return Transactions(
            {producer: tuple(spans) for producer, spans in by_producer.items()},
            min(still_open, default=None),
        )

    def _batches(self, batches: Batches) -> None:
        header = batches.header
        is_control = batches.is_control
        for index in np.flatnonzero(batches.is_transactional).tolist():
            producer = int(header["producer_id"][index])
            offset = int(header["base_offset"][index])
            if is_control[index]:
                self._marker(batches, index, producer, offset)
            else:
                self._data(producer, offset)

    def _data(self, producer: int, offset: int) -> None:
        first = self._open.setdefault(producer, offset)
        end = self._ends.get((producer, first))
        if end is not None and end < offset:
            self._open[producer] = offset

    def _marker(self, batches: Batches, index: int, producer: int, offset: int) -> None:
        batch = RecordBatch(batches.buffer, int(batches.positions[index]))
        try:
            kind = control_type(batch.records()[0].key)
        except (IndexError, WireError):
            return
        if kind not in (ControlType.ABORT, ControlType.COMMIT):
            return
        first = self._open.pop(producer, None)
        if first is not None and kind is ControlType.ABORT:
            self._aborted.add((producer, first, offset))


@dataclass(frozen=True, slots=True)
class BatchFilter:
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
        return self == BatchFilter()

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
