"""Real files: the errors of failures, and what a lock excludes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kraftwire.errors import StorageError
from kraftwire.log.files import LocalFiles

_FILES = LocalFiles()


def test_bytes_are_written_and_read_at_positions(tmp_path: Path) -> None:
    """Beyond the end as well: the gap is zeros."""
    file = _FILES.open(str(tmp_path / "f"), create=True)
    file.pwrite(b"abc", 0)
    file.pwrite(memoryview(b"xyz"), 6)
    assert file.size() == 9
    assert file.pread(100, 0) == b"abc\0\0\0xyz"
    assert file.pread(2, 1) == b"bc"
    assert file.pread(5, 9) == b""
    file.truncate(2)
    file.truncate(4)
    file.fdatasync()
    assert _FILES.read_bytes(str(tmp_path / "f")) == b"ab\0\0"
    file.close()
    file.close()


def test_directories_list_rename_and_remove(tmp_path: Path) -> None:
    """In order of name; a rename replaces the file that had the name."""
    folder = str(tmp_path / "a/b")
    _FILES.mkdir(folder)
    _FILES.mkdir(folder)
    for name in ("z", "y"):
        _FILES.open(f"{folder}/{name}", create=True).pwrite(name.encode(), 0)
    assert _FILES.listdir(folder) == ["y", "z"]
    _FILES.rename(f"{folder}/y", f"{folder}/z")
    _FILES.fsync_dir(folder)
    assert _FILES.listdir(folder) == ["z"]
    assert (_FILES.size(f"{folder}/z"), _FILES.read_bytes(f"{folder}/z")) == (1, b"y")
    _FILES.unlink(f"{folder}/z")
    assert not _FILES.exists(f"{folder}/z")
    assert _FILES.exists(folder)


def test_writes_continue_after_a_short_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system may write less than it was given, and read less than requested."""
    pwrite, pread = os.pwrite, os.pread
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: pwrite(fd, bytes(data)[:3], at))
    monkeypatch.setattr(os, "pread", lambda fd, count, at: pread(fd, min(count, 4), at))
    file = _FILES.open(str(tmp_path / "f"), create=True)
    file.pwrite(b"0123456789", 2)
    assert file.pread(100, 0) == b"\0\x000123456789"
    file.close()


@pytest.mark.parametrize(
    ("operation", "action"),
    [
        ("opening", lambda path: _FILES.open(path)),
        ("reading the size", lambda path: _FILES.size(path)),
        ("listing", lambda path: _FILES.listdir(path)),
        ("removing", lambda path: _FILES.unlink(path)),
        ("reading", lambda path: _FILES.read_bytes(path)),
        ("renaming to x", lambda path: _FILES.rename(path, "x")),
        ("opening", lambda path: _FILES.fsync_dir(path)),
        ("opening", lambda path: _FILES.lock(path + "/deeper")),
        ("making the directory", lambda _path: _FILES.mkdir(__file__ + "/deeper")),
    ],
)
def test_a_failure_names_file_and_operation(
    tmp_path: Path, operation: str, action: Callable[[str], object]
) -> None:
    """The log line shows an operator where to look."""
    with pytest.raises(StorageError, match=f"{operation} failed: ") as caught:
        action(str(tmp_path / "missing"))
    assert not caught.value.fatal
    assert "missing" in caught.value.file or "deeper" in caught.value.file


def test_a_failed_sync_is_fatal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages may be lost and look clean: nothing may be retried (D9)."""

    def fail(_descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    file = _FILES.open(str(tmp_path / "f"), create=True)
    for name in ("fdatasync", "fsync"):
        monkeypatch.setattr(os, name, fail)
    with pytest.raises(StorageError, match="syncing failed: Input/output error") as caught:
        file.fdatasync()
    assert caught.value.fatal
    with pytest.raises(StorageError, match="syncing failed") as caught:
        _FILES.fsync_dir(str(tmp_path))
    assert caught.value.fatal
    file.close()


def test_other_systems_sync_with_what_they_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without fdatasync, fsync has to do; macOS has its own call that reaches the drive."""
    import fcntl

    calls: list[object] = []
    file = _FILES.open(str(tmp_path / "f"), create=True)
    monkeypatch.delattr(os, "fdatasync")
    monkeypatch.setattr(os, "fsync", lambda _descriptor: calls.append("fsync"))
    file.fdatasync()
    monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", lambda _descriptor, command: calls.append(command))
    file.fdatasync()
    assert calls == ["fsync", 51]
    file.close()


def test_a_lock_keeps_others_out_until_it_is_closed(tmp_path: Path) -> None:
    """A second opening in this process, and another process that locks as Java does (D10)."""
    path = str(tmp_path / ".lock")
    lock = _FILES.lock(path)
    with pytest.raises(StorageError, match=r"\.lock: locking failed: another process uses"):
        _FILES.lock(path)
    assert _locks_as_java(path) == 1
    lock.close()
    lock.close()
    assert _locks_as_java(path) == 0
    _FILES.lock(path).close()


def _locks_as_java(path: str) -> int:
    code = (
        "import fcntl, sys; f = open(sys.argv[1], 'r+')\n"
        "try: fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
        "except OSError: sys.exit(1)"
    )
    return subprocess.run([sys.executable, "-c", code, path], check=False).returncode


def test_a_private_directory_is_nobody_elses(tmp_path: Path) -> None:
    """One that is there already is used again, unless others can have made it or write to it."""
    files, path = LocalFiles(), str(tmp_path / "kept")
    files.mkdir_private(path)
    assert os.stat(path).st_mode & 0o777 == 0o700
    files.mkdir_private(path)
    os.chmod(path, 0o770)
    with pytest.raises(StorageError, match="other users can write to it"):
        files.mkdir_private(path)
    os.rmdir(path)
    os.symlink(tmp_path, path)
    with pytest.raises(StorageError, match="it is a link"):
        files.mkdir_private(path)
    if os.geteuid() == 0:
        os.unlink(path)
        os.mkdir(path)
        os.chown(path, 1, 1)
        with pytest.raises(StorageError, match="it belongs to user 1"):
            files.mkdir_private(path)
