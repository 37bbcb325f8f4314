"""The frames of one accepted connection: read within its deadlines, and counted until answered.

Source: Kafka's `SocketServer.Processor` and `NetworkReceive`; R-SRV-2.
"""

from __future__ import annotations

import math
from collections import deque

import trio

from kraftwire.errors import WireError
from kraftwire.limits import REQUEST_SIZE_MAX
from kraftwire.node.admission import ConnectionBudget
from kraftwire.node.config import ConnectionLimits
from kraftwire.node.connection_end import ConnectionEnded
from kraftwire.node.connection_login import ConnectionLogin
from kraftwire.transport.streams import Stream, Tap
from kraftwire.wire.frame import FrameBuffer

READ_SIZE = 64 * 1024

# Python's overhead for a queued bytes object.
_PAYLOAD_COST_BYTES = 48


class RequestFrames:
    """Reads the frames of one connection, one after the other."""

    def __init__(
        self, limits: ConnectionLimits, budget: ConnectionBudget, tap: Tap | None
    ) -> None:
        self._limits = limits
        self._budget = budget
        self._tap = tap
        self._frame_max_bytes = min(limits.frame_max_bytes, REQUEST_SIZE_MAX)
        self._buffer = FrameBuffer(limit=self._frame_max_bytes)
        self._payloads: deque[bytes] = deque()
        # When the incomplete request began, or the connection if it has not sent one yet.
        self._began: float | None = trio.current_time()

    async def next(self, stream: Stream, login: ConnectionLogin | None) -> bytes:
        """Return the payload of the next frame. Raises: ConnectionEnded."""
        while not self._payloads:
            # No local variable keeps bytes alive while this waits for others.
            await self._read(stream, login)
        payload = self._payloads.popleft()
        self._budget.backlog -= len(payload) + _PAYLOAD_COST_BYTES
        return payload

    async def _read(self, stream: Stream, login: ConnectionLogin | None) -> None:
        """Read some bytes. Raises: ConnectionEnded at their end, or if the peer is too slow."""
        is_login = login is not None and login.is_in_progress
        if login is not None and is_login:
            data = bytes(await login.read(stream))
        else:
            data = bytes(await self._read_request(stream))
        if not data:
            raise ConnectionEnded("by-peer")
        if self._tap is not None:
            self._tap.received(data)
        limit = self._frame_max_bytes
        if login is not None and is_login:
            limit = min(limit, login.receive_max_bytes)
        self._buffer.limit = limit
        try:
            self._payloads += self._buffer.feed(data)
        except WireError as error:
            if login is not None and is_login:
                await login.delay_refusal()
            raise ConnectionEnded("bad-frame", str(error)) from error
        self._count()

    async def _read_request(self, stream: Stream) -> bytes | bytearray:
        """Read some bytes of requests. One deadline for a whole one: trickling does not extend it.
        """
        if self._began is None:
            idle_ms = self._limits.idle_ms
            patience_s = idle_ms / 1000 if idle_ms >= 0 else math.inf
            deadline, cause = trio.current_time() + patience_s, "idle"
        else:
            deadline, cause = self._began + self._limits.handshake_ms / 1000, "slow-request"
        with trio.move_on_at(deadline):
            return await stream.receive_some(READ_SIZE)
        raise ConnectionEnded(cause)

    def _count(self) -> None:
        """Count the bytes that are held, and the time of the request that is incomplete."""
        incomplete = self._buffer.pending_size
        waiting = sum(len(one) + _PAYLOAD_COST_BYTES for one in self._payloads)
        self._budget.backlog = incomplete + waiting
        self._budget.hold(0)
        if not incomplete:
            self._began = None
        elif self._payloads or self._began is None:
            self._began = trio.current_time()
