"""Standard output for copies of a process, each of which writes after the one before it.

Owns the order: what is written out of turn is held back, up to a limit at which the process waits.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import IO, Any

from kraftwire.errors import KraftwireError
from kraftwire.inspect.run.forked import ENDED_EARLY, is_ready

__all__ = ["InTurn"]

# Characters or bytes that a process may hold back.
_HELD_MAX = 16 * 1024 * 1024

_DONE = b"."


class InTurn:
    """A stream onto another one, in turn with the streams of other processes.

    Text or bytes, whatever the other one takes.
    """

    def __init__(self, stream: IO[Any]) -> None:
        self._stream = stream
        self._pass_on: Callable[[Any], object] = stream.write
        # Where the process before this one says that it has finished; None if this is the first.
        self._before: int | None = None
        # Where the process after this one waits for the same.
        self._after: int | None = None
        self._held: list[Any] = []
        self._size = 0

    def write(self, data: Any) -> int:
        """Write, or hold back while it is not the turn of this process."""
        if self._before is not None:
            self._held.append(data)
            self._size += len(data)
            if self._size > _HELD_MAX or is_ready(self._before):
                self._await_turn()
        else:
            self._pass_on(data)
        return len(data)

    def flush(self) -> None:
        """Flush what is not held back."""
        if self._before is None:
            self._stream.flush()

    def isatty(self) -> bool:
        """Whether the other stream is a terminal."""
        return self._stream.isatty()

    def finish(self) -> None:
        """Write everything, and signal that to the process after this one."""
        if self._before is not None:
            self._await_turn()
        self._stream.flush()
        if self._after is not None:
            os.write(self._after, _DONE)

    def prepare(self) -> tuple[int, int]:
        """Get ready for a copy of this process; returns what `stay` and `go` need."""
        self.flush()
        return os.pipe()

    def stay(self, ends: tuple[int, int]) -> None:
        """After the split, in the process that goes on after the copy: it writes all so far."""
        if self._before is not None:
            os.close(self._before)
        self._before, writing = ends
        os.close(writing)
        self._held, self._size = [], 0

    def go(self, ends: tuple[int, int]) -> None:
        """After the split, in the copy, which writes before the other process."""
        reading, self._after = ends
        os.close(reading)

    def _await_turn(self) -> None:
        assert self._before is not None
        told = os.read(self._before, 1)
        os.close(self._before)
        self._before = None
        if told != _DONE:
            raise KraftwireError(ENDED_EARLY)
        held, self._held, self._size = self._held, [], 0
        for data in held:
            self._pass_on(data)
