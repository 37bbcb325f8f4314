"""A connection that a node serves, and its peer."""

from __future__ import annotations

import socket
from typing import Any

import trio
import trio.testing

from kraftwire.messages.metadata_request import MetadataRequest
from kraftwire.messages.metadata_response import MetadataResponse
from kraftwire.messages.request_header import RequestHeader
from kraftwire.node.admission import Admission
from kraftwire.node.connection_end import ConnectionStats
from kraftwire.node.context import Request
from kraftwire.node.guard import Guard
from kraftwire.protocol.payloads import encode_request
from kraftwire.wire.frame import frame
from kraftwire.wire.message import Message
from tests.hostile.secured import CLEAR, SECURED, enter, secured_guard
from tests.support.nodes.accepted import Handle, accepted

_SEND_BYTES = 4096
_VERSIONS = {0: (0, 11), 1: (4, 18), 3: (0, 13), 18: (0, 4)}


async def _metadata(request: Request) -> Message:
    assert isinstance(request.message, MetadataRequest)
    return MetadataResponse()


def request_frame(message: Message, version: int) -> bytes:
    """A request as it is sent."""
    header = RequestHeader(request_api_key=message.API_KEY, request_api_version=version)
    return frame(encode_request(header, message))


class Served:
    """What the connections of one node share. `ended` counts connections by cause.

    `entry` is what peers pass that `join`.
    """

    def __init__(
        self,
        nursery: trio.Nursery,
        answer: Handle = _metadata,
        *,
        limit: int = 1 << 30,
        guard: Guard | None = None,
        entry: str = CLEAR,
    ) -> None:
        self.stats = ConnectionStats()
        self._nursery = nursery
        # Only the test advances this time: work takes none.
        self._admission = Admission(limit, clock=lambda: 0.0)
        self.budget = self._admission.memory
        self._answer = answer
        self._is_secured = entry == SECURED
        self._guard = secured_guard() if self._is_secured else guard

    @property
    def ended(self) -> dict[str, int]:
        """The connections that have ended, by cause."""
        return self.stats.closed

    def connect(self) -> Any:
        """The peer's end of another connection, in memory."""
        near, far = trio.testing.memory_stream_pair()
        self.serve(far)
        return near

    async def join(self) -> Any:
        """The same on a socket, once it has passed the entry of the listener.

        The socket takes little that the peer does not read.
        """
        near, far = trio.socket.socketpair()
        far.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BYTES)
        self._nursery.start_soon(_close_at_end, near)
        self.serve(trio.SocketStream(far))
        return await self.enter(trio.SocketStream(near))

    async def enter(self, stream: trio.SocketStream) -> Any:
        """Pass the entry of the listener on a stream that is served; returns that for requests."""
        return await enter(stream) if self._is_secured else stream

    def serve(self, stream: Any) -> None:
        """Serve a stream."""
        connection = accepted(
            stream,
            _VERSIONS,
            self._answer,
            guard=self._guard,
            stats=self.stats,
            admission=self._admission,
        )
        self._nursery.start_soon(connection.serve)


async def _close_at_end(sock: trio.socket.SocketType) -> None:
    with sock:
        await trio.sleep_forever()
