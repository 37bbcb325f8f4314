"""The aborted and open transactions of a partition, over all of its segments.

A transaction may begin in one segment and end in another. So what the reader of one range omits is
determined beforehand, from the headers of the whole partition and from the indexes of aborted
transactions next to the segments.

Source: Kafka's `ProducerStateManager` and `TransactionIndex`; `read_committed` of its consumer.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path

import numpy as np

from kraftwire.decode.files import FileKind, FileReport, open_source
from kraftwire.decode.files.entries import read_entries
from kraftwire.decode.files.kinds import parse_file_name
from kraftwire.errors import StorageError, WireError
from kraftwire.records.batch import RecordBatch
from kraftwire.records.messages import ControlType, control_type
from kraftwire.spark.columns import Batches
from kraftwire.spark.logs.pieces import pieces_of

__all__ = ["Transactions", "transactions_of"]

_CHUNK_BYTES = 8 * 1024 * 1024


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
    walk = _Walk(indexed)
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


class _Walk:
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
