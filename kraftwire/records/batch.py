"""The record batch of magic 2: reads its header at once, its checksum and records on request.

The header's layout is in `header.py`; the records after it may be compressed.

Source: Kafka's `DefaultRecordBatch`.
"""

from __future__ import annotations

from collections.abc import Iterator

from kraftwire.errors import WireError
from kraftwire.records.compression import CODEC_MASK, NAMES, decompress
from kraftwire.records.crc import crc32c
from kraftwire.records.cursor import RecordCursor, check_all, read_all
from kraftwire.records.header import (
    CONTROL,
    COUNT_FIELD,
    CRC_FIELD,
    CRC_START,
    DELETE_HORIZON,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    STAMPED,
    TRANSACTIONAL,
)
from kraftwire.records.limits import (
    LOG_RECORDS_FREE,
    LOG_RECORDS_RATIO_MAX,
    RECORDS_CHUNK_BYTES,
    BombError,
    LogBudget,
    count_limit,
    headers_limit,
)
from kraftwire.records.record import NO_SEQUENCE, RECORD_SIZE_MIN, SEQUENCE_MASK, Record, Section
from kraftwire.records.salvage import Salvage

CREATE_TIME = "CreateTime"
LOG_APPEND_TIME = "LogAppendTime"


class RecordBatch:
    """A batch inside a buffer, which it keeps alive.

    Units: timestamps in milliseconds. `position` is that of the batch in the buffer; `batch_length`
    is the header's field, `size` that of the whole batch; `count` is the number of records that the
    header claims.
    """

    __slots__ = (
        "_buffer",
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "batch_length",
        "count",
        "crc",
        "last_offset_delta",
        "magic",
        "max_timestamp",
        "partition_leader_epoch",
        "position",
        "producer_epoch",
        "producer_id",
    )

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int

    def __init__(self, buffer: bytes | memoryview, position: int = 0) -> None:
        """Read the header.

        Order: the caller (`BatchReader`) has checked that the batch is complete.
        """
        self._buffer = buffer
        self.position = position
        (
            self.base_offset,
            self.batch_length,
            self.partition_leader_epoch,
            self.magic,
            self.crc,
            self.attributes,
            self.last_offset_delta,
            self.base_timestamp,
            self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.count,
        ) = HEADER.unpack_from(buffer, position)

    @property
    def size(self) -> int:
        """Return the size of the whole batch."""
        return self.batch_length + LOG_OVERHEAD

    @property
    def end(self) -> int:
        """Return the position after the batch."""
        return self.position + self.batch_length + LOG_OVERHEAD

    @property
    def raw(self) -> memoryview:
        """Return the bytes of the batch, not copied."""
        return memoryview(self._buffer)[self.position : self.end]

    @property
    def last_offset(self) -> int:
        """Return the last offset, which stays the same when compaction removes that record."""
        return self.base_offset + self.last_offset_delta

    @property
    def last_sequence(self) -> int:
        """Return the producer's sequence number of the last record, or -1."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return self.base_sequence + self.last_offset_delta & SEQUENCE_MASK

    @property
    def codec(self) -> int:
        """Id of the compression codec."""
        return self.attributes & CODEC_MASK

    @property
    def compression(self) -> str:
        """Name of the compression codec."""
        return NAMES[self.attributes & CODEC_MASK]

    @property
    def timestamp_type(self) -> str:
        """``CreateTime``, or ``LogAppendTime`` if the broker stamped the batch."""
        return LOG_APPEND_TIME if self.attributes & STAMPED else CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        """Whether the batch belongs to a transaction."""
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """Whether the batch holds control records."""
        return bool(self.attributes & CONTROL)

    @property
    def delete_horizon_ms(self) -> int | None:
        """Return when compaction may remove this batch's tombstones, if it has set that."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON else None

    @property
    def computed_crc(self) -> int:
        """The CRC that the header should hold."""
        value: int = crc32c(memoryview(self._buffer)[self.position + CRC_START : self.end])
        return value

    @property
    def is_valid(self) -> bool:
        """Whether the CRC is correct, computed again each time."""
        return self.computed_crc == self.crc

    def ensure_valid(self) -> None:
        """Raises: WireError if the CRC is wrong."""
        computed = self.computed_crc
        if computed != self.crc:
            raise WireError(
                "the CRC of a batch is wrong",
                message="RecordBatch",
                version=self.magic,
                path="crc",
                offset=self.position + CRC_FIELD,
                expected=str(computed),
                found=str(self.crc),
            )

    def check_budget(self, budget: LogBudget) -> None:
        """Take the records from the budget of a log whose batches this one follows.

        Raises: BombError if it is spent, WireError as `section`.
        """
        size = len(self.section().data) if self.codec else self.size
        if not budget.take(self.size, size):
            raise BombError(
                "the records of a batch, with those before it in the log, would become far more "
                "than their bytes account for",
                message="RecordBatch",
                version=self.magic,
                path="records",
                offset=self.position + HEADER_SIZE,
                expected=f"at most {LOG_RECORDS_FREE} bytes in all, and {LOG_RECORDS_RATIO_MAX} "
                "for each of the log's",
                found="more",
            )

    def ensure_readable(self) -> None:
        """Check that there are `count` records, as `records` does, several times as fast.

        Raises: WireError as `records`.
        """
        if not self.count:
            return
        section = self.section()
        self._check_count(section)
        check_all(section, self.count)

    def records(self) -> list[Record]:
        """All records.

        Order: check `is_valid` first where the bytes are not trusted. Raises: WireError on an
        unknown codec, damaged compression or damaged records.
        """
        if not self.count:
            return []
        section = self.section()
        self._check_count(section)
        return read_all(section, self.count)

    def iter_records(self) -> Iterator[Record]:
        """Yield all records, holding a bounded number at a time. Raises: WireError as `records`."""
        if not self.count:
            return
        section = self.section()
        self._check_count(section)
        cursor = RecordCursor(section)
        while left := self.count - cursor.index:
            yield from cursor.take_some(left)
        cursor.check_end()

    def iter_readable(self) -> Iterator[Record]:
        """Yield all records like `iter_records`, but raise before the first one: reads long batches
        twice.
        """
        if not self.count:
            return
        section = self.section()
        self._check_count(section)
        if section.end - section.start <= RECORDS_CHUNK_BYTES:
            yield from read_all(section, self.count)
            return
        check_all(section, self.count)
        cursor = RecordCursor(section)
        while left := self.count - cursor.index:
            yield from cursor.take_some(left)

    def salvage(self) -> tuple[list[Record], WireError | None]:
        """Return the records before the first damage, and the damage if there is any."""
        try:
            return self.records(), None
        except WireError:
            pass  # and with it go the bytes that its traceback holds
        found = self.iter_salvage()
        return list(found), found.damage

    def iter_salvage(self) -> Salvage:
        """Yield the records before the first damage, holding a bounded number at a time."""
        return Salvage(self.count, self._count_limit(), self.section, self._check_count)

    def section(self) -> Section:
        """Return the bytes of all records, decompressed, and the header's facts about them.

        Order: check `is_valid` first where the bytes are not trusted. Raises: WireError on an
        unknown codec or damaged compression.
        """
        buffer, start, end = self._buffer, self.position + HEADER_SIZE, self.end
        origin: int | None = 0
        if self.attributes & CODEC_MASK:
            data = self._decompressed(memoryview(buffer)[start:end])
            start, end, origin = 0, len(data), None
        elif isinstance(buffer, bytes):
            data = buffer
        else:
            data = bytes(buffer[start:end])
            start, end, origin = 0, len(data), start
        return Section(
            data=data,
            start=start,
            end=end,
            base_offset=self.base_offset,
            base_timestamp=self.base_timestamp,
            append_time=self.max_timestamp if self.attributes & STAMPED else None,
            base_sequence=self.base_sequence,
            origin=origin,
            position=self.position,
            headers_max=headers_limit(self.size),
        )

    def _decompressed(self, data: memoryview) -> bytes:
        try:
            return decompress(self.codec, data)
        except WireError as error:
            raise type(error)(
                error.problem,
                message="RecordBatch",
                version=self.magic,
                path="records",
                offset=self.position + HEADER_SIZE,
                expected=error.expected,
                found=error.found,
            ) from None

    def _check_count(self, section: Section) -> None:
        """Refuse a count that the bytes cannot hold before any record is read."""
        count_max = (section.end - section.start) // RECORD_SIZE_MIN
        if min(self.count, count_max) > self._count_limit():
            raise BombError(
                "the records of a batch are too many for its bytes",
                message="RecordBatch",
                version=self.magic,
                path="count",
                offset=self.position + COUNT_FIELD,
                expected=f"at most {self._count_limit()} from {self.size} bytes",
                found=str(self.count),
            )
        if not 0 <= self.count <= count_max:
            raise WireError(
                "number of records out of range",
                message="RecordBatch",
                version=self.magic,
                path="count",
                offset=self.position + COUNT_FIELD,
                expected=f"0 to {count_max}",
                found=str(self.count),
            )

    def _count_limit(self) -> int:
        """Return the largest number of records to read."""
        return count_limit(self.size) if self.attributes & CODEC_MASK else self.size
