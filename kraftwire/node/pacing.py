"""Turns for requests and answers: long ones get a share of the node's time, not all of it.

The cost of a request grows with its length and with that of its answer. Short ones, including those
of replicas, never wait for long ones: `turns` lets them through, `lane` the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from kraftwire.node.lane import Lane
from kraftwire.node.limits import (
    LONG_ANSWER_BYTES_MIN,
    LONG_ANSWERS_BYTES_BURST,
    LONG_ANSWERS_BYTES_PER_SECOND,
    LONG_ANSWERS_CROWD,
    LONG_REQUEST_BYTES_MIN,
    LONG_REQUESTS_BYTES_BURST,
    LONG_REQUESTS_BYTES_PER_SECOND,
)
from kraftwire.node.turns import Turns

__all__ = ["Pacer"]

# Higher than any connection's number: closing comes after answering.
_AFTER_ALL = 1 << 62


class Pacer:
    """Lets requests and answers through. Units: bytes.

    All connections of a node share it; each has a number, in order of arrival, and one request at a
    time. Order: call `decoded` after `admit`, and `answered` after `admit_answer`.
    """

    def __init__(self, *, clock: Callable[[], float] = time.process_time) -> None:
        """`clock` returns seconds of CPU time."""
        self._connections = 0
        self._turns = Turns()
        self._requests = Lane(
            LONG_REQUESTS_BYTES_PER_SECOND, LONG_REQUESTS_BYTES_BURST, clock=clock
        )
        self._answers = Lane(
            LONG_ANSWERS_BYTES_PER_SECOND,
            LONG_ANSWERS_BYTES_BURST,
            crowd=LONG_ANSWERS_CROWD,
            clock=clock,
        )

    def join(self) -> int:
        """Return the number of a new connection."""
        self._connections += 1
        return self._connections

    async def admit(self, number: int, size: int) -> None:
        """Return when a request of this size on this connection may be decoded and answered."""
        if size < LONG_REQUEST_BYTES_MIN:
            await self._turns.take(number, size)
        else:
            await self._requests.take(number, size)

    async def leave(self, number: int) -> None:
        """Return when a connection whose peer has left may be cleaned up."""
        await self._turns.take(number + _AFTER_ALL, 0)

    def decoded(self, size: int) -> None:
        """Note that a request of this size has been decoded; its answer comes next."""
        if size >= LONG_REQUEST_BYTES_MIN:
            self._requests.done()

    async def admit_answer(self, number: int, size: int) -> None:
        """Return when this many bytes may be read for an answer on this connection."""
        if size < LONG_ANSWER_BYTES_MIN:
            await self._turns.take(number, 0)
        else:
            await self._answers.take(number, size)

    def answered(self, size: int) -> None:
        """Note that an answer with this many bytes is ready to be sent."""
        if size >= LONG_ANSWER_BYTES_MIN:
            self._answers.done()
