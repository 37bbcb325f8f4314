"""Going through files and folders in an order that does not depend on the machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from kraftwire.errors import StorageError

__all__ = ["walk"]

OnError = Callable[[StorageError], None]


def walk(paths: Iterable[Path], on_error: OnError) -> Iterator[Path]:
    """The files under some paths: a file as it is, a folder's files by name, then its folders.

    Shape: links are followed, and no folder is entered twice on the way down from one path, so a
    folder that contains itself ends the walk; `on_error` hears of paths that do not exist and of
    folders that cannot be read, and the walk goes on.
    """
    for path in paths:
        if path.is_dir():
            yield from _folder(path, set(), on_error)
        elif path.exists():
            yield path
        else:
            on_error(StorageError("no such file or folder", file=str(path)))


def _folder(folder: Path, seen: set[tuple[int, int]], on_error: OnError) -> Iterator[Path]:
    try:
        status = folder.stat()
        names = sorted(entry.name for entry in os.scandir(folder))
    except OSError as error:
        on_error(StorageError(f"cannot read: {error.strerror}", file=str(folder)))
        return
    identity = (status.st_dev, status.st_ino)
    if identity in seen:
        return
    seen.add(identity)
    folders = []
    for name in names:
        path = folder / name
        if path.is_dir():
            folders.append(path)
        elif path.is_file():
            # Sockets and devices in a folder are nobody's data, and reading one may block.
            yield path
        elif path.is_symlink():
            on_error(StorageError("the link leads nowhere", file=str(path)))
    for path in folders:
        yield from _folder(path, seen, on_error)
