"""Bytes of files between two marks, and the check that they did not change meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kraftwire.spark.log_moved_error import LogMovedError
from kraftwire.spark.tail.growth import begin, segments
from kraftwire.spark.tail.marks import Mark, check, segment_path

__all__ = ["Stretch", "of_snapshot", "stretches", "verify"]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Bytes `[start, end)` of a file.

    `size` is that of a file that no longer grows, else None; `mark` is the last batch of the whole
    read, in this file or a later one of the folder, None for a snapshot.
    """

    path: str
    start: int
    end: int
    size: int | None
    mark: Mark | None


def stretches(
    folder: Path, start: Mark | None, end: Mark, first: int | None = None
) -> Iterator[Stretch]:
    """Return the bytes between two marks, in order.

    With `first`, from the segment with that base offset on, regardless of `start`. Raises:
    LogMovedError if any of it is gone or the batch of `start` has changed.
    """
    bases = segments(folder)
    if first is not None and first not in bases:
        raise _gone(segment_path(folder, first))
    place = (first, 0) if first is not None else begin(folder, start)
    if place is None or end.segment not in bases:
        raise _gone(segment_path(folder, end.segment))
    for base in bases:
        if place[0] <= base <= end.segment:
            path = segment_path(folder, base)
            is_last = base == end.segment
            size = None if is_last else _size(path)
            to = end.end if size is None else size
            begins = place[1] if base == place[0] else 0
            if begins < to:
                yield Stretch(str(path), begins, to, size, end)


def of_snapshot(path: Path) -> Stretch:
    """Return the bytes of a snapshot, which never changes. Raises: LogMovedError if it is gone."""
    size = _size(path)
    return Stretch(str(path), 0, size, size, None)


def verify(stretch: Stretch) -> None:
    """Check, after reading, that the bytes were those that had been planned.

    Since a log only grows, everything before a batch that is still there was unchanged. Raises:
    LogMovedError.
    """
    path = Path(stretch.path)
    if stretch.size is not None and _size(path) != stretch.size:
        raise LogMovedError(
            f"this file had {stretch.size} bytes and now has {_size(path)}: it was rewritten",
            file=stretch.path,
        )
    if stretch.mark is None:
        return
    segment = segment_path(path.parent, stretch.mark.segment)
    try:
        check(segment, stretch.mark)
    except FileNotFoundError:
        raise _gone(segment) from None


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        raise _gone(path) from None


def _gone(path: Path) -> LogMovedError:
    return LogMovedError(
        "this file is gone before it was read: its unread records are lost",
        file=str(path),
    )
