"""Following a segment that a server writes to: new batches, a truncated log, the next segment.

There is no clock in here: when nothing is new, the caller's `wait` is called, and its answer
decides whether to look again.

Source: Kafka's `UnifiedLog` (roll, truncateTo, truncateFullyAndStartAt).
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

from kraftwire.decode.files.checked_log import CheckedLog
from kraftwire.decode.files.kinds import HEAD_SIZE, FileKind, guess, parse_file_name
from kraftwire.decode.files.report import FileLine, FileReport, FindingSink
from kraftwire.decode.files.scan import BatchHeader, Scanner, read_header
from kraftwire.decode.files.segment import FileOptions, SegmentLines
from kraftwire.decode.files.snapshot_state import checked_log
from kraftwire.decode.files.source import ByteSource
from kraftwire.errors import StorageError, UsageError
from kraftwire.protocol.topic_names import METADATA_TOPIC
from kraftwire.records.header import HEADER_SIZE

# A reader that follows a growing segment remembers this many batches, to find its place again
# when the log is truncated. After a truncation below them all, it reads from the segment's start.
FOLLOWED_BATCHES_KEPT = 65_536

Wait = Callable[[], bool]

_METADATA_LOG = f"{METADATA_TOPIC}-0"
# How many partitions an error names where one has to be chosen.
_NAMED_MAX = 4


def follow(
    path: Path, options: FileOptions, report: FileReport, wait: Wait
) -> Iterator[FileLine]:
    """Yield the lines of a segment as it grows, then those of the segments that follow it.

    A folder stands for its last segment; a folder of partitions for that of the metadata
    log, or of its only partition. A batch is shown once it is complete. Where a truncation
    removed a batch that was shown, there is a finding, and the batch that replaced it is shown.
    `wait` sleeps and returns whether to continue.
    Raises: UsageError if there is no segment; StorageError if it cannot be read.
    """
    current: Path | None = _last_segment(path) if path.is_dir() else path
    _check_kind(path)
    while current is not None:
        with current.open("rb") as file:
            source = ByteSource(current, file, FileKind.LOG)
            log = checked_log(report, current.parent)
            follower = _Follower(source, options, report.sink(str(current)), log)
            report.files[FileKind.LOG] += 1
            for line in follower.lines(wait):
                report.line_count += 1
                yield line
            current = follower.next_path


def _check_kind(path: Path) -> None:
    """Refuse what does not grow by batches: pipes, captures, indexes, compressed files."""
    if path.is_dir():
        return
    if not path.is_file():
        raise UsageError(f"{path} is not a segment that can be followed")
    with path.open("rb") as file:
        kind = guess(path, file.read(HEAD_SIZE), path.stat().st_size)
    if path.stat().st_size and kind is not FileKind.LOG:
        raise UsageError(f"{path} is a {kind.value}, and only a segment can be followed")


class _Follower:
    """Follows one file until there is another to continue with."""

    def __init__(
        self, source: ByteSource, options: FileOptions, sink: FindingSink, log: CheckedLog
    ) -> None:
        self.next_path: Path | None = None
        self._source = source
        self._sink = sink
        self._scanner = Scanner(source, sink)
        self._segment = SegmentLines(source, options, sink, log)
        self._shown: deque[tuple[int, BatchHeader]] = deque(maxlen=FOLLOWED_BATCHES_KEPT)
        self._shown_count = 0

    def lines(self, wait: Wait) -> Iterator[FileLine]:
        """Yield the lines of this file, then set `next_path`: None if `wait` returned False."""
        while True:
            # Looked for before the file is read: what is written before a roll is read by then.
            following = self._following()
            self._source.refresh()
            self._check_truncation()
            yield from self._new_lines()
            if following is not None:
                yield from self._last_lines()
                self.next_path = following
                return
            if not wait():
                return

    def _new_lines(self) -> Iterator[FileLine]:
        scanner = self._scanner
        while scanner.position < self._source.size and not scanner.is_unfinished():
            yield from self._step()

    def _last_lines(self) -> Iterator[FileLine]:
        """Yield what is left when the file no longer grows, unfinished or not."""
        while self._scanner.position < self._source.size:
            yield from self._step()

    def _step(self) -> Iterator[FileLine]:
        found = self._scanner.step()
        if found is None:
            return
        self._shown.append((found.position, found.header))
        self._shown_count += 1
        line = self._segment.line(found)
        if line is not None:
            yield line

    def _check_truncation(self) -> None:
        """Go back to the last batch that was shown and is still there."""
        before, position = len(self._shown), self._scanner.position
        while self._shown and not self._is_still_there(*self._shown[-1]):
            self._shown.pop()
        gone = before - len(self._shown)
        if not gone and position <= self._source.size:
            return
        header = None
        self._scanner.position = 0
        if self._shown:
            start, header = self._shown[-1]
            self._scanner.position = start + header.size
        elif self._shown_count > before:
            gone = self._shown_count
        self._shown_count -= gone
        self._segment.go_back(header)
        self._sink.add(
            "truncated",
            self._scanner.position,
            f"the file was cut, {gone} batches that were shown are gone; reading goes on here",
        )

    def _is_still_there(self, position: int, header: BatchHeader) -> bool:
        if position + header.size > self._source.size:
            return False
        return read_header(self._source.read(position, HEADER_SIZE)) == header

    def _following(self) -> Path | None:
        """Where to continue: the next segment, or the file that has taken this one's place."""
        path = self._source.path
        try:
            status = os.stat(path)
        except FileNotFoundError:
            # Deleted by retention, or the log was restarted after a snapshot.
            return self._next_segment() or _newest(path.parent)
        mine = os.fstat(self._source.file.fileno())
        if (status.st_dev, status.st_ino) != (mine.st_dev, mine.st_ino):
            self._sink.add("replaced", 0, "another file has taken this name; read from its start")
            return path
        return self._next_segment()

    def _next_segment(self) -> Path | None:
        base_offset = parse_file_name(self._source.path.name).base_offset
        if base_offset is None:
            return None
        later = (path for path in _segments(self._source.path.parent) if _base(path) > base_offset)
        return min(later, key=_base, default=None)


def _last_segment(folder: Path) -> Path:
    newest = _newest(folder)
    if newest is not None:
        return newest
    found = {path.name: last for path in _folders(folder) if (last := _newest(path))}
    if _METADATA_LOG in found:
        return found[_METADATA_LOG]
    if len(found) == 1:
        return next(iter(found.values()))
    if found:
        names = sorted(found)
        some = ", ".join(names[:_NAMED_MAX]) + (", ..." if len(names) > _NAMED_MAX else "")
        raise UsageError(f"{folder} holds segments of {len(names)} partitions ({some}): name one")
    raise UsageError(f"{folder} holds no segment to follow")


def _folders(folder: Path) -> list[Path]:
    """The folders in a folder."""
    try:
        return [path for path in folder.iterdir() if path.is_dir()]
    except OSError as error:
        raise StorageError(f"cannot read: {error.strerror}", file=str(folder)) from error


def _newest(folder: Path) -> Path | None:
    return max(_segments(folder), key=_base, default=None)


def _segments(folder: Path) -> Iterator[Path]:
    """Return the segments in a folder that are not being deleted."""
    try:
        names = os.listdir(folder)
    except OSError as error:
        raise StorageError(f"cannot read: {error.strerror}", file=str(folder)) from error
    for text in names:
        name = parse_file_name(text)
        if name.suffix == FileKind.LOG and name.stem == text:
            yield folder / text


def _base(path: Path) -> int:
    return parse_file_name(path.name).base_offset or 0
