"""Log files that grow: read from where an earlier run stopped, if that can be known again.

What was read up to a mark has nothing but sound batches in it, each byte of them counted as
Kafka's; what follows, such as a batch that is half written, is read again by the next run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kraftwire.decode.files import open_source
from kraftwire.errors import StorageError
from kraftwire.spark.logs.plan import chain
from kraftwire.spark.moved import LogMovedError
from kraftwire.spark.run.inputs import InputFile
from kraftwire.spark.run.manifest import Part, Source
from kraftwire.spark.tail import Mark, check

__all__ = ["REST", "Begun", "Read", "begun", "mark_of", "next_state", "whole_batches"]

# Of the name of a unit that an earlier run leaves to the next one.
REST = "-rest"

# A file of so many pieces is read as a whole again, so that it becomes one of few parts.
_UNITS_MAX = 64


@dataclass(frozen=True, slots=True)
class Begun:
    """How far a file is in the tables: up to a mark, in the parts of some units."""

    mark: Mark
    units: tuple[str, ...]
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Read:
    """What a unit has read: `mark` is that of its last batch; `is_sound` if there is nothing else.

    Shape: with `has_rest`, there is more of the file after it.
    """

    unit: str
    mark: Mark | None
    is_sound: bool
    has_rest: bool


def begun(sources: Iterable[Source], files: Iterable[InputFile]) -> dict[str, Begun]:
    """The files that have grown since they were read and are what they were before, by path."""
    now = {file.path: file.identity for file in files}
    found = {}
    for source in sources:
        state = source.state
        if "mark" not in state or len(source.files) != 1 or len(state["units"]) > _UNITS_MAX:
            continue
        ((path, size, digest),) = source.files
        mark = Mark.from_json(state["mark"])
        if now.get(path, (path, size, digest)) != (path, size, digest) and _is_there(path, mark):
            kept = tuple(part for part in source.parts if part.unit in state["units"])
            found[path] = Begun(mark, tuple(state["units"]), kept)
    return found


def _is_there(path: str, mark: Mark) -> bool:
    try:
        check(Path(path), mark)
    except (LogMovedError, OSError):
        return False
    return True


def whole_batches(path: str, start: int, end: int) -> int:
    """Where the last batch ends that ends at `end` or before, by the chain of lengths."""
    reached = start
    try:
        with open_source(Path(path)) as source:
            for position, header in chain(source, start) if source.kind.has_batches else ():
                if position + header.size > end:
                    break
                reached = position + header.size
    except StorageError:
        # It is gone by now, and the decoder says so.
        return start
    return reached


def mark_of(batches: Any) -> Mark | None:
    """The mark of the last row of a table of batches; None of a format without epochs."""
    (row,) = batches.slice(len(batches) - 1).to_pylist()
    if row["leader_epoch"] is None or row["base_offset"] is None or not row["is_valid"]:
        return None
    position = row["position"]
    return Mark(
        row["last_offset"] + 1, row["leader_epoch"], row["crc"], 0, position, position + row["size"]
    )


def next_state(before: Begun | None, reads: Sequence[Read]) -> dict[str, Any]:
    """Where the next run goes on with a file; empty if it begins anew."""
    mark = None if before is None else before.mark
    units = [] if before is None else list(before.units)
    for read in _sound(reads):
        mark = read.mark
        units.append(read.unit)
    return {} if mark is None else {"mark": mark.to_json(), "units": units}


def _sound(reads: Sequence[Read]) -> Iterator[Read]:
    """The first units, as far as nothing is wrong."""
    for read in reads:
        if not read.is_sound or read.mark is None:
            return
        yield read
        if read.has_rest:
            return
