"""A queue for long work: one piece at a time, each followed by a pause.

The cost of a piece is the CPU time of the whole process, threads included, from when it is let
through until some rounds of the loop after it is done. Other work in that time counts too: a busy
node pauses for longer.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import trio

from kraftwire.node.limits import LONG_WORK_REST, LONG_WORK_REST_FEW, LONG_WORK_ROUNDS

__all__ = ["Lane"]


class Lane:
    """Lets long work through. Order: all calls in trio's thread; `done` after each `take`.

    It alternates between the connection that has been open for longest, which favours replicas, and
    the one that has waited for longest.
    """

    def __init__(
        self,
        bytes_per_second: float,
        burst_bytes: float,
        *,
        crowd: int = 1,
        clock: Callable[[], float] = time.process_time,
    ) -> None:
        """Units: sizes are bytes, `clock` returns seconds of CPU time.

        If fewer than `crowd` wait, the pause is the shorter one.
        """
        self._crowd = crowd
        self._rate = bytes_per_second
        self._burst = burst_bytes / bytes_per_second
        self._clock = clock
        self._free_at = -float("inf")
        # By connection number, in order of arrival.
        self._waiting: dict[int, tuple[int, trio.Event]] = {}
        self._done = trio.Event()
        self._is_dealing = False
        self._takes_oldest = True

    async def take(self, number: int, size: int) -> None:
        """Return when work of this size on this connection may begin."""
        turn = trio.Event()
        self._waiting[number] = size, turn
        if not self._is_dealing:
            self._is_dealing = True
            trio.lowlevel.spawn_system_task(self._deal)
        try:
            await turn.wait()
        except BaseException:
            if turn.is_set():
                self.done()
            else:
                del self._waiting[number]
            raise

    def done(self) -> None:
        """Note that the current piece is done."""
        self._done.set()

    async def _deal(self) -> None:
        """Let one piece after the other through until none is waiting."""
        try:
            while self._waiting:
                await trio.sleep_until(max(self._free_at, trio.current_time()))
                if not self._waiting:
                    return
                began = self._clock()
                self._done = trio.Event()
                self._let_through()
                await self._done.wait()
                for _ in range(LONG_WORK_ROUNDS):
                    await trio.lowlevel.checkpoint()
                is_crowd = len(self._waiting) >= self._crowd
                rest = LONG_WORK_REST if is_crowd else LONG_WORK_REST_FEW
                await trio.sleep((self._clock() - began) * rest)
        finally:
            self._is_dealing = False

    def _let_through(self) -> None:
        number = min(self._waiting) if self._takes_oldest else next(iter(self._waiting))
        self._takes_oldest = not self._takes_oldest
        size, turn = self._waiting.pop(number)
        self._free_at = max(self._free_at, trio.current_time() - self._burst) + size / self._rate
        turn.set()
