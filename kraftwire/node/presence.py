"""Whether the peer of a connection is still there: while its request waits, or it says nothing."""

from __future__ import annotations

import socket
import sys
from collections.abc import Awaitable, Callable
from typing import TypeVar

import trio

from kraftwire.node.limits import (
    PEER_LOOK_SECONDS,
    PEER_PROBE_AFTER_SECONDS,
    PEER_PROBE_SECONDS,
    PEER_PROBES,
)
from kraftwire.node.link import Stream

__all__ = ["PeerGone", "answer_while_there", "probe_peer"]

T = TypeVar("T")


class PeerGone(Exception):
    """The peer has closed its connection before its answer was there."""


# The first byte of Linux's `tcp_info`.
_ESTABLISHED = 1

# What systems call the options of TCP, and what they are set to: macOS has another name for the
# first, and not all have the last.
_PATIENCE_SECONDS = PEER_PROBE_AFTER_SECONDS + PEER_PROBES * PEER_PROBE_SECONDS
_OPTIONS = {
    "TCP_KEEPIDLE": PEER_PROBE_AFTER_SECONDS,
    "TCP_KEEPALIVE": PEER_PROBE_AFTER_SECONDS,
    "TCP_KEEPINTVL": PEER_PROBE_SECONDS,
    "TCP_KEEPCNT": PEER_PROBES,
    "TCP_USER_TIMEOUT": _PATIENCE_SECONDS * 1000,
}


def probe_peer(sock: trio.socket.SocketType) -> None:
    """Have TCP find out when a peer vanishes without closing, as one does that loses its power.

    Whoever reads from the connection or waits for its end then gets an error.
    """
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _OPTIONS.items():
        option = getattr(socket, name, None)
        if option is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)


async def answer_while_there(
    stream: Stream, answer: Callable[[], Awaitable[T]], leave: Callable[[], Awaitable[None]]
) -> T:
    """What `answer` gives.

    Where the connection is closed first, `leave` is waited for: when thousands are closed at once,
    each takes its turn to be cleared away. Bytes that came after the request hide the end of the
    stream; then the system is asked now and then, where it tells. Raises: PeerGone after the
    connection was closed; what `answer` raises.
    """
    if not isinstance(stream, trio.SocketStream):
        return await answer()
    failure: Exception = PeerGone()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_cancel_at_end, stream.socket, leave, nursery.cancel_scope)
        try:
            return await answer()
        except Exception as error:  # noqa: BLE001 - raised below, outside the nursery's group
            failure = error
        finally:
            nursery.cancel_scope.cancel()
    try:
        raise failure
    finally:
        # A frame that an error knows, and that knows the error, is let go by the collector alone.
        del failure


async def _cancel_at_end(
    sock: trio.socket.SocketType, leave: Callable[[], Awaitable[None]], scope: trio.CancelScope
) -> None:
    """Cancel when nothing more can come."""
    try:
        data = await sock.recv(1, socket.MSG_PEEK)
    except OSError:
        data = b""
    while data and _is_open(sock):
        await trio.sleep(PEER_LOOK_SECONDS)
    await leave()
    scope.cancel()


def _is_open(sock: trio.socket.SocketType) -> bool:
    """Whether TCP holds the connection for open in both directions; true where nobody tells."""
    if sys.platform != "linux":
        return True
    try:
        state = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)
    except OSError:
        return False
    return state[0] == _ESTABLISHED
