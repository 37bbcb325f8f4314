"""Writing a snapshot: values in, batches on disk as Kafka's own writer lays them out.

A snapshot file is record batches with offsets from 0 and the epoch of its id. The first batch is a
control batch that begins with the header record; if kraft.version is 1, kraft.version and voters
follow in it. Batches of data come next, each of at most 8 MiB, and last a control batch with the
footer record (R-SNAP-3).

Source: Kafka's `RecordsSnapshotWriter`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kraftwire.errors import UsageError
from kraftwire.log.files import File
from kraftwire.log.settings import METADATA_BATCH_BYTES_MAX
from kraftwire.messages.snapshot_footer_record import SnapshotFooterRecord
from kraftwire.messages.snapshot_header_record import SnapshotHeaderRecord
from kraftwire.records.control import ControlType, control_batch
from kraftwire.records.header import HEADER_SIZE
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.records.plain import RECORD_OVERHEAD_MAX, data_batch, plain_size
from kraftwire.wire.message import Message

ControlRecords = Sequence[tuple[ControlType, Message]]


def header_batch(epoch: int, now_ms: int, timestamp: int, records: ControlRecords = ()) -> bytes:
    """Build the first batch: the header record, then kraft.version and voters.

    `timestamp` is that of the last record that the snapshot contains.
    """
    header = SnapshotHeaderRecord(version=0, last_contained_log_timestamp=timestamp)
    return control_batch(0, epoch, now_ms, [(ControlType.SNAPSHOT_HEADER, header), *records])


def footer_batch(base_offset: int, epoch: int, now_ms: int) -> bytes:
    """Build the last batch."""
    footer = SnapshotFooterRecord(version=0)
    return control_batch(base_offset, epoch, now_ms, [(ControlType.SNAPSHOT_FOOTER, footer)])


class SnapshotWriter:
    """A snapshot being written; memory holds one batch of it.

    Order: `append` as often as needed, then `freeze`; or `discard` at any time. All of them may run
    in a thread, one at a time.
    """

    def __init__(
        self,
        file: File,
        snapshot: OffsetAndEpoch,
        now_ms: int,
        *,
        publish: Callable[[File], int],
        withdraw: Callable[[File], None],
        batch_max_bytes: int = METADATA_BATCH_BYTES_MAX,
    ) -> None:
        self.id = snapshot
        self.size = 0
        self._file = file
        self._now_ms = now_ms
        self._publish = publish
        self._withdraw = withdraw
        self._batch_max_bytes = batch_max_bytes
        self._base_offset = 0
        self._open: list[bytes] = []
        self._open_max = HEADER_SIZE
        # The number of open records for which the exact size is known.
        self._measured = self._measured_size = 0
        self._is_done = False

    def begin(self, timestamp: int, control: ControlRecords) -> None:
        """Write the first batch; called by the store."""
        self._write(header_batch(self.id.epoch, self._now_ms, timestamp, control))
        self._base_offset = 1 + len(control)

    def append(self, values: Sequence[bytes]) -> None:
        """Add records with these values, all in one batch if they fit into one.

        Kafka flushes the batch that a list has just begun together with the full one before it, so
        batches end where lists do; this writer does the same.

        Raises: UsageError if a value is empty, does not fit into a batch, or comes after the end;
        StorageError.
        """
        if self._is_done:
            raise UsageError(f"the snapshot {self.id} is complete or discarded")
        if not all(values):
            raise UsageError("a record of a snapshot needs a value that is not empty")
        size_max = sum(map(len, values)) + RECORD_OVERHEAD_MAX * len(values)
        if self._open_max + size_max <= self._batch_max_bytes or self._fits(values):
            self._open.extend(values)
            self._open_max += size_max
            return
        self._complete()
        if self._fits(values):
            self._open.extend(values)
            self._complete()
        elif len(values) > 1:
            for part in (values[: len(values) // 2], values[len(values) // 2 :]):
                self.append(part)
        else:
            raise UsageError(
                f"a record of {len(values[0])} bytes does not fit into a batch of "
                f"{self._batch_max_bytes}"
            )

    def freeze(self) -> int:
        """Write the footer and make the file durable, read-only and published; returns its size in
        bytes.

        Raises: StorageError, fatal if a sync fails.
        """
        self._complete()
        self._write(footer_batch(self._base_offset, self.id.epoch, self._now_ms))
        self._is_done = True
        return self._publish(self._file)

    def discard(self) -> None:
        """Remove an incomplete file; discarding it again has no effect."""
        if not self._is_done:
            self._is_done = True
            self._withdraw(self._file)

    def _fits(self, values: Sequence[bytes]) -> bool:
        """Return whether the open batch has room for more values, exact to the byte."""
        count = len(self._open)
        self._measured_size += plain_size(self._open[self._measured :], self._measured)
        self._measured = count
        size = self._measured_size + plain_size(values, count)
        return HEADER_SIZE + size <= self._batch_max_bytes

    def _complete(self) -> None:
        """Write the open batch."""
        if self._open:
            self._write(data_batch(self._base_offset, self.id.epoch, self._now_ms, self._open))
            self._base_offset += len(self._open)
        self._open, self._open_max = [], HEADER_SIZE
        self._measured = self._measured_size = 0

    def _write(self, data: bytes) -> None:
        self._file.pwrite(data, self.size)
        self.size += len(data)
