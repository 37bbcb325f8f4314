"""Input files: how they are found, classified and identified."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kraftwire.capture.packets.series import families
from kraftwire.decode.files import FileKind, open_source
from kraftwire.decode.files.folders import UnservedFolders, walk
from kraftwire.errors import StorageError
from kraftwire.log.names import META_PROPERTIES_FILE
from kraftwire.spark.logs.state import METADATA_PARTITION
from kraftwire.spark.paths import expanded, has_name

# A file that grows or is replaced usually differs here or in its size.
_HEAD_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class InputFile:
    """An input file.

    `path` is absolute; `size` is the size on disk; `digest` is that of the file's head, and after a
    dash that of what else its rows depend on: see `beside`. Empty if the file cannot be read.
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
    warn: Callable[[str], None],
    avoid: Path | None,
    on_unreadable: Callable[[StorageError], None] = lambda _error: None,
    pattern: str = "*",
) -> Iterator[InputFile]:
    """Return the files under some paths, globs and folders whose names match `pattern`, each once.

    `warn` is called for missing paths and for anything that is not a file, `on_unreadable` as well
    for files and folders that exist and cannot be read. Files under the folder to `avoid`, where
    tables go, are not inputs. A file that is also reached through links has its own name.
    """

    def refuse(error: StorageError) -> None:
        warn(str(error))
        if isinstance(error.__cause__, OSError) and not _is_gone(error.__cause__):
            on_unreadable(error)

    found: dict[Path, Path] = {}
    avoided = None if avoid is None else avoid.resolve()
    unserved = UnservedFolders()
    for path in walk(expanded(names), refuse, unserved.add):
        real, named = path.resolve(), Path(os.path.abspath(path))
        if avoided in real.parents or (real in found and named != real):
            continue
        if not has_name(path, pattern):
            continue
        found[real] = named
    if unserved:
        warn(str(unserved))
    surroundings = _Surroundings()
    for path in found.values():
        try:
            yield _input(path, surroundings)
        except StorageError as error:
            refuse(error)


def capture_families(files: Iterable[InputFile]) -> list[list[InputFile]]:
    """Group captures that may belong to one recording, by their names."""
    return families(files, lambda file: file.path)


class _Surroundings:
    """What else the rows of a file in a log directory depend on. Each file is read once.

    The cluster and the topic's id are from small files; whether a node starts on a directory, which
    is in the row of its meta.properties, depends on all files of the metadata log.
    """

    def __init__(self) -> None:
        self._heads: dict[Path, bytes] = {}

    def of(self, path: Path) -> bytes:
        """Return bytes that change if anything of this does, empty if there is nothing."""
        folder = path.parent
        names = [folder / "partition.metadata"]
        names += [each / META_PROPERTIES_FILE for each in (folder, folder.parent)]
        found = [self._head(each) for each in names if each != path]
        if path.name == META_PROPERTIES_FILE:
            found += map(_state_of_file, sorted((folder / METADATA_PARTITION).glob("*")))
        return b"\0".join(filter(None, found))

    def _head(self, path: Path) -> bytes:
        if path not in self._heads:
            try:
                with open(path, "rb") as file:
                    self._heads[path] = file.read(_HEAD_BYTES)
            except OSError:
                self._heads[path] = b""
        return self._heads[path]


def _state_of_file(path: Path) -> bytes:
    try:
        status = path.stat()
    except OSError:
        return b""
    return repr((path.name, status.st_size, status.st_mtime_ns)).encode()


def _input(path: Path, surroundings: _Surroundings) -> InputFile:
    """Raises: StorageError for a file that cannot be identified, by the system's error or not."""
    try:
        return _identified(path, surroundings)
    except OSError as error:
        raise StorageError(f"cannot open: {error.strerror}", file=str(path)) from error


def _identified(path: Path, surroundings: _Surroundings) -> InputFile:
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
    digest, is_capture = _digest(head), _is_capture(path)
    others = b"" if is_capture else surroundings.of(path)
    if others:
        digest = f"{digest}-{_digest(others)}"
    return InputFile(str(path), status.st_size, digest, is_capture)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


def beside(digest: str) -> str:
    """Return the part of a file's digest that is about the files beside it, empty for none."""
    return digest.partition("-")[2]


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
