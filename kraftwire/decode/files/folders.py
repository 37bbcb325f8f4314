"""Going through files and folders in an order that does not depend on the machine."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from kraftwire.decode.files.kinds import UNSERVED, is_unserved, parse_folder_name
from kraftwire.errors import StorageError

# A longer path is shown without its middle.
_SHOWN_MAX = 300

OnError = Callable[[StorageError], None]
OnUnserved = Callable[[Path], None]


def walk(
    paths: Iterable[Path], on_error: OnError, on_unserved: OnUnserved = lambda _folder: None
) -> Iterator[Path]:
    """The files under some paths: a file as it is, a folder's files by name, then its folders.

    The folder of a partition that its broker does not serve (`UNSERVED`) is left out unless it is
    one of the paths; `on_unserved` is called for it.

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
            yield from _folder(path, on_error, on_unserved)
        elif is_there:
            yield path
        else:
            on_error(StorageError("no such file or folder", file=shortened(str(path))))


class UnservedFolders:
    """Counts the folders that a walk leaves out, because their broker does not serve them."""

    def __init__(self) -> None:
        self._by_state: Counter[str] = Counter()

    def add(self, folder: Path) -> None:
        """Count a folder by the suffix of its name."""
        partition = parse_folder_name(folder.name)
        self._by_state[partition.state if partition else ""] += 1

    def __bool__(self) -> bool:
        return bool(self._by_state)

    def __str__(self) -> str:
        listed = ", ".join(
            f"{number:,} -{state} ({UNSERVED[state]})"
            for state, number in sorted(self._by_state.items())
        )
        return f"left out, as their broker does not serve them: {listed}; name a folder to read it"


def shortened(name: str) -> str:
    """Return a path as an error shows it: a very long one without its middle."""
    if len(name) <= _SHOWN_MAX:
        return name
    half = _SHOWN_MAX // 2
    return f"{name[:half]}...{name[-half:]}"


def _folder(top: Path, on_error: OnError, on_unserved: OnUnserved) -> Iterator[Path]:
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
            for each in reversed(folders):
                if is_unserved(each.name):
                    on_unserved(each)
                else:
                    waiting.append(each)


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
