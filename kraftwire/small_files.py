"""Reads small files whole: configurations, state files of a replica, stores, tokens, key sets.

Also keeps files apart from what other users may have put in their place.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from os import PathLike

# Kafka's have a few kilobytes. What is longer, or never ends, is none.
SMALL_FILE_BYTES_MAX = 1024 * 1024


def read_small_file(
    path: str | PathLike[str], opener: Callable[[str, int], int] | None = None
) -> bytes:
    """Return the bytes of a file or pipe; `opener` is that of `open`.

    Raises: OSError, also (EFBIG) for more than `SMALL_FILE_BYTES_MAX`, such as those of a device
    that never ends, and (EINVAL) for a path with a NUL.
    """
    try:
        with open(path, "rb", opener=opener) as file:
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
