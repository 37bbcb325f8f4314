"""Waiting: for one value, for a commit, for the high watermark."""

from __future__ import annotations

import heapq
from typing import Generic, TypeVar

import trio

from kraftwire.errors import ApiError

T = TypeVar("T")


class Future(Generic[T]):
    """A value that one task waits for and another sets, once."""

    __slots__ = ("_event", "_value")

    def __init__(self) -> None:
        self._event = trio.Event()

    def set(self, value: T) -> None:
        """Resume the waiting task with this value."""
        self._value = value
        self._event.set()

    async def wait(self) -> T:
        """Wait for the value and return it."""
        await self._event.wait()
        return self._value


class CommitWaiters:
    """Tasks that wait for the high watermark."""

    def __init__(self) -> None:
        self.high_watermark = -1
        self._moved = trio.Event()
        self._next = 0
        self._commits: list[tuple[int, int, Future[ApiError | None]]] = []

    def advance(self, high_watermark: int) -> None:
        """Set the high watermark, and resume the tasks that wait for a lower offset."""
        self.high_watermark = high_watermark
        moved, self._moved = self._moved, trio.Event()
        moved.set()
        commits = self._commits
        while commits and commits[0][0] < high_watermark:
            heapq.heappop(commits)[2].set(None)

    def fail(self, code: int, reason: str) -> None:
        """Fail all waiting tasks: this node no longer knows what is committed."""
        commits, self._commits = self._commits, []
        for _, _, future in commits:
            future.set(ApiError(code, reason))

    async def committed(self, offset: int) -> None:
        """Wait until the record at an offset is committed. Raises: ApiError as `fail` says."""
        if offset < self.high_watermark:
            return
        future = Future[ApiError | None]()
        self._next += 1
        heapq.heappush(self._commits, (offset, self._next, future))
        error = await future.wait()
        if error is not None:
            raise error

    async def above(self, offset: int, timeout_ms: int) -> int:
        """Return the high watermark once it is above an offset, or at the time-out."""
        with trio.move_on_after(timeout_ms / 1000):
            while self.high_watermark <= offset:
                await self._moved.wait()
        return self.high_watermark
