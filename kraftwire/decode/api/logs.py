"""Files of log directories for programs: batches and records of segments and snapshots."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from kraftwire.capture.packets.source import Readable, input_name
from kraftwire.decode.files.report import FileFinding, FileReport
from kraftwire.decode.files.scan import FoundBatch, Scanner
from kraftwire.decode.files.source import ByteSource, open_source, open_stream
from kraftwire.errors import StorageError, UsageError, WireError
from kraftwire.records.batch import RecordBatch
from kraftwire.records.reader import Batch, read_batches
from kraftwire.records.record import Record


@dataclass(frozen=True, slots=True)
class LogBatch:
    """A batch of a segment or snapshot.

    It begins at `position` of `file`; `is_valid` says whether its CRC is right.
    """

    file: str
    position: int
    batch: Batch
    is_valid: bool

    def records(self) -> list[Record]:
        """Return the records. Raises: StorageError if they cannot be read, or the CRC is wrong."""
        self._ensure_valid()
        try:
            return self.batch.records()
        except WireError as error:
            problem = str(error)
        raise self._error(problem)

    def iter_records(self) -> Iterator[Record]:
        """Yield the records, holding a bounded number at a time.

        A batch of very many records is read twice. Raises: as `records`, before the first record.
        """
        batch = self.batch
        if not isinstance(batch, RecordBatch):
            yield from self.records()
            return
        self._ensure_valid()
        try:
            yield from batch.iter_readable()
            return
        except WireError as error:
            problem = str(error)
        raise self._error(problem)

    def _ensure_valid(self) -> None:
        if not self.is_valid:
            raise self._error("the CRC of a batch is wrong")

    def _error(self, problem: str) -> StorageError:
        return StorageError(problem, file=self.file, position=self.position)


@dataclass(frozen=True, slots=True)
class LogRecord:
    """A record and the batch that it is in.

    Units: `timestamp` in milliseconds since the epoch.
    """

    batch: LogBatch
    record: Record

    @property
    def offset(self) -> int:
        """The record's offset."""
        return self.record.offset

    @property
    def timestamp(self) -> int:
        """When the record was made, or appended if the broker stamps batches; -1 if unknown."""
        return self.record.timestamp

    @property
    def key(self) -> bytes | None:
        """The key."""
        return self.record.key

    @property
    def value(self) -> bytes | None:
        """The value."""
        return self.record.value

    @property
    def headers(self) -> tuple[tuple[str, bytes | None], ...]:
        """Names and values of the headers."""
        return tuple((each[0], each[1]) for each in self.record.headers)

    @property
    def is_control(self) -> bool:
        """Whether Kafka itself wrote the record, to control transactions or the quorum."""
        return self.batch.batch.is_control


def batches(
    source: str | os.PathLike[str] | Readable,
    on_finding: Callable[[FileFinding], None] | None = None,
) -> Iterator[LogBatch]:
    """The batches of a segment or snapshot, compressed or not, in the file's order.

    Damage, and bytes that are not a batch, are reported to `on_finding`; reading continues.
    Raises: StorageError if the source cannot be read; UsageError if it holds no batches.
    """
    name = input_name(source)
    report = FileReport(on_finding)
    with _opened(source, name) as opened:
        if not opened.kind.has_batches and opened.size:
            raise UsageError(f"{name} is neither a segment nor a snapshot ({opened.kind})")
        sink = report.sink(name)
        for found in Scanner(opened, sink).batches():
            batch = _read(found)
            if batch is None:
                sink.add("batch-damaged", found.position, "a message leads outside its batch")
            else:
                yield LogBatch(name, found.position, batch, found.is_valid)


def records(
    source: str | os.PathLike[str] | Readable,
    on_finding: Callable[[FileFinding], None] | None = None,
) -> Iterator[LogRecord]:
    """The records of a segment or snapshot, those of control batches too, in the file's order.

    Raises: as `batches`; StorageError at a batch whose records cannot be read.
    """
    for batch in batches(source, on_finding):
        for record in batch.iter_records():
            yield LogRecord(batch, record)


def _read(found: FoundBatch) -> Batch | None:
    try:
        return next(read_batches(found.buffer, found.start))
    except WireError:
        return None


def _opened(
    source: str | os.PathLike[str] | Readable, name: str
) -> AbstractContextManager[ByteSource]:
    if not name:
        raise UsageError("an empty name is not a file")
    if isinstance(source, str | os.PathLike):
        return open_source(Path(name))
    return open_stream(Path(name), source)
