"""Reads small files whole: configurations, state files of a replica, stores, tokens, key sets."""

from __future__ import annotations

import errno
from collections.abc import Callable
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
