"""Reading snapshot files, with every check and in bounded memory.

Differs from Kafka, which checks neither the footer nor offsets and epochs, and would load a
truncated file or one with parts of another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from kraftwire.errors import WireError
from kraftwire.log.files import File, Files
from kraftwire.log.names import checkpoint_name, join
from kraftwire.log.scan import LOG_SCAN_BYTES
from kraftwire.log.settings import METADATA_BATCH_BYTES_MAX
from kraftwire.messages.snapshot_header_record import SnapshotHeaderRecord
from kraftwire.records.batch import RecordBatch
from kraftwire.records.control import ControlType, decode_control
from kraftwire.records.crc import crc32c
from kraftwire.records.header import CRC_START, HEADER, HEADER_SIZE, LENGTH_MIN, LOG_OVERHEAD, MAGIC
from kraftwire.records.messages import Decoded
from kraftwire.records.offsets import OffsetAndEpoch

_FIRST = (ControlType.SNAPSHOT_HEADER, ControlType.KRAFT_VERSION, ControlType.KRAFT_VOTERS)


@dataclass(frozen=True, slots=True)
class SnapshotFile:
    """A stored snapshot.

    `control` are the bytes of its first batch: header, kraft.version, voters. `timestamp` is that
    of the last record that the snapshot contains, in milliseconds; `size` is in bytes.
    """

    id: OffsetAndEpoch
    size: int
    control: bytes
    timestamp: int


class SnapshotReader:
    """Streams a snapshot's data batches in order; close it, or use it as a context manager.

    Memory holds one batch, or a few MiB of smaller ones. An open reader keeps working if the
    snapshot is deleted.
    """

    def __init__(self, files: Files, directory: str, snapshot: SnapshotFile) -> None:
        """Open the file. Raises: StorageError."""
        self.id = snapshot.id
        self.size = snapshot.size
        self.control = snapshot.control
        self.timestamp = snapshot.timestamp
        self._file = files.open_to_read(join(directory, checkpoint_name(snapshot.id)))

    def __iter__(self) -> Iterator[RecordBatch]:
        """The data batches from the first one on.

        Raises: WireError where the file is damaged, and at the end of one that lacks its footer;
        StorageError if it cannot be read.
        """
        return (batch for batch in _batches(self._file, self.id) if not batch.is_control)

    def __enter__(self) -> SnapshotReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; closing it again has no effect."""
        self._file.close()


def check_snapshot(file: File, snapshot: OffsetAndEpoch) -> SnapshotFile:
    """Check a whole file: layout, checksums, offsets from 0 without gaps, the epoch of its id.

    Raises: WireError that names the byte; StorageError if the file cannot be read.
    """
    batches = _batches(file, snapshot)
    first = next(batches)
    control = bytes(first.raw)
    header = cast("SnapshotHeaderRecord", _control(first)[0].message)
    for _ in batches:
        pass
    return SnapshotFile(snapshot, file.size(), control, header.last_contained_log_timestamp)


def _batches(file: File, snapshot: OffsetAndEpoch) -> Iterator[RecordBatch]:
    """Yield every batch in order, checked; the iteration ends only after the footer."""
    offset = 0
    is_complete = False
    for batch, position in _whole_batches(file):
        problem = _header_problem(batch, offset, snapshot.epoch)
        if problem:
            raise _damage(problem, position)
        if is_complete:
            raise _damage("a batch follows the footer", position)
        if not offset:
            _check_control(batch, position, _FIRST)
        elif batch.is_control:
            _check_control(batch, position, (ControlType.SNAPSHOT_FOOTER,))
            is_complete = True
        yield batch
        offset = batch.last_offset + 1
    if not is_complete:
        raise _damage("the snapshot ends without a footer", file.size())


def _whole_batches(file: File) -> Iterator[tuple[RecordBatch, int]]:
    """Yield batches with a correct checksum and their positions, reading in large chunks."""
    size, position = file.size(), 0
    buffer, start = b"", 0
    while position < size:
        at = position - start
        if len(buffer) - at < HEADER_SIZE:
            buffer, start, at = file.pread(LOG_SCAN_BYTES, position), position, 0
            if len(buffer) < HEADER_SIZE:
                raise _damage(f"{len(buffer)} bytes are not a batch", position)
        _, length, _, magic, crc, *_ = HEADER.unpack_from(buffer, at)
        whole = length + LOG_OVERHEAD
        if magic != MAGIC or length < LENGTH_MIN or whole > METADATA_BATCH_BYTES_MAX:
            problem = f"no batch: magic {magic}, length {length}"
            raise _damage(problem, position)
        if len(buffer) - at < whole:
            buffer, start, at = file.pread(max(whole, LOG_SCAN_BYTES), position), position, 0
            if len(buffer) < whole:
                raise _damage(f"a batch of {whole} bytes ends after {len(buffer)}", position)
        if crc32c(memoryview(buffer)[at + CRC_START : at + whole]) != crc:
            raise _damage("the checksum of a batch is wrong", position)
        yield RecordBatch(buffer, at), position
        position += whole


def _header_problem(batch: RecordBatch, offset: int, epoch: int) -> str:
    """Return what is wrong with a batch at this offset; empty if it is valid."""
    if batch.base_offset != offset:
        return f"a batch begins at offset {batch.base_offset}, expected {offset}"
    if batch.partition_leader_epoch != epoch:
        return f"a batch has epoch {batch.partition_leader_epoch}, expected {epoch}"
    if batch.count < 1 or batch.count != batch.last_offset_delta + 1:
        return f"a batch has {batch.count} records up to offset {batch.last_offset}"
    return ""


def _check_control(batch: RecordBatch, position: int, kinds: tuple[ControlType, ...]) -> None:
    """Check that a control batch holds these records, at least the first of them."""
    expected = ", ".join(kind.name for kind in kinds)
    if not batch.is_control:
        raise _damage(f"a batch of data where {expected} should be", position)
    try:
        found = [record.control_type for record in _control(batch)]
    except WireError as error:
        raise _damage(str(error), position) from error
    if not found or found != [kind.name for kind in kinds[: len(found)]]:
        raise _damage(f"expected {expected}, found {', '.join(map(str, found))}", position)


def _control(batch: RecordBatch) -> list[Decoded]:
    return [decode_control(record.key, record.value) for record in batch.records()]


def _damage(problem: str, position: int) -> WireError:
    return WireError(problem, message="Snapshot", offset=position)
