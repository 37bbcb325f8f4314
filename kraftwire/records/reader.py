"""Walks the batches of a buffer: a log segment, a snapshot, the records of a response.

Only headers are read. A batch that is cut off at the end, as in Fetch responses, ends the walk
without an error; an impossible header raises one, and the walk can continue after the damage.

Source: Kafka's `ByteBufferLogInputStream`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kraftwire.errors import WireError
from kraftwire.records.batch import RecordBatch
from kraftwire.records.header import (
    HEADER_SIZE,
    LENGTH_MIN,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_FIELD,
    fields,
)
from kraftwire.records.legacy import MESSAGE_OVERHEAD, LegacyBatch

# Looking for the next whole batch after a damaged one computes CRCs of candidates; at most this
# many bytes for each byte of the buffer, so that planted headers cannot make it quadratic.
RESUME_BYTES_RATIO = 8

Batch = RecordBatch | LegacyBatch

_SIZE = fields("batch_length")

# The least value of the length field, by magic.
_SIZE_MIN = {**MESSAGE_OVERHEAD, MAGIC: LENGTH_MIN}

# Magic 2, any CRC, attributes below 0x80, a last offset delta that is not negative.
_PLAUSIBLE = re.compile(rb"\x02(?=.{4}\x00[\x00-\x7f][\x00-\x7f])", re.DOTALL)


class BatchReader(Iterator[Batch]):
    """Iterates over batches.

    `position` is where the next batch begins. Raises: WireError while iterating if the header there
    is impossible; `resume` continues after it.
    """

    def __init__(self, buf: bytes | bytearray | memoryview, position: int = 0) -> None:
        """Start at a position. The buffer is not copied."""
        self._buffer = buf if isinstance(buf, bytes) else memoryview(buf).cast("B").toreadonly()
        self._size = len(self._buffer)
        self.position = position

    @property
    def remaining(self) -> int:
        """Return the bytes not read yet; after the iteration, those of a batch that is cut off."""
        return self._size - self.position

    def __next__(self) -> Batch:
        start = self.position
        left = self._size - start
        if left < LOG_OVERHEAD:
            raise StopIteration
        (size,) = _SIZE.unpack_from(self._buffer, start)
        magic = self._buffer[start + MAGIC_FIELD] if left > MAGIC_FIELD else 0
        least = _SIZE_MIN.get(magic)
        if least is None or size < least:
            raise _impossible(start, size, magic)
        if size > left - LOG_OVERHEAD:
            raise StopIteration
        batch: Batch
        if magic == 2:
            batch = RecordBatch(self._buffer, start)
        else:
            batch = LegacyBatch(self._buffer, start)
        self.position = start + LOG_OVERHEAD + size
        return batch

    def resume(self) -> int:
        """Go to the next batch of magic 2 with a correct CRC, or to the end; return the distance.

        Order: after `WireError`, or to skip bytes that are cut off or not trusted.
        """
        start = self.position
        budget = self._size * RESUME_BYTES_RATIO
        for match in _PLAUSIBLE.finditer(self._buffer, start + 1 + MAGIC_FIELD):
            candidate = match.start() - MAGIC_FIELD
            if self._size - candidate < HEADER_SIZE:
                break
            batch = RecordBatch(self._buffer, candidate)
            if batch.base_offset < 0 or batch.count < 0 or batch.end > self._size:
                continue
            budget -= batch.size
            if budget < 0:
                break
            if batch.size >= HEADER_SIZE and batch.is_valid:
                self.position = candidate
                return candidate - start
        self.position = self._size
        return self._size - start


def read_batches(buf: bytes | bytearray | memoryview, position: int = 0) -> BatchReader:
    """Iterate over the batches in a buffer; see `BatchReader` for what is cut off or damaged."""
    return BatchReader(buf, position)


def _impossible(position: int, size: int, magic: int) -> WireError:
    if magic not in _SIZE_MIN:
        path, expected, found = "magic", "0 to 2", str(magic)
    else:
        path, expected, found = "batch_length", f"{_SIZE_MIN[magic]} or more", str(size)
    return WireError(
        "no batch begins here",
        message="RecordBatch",
        path=path,
        offset=position,
        expected=expected,
        found=found,
    )
