"""Scans a segment: finds its batches and any damage."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kraftwire.log.batches import HEAD, HEAD_SIZE, BatchArrays
from kraftwire.log.files import File
from kraftwire.log.settings import METADATA_BATCH_BYTES_MAX
from kraftwire.records.crc import crc32c
from kraftwire.records.header import (
    CONTROL,
    CRC_START,
    HEADER_SIZE,
    LENGTH_MIN,
    LOG_OVERHEAD,
    MAGIC,
)
from kraftwire.records.reader import BatchReader

# A log segment is checked in parts of this size when it is opened; a longer batch is read whole.
LOG_SCAN_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Damage:
    """The first invalid batch.

    `position` is the byte where it begins, `offset` the base offset that it should have; `is_whole`
    if its checksum is correct.
    """

    position: int
    offset: int
    problem: str
    is_whole: bool = False


@dataclass(slots=True)
class SegmentScan:
    """A segment as found.

    `size` is where the good batches end, `file_size` where the file does.
    """

    batches: BatchArrays
    end_offset: int
    size: int = 0
    file_size: int = 0
    last_epoch: int = -1
    max_timestamp: int = -1
    max_timestamp_offset: int = -1
    damage: Damage | None = None


def scan_segment(file: File, base_offset: int, last_epoch: int = -1) -> SegmentScan:
    """Check every batch of a segment: header, checksum, offsets without gaps, increasing epochs.

    `last_epoch` is that of the batch before the segment.
    """
    scan = SegmentScan(BatchArrays(base_offset), base_offset, last_epoch=last_epoch)
    scan.file_size = file.size()
    for buffer, start in _chunks(file, scan):
        _scan_chunk(scan, buffer, start)
        if scan.damage:
            return scan
    if not scan.damage and scan.size < scan.file_size:
        left = scan.file_size - scan.size
        problem = f"a batch ends after {left} bytes"
        scan.damage = Damage(scan.size, scan.end_offset, problem)
    return scan


def _chunks(file: File, scan: SegmentScan) -> Iterator[tuple[bytes, int]]:
    """Yield chunks of a file that begin at the scan's position and hold at least one whole
    batch."""
    count = LOG_SCAN_BYTES
    while scan.size + HEAD_SIZE <= scan.file_size:
        position = scan.size
        yield file.pread(count, position), position
        if scan.size > position:
            count = LOG_SCAN_BYTES
        elif position + count >= scan.file_size:
            return
        else:
            count *= 2  # a single batch of this size, bounded by the file's size


def _scan_chunk(scan: SegmentScan, buffer: bytes, start: int) -> None:
    """Record the batches that lie wholly in a chunk of the file, up to the first damage."""
    view = memoryview(buffer)
    position, limit = 0, len(buffer) - HEAD_SIZE
    offset, epoch = scan.end_offset, scan.last_epoch
    newest, newest_offset = scan.max_timestamp, scan.max_timestamp_offset
    batches = scan.batches
    first = batches.base_offset
    # A log of no-op records has a million batches in 72 MB: this loop determines how long a start
    # takes, so it avoids calls.
    unpack = HEAD.unpack_from
    add_offset, add_position = batches.offsets.append, batches.positions.append
    add_epoch = batches.epochs.append
    problem = ""
    is_whole = False
    while position <= limit:
        base, length, its_epoch, magic, crc, attributes, delta, _, timestamp = unpack(
            buffer, position
        )
        end = position + LOG_OVERHEAD + length
        if magic != MAGIC or length < LENGTH_MIN or delta < 0:
            problem = "no header of a batch"
            break
        if end > len(buffer):
            if start + end > scan.file_size:
                left = scan.file_size - start - position
                problem = f"a batch of {end - position} bytes ends after {left}"
            break
        if crc32c(view[position + CRC_START : end]) != crc:
            problem = "the checksum of a batch is wrong"
            break
        if base != offset or its_epoch < epoch:
            problem = f"a batch claims offset {base} of epoch {its_epoch}, after epoch {epoch}"
            is_whole = True
            break
        if attributes & CONTROL:
            batches.control.append(len(batches))
        add_offset(base - first)
        add_position(start + position)
        add_epoch(its_epoch)
        offset, epoch = base + delta + 1, its_epoch
        if timestamp > newest:
            newest, newest_offset = timestamp, offset - 1
        position = end
    scan.max_timestamp, scan.max_timestamp_offset = newest, newest_offset
    scan.size, scan.end_offset, scan.last_epoch = start + position, offset, epoch
    if problem:
        scan.damage = Damage(scan.size, offset, problem, is_whole)


def find_later_batch(
    file: File, damage: Damage, last_epoch: int
) -> tuple[int, int] | None:
    """Return (position, base offset) of a good batch after the damage that continues this log.

    Stale contents of reused disk blocks may look like batches too, but not with later offsets.
    `last_epoch` is that of the last good batch.
    """
    position = damage.position
    size = file.size()
    while position < size:
        window = file.pread(LOG_SCAN_BYTES + METADATA_BATCH_BYTES_MAX, position)
        reader = BatchReader(window)
        while reader.remaining:
            reader.resume()
            found = reader.position
            if len(window) - found < HEADER_SIZE:
                break
            base, _, epoch, *_ = HEAD.unpack_from(window, found)
            if base > damage.offset and epoch >= last_epoch:
                return position + found, base
            if found >= LOG_SCAN_BYTES:
                break
        position += LOG_SCAN_BYTES
    return None
