"""A file system whose changes stay in memory: what an operation would do, without doing it.

With it `kraftwire storage info` opens a directory as a node does at its start, repairs included,
and leaves it as it is.
"""

from __future__ import annotations

import errno
import os

from kraftwire.errors import StorageError
from kraftwire.log.files import File, Files, Lock, failing
from kraftwire.log.names import parent
from kraftwire.small_files import check_small


class _Content:
    """The contents of a file: those on disk, or in memory once it was written to.

    `path` is where it lies on disk, None for a new file. A file that was only cut stays on disk.
    """

    def __init__(self, files: Files, path: str | None) -> None:
        self._file = None if path is None else files.open_to_read(path)
        self._size = 0 if self._file is None else self._file.size()
        self._written: bytearray | None = bytearray() if self._file is None else None

    def size(self) -> int:
        return self._size if self._written is None else len(self._written)

    def pread(self, count: int, offset: int) -> bytes:
        if self._written is not None:
            return bytes(self._written[offset : offset + count])
        assert self._file is not None
        return self._file.pread(max(0, min(count, self._size - offset)), offset)

    def pwrite(self, data: bytes | memoryview, offset: int) -> None:
        written = self._in_memory()
        written.extend(bytes(max(0, offset - len(written))))
        written[offset : offset + len(data)] = data

    def truncate(self, size: int) -> None:
        if size <= self.size() and self._written is None:
            self._size = size
        else:
            written = self._in_memory()
            del written[size:]
            written.extend(bytes(size - len(written)))

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _in_memory(self) -> bytearray:
        if self._written is None:
            self._written = bytearray(self.pread(self._size, 0))
        return self._written


class _TrialFile:
    """An open file."""

    def __init__(self, content: _Content) -> None:
        self.size = content.size
        self.pread = content.pread
        self.pwrite = content.pwrite
        self.truncate = content.truncate

    def fdatasync(self) -> None:
        """Do nothing: nothing is to become durable."""

    def close(self) -> None:
        """Do nothing: `TrialFiles.close` closes the file on disk."""


class _NoLock:
    """A lock that was not taken."""

    def close(self) -> None:
        """Do nothing."""


class TrialFiles:
    """Files that are read from another file system; changes stay in this object.

    Memory grows with what is written, not with what is read. Order: `close` comes last.
    """

    def __init__(self, files: Files) -> None:
        self._files = files
        # The contents of files that were opened, by name; None where the name was removed.
        self._changed: dict[str, _Content | None] = {}
        self._opened: list[_Content] = []
        self._directories: set[str] = set()

    def open(self, path: str, create: bool = False) -> File:
        """Open a file for reading and writing. `create` makes it if it is missing."""
        if create and not self.exists(path):
            self._changed[path] = self._open(None)
        return _TrialFile(self._content(path))

    def open_to_read(self, path: str) -> File:
        """Open a file for reading only."""
        return _TrialFile(self._content(path))

    def make_read_only(self, path: str) -> None:
        """Do nothing: permissions are not tried."""
        self._content(path)

    def exists(self, path: str) -> bool:
        """Whether there is a file or directory of this name."""
        if path in self._changed:
            return self._changed[path] is not None
        return path in self._directories or self._files.exists(path)

    def size(self, path: str) -> int:
        """Bytes in a file."""
        return self._content(path).size()

    def space(self, path: str) -> tuple[int, int]:
        """The bytes of a directory's disk: those that are free, and all."""
        return self._files.space(path)

    def listdir(self, path: str) -> list[str]:
        """The names in a directory. Order: by name."""
        known = path in self._directories and not self._files.exists(path)
        names = set() if known else set(self._files.listdir(path))
        for changed, content in self._changed.items():
            if parent(changed) == path.rstrip("/"):
                name = changed.rpartition("/")[2]
                names -= {name}
                names |= {name} if content is not None else set()
        names |= {each.rpartition("/")[2] for each in self._directories if parent(each) == path}
        return sorted(names)

    def mkdir(self, path: str) -> None:
        """Make a directory and its parents; no error if it exists."""
        while path and not self._files.exists(path):
            self._directories.add(path)
            path = parent(path)

    def mkdir_private(self, path: str) -> None:
        """Make a directory, as `mkdir`: users are not tried."""
        self.mkdir(path)

    def rename(self, old: str, new: str) -> None:
        """Rename a file, replacing any file that has the new name."""
        self._changed[new] = self._content(old)
        self._changed[old] = None

    def unlink(self, path: str) -> None:
        """Remove a file."""
        self._content(path)
        self._changed[path] = None

    def fsync_dir(self, path: str) -> None:
        """Do nothing: nothing is to become durable."""

    def read_bytes(self, path: str) -> bytes:
        """All of a small file. Raises: StorageError as that of the other file system."""
        content = self._content(path)
        with failing("reading", path):
            check_small(content.size(), path)
        return content.pread(content.size(), 0)

    def lock(self, path: str) -> Lock:  # noqa: ARG002
        """Take no lock: the caller decides whether a directory that is in use is tried."""
        return _NoLock()

    def close(self) -> None:
        """Close every file that was opened."""
        for content in self._opened:
            content.close()

    def _content(self, path: str) -> _Content:
        content = self._changed.get(path)
        if content is None and (path in self._changed or not self._files.exists(path)):
            raise StorageError(f"opening failed: {os.strerror(errno.ENOENT)}", file=path)
        if content is None:
            content = self._changed[path] = self._open(path)
        return content

    def _open(self, path: str | None) -> _Content:
        content = _Content(self._files, path)
        self._opened.append(content)
        return content

