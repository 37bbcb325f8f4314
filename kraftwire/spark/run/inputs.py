"""The files that a run reads: found, told apart, and known again."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from glob import glob
from pathlib import Path

from kraftwire.decode.files import FileKind, open_source
from kraftwire.decode.files.walk import walk
from kraftwire.errors import KraftwireError, StorageError

__all__ = ["InputFile", "expanded", "find_inputs"]

# A file that grows or is replaced mostly differs here or in its size.
_HEAD_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file of a run. Shape: `digest` is that of its head; `size` that on the disk."""

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

    Shape: `tell` hears of what cannot be read; files under the folder to `avoid`, where tables
    go, are no inputs.
    """
    seen: set[str] = set()
    shunned = None if avoid is None else avoid.resolve()
    for path in walk(expanded(names), lambda error: tell(str(error))):
        if shunned in path.resolve().parents or str(path) in seen:
            continue
        seen.add(str(path))
        try:
            yield _input(path)
        except (OSError, KraftwireError) as error:
            tell(str(error))


def expanded(names: Iterable[str]) -> Iterator[Path]:
    """The paths of files and folders that names stand for, patterns too."""
    for name in names:
        found = sorted(glob(name, recursive=True)) if not Path(name).exists() else []
        yield from map(Path, found or [name])


def _input(path: Path) -> InputFile:
    with open(path, "rb") as file:
        head = file.read(_HEAD_BYTES)
    digest = hashlib.sha256(head).hexdigest()[:32]
    return InputFile(str(path), path.stat().st_size, digest, _is_capture(path))


def _is_capture(path: Path) -> bool:
    try:
        with open_source(path) as source:
            kind: FileKind = source.kind
            return kind.is_capture
    except StorageError:
        return False
