"""A disk in memory that loses, in a crash, what was never made durable.

Implements the protocols of `kraftwire/log/files.py`. Every file has the bytes that a process sees,
those that would survive, and an ordered list of pending writes between them. The same applies to
directories: a created or renamed file exists after a power loss only if the directory was synced.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping
from random import Random

from kraftwire.errors import StorageError
from kraftwire.sim.crash_model import Inode, apply, kept_names, survive

# The bytes of a disk.
_SPACE = 1 << 50


class PowerCut(BaseException):
    """The machine stops during an operation; no handler may outlive that."""


class SimFile:
    """An open file."""

    __slots__ = ("_files", "_inode", "_path")

    def __init__(self, files: SimFiles, path: str, inode: Inode) -> None:
        self._files = files
        self._path = path
        self._inode = inode

    def size(self) -> int:
        """Return the size of the file as this process sees it."""
        return len(self._inode.seen)

    def pread(self, count: int, offset: int) -> bytes:
        """Bytes at an offset; fewer at the end."""
        return bytes(self._inode.seen[offset : offset + count])

    def pwrite(self, data: bytes | memoryview, offset: int) -> None:
        """Write all bytes. Raises: StorageError if the disk is full, part of them written."""
        files = self._files
        if files.is_watched:
            data = files.before_write(self._inode, bytes(data), offset, self._path)
        change = (offset, bytes(data))
        inode = self._inode
        apply(inode.seen, change)
        inode.pending.append(change)

    def truncate(self, size: int) -> None:
        """Set the size."""
        self._files.step()
        self._inode.change((size, None))

    def fdatasync(self) -> None:
        """Make the content durable."""
        files = self._files
        if files.is_watched:
            files.before_sync(self._inode, self._path)
        files.sync_count += 1
        self._inode.make_durable(len(self._inode.pending))
        if files.is_watched:
            files.was_synced()

    def close(self) -> None:
        """Close the file, which makes nothing durable."""


class SimLock:
    """A lock on a file, held until it is closed or its process ends."""

    def __init__(self, held: set[str], path: str) -> None:
        self._held = held
        self._path = path

    def close(self) -> None:
        """Release the lock."""
        self._held.discard(self._path)


# Changes of a directory, in order: the name, and its file afterwards (None if removed).
_Naming = tuple[tuple[str, Inode | None], ...]


class SimFiles:
    """The files of one machine.

    `sync_count` counts completed file syncs; `is_full` makes writes fail; `is_watched` is set if
    some fault is armed, so that operations check for it. `before_step` is called before every
    operation that changes the disk.
    """

    def __init__(self, before_step: Callable[[], None] | None = None) -> None:
        self.sync_count = 0
        self._before_step = before_step
        self._after_sync: Callable[[], None] | None = None
        self.is_watched = False
        self._steps_to_cut: int | None = None
        self.is_full = False
        self._is_broken = False
        self._partial: Callable[[int], int] = lambda size: size // 2
        self._seen: dict[str, Inode] = {}
        self._durable: dict[str, Inode] = {}
        self._pending: dict[str, list[_Naming]] = {}
        self._directories: set[str] = set()
        self._locks: set[str] = set()
        self._watch()

    # Protocol `Files`

    def open(self, path: str, create: bool = False) -> SimFile:
        """Open a file. Raises: StorageError if it is missing and `create` is False."""
        inode = self._seen.get(path)
        if inode is None:
            if not create:
                raise _failure("opening", errno.ENOENT, path)
            self._need_space(path)
            inode = Inode()
            self._name(path, ((path, inode),))
        return SimFile(self, path, inode)

    def open_to_read(self, path: str) -> SimFile:
        """Open a file for reading. Raises: StorageError if it is missing."""
        return SimFile(self, path, self._inode(path))

    def make_read_only(self, path: str) -> None:
        """Do nothing: permissions are not simulated."""
        self._inode(path)

    def exists(self, path: str) -> bool:
        """Whether there is a file or directory of that name."""
        return path in self._seen or path in self._directories

    def size(self, path: str) -> int:
        """Bytes of a file. Raises: StorageError."""
        return len(self._inode(path).seen)

    def space(self, path: str) -> tuple[int, int]:
        """All of a disk without bounds, or nothing of a full one."""
        del path
        return (0 if self.is_full else _SPACE), _SPACE

    def listdir(self, path: str) -> list[str]:
        """The names in a directory, sorted."""
        start = path.rstrip("/") + "/"
        inside = [name[len(start) :] for name in self._seen if name.startswith(start)]
        inside += [name[len(start) :] for name in self._directories if name.startswith(start)]
        return sorted(name for name in inside if name and "/" not in name)

    def mkdir(self, path: str) -> None:
        """Make a directory and its parents; directories survive every crash here."""
        while path and path not in self._directories:
            self._directories.add(path)
            path = os.path.dirname(path)

    def mkdir_private(self, path: str) -> None:
        """Make a directory, as `mkdir`: users are not simulated."""
        self.mkdir(path)

    def rename(self, old: str, new: str) -> None:
        """Rename a file or directory, at once for every reader, durably after `fsync_dir`."""
        if old not in self._directories:
            self._name(new, ((new, self._inode(old)), (old, None)))
            return
        self.step()
        for directory in [each for each in self._pending if _is_inside(each, old)]:
            # Names that were not durable in it are not durable under the new name.
            renamed = [_moved(naming, old, new) for naming in self._pending.pop(directory)]
            self._pending[new + directory.removeprefix(old)] = renamed
        pending = self._pending.setdefault(os.path.dirname(new), [])
        pending.append(_moving(self._durable, old, new))
        _rename(self._seen, _moving(self._seen, old, new))
        for directory in [each for each in self._directories if _is_inside(each, old)]:
            self._directories.discard(directory)
            self.mkdir(new + directory.removeprefix(old))

    def unlink(self, path: str) -> None:
        """Remove a name. Raises: StorageError."""
        self._inode(path)
        self._name(path, ((path, None),))

    def fsync_dir(self, path: str) -> None:
        """Make the names of a directory durable."""
        self.step()
        if self._is_broken:
            self._is_broken = False
            raise _failure("syncing", errno.EIO, path, fatal=True)
        for naming in self._pending.pop(path, ()):
            _rename(self._durable, naming)

    def read_bytes(self, path: str) -> bytes:
        """Return the contents of a file. Raises: StorageError."""
        return bytes(self._inode(path).seen)

    def lock(self, path: str) -> SimLock:
        """Lock a file. Raises: StorageError if another process of this machine has it."""
        if path in self._locks:
            raise StorageError("is locked by another process", file=path)
        self.open(path, create=True)
        self._locks.add(path)
        return SimLock(self._locks, path)

    # Faults

    def plan_cut(self, steps: int | None) -> None:
        """Let the power fail during the n-th operation from now on, or never if None."""
        self._steps_to_cut = steps
        self._watch()

    def fill(self, is_full: bool, random: Random | None = None) -> None:
        """Fill the disk, or free it; a failed write leaves some bytes."""
        self.is_full = is_full
        if random is not None:
            self._partial = lambda size: random.randrange(size + 1)
        self._watch()

    def break_next_sync(self) -> None:
        """Let the next sync fail and lose the data, as Linux does."""
        self._is_broken = True
        self._watch()

    def mend(self) -> None:
        """End all faults."""
        self._steps_to_cut = None
        self.is_full = self._is_broken = False
        self._watch()

    def kill(self) -> None:
        """End the process: the machine keeps running, and with it all that was written."""
        self._locks.clear()
        self.plan_cut(None)

    def lose_power(self, random: Random, policy: str) -> None:
        """Stop the machine: the policy decides what survives of pending writes."""
        self.kill()
        for directory in sorted(self._pending):
            namings = self._pending[directory]
            for naming in namings[: kept_names(random, policy, len(namings))]:
                _rename(self._durable, naming)
        self._pending.clear()
        for inode in dict.fromkeys(self._durable.values()):
            if inode.pending:
                survive(inode, random, policy)
        self._seen = dict(self._durable)
        for path in self._seen:  # a directory may have its old name again
            self.mkdir(os.path.dirname(path))

    def wipe(self) -> None:
        """Replace the disk with an empty one."""
        self.__init__()  # type: ignore[misc]

    def pending_names(self) -> dict[str, int]:
        """Return how many changes of names are not durable yet, by directory."""
        return {directory: len(namings) for directory, namings in self._pending.items() if namings}

    def named_after(self, kept: Mapping[str, int]) -> dict[str, Inode]:
        """The files that a power loss leaves if the first `kept` changes of each directory survive.

        Their contents are decided elsewhere.
        """
        names = dict(self._durable)
        for directory, count in kept.items():
            for naming in self._pending[directory][:count]:
                _rename(names, naming)
        return names

    @classmethod
    def holding(
        cls, contents: Mapping[str, bytes], before_step: Callable[[], None] | None = None
    ) -> SimFiles:
        """Create a disk with these files, all of them durable."""
        files = cls(before_step)
        for path, content in contents.items():
            files._seen[path] = files._durable[path] = Inode(bytearray(content), bytearray(content))
            files.mkdir(os.path.dirname(path))
        return files

    # Questions of the checks

    def durable_bytes(self, path: str) -> bytes | None:
        """Return what would remain of a file if the power failed now and nothing pending
        survived."""
        inode = self._durable.get(path)
        return None if inode is None else bytes(inode.durable)

    def unflushed(self, suffix: str) -> list[str]:
        """Return the files with this suffix that have changes that are not durable."""
        return [
            path
            for path, inode in self._seen.items()
            if path.endswith(suffix) and (inode.pending or self._durable.get(path) is not inode)
        ]

    # Inside

    def step(self) -> None:
        """Count an operation; raises PowerCut if it is the last one."""
        if self._before_step is not None:
            self._before_step()
        if self._steps_to_cut is not None:
            self._steps_to_cut -= 1
            if self._steps_to_cut <= 0:
                raise PowerCut

    def before_write(self, inode: Inode, data: bytes, offset: int, path: str) -> bytes:
        """The bytes that may be written; raises if the power fails or the disk is full."""
        try:
            self.step()
        except PowerCut:
            inode.change((offset, data[: self._partial(len(data))]))
            raise
        if self.is_full:
            inode.change((offset, data[: self._partial(len(data))]))
            self._need_space(path)
        return data

    def after_next_sync(self, action: Callable[[], None]) -> None:
        """Do something right after the next sync of a file, as from another thread."""
        self._after_sync = action
        self._watch()

    def was_synced(self) -> None:
        """Do what comes right after this sync."""
        action, self._after_sync = self._after_sync, None
        self._watch()
        if action is not None:
            action()

    def before_sync(self, inode: Inode, path: str) -> None:
        """Raises if the power fails, or if the flush does."""
        self.step()
        if self._is_broken:
            self._is_broken = False
            self._watch()
            inode.revert()
            raise _failure("syncing", errno.EIO, path, fatal=True)

    def _watch(self) -> None:
        has_fault = self._steps_to_cut is not None or self.is_full or self._is_broken
        has_action = self._before_step is not None or self._after_sync is not None
        self.is_watched = has_fault or has_action

    def _need_space(self, path: str) -> None:
        if self.is_full:
            raise _failure("writing", errno.ENOSPC, path)

    def _inode(self, path: str) -> Inode:
        inode = self._seen.get(path)
        if inode is None:
            raise _failure("opening", errno.ENOENT, path)
        return inode

    def _name(self, path: str, naming: _Naming) -> None:
        self.step()
        _rename(self._seen, naming)
        self._pending.setdefault(os.path.dirname(path), []).append(naming)


def _rename(names: dict[str, Inode], naming: _Naming) -> None:
    for name, inode in naming:
        if inode is None:
            names.pop(name, None)
        else:
            names[name] = inode


def _is_inside(path: str, directory: str) -> bool:
    return path == directory or path.startswith(f"{directory}/")


def _moved(naming: _Naming, old: str, new: str) -> _Naming:
    return tuple((new + name.removeprefix(old), inode) for name, inode in naming)


def _moving(names: Mapping[str, Inode], old: str, new: str) -> _Naming:
    """Return the change that renames a directory, for the files in it that have these names."""
    inside = [(name, inode) for name, inode in names.items() if _is_inside(name, old)]
    return (*_moved(tuple(inside), old, new), *((name, None) for name, _ in inside))


def _failure(operation: str, number: int, path: str, *, fatal: bool = False) -> StorageError:
    return StorageError(f"{operation} failed: {os.strerror(number)}", file=path, fatal=fatal)
