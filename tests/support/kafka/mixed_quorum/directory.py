"""The present contents of a metadata log's directory, read while its owner writes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from kraftwire.records.batch import RecordBatch
from kraftwire.records.reader import read_batches

_SNAPSHOT = re.compile(r"(\d{20})-(\d{10})\.checkpoint")

_T = TypeVar("_T")


class LogFolder:
    """The folder ``__cluster_metadata-0`` of a log directory."""

    def __init__(self, log_dir: Path) -> None:
        self.path = log_dir / "__cluster_metadata-0"

    def segments(self) -> list[Path]:
        """The segment files, by base offset."""
        return sorted(self.path.glob("*.log"))

    def data(self) -> bytes:
        """The bytes of all segments."""
        return _again(lambda: b"".join(path.read_bytes() for path in self.segments()))

    def batches(self) -> list[RecordBatch]:
        """The batches of all segments, without a last one that is being written."""

        def read() -> list[RecordBatch]:
            return [batch for path in self.segments() for batch in _batches(path)]

        return _again(read)

    @property
    def start_offset(self) -> int:
        """The base offset of the oldest segment; 0 if there is none."""
        return int(self.segments()[0].stem) if self.segments() else 0

    @property
    def end_offset(self) -> int:
        """Where the log ends."""

        def read() -> int:
            segments = self.segments()
            if not segments:
                return 0
            batches = _batches(segments[-1])
            return batches[-1].last_offset + 1 if batches else int(segments[-1].stem)

        return _again(read)

    def snapshots(self) -> list[tuple[int, int]]:
        """End offset and epoch of the snapshots, oldest first, without the bootstrap checkpoint."""
        found = (_SNAPSHOT.fullmatch(path.name) for path in self.path.glob("*.checkpoint"))
        ids = sorted((int(match[1]), int(match[2])) for match in found if match is not None)
        return [one for one in ids if one != (0, 0)]

    def snapshot_path(self, snapshot_id: tuple[int, int]) -> Path:
        """The file of a snapshot."""
        end_offset, epoch = snapshot_id
        return self.path / f"{end_offset:020}-{epoch:010}.checkpoint"

    def names(self) -> set[str]:
        """The names of all files."""
        return {path.name for path in self.path.iterdir()}


def _batches(path: Path) -> list[RecordBatch]:
    return [batch for batch in read_batches(path.read_bytes()) if isinstance(batch, RecordBatch)]


def _again(read: Callable[[], _T]) -> _T:
    """Read once more if a file was renamed meanwhile, as segments are before deletion."""
    while True:
        try:
            return read()
        except FileNotFoundError:
            continue
