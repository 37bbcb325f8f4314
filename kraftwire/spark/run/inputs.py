"""The files that a run reads: found, told apart, and known again."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from glob import glob
from pathlib import Path

from kraftwire.decode.files import FileKind, open_source
from kraftwire.decode.files.walk import walk
from kraftwire.errors import StorageError

__all__ = ["InputFile", "expanded", "find_inputs"]

# A file that grows or is replaced mostly differs here or in its size.
_HEAD_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file of a run.

    Shape: `path` is absolute; `size` is that on the disk; `digest` is that of the file's head,
    empty where it cannot be read.
    """

    path: str
    size: int
    digest: str
    is_capture: bool

    @property
    def identity(self) -> tuple[str, int, str]:
        """What a file is known by."""
        return self.path, self.size, self.digest


def find_inputs(
    names: Iterable[str], tell: Callable[[str], None], avoid: Path | None
) -> Iterator[InputFile]:
    """The files under some paths, globs and folders, each once.

    Shape: `tell` hears of what is not there and of what is no file; files under the folder to
    `avoid`, where tables go, are no inputs. A file that links lead to has its own name, if that is
    among the paths too.
    """
    found: dict[Path, Path] = {}
    shunned = None if avoid is None else avoid.resolve()
    for path in walk(expanded(names), lambda error: tell(str(error))):
        real, named = path.resolve(), Path(os.path.abspath(path))
        if shunned in real.parents or (real in found and named != real):
            continue
        found[real] = named
    for path in found.values():
        try:
            yield _input(path)
        except OSError as error:
            tell(f"{path}: cannot open: {error.strerror}")
        except StorageError as error:
            tell(str(error))


def expanded(names: Iterable[str]) -> Iterator[Path]:
    """The paths of files and folders that names stand for, patterns too."""
    for name in names:
        found = sorted(glob(name, recursive=True)) if not Path(name).exists() else []
        yield from map(Path, found or [name])


def _input(path: Path) -> InputFile:
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        # It would be read more than once, and by other processes.
        raise StorageError("is no regular file; write it into one first", file=str(path))
    try:
        with open(path, "rb") as file:
            head = file.read(_HEAD_BYTES)
    except PermissionError:
        # Not left out in silence: its row of bad_input says that it could not be opened.
        return InputFile(str(path), status.st_size, "", is_capture=False)
    digest = hashlib.sha256(head).hexdigest()[:32]
    return InputFile(str(path), status.st_size, digest, _is_capture(path))


def _is_capture(path: Path) -> bool:
    try:
        with open_source(path) as source:
            kind: FileKind = source.kind
            return kind.is_capture
    except StorageError:
        return False
