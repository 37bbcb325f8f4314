"""Segments and snapshots as lines: batches with their records, and the faults in their order.

Source: Kafka's `LogValidator` and `UnifiedLog` for the order of offsets, `RecordsSnapshotReader`
for the ends of a snapshot.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kraftwire.controller.check import Contradiction
from kraftwire.decode.body.secrets import redact_batch
from kraftwire.decode.files.checked_log import BatchCheck, CheckedLog
from kraftwire.decode.files.kinds import FileKind, parse_file_name, partition_of
from kraftwire.decode.files.report import FileLine, FindingSink
from kraftwire.decode.files.scan import BatchHeader, FoundBatch, Scanner
from kraftwire.decode.files.source import ByteSource
from kraftwire.decode.limits import JSON_ROW_BYTES_MIN, JSON_ROWS_FREE
from kraftwire.errors import WireError
from kraftwire.records.control import ControlType, control_type
from kraftwire.records.header import LOG_OVERHEAD
from kraftwire.records.json_form import Detail, RecordError, batch_to_json
from kraftwire.records.limits import BombError
from kraftwire.records.messages import family_of_topic
from kraftwire.records.reader import Batch, read_batches

_METADATA = "metadata"
_KRAFT_TYPES = frozenset(ControlType) - {ControlType.ABORT, ControlType.COMMIT}


@dataclass(frozen=True, slots=True)
class FileOptions:
    """How files are decoded.

    `records` says how much of each record is shown; `family` overrides what the folder's
    name shows of the records: a family of `kraftwire.records.messages.FAMILIES`, or ``none``.
    """

    records: Detail = "full"
    show_secrets: bool = False
    family: str | None = None


def family_of(source: ByteSource, options: FileOptions) -> str | None:
    """The family of the records in a segment or snapshot by its place; None if that shows none."""
    if options.family is not None:
        return None if options.family == "none" else options.family
    if source.kind is FileKind.SNAPSHOT:
        return _METADATA
    partition = partition_of(source.path)
    return family_of_topic(partition.topic) if partition else None


class SegmentLines:
    """Makes the lines of one segment or snapshot.

    `begins_at` is the offset where the segment of the same log that was read before it ends. Order:
    give it the batches in the order of the file, then call `finish`.
    """

    def __init__(
        self,
        source: ByteSource,
        options: FileOptions,
        sink: FindingSink,
        log: CheckedLog | None = None,
        *,
        begins_at: int | None = None,
    ) -> None:
        """`log` is the metadata log that a segment may be part of."""
        self.kind = source.kind
        self._log = CheckedLog() if self.kind is FileKind.SNAPSHOT else log
        self._sink = sink
        self._options = options
        self._family = family_of(source, options)
        self._may_guess = options.family is None and partition_of(source.path) is None
        self._name = parse_file_name(source.path.name)
        self._begins_at = begins_at
        self._before: BatchHeader | None = None
        self._first_control: ControlType | None = None
        self._last_control: ControlType | None = None
        # Bytes of unknown records may be secrets as well.
        is_known = self._family not in (_METADATA, None) or self._is_of_users(source)
        sink.hides_bytes = not is_known and not options.show_secrets

    @property
    def end_offset(self) -> int | None:
        """The offset after the last batch so far, of a segment of the metadata log only."""
        is_log = self.kind is FileKind.LOG and self._family == _METADATA and not self._name.state
        return self._before.last_offset + 1 if is_log and self._before else None

    def lines(self, scanner: Scanner) -> Iterator[FileLine]:
        """The lines from where the scanner stands to the end of its range or file."""
        self._before = scanner.before
        for found in scanner.batches():
            line = self.line(found)
            if line is not None:
                yield line
        # Part of a snapshot has its header or footer elsewhere.
        if scanner.is_whole_file:
            self.finish()

    def line(self, found: FoundBatch) -> FileLine | None:
        """The line of a batch, None if nothing of it can be read; reports the findings about it."""
        before, self._before = self._before, found.header
        self._check_order(found, before)
        try:
            batch = next(read_batches(found.buffer, found.start))
        except WireError as error:
            # A legacy message whose key or value leads outside.
            self._report_problems([error], found)
            return None
        self._check_control(batch, is_first=before is None)
        check = self._check(found, batch)
        json, problems = batch_to_json(
            batch,
            family=self._family,
            records=self._options.records,
            rows_max=JSON_ROWS_FREE + batch.size // JSON_ROW_BYTES_MIN,
            on_record=None if check is None else check.check_record,
        )
        self._report_problems(problems, found)
        contradictions = [] if check is None else self._contradictions(check, found, problems)
        hides_records = may_hide = False
        if not self._options.show_secrets:
            is_metadata = self._family == _METADATA
            hides_records = redact_batch(json, is_metadata=is_metadata)
            # Records that were not read, or only in part, may be secrets too.
            is_read = self._options.records == "full" and not problems
            may_hide = not is_read and not is_metadata
            hides_records |= is_metadata and not is_read
            self._sink.hides_bytes |= hides_records
        line: dict[str, Any] = {"file": self._sink.file, **json}
        line["position"] = found.position
        return FileLine(
            self.kind,
            found.position,
            line,
            batch.raw,
            batch,
            self._family,
            hides_records,
            may_hide,
            contradictions,
        )

    def _check(self, found: FoundBatch, batch: Batch) -> BatchCheck | None:
        """Begin the check of a batch of the metadata log whose records are decoded."""
        is_read = self._family == _METADATA and self._options.records != "none"
        if self._log is None or not is_read:
            return None
        if not found.is_valid:
            # Its records are not those that were written.
            return None
        try:
            return self._log.batch(batch)
        except BombError as error:
            self._report_problems([error], found)
        except WireError:
            pass  # reported when they are shown
        return None

    def _contradictions(
        self, check: BatchCheck, found: FoundBatch, problems: list[WireError]
    ) -> list[Contradiction]:
        if problems:
            check.note_unread()
        for each in check.found:
            self._sink.add("contradiction", found.position, str(each))
        return check.found

    def _is_of_users(self, source: ByteSource) -> bool:
        """Whether the records are some topic's, and its folder says so."""
        return self._options.family is None and partition_of(source.path) is not None

    def go_back(self, header: BatchHeader | None) -> None:
        """Forget what came after a batch, as its file was cut there."""
        self._before = header

    def finish(self) -> None:
        """Report what shows only at the end: whether a snapshot is whole."""
        if self.kind is not FileKind.SNAPSHOT or self._name.state or self._before is None:
            return
        if self._first_control is not ControlType.SNAPSHOT_HEADER:
            self._sink.add("snapshot-incomplete", 0, "does not begin with a snapshot header")
        if self._last_control is not ControlType.SNAPSHOT_FOOTER:
            self._sink.add("snapshot-incomplete", 0, "does not end with a snapshot footer")

    def _check_control(self, batch: Batch, *, is_first: bool) -> None:
        """Note the control types; those that only KRaft writes mark a metadata log."""
        self._last_control = _first_type(batch) if batch.is_control else None
        if is_first:
            self._first_control = self._last_control
        if self._may_guess and self._family is None and self._last_control in _KRAFT_TYPES:
            self._family = _METADATA
            self._sink.hides_bytes = not self._options.show_secrets

    def _check_order(self, found: FoundBatch, before: BatchHeader | None) -> None:
        header = found.header
        if before is None:
            self._check_first(found)
            return
        follows = f"base offset {header.base_offset} follows offset {before.last_offset}"
        if header.base_offset <= before.last_offset:
            self._sink.add("not-monotonic", found.position, follows)
        elif header.base_offset > before.last_offset + 1 and self._family == _METADATA:
            # Other logs may be compacted; the metadata log never is.
            self._sink.add("offset-gap", found.position, follows)
        if header.leader_epoch < before.leader_epoch:
            follows = f"leader epoch {header.leader_epoch} follows {before.leader_epoch}"
            self._sink.add("not-monotonic", found.position, follows)

    def _check_first(self, found: FoundBatch) -> None:
        # Offsets inside a snapshot are its own.
        base_offset = self._name.base_offset if self.kind is FileKind.LOG else 0
        if base_offset is not None and found.header.base_offset < base_offset:
            self._sink.add(
                "not-monotonic",
                found.position,
                f"base offset {found.header.base_offset} is before the segment's {base_offset}",
            )
        begins_at, at = self._begins_at, found.header.base_offset
        if begins_at is not None and self.end_offset is not None and at > begins_at:
            follows = f"base offset {at} follows offset {begins_at - 1} of the segment before"
            self._sink.add("offset-gap", found.position, follows)

    def _report_problems(self, problems: list[WireError], found: FoundBatch) -> None:
        """Report what is wrong inside a batch, once, however many records it concerns."""
        # The scan has reported a wrong CRC.
        inside = [problem for problem in problems if problem.path != "crc"]
        if not inside:
            return
        first, more = inside[0], len(inside) - 1
        position = found.position
        if first.offset is not None and 0 <= first.offset - found.start < found.header.size:
            position += first.offset - found.start
        also = f"; {more} more in this batch" if more else ""
        id = "record-undecoded" if isinstance(first, RecordError) else "batch-damaged"
        if isinstance(first, BombError):
            id = "batch-bomb"
        # Numbers, such as an unknown type, are no secrets; what else was found may be one.
        what = f": {first.found}" if first.found.isdecimal() else ""
        self._sink.add(
            id,
            position,
            f"batch at offset {found.header.base_offset}: {first.problem}{what}{also}",
            size=found.header.size - LOG_OVERHEAD,
        )


def _first_type(batch: Batch) -> ControlType | None:
    try:
        return control_type(next(iter(batch.iter_salvage())).key)
    except (StopIteration, WireError):
        return None
