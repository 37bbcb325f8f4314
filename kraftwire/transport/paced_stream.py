"""Paced streams: accepted connections that are read in turns.

The system reports at once all sockets that can be read, and trio would resume all their tasks in
one round of its loop. When thousands of connections end in one moment, that round takes a second,
in which no vote and no commit goes on. So one task watches the sockets of all connections, and a
`RateGate` lets it resume a few tasks in each round.
"""

from __future__ import annotations

import math
import select
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import trio

from kraftwire.transport.rate_gate import RateGate

# Higher than any connection's number: those that have ended come last.
_AFTER_ALL = 1 << 62

# Where the system has no epoll, each task waits for its own socket, then for its turn, and an
# answer is completed although its peer has left.
HAS_EPOLL = hasattr(select, "epoll")

# A peer that has only ended what it sends still reads its answer, and whether it has closed both
# directions cannot be known. So its end counts for work that takes longer than this.
ANSWER_SECONDS = 0.1

T = TypeVar("T")


class PeerGone(Exception):
    """The peer closed its connection before its answer was ready."""


class _Watch:
    """A wait for one connection: `turn` is called after its event, when the gate permits it."""

    __slots__ = ("descriptor", "is_over", "number", "starts_at", "turn")

    def __init__(self, descriptor: int, number: int, turn: Callable[[], object]) -> None:
        self.descriptor = descriptor
        self.number = number
        self.turn = turn
        self.starts_at = 0.0
        self.is_over = False


class Readiness:
    """Watches the sockets of all connections of a node. Order: all calls in trio's thread."""

    def __init__(self) -> None:
        self.gate = RateGate()
        self._epoll: select.epoll | None = None
        self._scope = trio.CancelScope()
        # By file descriptor.
        self._watches: dict[int, _Watch] = {}
        # Watches that start later, in order, and the pause before the first of them.
        self._later: deque[_Watch] = deque()
        self._pause = trio.CancelScope()

    @contextmanager
    def watch(
        self, descriptor: int, number: int, turn: Callable[[], object], *, is_for_end: bool = False
    ) -> Iterator[None]:
        """Call `turn` once, in turn, when a socket can be read or has ended.

        With `is_for_end` only its end counts, and only after ANSWER_SECONDS. Order: one watch of a
        socket at a time. The system forgets a socket that is closed.
        """
        if self._epoll is None:
            self._epoll, self._scope = select.epoll(), trio.CancelScope()
            trio.lowlevel.spawn_system_task(self._run, self._epoll, self._scope)
        watch = _Watch(descriptor, number, turn)
        if is_for_end:
            watch.starts_at = trio.current_time() + ANSWER_SECONDS
            self._later.append(watch)
            if len(self._later) == 1:
                self._pause.deadline = watch.starts_at
        else:
            self._start(watch, self._epoll, select.EPOLLIN | select.EPOLLRDHUP)
        try:
            yield
        finally:
            watch.is_over = True
            if self._watches.get(descriptor) is watch:
                del self._watches[descriptor]
            self.gate.cancel(watch.number)

    def close(self) -> None:
        """Stop watching: the event loop may run on. Order: after all watches."""
        self._scope.cancel()
        self._epoll = None

    def _start(self, watch: _Watch, epoll: select.epoll, events: int) -> None:
        self._watches[watch.descriptor] = watch
        try:
            epoll.modify(watch.descriptor, events | select.EPOLLONESHOT)
        except FileNotFoundError:
            epoll.register(watch.descriptor, events | select.EPOLLONESHOT)

    async def _run(self, epoll: select.epoll, scope: trio.CancelScope) -> None:
        """Pass on what the system reports."""
        with scope, epoll:
            while True:
                starts_at = self._later[0].starts_at if self._later else math.inf
                self._pause = trio.CancelScope(deadline=starts_at)
                with self._pause:
                    await trio.lowlevel.wait_readable(epoll.fileno())
                while self._later and self._later[0].starts_at <= trio.current_time():
                    watch = self._later.popleft()
                    if not watch.is_over:
                        self._start(watch, epoll, select.EPOLLRDHUP)
                for descriptor, events in epoll.poll(0):
                    self._resume(descriptor, events)

    def _resume(self, descriptor: int, events: int) -> None:
        watch = self._watches.pop(descriptor, None)
        if watch is None:
            return
        if events & ~select.EPOLLIN:
            watch.number += _AFTER_ALL
        self.gate.call_in_turn(watch.number, watch.turn)


class PacedStream:
    """One accepted connection. `number` is lower for a connection that has been open for longer."""

    def __init__(self, stream: trio.SocketStream, readiness: Readiness, number: int) -> None:
        self.transport_stream = stream
        self._readiness = readiness
        self._number = number

    async def readable(self) -> None:
        """Return when there is something to read, or the stream has ended, in turn."""
        sock = self.transport_stream.socket
        if HAS_EPOLL:
            turn = trio.Event()
            with self._readiness.watch(sock.fileno(), self._number, turn.set):
                await turn.wait()
        else:
            await trio.lowlevel.wait_readable(sock)
            await self._readiness.gate.wait_turn(self._number, 0)

    async def while_open(self, work: Callable[[], Awaitable[T]]) -> T:
        """Return the result of `work`; cancels it if it takes long and the peer closes.

        Bytes that wait to be read do not hide the end. Raises: PeerGone; what `work` raises.
        """
        if not HAS_EPOLL:
            return await work()
        descriptor = self.transport_stream.socket.fileno()
        with trio.CancelScope() as scope:
            end = self._readiness.watch(descriptor, self._number, scope.cancel, is_for_end=True)
            with end:
                return await work()
        raise PeerGone

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        """Read at least one byte, in turn; nothing at the end."""
        await self.readable()
        return await self.transport_stream.receive_some(max_bytes)

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Write everything."""
        await self.transport_stream.send_all(data)

    async def send_eof(self) -> None:
        """End what is sent."""
        await self.transport_stream.send_eof()
