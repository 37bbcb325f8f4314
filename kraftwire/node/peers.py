"""The core's requests to other nodes: one connection and one request in flight per destination.

A failed attempt ends with an error or a time-out (R-NET-3). After `reset`, a request in flight
keeps its connection only until something else has to be sent: a Fetch parked by a former leader
must not hold up a vote.

A destination is a replica at an address. An ApiVersions request to another node gets a separate
connection, whose negotiation is the answer: it proves that the listener is open now, and neither
waits for a parked Fetch nor holds up a vote.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import trio

from kraftwire.errors import ApiError
from kraftwire.messages.api_versions_request import ApiVersionsRequest
from kraftwire.messages.api_versions_response import ApiVersionsResponse
from kraftwire.node.link import Link, LinkDown, LinkStats
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.raft.effects import SendRequest
from kraftwire.raft.events import FeaturesHeard, RequestFailed, ResponseReceived
from kraftwire.raft.resignation import features_of
from kraftwire.raft.values import Destination
from kraftwire.wire.message import Message

# Requests to one peer that wait for its connection. The core has one in flight; more come only
# when its requests in flight are forgotten, and then only the newest matters.
PEER_QUEUE_MAX = 16

# Replicas and addresses to which the core's connections are kept. Quorums have a handful, but other
# nodes can claim any leader at any address.
PEERS_MAX = 100

Deliver = Callable[[ResponseReceived | RequestFailed | FeaturesHeard], None]
Exchange = Callable[[Link, SendRequest], Awaitable[Message]]


@dataclass(slots=True)
class _PendingRequest:
    """A request in flight."""

    request: SendRequest
    deliver: Deliver
    deadline: float
    is_wanted: bool = True


class Peers:
    """Sends the core's requests. Order: nothing is sent unless `run` is running."""

    def __init__(self, make_link: Callable[[], Link], stats: LinkStats) -> None:
        self._make_link = make_link
        self._stats = stats
        # Least recently used first; a destination is separate for requests and for ApiVersions
        # probes.
        self._peers: dict[tuple[Destination, bool], _Peer] = {}
        self._started: trio.MemorySendChannel[_Peer]
        self._to_start: trio.MemoryReceiveChannel[_Peer]
        self._started, self._to_start = trio.open_memory_channel(float("inf"))

    def send(self, request: SendRequest, deliver: Deliver) -> None:
        """Send a request as soon as the connection is free.

        `deliver` gets exactly one response unless `reset` comes first; on a new connection it gets
        the features of the other side before.
        """
        is_probe = isinstance(request.message, ApiVersionsRequest)
        key = request.destination, is_probe
        peer = self._peers.pop(key, None)
        if peer is None:
            self._forget_others(request.destination, is_probe)
            peer = _Peer(self._make_link(), self._stats, _probe if is_probe else _exchange)
            self._started.send_nowait(peer)
        self._peers[key] = peer
        peer.add(_PendingRequest(request, deliver, trio.current_time() + request.timeout_ms / 1000))

    def reset(self) -> None:
        """Forget all requests that were sent or are waiting to be sent (R-NET-6)."""
        for peer in self._peers.values():
            peer.forget()

    async def run(self) -> None:
        """Serve until cancelled."""
        async with trio.open_nursery() as nursery:
            async for peer in self._to_start:
                nursery.start_soon(peer.run)

    def _forget_others(self, destination: Destination, is_probe: bool) -> None:
        """Close connections that a new one replaces.

        A replica that has moved is no longer at its old address. Ids and addresses come from peers,
        so their number is bounded.
        """
        old = [
            key
            for key in self._peers
            if key[0].key == destination.key and key[1] is is_probe
        ]
        old += list(self._peers)[: max(0, len(self._peers) - PEERS_MAX + 1)]
        for key in dict.fromkeys(old):
            self._peers.pop(key).retire()


async def _exchange(link: Link, request: SendRequest) -> Message:
    return await link.exchange(request.message)


async def _probe(link: Link, _: SendRequest) -> Message:
    return await link.probe()


class _Peer:
    """The task of one destination."""

    def __init__(self, link: Link, stats: LinkStats, exchange: Exchange) -> None:
        self._link = link
        self._stats = stats
        self._exchange_with = exchange
        self._queue: deque[_PendingRequest] = deque(maxlen=PEER_QUEUE_MAX)
        self._wake = trio.Event()
        self._current: _PendingRequest | None = None
        self._scope: trio.CancelScope | None = None
        self._is_retired = False
        self._reported: ApiVersionsResponse | None = None

    def add(self, pending: _PendingRequest) -> None:
        """Queue a request."""
        self._queue.append(pending)
        self._wake.set()
        if self._current is not None and not self._current.is_wanted and self._scope is not None:
            self._scope.cancel()

    def forget(self) -> None:
        """Discard the answers to all requests so far."""
        self._queue.clear()
        if self._current is not None:
            self._current.is_wanted = False

    def retire(self) -> None:
        """Finish the queued requests, then end: no more will be added."""
        self._is_retired = True
        self._wake.set()

    async def run(self) -> None:
        """Serve until retired or cancelled."""
        try:
            while self._queue or not self._is_retired:
                if not self._queue:
                    self._wake = trio.Event()
                    await self._wake.wait()
                    continue
                pending = self._current = self._queue.popleft()
                answer = await self._exchange(pending)
                self._current = None
                self._report_features(pending)
                if pending.is_wanted:
                    pending.deliver(answer)
        finally:
            self._link.close()

    def _report_features(self, pending: _PendingRequest) -> None:
        """Report the features that the other side of a connection supports, once per connection."""
        features = self._link.api_versions
        if features is not None and features is not self._reported:
            self._reported = features
            pending.deliver(FeaturesHeard(pending.request.destination, features_of(features)))

    async def _exchange(self, pending: _PendingRequest) -> ResponseReceived | RequestFailed:
        """Carry out one request within its time-out; every failure is reported as an answer."""
        request = pending.request
        error = ErrorCode.BROKER_NOT_AVAILABLE
        with trio.CancelScope(deadline=pending.deadline) as self._scope:
            try:
                self._link.retarget(request.destination.host, request.destination.port)
                message = await self._exchange_with(self._link, request)
                return ResponseReceived(request.request_id, message)
            except LinkDown:
                await trio.lowlevel.checkpoint()
            except ApiError:
                error = ErrorCode.UNSUPPORTED_VERSION
                await trio.lowlevel.checkpoint()
        if self._scope.cancelled_caught and pending.is_wanted:
            self._stats.timeouts += 1
        return RequestFailed(request.request_id, error)
