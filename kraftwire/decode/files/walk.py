"""Going through files and folders in an order that does not depend on the machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from kraftwire.errors import StorageError

__all__ = ["shortened", "walk"]

# A longer path is shown without its middle.
_SHOWN_MAX = 300

OnError = Callable[[StorageError], None]


def walk(paths: Iterable[Path], on_error: OnError) -> Iterator[Path]:
    """The files under some paths: a file as it is, a folder's files by name, then its folders.

    Links are followed, and no folder is entered twice from one path, so a
    folder that contains itself ends the walk; `on_error` is called for paths that do not exist and
    for folders that cannot be read (the cause is the system's error), and the walk continues.
    """
    for path in paths:
        try:
            is_folder, is_there = path.is_dir(), path.exists()
        except (OSError, ValueError) as error:
            on_error(_unreadable(path, error))
            continue
        if is_folder:
            yield from _folder(path, on_error)
        elif is_there:
            yield path
        else:
            on_error(StorageError("no such file or folder", file=shortened(str(path))))


def shortened(name: str) -> str:
    """Return a path as an error shows it: a very long one without its middle."""
    if len(name) <= _SHOWN_MAX:
        return name
    half = _SHOWN_MAX // 2
    return f"{name[:half]}...{name[-half:]}"


def _folder(top: Path, on_error: OnError) -> Iterator[Path]:
    """The files of a folder and of those in it, however deep they are."""
    seen: set[tuple[int, int]] = set()
    waiting = [top]
    while waiting:
        folder = waiting.pop()
        try:
            status = folder.stat()
            names = sorted(entry.name for entry in os.scandir(folder))
        except OSError as error:
            on_error(_unreadable(folder, error))
            continue
        identity = (status.st_dev, status.st_ino)
        if identity not in seen:
            seen.add(identity)
            folders: list[Path] = []
            yield from _files(folder, names, folders, on_error)
            waiting += reversed(folders)


def _files(
    folder: Path, names: list[str], folders: list[Path], on_error: OnError
) -> Iterator[Path]:
    """Yield the files among some names of a folder; add its folders to `folders`."""
    for name in names:
        path = folder / name
        try:
            if path.is_dir():
                folders.append(path)
            elif path.is_file():
                # Sockets and devices in a folder hold no data of Kafka's, and reading one may
                # block.
                yield path
            elif path.is_symlink():
                on_error(StorageError("the link leads nowhere", file=shortened(str(path))))
        except OSError as error:
            on_error(_unreadable(path, error))


def _unreadable(path: Path, error: OSError | ValueError) -> StorageError:
    problem = error.strerror if isinstance(error, OSError) else str(error)
    found = StorageError(f"cannot read: {problem}", file=shortened(str(path)))
    found.__cause__ = error
    return found
