"""The core's requests to other nodes: one connection and one request in flight per destination.

Owns the time-outs and what an attempt that failed is called (R-NET-3). Requests whose answers
nobody wants any more, after `reset`, keep their connection only until something else has to be
sent: a Fetch that a former leader has parked must not hold up a vote.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import trio

from kraftwire.errors import ApiError
from kraftwire.limits import PEER_QUEUE_MAX
from kraftwire.node.link import Link, LinkDown, LinkStats
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.raft.effects import SendRequest
from kraftwire.raft.events import RequestFailed, ResponseReceived

__all__ = ["Peers"]

Answered = Callable[[ResponseReceived | RequestFailed], None]
Negotiated = Callable[[int, frozenset[str]], None]


@dataclass(slots=True)
class _Job:
    """A request on its way."""

    request: SendRequest
    deadline: float
    is_wanted: bool = True


class Peers:
    """Sends the core's requests. Order: `run` has to be running for anything to happen."""

    def __init__(
        self,
        make_link: Callable[[], Link],
        answered: Answered,
        stats: LinkStats,
        negotiated: Negotiated = lambda _, __: None,
    ) -> None:
        """Send through links. Shape: `negotiated` is told what each peer calls its features."""
        self._make_link = make_link
        self._answered = answered
        self._stats = stats
        self._negotiated = negotiated
        self._peers: dict[int, _Peer] = {}
        self._started: trio.MemorySendChannel[_Peer]
        self._to_start: trio.MemoryReceiveChannel[_Peer]
        self._started, self._to_start = trio.open_memory_channel(float("inf"))

    def send(self, request: SendRequest) -> None:
        """Send a request as soon as the connection is free; exactly one answer follows, unless
        `reset` comes first."""
        destination = request.destination
        peer = self._peers.get(destination.id)
        if peer is None:
            link = self._make_link()
            link.on_negotiated = partial(self._negotiated, destination.id)
            peer = self._peers[destination.id] = _Peer(link, self._answered, self._stats)
            self._started.send_nowait(peer)
        peer.add(_Job(request, trio.current_time() + request.timeout_ms / 1000))

    def reset(self) -> None:
        """Forget everything that has been sent or waits to be sent (R-NET-6)."""
        for peer in self._peers.values():
            peer.forget()

    async def run(self) -> None:
        """Serve until cancelled."""
        async with trio.open_nursery() as nursery:
            async for peer in self._to_start:
                nursery.start_soon(peer.run)


class _Peer:
    """The task of one destination."""

    def __init__(self, link: Link, answered: Answered, stats: LinkStats) -> None:
        self._link = link
        self._answered = answered
        self._stats = stats
        self._queue: deque[_Job] = deque(maxlen=PEER_QUEUE_MAX)
        self._wake = trio.Event()
        self._current: _Job | None = None
        self._scope: trio.CancelScope | None = None

    def add(self, job: _Job) -> None:
        self._queue.append(job)
        self._wake.set()
        if self._current is not None and not self._current.is_wanted and self._scope is not None:
            self._scope.cancel()

    def forget(self) -> None:
        self._queue.clear()
        if self._current is not None:
            self._current.is_wanted = False

    async def run(self) -> None:
        try:
            while True:
                while not self._queue:
                    self._wake = trio.Event()
                    await self._wake.wait()
                job = self._current = self._queue.popleft()
                answer = await self._exchange(job)
                self._current = None
                if job.is_wanted:
                    self._answered(answer)
        finally:
            self._link.close()

    async def _exchange(self, job: _Job) -> ResponseReceived | RequestFailed:
        """Carry out one request within its time; every way it can fail is an answer too."""
        request = job.request
        error = ErrorCode.BROKER_NOT_AVAILABLE
        with trio.CancelScope(deadline=job.deadline) as self._scope:
            try:
                self._link.retarget(request.destination.host, request.destination.port)
                message = await self._link.exchange(request.message)
                return ResponseReceived(request.request_id, message)
            except LinkDown:
                await trio.lowlevel.checkpoint()
            except ApiError:
                error = ErrorCode.UNSUPPORTED_VERSION
                await trio.lowlevel.checkpoint()
        if self._scope.cancelled_caught and job.is_wanted:
            self._stats.timeouts += 1
        return RequestFailed(request.request_id, error)
