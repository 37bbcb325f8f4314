"""The attackers' end of connections: they open them, send frames, and read as much as they want."""

from __future__ import annotations

import socket
import struct
from collections.abc import Awaitable, Callable
from contextlib import closing

import trio

from kraftwire.messages.request_header import RequestHeader
from kraftwire.protocol.envelope import encode_request
from kraftwire.wire.frame import frame
from kraftwire.wire.message import Message

__all__ = ["HOST", "again_and_again", "exchange", "many", "opened", "request", "send"]

HOST = "127.0.0.1"

_BACKOFF_SECONDS = 0.2
_DEAD = (OSError, EOFError, trio.BrokenResourceError, trio.ClosedResourceError)


def request(message: Message, version: int) -> bytes:
    """A frame. It passes the encoder, so attacks are as long as decoding allows."""
    header = RequestHeader(
        request_api_key=message.API_KEY, request_api_version=version, client_id="siege"
    )
    return frame(encode_request(header, message))


async def opened(port: int) -> trio.socket.SocketType:
    """A connection. Raises: OSError."""
    sock = trio.socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        await sock.connect((HOST, port))
    except BaseException:
        sock.close()
        raise
    return sock


async def send(sock: trio.socket.SocketType, data: bytes) -> None:
    """Send everything."""
    view = memoryview(data)
    while view:
        view = view[await sock.send(view) :]


async def exchange(sock: trio.socket.SocketType, data: bytes) -> bytes:
    """Send a frame and read one. Raises: OSError, EOFError."""
    await send(sock, data)
    head = await _read(sock, 4)
    return await _read(sock, struct.unpack(">i", head)[0])


async def _read(sock: trio.socket.SocketType, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        piece = await sock.recv(min(count - len(data), 1 << 18))
        if not piece:
            raise EOFError
        data += piece
    return bytes(data)


async def again_and_again(
    port: int, talk: Callable[[trio.socket.SocketType], Awaitable[None]]
) -> None:
    """Call `talk` on a connection, and on a new one whenever it ends."""
    while True:
        try:
            with closing(await opened(port)) as sock:
                await talk(sock)
        except _DEAD:
            pass
        await trio.sleep(_BACKOFF_SECONDS)


async def many(count: int, each: Callable[[int], Awaitable[None]]) -> None:
    """Run this many tasks at once, started a few at a time."""
    async with trio.open_nursery() as nursery:
        for number in range(count):
            nursery.start_soon(each, number)
            if number % 50 == 49:
                await trio.sleep(0.02)
