"""A small disk in memory that can lose power between any two operations.

What a file or directory durably holds changes only by a sync. `after_crash` gives the disk as it
may be found: everything that was synced, and of the rest what the caller lets through.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

from kraftwire.errors import StorageError

__all__ = ["CrashFiles", "PowerLoss"]

_SECTOR_BYTES = 512

_Write = tuple[int, bytes] | int  # bytes at a position, or a new size


class PowerLoss(BaseException):
    """The machine stops here."""


class _Data:
    """A file's content: as a process sees it, as it is durable, and the writes in between."""

    def __init__(self, content: bytes = b"") -> None:
        self.seen = bytearray(content)
        self.durable = bytearray(content)
        self.pending: list[_Write] = []


def _apply(target: bytearray, write: _Write) -> None:
    size = write if isinstance(write, int) else write[0]
    if len(target) < size:
        target.extend(bytes(size - len(target)))
    if isinstance(write, int):
        del target[size:]
    else:
        target[size : size + len(write[1])] = write[1]


class _File:
    def __init__(self, disk: CrashFiles, path: str, data: _Data) -> None:
        self._disk, self._path, self._data = disk, path, data

    def size(self) -> int:
        return len(self._data.seen)

    def pread(self, count: int, offset: int) -> bytes:
        return bytes(self._data.seen[offset : offset + count])

    def _change(self, write: _Write) -> None:
        self._disk.step("write", self._path)
        _apply(self._data.seen, write)
        self._data.pending.append(write)

    def pwrite(self, data: bytes | memoryview, offset: int) -> None:
        self._change((offset, bytes(data)))

    def truncate(self, size: int) -> None:
        self._change(size)

    def fdatasync(self) -> None:
        self._disk.step("sync", self._path)
        self._data.durable = bytearray(self._data.seen)
        self._data.pending = []

    def close(self) -> None:
        pass


class _Lock:
    def __init__(self, held: set[str], path: str) -> None:
        self._held, self._path = held, path

    def close(self) -> None:
        self._held.discard(self._path)


class CrashFiles:
    """The disk. Shape: `crash_at` is the number of the operation that does not happen any more;
    `fail` may raise instead of an operation, given its kind and path."""

    def __init__(self, crash_at: int | None = None) -> None:
        self.names: dict[str, _Data] = {}
        self.durable_names: dict[str, _Data] = {}
        self.directories: set[str] = {"/"}
        self.crash_at = crash_at
        self.operations = 0
        self.fail: Callable[[str, str], None] = lambda _kind, _path: None
        self._locks: set[str] = set()

    def step(self, kind: str, path: str) -> None:
        """Count an operation that changes the disk."""
        if self.operations == self.crash_at:
            raise PowerLoss
        self.fail(kind, path)
        self.operations += 1

    def after_crash(self, chance: random.Random, style: str) -> CrashFiles:
        """The disk after the power loss.

        Shape: `style` says what survives of what was not synced: `none`, `all`, a `prefix` in
        order of writing, or any `sectors`. Names survive in order.
        """
        found = CrashFiles()
        found.directories = set(self.directories)
        changed = [
            path
            for path in {**self.durable_names, **self.names}
            if self.durable_names.get(path) is not self.names.get(path)
        ]
        count = {"none": 0, "all": len(changed)}.get(style, chance.randint(0, len(changed)))
        names = dict(self.durable_names)
        for path in changed[:count]:
            if path in self.names:
                names[path] = self.names[path]
            else:
                del names[path]
        for path, data in names.items():
            found.names[path] = _Data(_surviving(data, chance, style))
        found.durable_names = dict(found.names)
        return found

    def open(self, path: str, create: bool = False) -> _File:
        if path not in self.names:
            if not create:
                raise StorageError("opening failed: no such file", file=path)
            self.step("create", path)
            self.names[path] = _Data()
        return _File(self, path, self.names[path])

    def open_to_read(self, path: str) -> _File:
        return _File(self, path, self.names[path])

    def make_read_only(self, path: str) -> None:
        assert path in self.names

    def exists(self, path: str) -> bool:
        return path in self.names or path in self.directories

    def size(self, path: str) -> int:
        return len(self.names[path].seen)

    def listdir(self, path: str) -> list[str]:
        prefix = path.rstrip("/") + "/"
        return sorted(name.removeprefix(prefix) for name in self.names if name.startswith(prefix))

    def mkdir(self, path: str) -> None:
        self.directories.add(path)

    def rename(self, old: str, new: str) -> None:
        self.step("rename", old)
        self.names[new] = self.names.pop(old)

    def unlink(self, path: str) -> None:
        self.step("unlink", path)
        del self.names[path]

    def fsync_dir(self, path: str) -> None:
        self.step("sync", path)
        prefix = path.rstrip("/") + "/"
        for table in (self.durable_names, self.names):
            for name in [name for name in table if name.rpartition("/")[0] + "/" == prefix]:
                if name in self.names:
                    self.durable_names[name] = self.names[name]
                else:
                    del self.durable_names[name]

    def read_bytes(self, path: str) -> bytes:
        return bytes(self.names[path].seen)

    def lock(self, path: str) -> _Lock:
        if path in self._locks:
            raise StorageError("locking failed", file=path)
        self._locks.add(path)
        return _Lock(self._locks, path)


def _surviving(data: _Data, chance: random.Random, style: str) -> bytes:
    content = bytearray(data.durable)
    if style == "all":
        return bytes(data.seen)
    if style == "prefix" and data.pending:
        count = chance.randint(0, len(data.pending))
        for write in data.pending[:count]:
            _apply(content, write)
        torn = data.pending[count] if count < len(data.pending) else 0
        if isinstance(torn, tuple):
            _apply(content, (torn[0], torn[1][: chance.randint(0, len(torn[1]))]))
    if style == "sectors":
        for write in data.pending:
            for part in _sectors(write):
                if chance.random() < 0.7:
                    _apply(content, part)
    return bytes(content)


def _sectors(write: _Write) -> list[_Write]:
    if isinstance(write, int):
        return [write]
    position, data = write
    first = _SECTOR_BYTES - position % _SECTOR_BYTES
    bounds = [0, *range(first, len(data), _SECTOR_BYTES), len(data)]
    return [
        (position + low, data[low:high]) for low, high in itertools.pairwise(bounds)
    ]
