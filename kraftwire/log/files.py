"""The file operations that a log needs, and their real implementation.

Everything in this package reaches the disk through a `Files`, so that a simulation can provide its
own disk. Paths are strings with ``/``. Every failure is a `StorageError` that names file and
operation; a failed sync is marked fatal, because it is then unknown which pages are on disk (D9).
`fdatasync`, `fcntl` locks and their equivalents on other systems are used only here.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections.abc import Iterator
from typing import Protocol

from kraftwire.errors import StorageError
from kraftwire.log.names import parent
from kraftwire.small_files import check_own, open_regular, read_small_file


class File(Protocol):
    """An open file that is read and written at positions."""

    def size(self) -> int:
        """Bytes in the file."""

    def pread(self, count: int, offset: int) -> bytes:
        """Up to `count` bytes from a position; fewer only at the file's end."""

    def pwrite(self, data: bytes | memoryview, offset: int) -> None:
        """Write all of the bytes at a position."""

    def truncate(self, size: int) -> None:
        """Cut the file, or extend it with zeros, to this size."""

    def fdatasync(self) -> None:
        """Make contents and size durable. Raises: StorageError, fatal."""

    def close(self) -> None:
        """Close the file; closing it again has no effect."""


class Lock(Protocol):
    """A lock that this process holds."""

    def close(self) -> None:
        """Release the lock; releasing it again has no effect."""


class Files(Protocol):
    """A file system. Raises: StorageError from every method when the system refuses."""

    def open(self, path: str, create: bool = False) -> File:
        """Open a file for reading and writing. `create` makes it if it is missing."""

    def open_to_read(self, path: str) -> File:
        """Open a file for reading only, such as one protected by `make_read_only`."""

    def make_read_only(self, path: str) -> None:
        """Remove all write permissions of a file; `rename` and `unlink` still work."""

    def exists(self, path: str) -> bool:
        """Whether there is a file or directory of this name."""

    def size(self, path: str) -> int:
        """Bytes in a file."""

    def space(self, path: str) -> tuple[int, int]:
        """The bytes of a directory's disk: those that are free, and all."""

    def listdir(self, path: str) -> list[str]:
        """The names in a directory. Order: by name."""

    def mkdir(self, path: str) -> None:
        """Make a directory and its parents; no error if it exists."""

    def mkdir_private(self, path: str) -> None:
        """Make a directory of this user alone, below an existing one; one that exists is used.

        Raises: StorageError if that is a link, or others own it or can write to it.
        """

    def rename(self, old: str, new: str) -> None:
        """Rename a file, replacing any file that has the new name."""

    def unlink(self, path: str) -> None:
        """Remove a file."""

    def fsync_dir(self, path: str) -> None:
        """Make the names in a directory durable. Raises: StorageError, fatal."""

    def read_bytes(self, path: str) -> bytes:
        """All of a small file. Raises: StorageError if it has more than SMALL_FILE_BYTES_MAX."""

    def lock(self, path: str) -> Lock:
        """Lock a file, which is made if missing, against every other process.

        Raises: StorageError if another process, or this one, holds it.
        """


@contextlib.contextmanager
def failing(operation: str, path: str, *, fatal: bool = False) -> Iterator[None]:
    """Turn an error of the system into a StorageError that names operation and file."""
    try:
        yield
    except OSError as error:
        raise _failure(operation, path, error, fatal=fatal) from error


def _failure(operation: str, path: str, error: OSError, *, fatal: bool = False) -> StorageError:
    reason = error.strerror or str(error)
    return StorageError(f"{operation} failed: {reason}", file=path, fatal=fatal)


def _sync(descriptor: int) -> None:
    """Make a file's contents durable, bypassing the drive's cache if the system can."""
    full = getattr(fcntl, "F_FULLFSYNC", None)  # macOS: fsync leaves data in the drive's cache
    if full is not None:
        fcntl.fcntl(descriptor, full)
    elif hasattr(os, "fdatasync"):
        os.fdatasync(descriptor)
    else:
        os.fsync(descriptor)


class _LocalFile:
    """A file of the operating system."""

    def __init__(self, descriptor: int, path: str) -> None:
        self._descriptor = descriptor
        self._path = path

    def size(self) -> int:
        with failing("reading the size", self._path):
            return os.fstat(self._descriptor).st_size

    def pread(self, count: int, offset: int) -> bytes:
        try:  # a context manager would take longer than the call
            data = os.pread(self._descriptor, count, offset)
            if len(data) in (0, count):
                return data
            parts = [data]
            while data:
                count -= len(data)
                offset += len(data)
                data = os.pread(self._descriptor, count, offset)
                parts.append(data)
        except OSError as error:
            raise _failure("reading", self._path, error) from error
        return b"".join(parts)

    def pwrite(self, data: bytes | memoryview, offset: int) -> None:
        try:
            written = os.pwrite(self._descriptor, data, offset)
            if written == len(data):
                return
            rest = memoryview(data)
            while written < len(rest):  # the disk is nearly full; the next write reports it
                rest = rest[written:]
                offset += written
                written = os.pwrite(self._descriptor, rest, offset)
        except OSError as error:
            raise _failure("writing", self._path, error) from error

    def truncate(self, size: int) -> None:
        with failing("truncating", self._path):
            os.ftruncate(self._descriptor, size)

    def fdatasync(self) -> None:
        with failing("syncing", self._path, fatal=True):
            _sync(self._descriptor)

    def close(self) -> None:
        if self._descriptor < 0:
            return
        descriptor, self._descriptor = self._descriptor, -1
        with failing("closing", self._path, fatal=True):
            os.close(descriptor)


class _LocalLock:
    """A lock file that is held until closed; the file itself stays, as Kafka's does."""

    def __init__(self, descriptor: int, place: str) -> None:
        self._descriptor = descriptor
        self._place = place
        _LOCKED.add(place)

    def close(self) -> None:
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)
            _LOCKED.discard(self._place)


# The files that this process has locked. An fcntl lock ends when the process closes any descriptor
# of the file, so these files must not even be opened again.
_LOCKED: set[str] = set()


class LocalFiles:
    """The operating system's files."""

    def open(self, path: str, create: bool = False) -> File:
        flags = os.O_RDWR | (os.O_CREAT if create else 0)
        with failing("opening", path):
            return _LocalFile(open_regular(path, flags), path)

    def open_to_read(self, path: str) -> File:
        with failing("opening", path):
            return _LocalFile(open_regular(path, os.O_RDONLY), path)

    def make_read_only(self, path: str) -> None:
        with failing("making read-only", path):
            os.chmod(path, stat.S_IMODE(os.stat(path).st_mode) & ~0o222)

    def exists(self, path: str) -> bool:
        return os.path.lexists(path)

    def size(self, path: str) -> int:
        with failing("reading the size", path):
            return os.stat(path).st_size

    def space(self, path: str) -> tuple[int, int]:
        with failing("reading the space", path):
            disk = os.statvfs(path)
        return disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize

    def listdir(self, path: str) -> list[str]:
        with failing("listing", path):
            return sorted(os.listdir(path))

    def mkdir(self, path: str) -> None:
        with failing("making the directory", path):
            os.makedirs(path, exist_ok=True)

    def mkdir_private(self, path: str) -> None:
        with failing("making the directory", path):
            try:
                os.mkdir(path, 0o700)
            except FileExistsError:
                check_own(path)

    def rename(self, old: str, new: str) -> None:
        with failing(f"renaming to {new}", old):
            os.replace(old, new)

    def unlink(self, path: str) -> None:
        with failing("removing", path):
            os.unlink(path)

    def fsync_dir(self, path: str) -> None:
        with failing("opening", path):
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            with failing("syncing", path, fatal=True):
                os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def read_bytes(self, path: str) -> bytes:
        with failing("reading", path):
            return read_small_file(path)

    def lock(self, path: str) -> Lock:
        place = os.path.realpath(path)
        if place in _LOCKED:
            raise _in_use(path, "held by this process")
        with failing("opening", path):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            # Java locks with fcntl. On some systems flock and fcntl ignore each other.
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            raise _in_use(path, error.strerror or str(error)) from error
        return _LocalLock(descriptor, place)


class InUseError(StorageError):
    """A lock file that another process, or this one, holds."""


def _in_use(path: str, reason: str) -> InUseError:
    return InUseError(
        f"locking failed: another process uses this directory ({reason}); stop it first",
        file=path,
    )


TEMPORARY_SUFFIX = ".tmp"


def replace_file(files: Files, path: str, content: bytes) -> None:
    """Write a file durably, replacing any existing one."""
    temporary = path + TEMPORARY_SUFFIX
    if files.exists(temporary):
        files.unlink(temporary)
    file = files.open(temporary, create=True)
    try:
        file.pwrite(content, 0)
        file.fdatasync()
    finally:
        file.close()
    files.rename(temporary, path)
    files.fsync_dir(parent(path))
