"""Segments and snapshots among paths, folders and patterns, with the facts in their names."""

from __future__ import annotations

import glob
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

from kraftwire.decode.files.kinds import parse_file_name, partition_of
from kraftwire.decode.files.walk import UnservedFolders, walk
from kraftwire.errors import StorageError, UsageError

__all__ = ["LogFile", "list_files"]


@dataclass(frozen=True, slots=True)
class LogFile:
    """A file that may hold batches.

    `topic` and `partition` are those of its folder, None outside a partition's folder;
    `base_offset` is in its name, and `next_offset` in that of the segment after it.
    """

    path: Path
    topic: str | None
    partition: int | None
    is_segment: bool
    base_offset: int | None
    next_offset: int | None


def list_files(paths: Iterable[str], *, with_snapshots: bool = True) -> Iterator[LogFile]:
    """Return every segment and snapshot once, in a stable order.

    In folders, files that are being removed or swapped in (``.deleted``, ``.swap``, ...) and other
    kinds of files are skipped; a file named explicitly is taken whatever its name. Folders of
    partitions that their broker does not serve are left out, which a warning says. Raises:
    UsageError for a path or pattern that leads to nothing, StorageError for a folder that cannot be
    read.
    """
    seen: set[Path] = set()
    unserved = UnservedFolders()
    next_offsets = cache(_next_offsets)
    for text in paths:
        named = [Path(text)] if Path(text).exists() else sorted(map(Path, glob.glob(text)))
        if not named:
            raise UsageError(f"no file, folder or match: {text}")
        for start in named:
            for path in walk([start], _refuse, unserved.add):
                name = parse_file_name(path.name)
                is_named = path == start
                if path in seen or not (is_named or _has_batches(path, with_snapshots)):
                    continue
                seen.add(path)
                place = partition_of(path)
                is_segment = name.suffix == "log" and not name.state and place is not None
                following = next_offsets(path.parent) if is_segment else {}
                yield LogFile(
                    path,
                    place.topic if place else None,
                    place.index if place else None,
                    is_segment,
                    name.base_offset,
                    following.get(name.base_offset or 0),
                )
    if unserved:
        warnings.warn(str(unserved), stacklevel=2)


def _has_batches(path: Path, with_snapshots: bool) -> bool:
    name = parse_file_name(path.name)
    suffixes = ("log", "checkpoint") if with_snapshots else ("log",)
    return not name.state and name.suffix in suffixes


def _next_offsets(folder: Path) -> dict[int, int]:
    """Return, for each segment of a folder, the base offset of the next one."""
    names = (parse_file_name(path.name) for path in folder.iterdir())
    bases = sorted(
        name.base_offset
        for name in names
        if name.suffix == "log" and not name.state and name.base_offset is not None
    )
    return dict(pairwise(bases))


def _refuse(error: StorageError) -> None:
    raise error
