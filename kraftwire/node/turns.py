"""Long work in turns: other tasks of the event loop go on between its pieces (SEC-WORK)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import trio

from kraftwire.pieces import Pieces

# After so much time at most, other tasks have a round of the loop. A heartbeat or a vote waits for
# a few rounds.
PIECE_SECONDS = 0.01

T = TypeVar("T")


async def in_turns(
    work: Pieces[T],
    resumed: Callable[[], None] | None = None,
    *,
    clock: Callable[[], float] = time.perf_counter,
) -> T:
    """Return the result of work that is divided into pieces.

    `resumed` is called after others had their turn; what it raises ends the work. Units: `clock`
    returns seconds.
    """
    until = clock() + PIECE_SECONDS
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: T = end.value
            return result
        if clock() >= until:
            await trio.lowlevel.checkpoint()
            if resumed is not None:
                resumed()
            until = clock() + PIECE_SECONDS
