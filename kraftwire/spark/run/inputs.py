"""The files that a run reads: how they are found, classified and identified."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from glob import glob
from pathlib import Path

from kraftwire.decode.files import FileKind, open_source
from kraftwire.decode.files.walk import UnservedFolders, walk
from kraftwire.errors import StorageError
from kraftwire.spark.paths import local_path

__all__ = ["InputFile", "expanded", "find_inputs"]

# A file that grows or is replaced usually differs here or in its size.
_HEAD_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file of a run.

    `path` is absolute; `size` is the size on disk; `digest` is that of the file's head, empty if it
    cannot be read.
    """

    path: str
    size: int
    digest: str
    is_capture: bool

    @property
    def identity(self) -> tuple[str, int, str]:
        """Return what identifies a file."""
        return self.path, self.size, self.digest


def find_inputs(
    names: Iterable[str],
    tell: Callable[[str], None],
    avoid: Path | None,
    miss: Callable[[StorageError], None] = lambda _error: None,
) -> Iterator[InputFile]:
    """Return the files under some paths, globs and folders, each once.

    `tell` is called for missing paths and for anything that is not a file, `miss` as well for files
    and folders that are there and cannot be read; files under the folder
    to `avoid`, where tables go, are not inputs. A file that is also reached through links has its
    own name.
    """

    def refuse(error: StorageError) -> None:
        tell(str(error))
        if isinstance(error.__cause__, OSError) and not _is_gone(error.__cause__):
            miss(error)

    found: dict[Path, Path] = {}
    shunned = None if avoid is None else avoid.resolve()
    unserved = UnservedFolders()
    for path in walk(expanded(names), refuse, unserved.add):
        real, named = path.resolve(), Path(os.path.abspath(path))
        if shunned in real.parents or (real in found and named != real):
            continue
        found[real] = named
    if unserved:
        tell(str(unserved))
    for path in found.values():
        try:
            yield _input(path)
        except StorageError as error:
            refuse(error)


def expanded(names: Iterable[str]) -> Iterator[Path]:
    """Expand names and patterns to paths of files and folders."""
    for name in map(local_path, names):
        found = sorted(glob(name, recursive=True)) if not Path(name).exists() else []
        yield from map(Path, found or [name])


def _input(path: Path) -> InputFile:
    """Raises: StorageError for a file that cannot be identified, by the system's error or not."""
    try:
        return _identified(path)
    except OSError as error:
        raise StorageError(f"cannot open: {error.strerror}", file=str(path)) from error


def _identified(path: Path) -> InputFile:
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        # It would be read more than once, and by other processes.
        raise StorageError("is not a regular file; copy it to one first", file=str(path))
    try:
        with open(path, "rb") as file:
            head = file.read(_HEAD_BYTES)
    except PermissionError:
        # Not omitted silently: its row of bad_input says that it could not be opened.
        return InputFile(str(path), status.st_size, "", is_capture=False)
    digest = hashlib.sha256(head).hexdigest()[:32]
    return InputFile(str(path), status.st_size, digest, _is_capture(path))


def _is_gone(error: OSError) -> bool:
    """Whether a file or folder was removed after it was listed."""
    return isinstance(error, FileNotFoundError | NotADirectoryError)


def _is_capture(path: Path) -> bool:
    try:
        with open_source(path) as source:
            kind: FileKind = source.kind
            return kind.is_capture
    except StorageError:
        return False
