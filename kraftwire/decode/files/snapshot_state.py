"""The state that a snapshot next to a metadata log holds, for the check of the log after it."""

from __future__ import annotations

from pathlib import Path

from kraftwire.controller.check import MetadataCheck
from kraftwire.decode.files.checked_log import CheckedLog
from kraftwire.decode.files.report import FileFinding, FileReport
from kraftwire.decode.files.scan import Scanner
from kraftwire.decode.files.source import open_source
from kraftwire.errors import StorageError, WireError
from kraftwire.records.batch import RecordBatch
from kraftwire.records.control import ControlType, control_type
from kraftwire.records.limits import LogBudget
from kraftwire.records.metadata import decode_metadata
from kraftwire.records.reader import Batch, read_batches


def checked_log(report: FileReport, folder: Path) -> CheckedLog:
    """Return the check of the log in a folder, which goes on from file to file of a run."""
    log = report.checked_logs.get(folder)
    if log is None:
        log = report.checked_logs[folder] = CheckedLog(folder, _read_snapshot)
    return log


def _read_snapshot(path: Path) -> MetadataCheck | None:
    """Return the check of a snapshot, None if it is not whole."""
    findings: list[FileFinding] = []
    check, budget = MetadataCheck(in_snapshot=True), LogBudget()
    last: ControlType | None = None
    try:
        with open_source(path) as source:
            for found in Scanner(source, FileReport(findings.append).sink(str(path))).batches():
                header = found.header
                check.begin_batch(header.base_offset, header.last_offset)
                batch = next(read_batches(found.buffer, found.start))
                if isinstance(batch, RecordBatch):
                    batch.check_budget(budget)
                last = _take_snapshot_batch(check, batch)
    except (StorageError, WireError):
        return None
    is_whole = check.is_whole and last is ControlType.SNAPSHOT_FOOTER and not findings
    return check if is_whole else None


def _take_snapshot_batch(check: MetadataCheck, batch: Batch) -> ControlType | None:
    """Add the records of a batch; returns the type of its first record if that is a control record.

    Raises: WireError for a record that cannot be read.
    """
    kind: ControlType | None = None
    for record in batch.records():
        if batch.is_control:
            kind = kind or control_type(record.key)
            continue
        message = decode_metadata(record.value).message
        assert message is not None
        check.check_record(record.offset, message)
    return kind
