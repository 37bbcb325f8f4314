"""What a partition's folder holds after a mark: whole batches, segment after segment.

Owns the check that the bytes between two marks did not change while they were read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kraftwire.decode.files import FileKind, FileReport, open_source
from kraftwire.decode.files.kinds import parse_file_name
from kraftwire.decode.files.scan import FoundBatch
from kraftwire.decode.files.source import ByteSource
from kraftwire.errors import LogMovedError
from kraftwire.records.header import MAGIC
from kraftwire.spark.logs.plan import BatchPiece, chain, pieces_of
from kraftwire.spark.tail.marks import BatchMark, check, segment_path

_CHUNK_BYTES = 8 * 1024 * 1024


class LogStartMovedError(LogMovedError):
    """Records that were not read yet are gone; the remaining ones can be read."""


class FolderEnd(NamedTuple):
    """Where a folder ended at some moment: its last segment, and that segment's size."""

    segment: int
    size: int


@dataclass(frozen=True, slots=True)
class Growth:
    """How far reading can go: the last batch, and the number of offsets."""

    mark: BatchMark
    offsets: int


def segments(folder: Path) -> list[int]:
    """Return the ascending base offsets of segments that are not being removed or swapped in."""
    bases = (_base_offset(path.name) for path in folder.iterdir())
    return sorted(base for base in bases if base is not None)


def _base_offset(text: str) -> int | None:
    """Return the base offset in the name of a segment; None for any other name."""
    name = parse_file_name(text)
    return name.base_offset if name.suffix == "log" and name.stem == text else None


def bound_of(folder: Path) -> FolderEnd | None:
    """Return the present end of a folder; None if it has no segment."""
    bases = segments(folder)
    if not bases:
        return None
    return FolderEnd(bases[-1], segment_path(folder, bases[-1]).stat().st_size)


def begin(folder: Path, mark: BatchMark | None) -> tuple[int, int] | None:
    """Return the segment and position where reading resumes; None if there is no segment yet.

    Raises: LogMovedError if the batch of the mark has changed; LogStartMovedError if the
    log begins after it.
    """
    bases = segments(folder)
    if mark is None:
        return (bases[0], 0) if bases else None
    if mark.segment in bases:
        check(segment_path(folder, mark.segment), mark)
        return mark.segment, mark.end
    if not bases or bases[0] > mark.next_offset:
        where = f"now begins at {bases[0]}" if bases else "no longer has a segment"
        raise LogStartMovedError(
            f"the log {where}, so records from offset {mark.next_offset} on are lost",
            file=str(folder),
        )
    base = max((each for each in bases if each <= mark.next_offset), default=bases[0])
    # The whole segment that was read is gone; nothing is lost.
    return (base, 0) if base == mark.next_offset else _found_again(folder, base, mark)


def _found_again(folder: Path, base: int, mark: BatchMark) -> tuple[int, int]:
    """Return the place after the batch of a mark, in another segment than before."""
    path = segment_path(folder, base)
    with open_source(path) as source:
        for position, header in chain(source):
            found = BatchMark.of(base, position, header)
            if found.next_offset == mark.next_offset:
                if (found.epoch, found.crc) == (mark.epoch, mark.crc):
                    return base, found.end
                break
    raise LogMovedError(
        f"this was read up to offset {mark.next_offset}, and its last batch (epoch {mark.epoch}, "
        f"CRC {mark.crc}) is no longer in any segment: the log was truncated or rewritten",
        file=str(path),
    )


def last_mark(folder: Path) -> BatchMark | None:
    """Return the last completely written batch of a folder; None if there is none."""
    for base in reversed(segments(folder)):
        reached = None
        for piece in _pieces_in(folder, base, 0):
            reached = _last_within(base, piece) or reached
        if reached is not None:
            return reached
    return None


def advance(
    folder: Path,
    mark: BatchMark | None,
    *,
    offsets_max: int | None = None,
    bound: FolderEnd | None = None,
    is_forced: bool = False,
) -> Growth | None:
    """Advance over whole batches, at most `offsets_max` offsets; None if there is nothing new.

    With `is_forced`, one batch is taken even if it alone exceeds the limit. Nothing after `bound`
    is read. A last batch that may still be incomplete is left alone. Raises: as `begin`.
    """
    start = begin(folder, mark)
    if start is None:
        return None
    reached, origin = mark, None if mark is None else mark.next_offset
    for base, piece in _pieces(folder, *start, bound):
        if origin is None:
            origin = _first_offset(piece)
        following = _last_within(
            base, piece, origin=origin, offsets_max=offsets_max, bound=bound
        )
        if following is None and is_forced and reached == mark:
            following = _last_within(base, piece, bound=bound, count_max=1)
        if following is not None:
            reached = following
        if _is_cut(piece, reached, base):
            break
    if reached is None or reached == mark:
        return None
    assert origin is not None
    return Growth(reached, reached.next_offset - origin)


def _pieces(
    folder: Path, segment: int, position: int, bound: FolderEnd | None
) -> Iterator[tuple[int, BatchPiece]]:
    """Yield the batches after a place, each piece with its segment."""
    for base in segments(folder):
        if base < segment or (bound is not None and base > bound.segment):
            continue
        start = position if base == segment else 0
        for piece in _pieces_in(folder, base, start):
            yield base, piece


def _pieces_in(folder: Path, base: int, start: int) -> Iterator[BatchPiece]:
    path = segment_path(folder, base)
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size > start:
            source, sink = ByteSource(path, file, FileKind.LOG), FileReport().sink(str(path))
            yield from pieces_of(source, sink, start, chunk=_CHUNK_BYTES)


def _first_offset(piece: BatchPiece) -> int:
    if piece.batches is not None:
        return int(piece.batches.header["base_offset"][0])
    assert piece.found is not None
    return piece.found.header.base_offset


def _last_within(
    base: int,
    piece: BatchPiece,
    *,
    origin: int = 0,
    offsets_max: int | None = None,
    bound: FolderEnd | None = None,
    count_max: int | None = None,
) -> BatchMark | None:
    """Return the mark of the last batch of a piece within the limits; None if there is none."""
    if piece.batches is None:
        assert piece.found is not None
        mark = BatchMark.of(base, piece.found.position, piece.found.header)
        is_over = offsets_max is not None and mark.next_offset - origin > offsets_max
        is_late = bound is not None and base == bound.segment and mark.end > bound.size
        return None if is_over or is_late or not _is_as_written(piece.found) else mark
    batches = piece.batches.first(count_max or len(piece.batches))
    ends = batches.positions + batches.sizes + piece.position
    is_out = np.zeros(len(batches), bool)
    if offsets_max is not None:
        is_out |= batches.last_offsets + 1 - origin > offsets_max
    if bound is not None and base == bound.segment:
        is_out |= ends > bound.size
    at = int(is_out.argmax()) - 1 if is_out.any() else len(batches) - 1
    if at < 0:
        return None
    header = batches.header[at]
    return BatchMark(
        int(batches.last_offsets[at]) + 1,
        int(header["leader_epoch"]),
        int(header["crc"]),
        base,
        int(batches.positions[at]) + piece.position,
        int(ends[at]),
    )


def _is_as_written(found: FoundBatch) -> bool:
    """Whether a single batch from the scan is valid, and its length not a guess.

    Valid batches of the present format come in groups.
    """
    return found.is_valid and found.header.magic != MAGIC


def _is_cut(piece: BatchPiece, reached: BatchMark | None, base: int) -> bool:
    """Whether a limit lies within a piece, so that nothing after it counts."""
    if piece.batches is None:
        assert piece.found is not None
        end = piece.found.position + piece.found.header.size
        is_sound = _is_as_written(piece.found)
    else:
        end, is_sound = piece.position + piece.batches.end, True
    is_reached = reached is not None and (reached.segment, reached.end) == (base, end)
    return is_sound and not is_reached


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
    mark: BatchMark | None


def stretches(
    folder: Path, start: BatchMark | None, end: BatchMark, first: int | None = None
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
