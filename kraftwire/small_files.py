"""Opens files that have to end, and reads small ones whole: configurations, stores, tokens.

Also keeps files apart from what other users may have put in their place.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from os import PathLike

# Kafka's have a few kilobytes. A longer file, or one that never ends, is none of Kafka's.
SMALL_FILE_BYTES_MAX = 1024 * 1024


def open_regular(path: str | PathLike[str], flags: int = os.O_RDONLY) -> int:
    """Open a regular file; an opener for `open`. New files are their user's alone.

    Raises: OSError, also (EINVAL) for a pipe or a device in its place: opening or reading one may
    never end.
    """
    descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
    return _checked(descriptor, path, stat.S_ISREG, "a regular file")


def open_ending(path: str | PathLike[str], flags: int = os.O_RDONLY) -> int:
    """Open a regular file or a pipe, which ends when its writer does; an opener for `open`.

    Raises: OSError, also (EINVAL) for a device.
    """

    def ends(mode: int) -> bool:
        return stat.S_ISREG(mode) or stat.S_ISFIFO(mode)

    return _checked(os.open(path, flags | os.O_CLOEXEC), path, ends, "a file or a pipe")


def read_small_file(path: str | PathLike[str]) -> bytes:
    """Return the bytes of a file.

    Raises: OSError, also (EFBIG) for more than `SMALL_FILE_BYTES_MAX`, (EINVAL) for a path with a
    NUL, and as `open_regular`.
    """
    try:
        with open(path, "rb", opener=open_regular) as file:
            content = file.read(SMALL_FILE_BYTES_MAX + 1)
    except ValueError as error:
        raise OSError(errno.EINVAL, str(error), str(path)) from None
    check_small(len(content), path)
    return content


def check_small(size: int, path: str | PathLike[str]) -> None:
    """Raises: OSError (EFBIG) for a file of more than `SMALL_FILE_BYTES_MAX`."""
    if size > SMALL_FILE_BYTES_MAX:
        raise OSError(errno.EFBIG, f"longer than {SMALL_FILE_BYTES_MAX} bytes", str(path))


def check_own(path: str | PathLike[str]) -> None:
    """Check that nobody but this user, or root for root's, can have made a file or directory.

    Raises: OSError (EPERM) for a link, and for what others own or can write to.
    """
    found = os.lstat(path)
    if stat.S_ISLNK(found.st_mode):
        problem = "it is a link, which may lead anywhere"
    elif found.st_uid != os.geteuid():
        problem = f"it belongs to user {found.st_uid}, and this is user {os.geteuid()}"
    elif found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        problem = "other users can write to it: if they are to be trusted, chmod go-w first"
    else:
        return
    raise OSError(errno.EPERM, problem, str(path))


def write_new_file(path: str | PathLike[str], content: bytes) -> None:
    """Write a file for this user alone, in place of anything of this name; no link is followed.

    Raises: OSError.
    """
    with suppress(FileNotFoundError):
        os.unlink(path)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(path, flags, 0o600), "wb") as file:
        file.write(content)


def _checked(
    descriptor: int, path: str | PathLike[str], is_right: Callable[[int], bool], expected: str
) -> int:
    """Return the descriptor, or close it and raise OSError."""
    mode = os.fstat(descriptor).st_mode
    if is_right(mode):
        return descriptor
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    found = "a pipe" if stat.S_ISFIFO(mode) else "a device"
    raise OSError(errno.EINVAL, f"{found}, not {expected}", str(path))
