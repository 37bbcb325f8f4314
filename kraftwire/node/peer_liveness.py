"""Peer liveness: detects that a peer has left while its request waits or its connection is idle."""

from __future__ import annotations

import socket
import sys
from collections.abc import Awaitable, Callable
from typing import TypeVar

import trio

from kraftwire.node.link import Stream

# While bytes are waiting to be read, the connection is checked at this interval.
PEER_LOOK_SECONDS = 2

# TCP probes a silent peer after this many seconds, and then this many times at this interval.
# Unacknowledged data times out after the same total time.
PEER_PROBE_AFTER_SECONDS = 10
PEER_PROBE_SECONDS = 5
PEER_PROBES = 4

T = TypeVar("T")


class PeerGone(Exception):
    """The peer closed its connection before its answer was ready."""


# The first byte of Linux's `tcp_info`.
_ESTABLISHED = 1

# TCP options and their values: macOS has another name for the first, and not all systems have the
# last.
_PATIENCE_SECONDS = PEER_PROBE_AFTER_SECONDS + PEER_PROBES * PEER_PROBE_SECONDS
_OPTIONS = {
    "TCP_KEEPIDLE": PEER_PROBE_AFTER_SECONDS,
    "TCP_KEEPALIVE": PEER_PROBE_AFTER_SECONDS,
    "TCP_KEEPINTVL": PEER_PROBE_SECONDS,
    "TCP_KEEPCNT": PEER_PROBES,
    "TCP_USER_TIMEOUT": _PATIENCE_SECONDS * 1000,
}


def probe_peer(sock: trio.socket.SocketType) -> None:
    """Let TCP detect a peer that vanishes without closing, for example in a power cut.

    Reading from the connection or waiting for its end then fails.
    """
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _OPTIONS.items():
        option = getattr(socket, name, None)
        if option is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)


async def answer_while_connected(
    stream: Stream, answer: Callable[[], Awaitable[T]], leave: Callable[[], Awaitable[None]]
) -> T:
    """Return the result of `answer`.

    If the connection is closed first, wait for `leave`: when thousands are closed at once, they are
    cleaned up in turns. Bytes after the request hide the end of the stream; the system is then
    asked at intervals, where it supports that. Raises: PeerGone after the connection was closed;
    what `answer` raises.
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
        # An error and a frame that refer to each other are freed by the garbage collector alone.
        del failure


async def _cancel_at_end(
    sock: trio.socket.SocketType, leave: Callable[[], Awaitable[None]], scope: trio.CancelScope
) -> None:
    """Cancel when the stream ends."""
    try:
        data = await sock.recv(1, socket.MSG_PEEK)
    except OSError:
        data = b""
    while data and _is_open(sock):
        await trio.sleep(PEER_LOOK_SECONDS)
    await leave()
    scope.cancel()


def _is_open(sock: trio.socket.SocketType) -> bool:
    """Return whether TCP reports the connection as open in both directions; true if that is
    unknown."""
    if sys.platform != "linux":
        return True
    try:
        state = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)
    except OSError:
        return False
    return state[0] == _ESTABLISHED
