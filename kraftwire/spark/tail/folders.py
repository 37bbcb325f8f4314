"""The folders of partitions among paths and patterns, and the snapshots in them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from kraftwire.decode.files.kinds import is_unserved, parse_file_name
from kraftwire.errors import UsageError
from kraftwire.spark.paths import matches

_PATTERN = frozenset("*?[{")


def find_folders(paths: Iterable[str]) -> list[Path]:
    """Return every folder that holds segments or snapshots, by name.

    Raises: UsageError for a path that does not exist or is a file. A pattern may match nothing yet.
    """
    found: dict[Path, None] = {}
    for text in paths:
        named = matches(text)
        if not named and not _PATTERN & set(text):
            raise UsageError(f"no such folder: {text}")
        for path in named:
            if not path.is_dir():
                raise UsageError(f"{path} is a file; only folders can be followed")
            found |= dict.fromkeys(_within(path, set()))
    return sorted(found, key=str)


def _within(folder: Path, seen: set[tuple[int, int]]) -> Iterator[Path]:
    try:
        status = folder.stat()
        entries = list(os.scandir(folder))
    except FileNotFoundError:
        return
    identity = (status.st_dev, status.st_ino)
    if identity in seen or is_unserved(folder.name):
        return
    seen.add(identity)
    if any(_holds_batches(entry.name) for entry in entries):
        yield folder
    for entry in entries:
        if entry.is_dir():
            yield from _within(folder / entry.name, seen)


def _holds_batches(text: str) -> bool:
    name = parse_file_name(text)
    return name.stem == text and name.suffix in ("log", "checkpoint")


def is_passing(path: str) -> bool:
    """Whether a file, or its folder, is being removed or swapped in."""
    file = Path(path)
    return bool(parse_file_name(file.name).state) or any(
        is_unserved(folder) for folder in file.parts[:-1]
    )


def snapshots(folder: Path) -> list[str]:
    """Return the names of a folder's snapshots, oldest first."""
    names = (path.name for path in folder.iterdir())
    chosen = (
        text
        for text in names
        if (name := parse_file_name(text)).suffix == "checkpoint" and name.stem == text
    )
    return sorted(chosen, key=snapshot_key)


def snapshot_key(text: str) -> tuple[int, int, str]:
    """Return the sort key of snapshots: end offset and epoch."""
    name = parse_file_name(text)
    return name.base_offset or 0, name.epoch or 0, text
