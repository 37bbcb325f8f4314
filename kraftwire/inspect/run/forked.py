"""A copy of this process that runs by itself and reports to the process that made it."""

from __future__ import annotations

import gc
import os
import pickle
import select
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn

from kraftwire.errors import KraftwireError

__all__ = ["ENDED_EARLY", "Copy", "Original", "is_ready", "split"]

ENDED_EARLY = "a job ended before its work was done"

_FAILED = 1


class Copy:
    """A copy of the process, as seen by the process that made it.

    `descriptor` becomes readable when the copy reports something, or ends.
    """

    def __init__(self, pid: int, descriptor: int) -> None:
        self.descriptor = descriptor
        self._pid = pid
        self._file = os.fdopen(descriptor, "rb")

    def hear(self) -> Any:
        """Wait for the next report of the copy, and return it.

        Raises: the error that the copy reports; KraftwireError if it has ended.
        """
        try:
            said = pickle.load(self._file)
        except (EOFError, pickle.UnpicklingError):
            raise KraftwireError(ENDED_EARLY) from None
        if isinstance(said, BaseException):
            raise said
        return said

    def wait(self) -> None:
        """Wait until the copy has ended."""
        self._file.close()
        with suppress(ChildProcessError):
            os.waitpid(self._pid, 0)

    def stop(self) -> None:
        """End the copy at once, whatever it does."""
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGTERM)
        self.wait()


class Original:
    """The process that made this copy, and to which the copy reports."""

    def __init__(self, descriptor: int) -> None:
        self._file = os.fdopen(descriptor, "wb")

    def tell(self, said: object) -> None:
        """Report a value. Raises: BrokenPipeError if the original no longer reads."""
        pickle.dump(said, self._file)
        self._file.flush()

    def leave(self, last: Callable[[], object]) -> NoReturn:
        """End this process after some last work; reports the result of the work, or its error.

        Skips whatever the original was about to do at its own end.
        """
        code = _FAILED
        try:
            try:
                said = last()
            except (KraftwireError, OSError) as error:
                said = error
            self.tell(said)
            code = 0
        except (BrokenPipeError, KeyboardInterrupt):
            pass
        except BaseException:  # noqa: BLE001 - shown as it would be by the process that ends
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(code)


def split() -> Copy | Original:
    """Copy this process: returns the copy to it, and in the copy the original.

    Both have what is in buffers. Order: while there is only one thread. Raises: OSError.
    """
    reading, writing = os.pipe()
    try:
        pid = os.fork()
    except OSError:
        os.close(reading)
        os.close(writing)
        raise
    if pid:
        os.close(writing)
        return Copy(pid, reading)
    os.close(reading)
    # A collection would write to all objects, and thus copy all memory.
    gc.freeze()
    return Original(writing)


def is_ready(descriptor: int) -> bool:
    """Whether a descriptor can be read from without waiting, its end included."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))
