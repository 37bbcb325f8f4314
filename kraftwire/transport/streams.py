"""Streams of bytes as connections use them, and taps, which record what passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import trio

# How a TLS listener answers plaintext: an alert, whose first bytes these are.
TLS_ALERT = b"\x15\x03"


class Stream(Protocol):
    """The part of `trio.SocketStream` that connections use; tests put memory in its place."""

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Write everything."""

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        """Read at least one byte; returns nothing at the end of the stream."""


class Tap(Protocol):
    """Records the bytes of one connection."""

    def sent(self, data: bytes) -> None:
        """Record bytes that this end has written."""

    def received(self, data: bytes) -> None:
        """Record bytes that this end has read."""

    def ended(self, *, by_peer: bool = False) -> None:
        """Record that one end sends no more, while the connection stays."""

    def closed(self, *, by_peer: bool = False) -> None:
        """Record the end of the connection."""


TapFactory = Callable[[Stream, bool], Tap | None]
"""Makes the tap of a new connection. The flag is true if this end accepted it."""


def close_now(stream: Stream) -> None:
    """Close a stream without waiting, which is all that closing a socket takes."""
    while (below := getattr(stream, "transport_stream", None)) is not None:
        stream = below
    if isinstance(stream, trio.SocketStream):
        stream.socket.close()
    elif isinstance(stream, trio.StapledStream):
        for half in (stream.send_stream, stream.receive_stream):
            half.close()
