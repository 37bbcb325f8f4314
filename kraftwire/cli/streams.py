"""Replaces standard streams that are closed when the program starts.

The replacement fails when it is used, as the closed stream would, and keeps the next file that is
opened from getting the stream's descriptor.
"""

from __future__ import annotations

import os
import sys

# Name -> how /dev/null is opened for it, and what the program does with it. Standard input is
# opened for writing and standard output for reading, so that using them is the error that it was;
# messages to a closed standard error go nowhere.
_STREAMS = {
    "stdin": (os.O_WRONLY, "r"),
    "stdout": (os.O_RDONLY, "w"),
    "stderr": (os.O_WRONLY, "w"),
}


def replace_closed() -> None:
    """Give `sys` a stream in place of each that was closed when the program started."""
    for name, (flags, mode) in _STREAMS.items():
        if getattr(sys, name) is None:
            # The lowest free descriptor is that of the closed stream.
            descriptor = os.open(os.devnull, flags)
            stream = open(descriptor, mode, encoding="utf-8", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)


def is_output_stuck() -> bool:
    """Whether standard output accepts neither its buffered bytes nor an empty write."""
    try:
        sys.stdout.flush()
        os.write(sys.stdout.fileno(), b"")
    except (OSError, ValueError):
        return True
    return False


def drop_output() -> None:
    """Discard what is still buffered: flushing it at exit would fail a second time."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        return  # not a real file: there is nothing to flush to
