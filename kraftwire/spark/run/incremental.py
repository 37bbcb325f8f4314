"""Growing log files: read from where an earlier run stopped, if that place can be recognized.

Up to its mark, a file has only valid batches, and all of their bytes are counted as Kafka's; what
follows, such as a half-written batch, is read again by the next run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kraftwire.decode.files import open_source
from kraftwire.errors import LogMovedError, StorageError
from kraftwire.spark.inputs import InputFile, beside
from kraftwire.spark.logs.plan import chain
from kraftwire.spark.run.manifest import Source, TablePart
from kraftwire.spark.tail import BatchMark, check

# Part of the name of a unit that an earlier run leaves to the next one.
REST = "-rest"

# A file that more units than this have read is read as a whole again, so that it has few parts.
_UNITS_MAX = 64


@dataclass(frozen=True, slots=True)
class FileProgress:
    """How far the tables cover a file: up to a mark, in the parts of some units."""

    mark: BatchMark
    units: tuple[str, ...]
    parts: tuple[TablePart, ...]


@dataclass(frozen=True, slots=True)
class RangeRead:
    """What a unit has read: `mark` is that of its last batch; `is_valid` if all batches are valid.

    With `has_rest`, the file continues after it.
    """

    unit: str
    mark: BatchMark | None
    is_valid: bool
    has_rest: bool


def progress_of(sources: Iterable[Source], files: Iterable[InputFile]) -> dict[str, FileProgress]:
    """Return the files that have grown since they were read and are otherwise unchanged, by path.

    So are the files beside them that their rows depend on.
    """
    now = {file.path: file.identity for file in files}
    found = {}
    for source in sources:
        state = source.state
        if "mark" not in state or len(source.files) != 1 or len(state["units"]) > _UNITS_MAX:
            continue
        ((path, size, digest),) = source.files
        mark = BatchMark.from_json(state["mark"])
        identity = now.get(path, (path, size, digest))
        is_changed = identity != (path, size, digest) and beside(identity[2]) == beside(digest)
        if is_changed and _is_there(path, mark):
            kept = tuple(part for part in source.parts if part.unit in state["units"])
            found[path] = FileProgress(mark, tuple(state["units"]), kept)
    return found


def _is_there(path: str, mark: BatchMark) -> bool:
    try:
        check(Path(path), mark)
    except (LogMovedError, OSError):
        return False
    return True


def whole_batches(path: str, start: int, end: int) -> int:
    """Return where the last batch that ends by `end` ends, by the chain of lengths."""
    reached = start
    try:
        with open_source(Path(path)) as source:
            for position, header in chain(source, start) if source.kind.has_batches else ():
                if position + header.size > end:
                    break
                reached = position + header.size
    except StorageError:
        # It is gone by now; the decoder reports that.
        return start
    return reached


def mark_of(batches: Any) -> BatchMark | None:
    """Return the mark of the last row in a table of batches; None for formats without epochs."""
    (row,) = batches.slice(len(batches) - 1).to_pylist()
    if row["leader_epoch"] is None or row["base_offset"] is None or not row["is_valid"]:
        return None
    position = row["position"]
    return BatchMark(
        row["last_offset"] + 1, row["leader_epoch"], row["crc"], 0, position, position + row["size"]
    )


def next_state(before: FileProgress | None, reads: Sequence[RangeRead]) -> dict[str, Any]:
    """Return where the next run resumes a file; empty if it starts again."""
    mark = None if before is None else before.mark
    units = [] if before is None else list(before.units)
    for read in _valid_reads(reads):
        mark = read.mark
        units.append(read.unit)
    return {} if mark is None else {"mark": mark.to_json(), "units": units}


def _valid_reads(reads: Sequence[RangeRead]) -> Iterator[RangeRead]:
    """Return the leading units without problems."""
    for read in reads:
        if not read.is_valid or read.mark is None:
            return
        yield read
        if read.has_rest:
            return
