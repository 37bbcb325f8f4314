"""The attackers' end of connections: they open them, send frames, and read as much as they want.

Where nodes want a login, attackers and the honest client log in by the properties that `log_in_by`
was given: an attacker with every right.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Awaitable, Callable, Mapping
from contextlib import closing
from typing import Any

import trio

from kraftwire.client.security import client_security
from kraftwire.client.sync import BlockingConnection
from kraftwire.errors import KraftwireError
from kraftwire.messages.request_header import RequestHeader
from kraftwire.protocol.payloads import encode_request
from kraftwire.transport.client_security import ClientSecurity
from kraftwire.transport.secured_stream import secure
from kraftwire.transport.streams import Stream
from kraftwire.wire.frame import frame
from kraftwire.wire.message import Message

__all__ = [
    "HOST",
    "SecuredSocket",
    "Socket",
    "again_and_again",
    "ask",
    "exchange",
    "log_in_by",
    "many",
    "opened",
    "raw",
    "request",
    "send",
]

HOST = "127.0.0.1"

_BACKOFF_SECONDS = 0.2
_ASK_SECONDS = 60.0
_DEAD = (OSError, EOFError, KraftwireError, trio.BrokenResourceError, trio.ClosedResourceError)


class SecuredSocket:
    """A connection through TLS, with the part of a socket that attacks use."""

    def __init__(self, sock: trio.socket.SocketType, stream: Stream) -> None:
        self._sock = sock
        self._stream = stream

    async def send(self, data: bytes | memoryview) -> int:
        """Send everything."""
        await self._stream.send_all(data)
        return len(data)

    async def recv(self, count: int) -> bytes:
        """Read at least one byte; nothing at the end."""
        return bytes(await self._stream.receive_some(count))

    def setsockopt(self, *option: Any) -> None:
        """Set an option of the socket below."""
        self._sock.setsockopt(*option)

    def close(self) -> None:
        """Close at once."""
        self._sock.close()


Socket = trio.socket.SocketType | SecuredSocket


class _Own:
    """How this process secures its connections; None where nodes are in clear."""

    security: ClientSecurity | None = None


def log_in_by(properties: Mapping[str, str]) -> None:
    """Secure all connections of this process by Kafka's client properties."""
    if properties:
        _Own.security = client_security(properties)


def ask(port: int, message: Message) -> Message:
    """The answer to one request on a connection of its own, outside of trio."""
    address = (HOST, port)
    with BlockingConnection(
        address, client_id="siege", timeout_s=_ASK_SECONDS, security=_Own.security
    ) as connection:
        return connection.request(message)


def request(message: Message, version: int) -> bytes:
    """A frame. It passes the encoder, so attacks are as long as decoding allows."""
    header = RequestHeader(
        request_api_key=message.API_KEY, request_api_version=version, client_id="siege"
    )
    return frame(encode_request(header, message))


async def opened(port: int) -> Socket:
    """A connection, after the login. Raises: OSError, KraftwireError."""
    sock = await raw(port)
    if _Own.security is None:
        return sock
    try:
        plain = trio.SocketStream(sock)
        stream = await secure(_Own.security, plain, HOST, port, client_id="siege")
    except BaseException:
        sock.close()
        raise
    return SecuredSocket(sock, stream)


async def raw(port: int) -> trio.socket.SocketType:
    """A connection that has sent nothing. Raises: OSError."""
    sock = trio.socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        await sock.connect((HOST, port))
    except BaseException:
        sock.close()
        raise
    return sock


async def send(sock: Socket, data: bytes) -> None:
    """Send everything."""
    view = memoryview(data)
    while view:
        view = view[await sock.send(view) :]


async def exchange(sock: Socket, data: bytes) -> bytes:
    """Send a frame and read one. Raises: OSError, EOFError."""
    await send(sock, data)
    head = await _read(sock, 4)
    return await _read(sock, struct.unpack(">i", head)[0])


async def _read(sock: Socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        piece = await sock.recv(min(count - len(data), 1 << 18))
        if not piece:
            raise EOFError
        data += piece
    return bytes(data)


Connect = Callable[[int], Awaitable[Socket]]
"""Opens a connection to a port."""


async def again_and_again(
    port: int, talk: Callable[[Any], Awaitable[None]], connect: Connect = opened
) -> None:
    """Call `talk` on a connection, and on a new one whenever it ends."""
    while True:
        try:
            with closing(await connect(port)) as sock:
                await talk(sock)
        except* _DEAD:
            pass
        await trio.sleep(_BACKOFF_SECONDS)


async def many(count: int, each: Callable[[int], Awaitable[None]]) -> None:
    """Run this many tasks at once, started a few at a time."""
    async with trio.open_nursery() as nursery:
        for number in range(count):
            nursery.start_soon(each, number)
            if number % 50 == 49:
                await trio.sleep(0.02)
