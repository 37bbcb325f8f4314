"""Whether the peer of a connection is still there while its request waits for an answer."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from typing import TypeVar

import trio

from kraftwire.node.link import Stream

__all__ = ["PeerGone", "answer_while_there"]

T = TypeVar("T")


class PeerGone(Exception):
    """The peer has closed its connection before its answer was there."""


async def answer_while_there(stream: Stream, answer: Callable[[], Awaitable[T]]) -> T:
    """What `answer` gives.

    Bytes that came after the request hide the end of the stream; then only the request's own time
    ends the wait. Raises: PeerGone as soon as the connection is closed; what `answer` raises.
    """
    if not isinstance(stream, trio.SocketStream):
        return await answer()
    failure: Exception = PeerGone()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_cancel_at_end, stream.socket, nursery.cancel_scope)
        try:
            return await answer()
        except Exception as error:  # noqa: BLE001 - raised below, outside the nursery's group
            failure = error
        finally:
            nursery.cancel_scope.cancel()
    raise failure


async def _cancel_at_end(sock: trio.socket.SocketType, scope: trio.CancelScope) -> None:
    """Cancel when nothing more can come."""
    try:
        data = await sock.recv(1, socket.MSG_PEEK)
    except OSError:
        data = b""
    if not data:
        scope.cancel()
