"""The other side of a node's connections: nodes in memory that answer as a test prescribes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import trio
import trio.testing

from kraftwire.messages.api_versions_request import ApiVersionsRequest
from kraftwire.messages.api_versions_response import (
    ApiVersion,
    ApiVersionsResponse,
    SupportedFeatureKey,
)
from kraftwire.messages.vote_request import VoteRequest
from kraftwire.messages.vote_response import VoteResponse
from kraftwire.node.context import Request
from kraftwire.node.link import Link, LinkStats
from kraftwire.node.logs import RateLimit
from kraftwire.node.peers import Peers
from kraftwire.raft.effects import Destination, SendRequest
from kraftwire.raft.events import FeaturesHeard, RequestFailed, ResponseReceived
from kraftwire.transport.streams import Stream
from kraftwire.wire.message import Message
from tests.support.nodes.accepted import Handle, accepted


class FarSide:
    """The nodes that links connect to: each connection is served by `handle`, or by `serve`."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self.versions = {18: (0, 4), 52: (0, 2)}
        self.connects: list[tuple[str, int, float]] = []
        self.requests: list[tuple[str, int]] = []
        self.is_down = False
        self.handle: Handle = self._vote
        self.serve: Callable[[Any], Awaitable[None]] = self._serve
        self.stats = LinkStats()
        self._nursery = nursery

    async def connect(self, host: str, port: int) -> Stream:
        self.connects.append((host, port, trio.current_time()))
        await trio.lowlevel.checkpoint()
        if self.is_down:
            raise ConnectionRefusedError("connection refused")
        near, far = trio.testing.memory_stream_pair()
        self._nursery.start_soon(self.serve, far)
        return near

    def link(self) -> Link:
        limit = RateLimit(trio.current_time)
        return Link("raft-client-1", stats=self.stats, refusals=limit, open_stream=self.connect)

    async def _serve(self, far: Any) -> None:
        await accepted(far, self.versions, self._answer).serve()

    async def _answer(self, request: Request) -> Message | None:
        if isinstance(request.message, ApiVersionsRequest):
            keys = [
                ApiVersion(api_key=key, min_version=low, max_version=high)
                for key, (low, high) in self.versions.items()
            ]
            feature = SupportedFeatureKey(name="kraft.version", min_version=0, max_version=1)
            return ApiVersionsResponse(api_keys=keys, supported_features=[feature])
        self.requests.append((type(request.message).__name__, request.version))
        return await self.handle(request)

    @staticmethod
    async def _vote(request: Request) -> Message:
        del request
        return VoteResponse(error_code=7)


class Answers:
    """The events that a core would get."""

    def __init__(self) -> None:
        self.events: list[tuple[int, int | str]] = []
        self.features: list[set[str]] = []
        self.heard: list[tuple[int, set[str]]] = []

    def __call__(self, event: ResponseReceived | RequestFailed | FeaturesHeard) -> None:
        if isinstance(event, FeaturesHeard):
            self.heard.append((event.destination.id, set(event.features)))
        elif isinstance(event, RequestFailed):
            self.events.append((event.request_id, event.error))
        else:
            self.events.append((event.request_id, event.message.NAME))
            if isinstance(event.message, ApiVersionsResponse):
                self.features.append({one.name for one in event.message.supported_features})


def request(request_id: int, message: Message | None = None, peer: int = 2) -> SendRequest:
    destination = Destination(peer, f"host{peer}", 9093)
    return SendRequest(request_id, destination, message or VoteRequest(), 2000)


class Sender:
    """Peers whose answers are all recorded in one place."""

    def __init__(self, peers: Peers, answers: Answers) -> None:
        self._peers = peers
        self._answers = answers
        self.reset = peers.reset

    def send(self, request: SendRequest) -> None:
        self._peers.send(request, self._answers)


async def start(far: FarSide, nursery: trio.Nursery) -> tuple[Sender, Answers]:
    answers = Answers()
    peers = Peers(far.link, far.stats)
    nursery.start_soon(peers.run)
    await trio.testing.wait_all_tasks_blocked()
    return Sender(peers, answers), answers
