"""Going through files and folders in an order that does not depend on the machine."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from kraftwire.errors import StorageError

__all__ = ["walk"]


def walk(paths: Iterable[Path]) -> Iterator[Path]:
    """The files under some paths: a file as it is, a folder's entries by name, then their folders.

    Shape: links are followed, and a folder that contains itself is entered once; paths are given
    in their order, twice if they are asked for twice.
    Raises: StorageError if a path does not exist or a folder cannot be read.
    """
    for path in paths:
        if path.is_dir():
            yield from _folder(path, frozenset())
        elif path.exists():
            yield path
        else:
            raise StorageError("no such file or folder", file=str(path))


def _folder(folder: Path, above: frozenset[tuple[int, int]]) -> Iterator[Path]:
    try:
        status = folder.stat()
        names = sorted(entry.name for entry in os.scandir(folder))
    except OSError as error:
        raise StorageError(f"cannot read: {error.strerror}", file=str(folder)) from error
    identity = (status.st_dev, status.st_ino)
    if identity in above:
        return
    folders = []
    for name in names:
        path = folder / name
        if path.is_dir():
            folders.append(path)
        elif path.is_file():
            # Sockets and devices in a folder are nobody's data, and reading one may block.
            yield path
    for path in folders:
        yield from _folder(path, above | {identity})
