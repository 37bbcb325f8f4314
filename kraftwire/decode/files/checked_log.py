"""Metadata logs checked for records that contradict those before them, across their files.

A log is checked from offset 0 or from a snapshot in its folder on. After a gap or damage it goes on
with what follows, and with the next snapshot that ends where a batch begins.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path

from kraftwire.controller.check import Contradiction, MetadataCheck
from kraftwire.decode.files.kinds import FileKind, parse_file_name
from kraftwire.records.batch import RecordBatch
from kraftwire.records.limits import LogBudget
from kraftwire.records.messages import Decoded
from kraftwire.records.reader import Batch

ReadSnapshot = Callable[[Path], MetadataCheck | None]


class BatchCheck:
    """Checks the records of one batch as they are decoded; `found` are the contradictions."""

    def __init__(self, check: MetadataCheck) -> None:
        self.found: list[Contradiction] = []
        self._check = check

    def check_record(self, offset: int, decoded: Decoded | None) -> None:
        """Check the next record; None if it cannot be read."""
        if decoded is None:
            self.note_unread()
        elif decoded.message is not None:
            contradiction = self._check.check_record(offset, decoded.message)
            if contradiction is not None:
                self.found.append(contradiction)

    def note_unread(self) -> None:
        """Note that a record of the batch was not read."""
        self._check.forget()


class CheckedLog:
    """The check of one metadata log, or of one snapshot.

    Order: `batch` for each batch in the order of the files.
    """

    def __init__(
        self, folder: Path | None = None, read_snapshot: ReadSnapshot | None = None
    ) -> None:
        """`folder` is that of a log, searched for snapshots if it does not begin at offset 0.

        `read_snapshot` returns the check of a snapshot, None if it is not whole. Without them, the
        batches are those of a snapshot.
        """
        self._folder = folder
        self._read_snapshot = read_snapshot
        self._check = MetadataCheck(in_snapshot=folder is None)
        self._budget = LogBudget()
        self._snapshots: deque[tuple[int, Path]] | None = None

    def batch(self, batch: Batch) -> BatchCheck:
        """Begin a batch; returns the check of its records. Raises: WireError if they cannot be
        read, or too much would have to be kept of them; the next batch is one after a gap."""
        if isinstance(batch, RecordBatch):
            batch.check_budget(self._budget)
        base_offset, last_offset = batch.base_offset, batch.last_offset
        self._check.begin_batch(base_offset, last_offset)
        if not self._check.is_whole:
            loaded = self._snapshot_at(base_offset)
            if loaded is not None:
                self._check = loaded.after_snapshot(base_offset)
                self._check.begin_batch(base_offset, last_offset)
        return BatchCheck(self._check)

    def _snapshot_at(self, offset: int) -> MetadataCheck | None:
        """Return the check of the snapshot that ends at an offset; each is read once."""
        if self._folder is None or self._read_snapshot is None:
            return None
        if self._snapshots is None:
            self._snapshots = deque(_snapshots(self._folder))
        while self._snapshots and self._snapshots[0][0] < offset:
            self._snapshots.popleft()
        loaded = None
        while loaded is None and self._snapshots and self._snapshots[0][0] == offset:
            loaded = self._read_snapshot(self._snapshots.popleft()[1])
        return loaded


def _snapshots(folder: Path) -> list[tuple[int, Path]]:
    """Return the snapshots in a folder by their end offsets, an end in the newest epoch first."""
    try:
        paths = list(folder.iterdir())
    except OSError:
        return []
    named = ((parse_file_name(path.name), path) for path in paths)
    found = [
        (name.base_offset, -(name.epoch or 0), path)
        for name, path in named
        if name.suffix == FileKind.SNAPSHOT and not name.state and name.base_offset is not None
    ]
    return [(offset, path) for offset, _, path in sorted(found)]
