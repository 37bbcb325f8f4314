"""Listeners, their connections, and the file that records the traffic."""

from __future__ import annotations

import socket
import sys
import time
from typing import BinaryIO

import trio

from kraftwire.errors import WireError
from kraftwire.protocol.endpoint import Address, address_text
from kraftwire.protocol.pcapng import TcpConnection, capture_start
from tools.capture.rewrite import Rewriter

_READ_BYTES = 64 * 1024
_HOST = "127.0.0.1"


class Proxy:
    """Passes connections on and records them.

    With `is_following`, each address that a server advertises gets a listener.
    Order: `serve` for each target, inside the nursery.
    """

    def __init__(self, file: BinaryIO, nursery: trio.Nursery, *, is_following: bool) -> None:
        self._file = file
        self._nursery = nursery
        self._is_following = is_following
        # Target -> where the proxy listens for it.
        self._listening: dict[Address, Address] = {}
        file.write(capture_start())

    async def serve(self, target: Address, listen: Address = (_HOST, 0)) -> Address:
        """Listen for a target; returns the listening address. Raises: OSError if it is taken."""
        (listener,) = await trio.open_tcp_listeners(listen[1], host=listen[0])
        return self._serve(target, listener)

    def _serve(self, target: Address, listener: trio.SocketListener) -> Address:
        host, port = listener.socket.getsockname()[:2]
        self._listening[target] = (host, port)
        print(f"{address_text((host, port))} -> {address_text(target)}", flush=True)

        async def handle(client: trio.SocketStream) -> None:
            await self._handle(client, target)

        self._nursery.start_soon(trio.serve_listeners, handle, [listener])
        return host, port

    def _redirect(self, host: str, port: int) -> Address:
        """The proxy's address for an advertised one; called while an answer is rewritten."""
        if (host, port) not in self._listening:
            bound = socket.create_server((_HOST, 0))
            listener = trio.SocketListener(trio.socket.from_stdlib_socket(bound))
            self._serve((host, port), listener)
        return self._listening[host, port]

    async def _handle(self, client: trio.SocketStream, target: Address) -> None:
        try:
            server = await trio.open_tcp_stream(*target)
        except (OSError, UnicodeError) as error:
            _say(f"{address_text(target)}: {error}")
            await trio.aclose_forcefully(client)
            return
        recorder = _Recorder(self._file, client, server)
        rewriter = Rewriter(self._redirect) if self._is_following else None
        async with client, server:
            try:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(_pass_requests, client, server, recorder, rewriter)
                    nursery.start_soon(_pass_answers, client, server, recorder, rewriter)
            except* (trio.BrokenResourceError, trio.ClosedResourceError):
                pass  # one end broke the connection; closing both tells the other one
            except* WireError as group:
                _say(f"{address_text(target)}: {group.exceptions[0]}")
            finally:
                recorder.close()


class _Recorder:
    """One connection in the file."""

    def __init__(
        self, file: BinaryIO, client: trio.SocketStream, server: trio.SocketStream
    ) -> None:
        ends = client.socket.getpeername()[:2], server.socket.getpeername()[:2]
        self._file = file
        self._connection = TcpConnection(*ends)
        self._is_ended_by_client = True
        self._is_ending = False
        file.write(self._connection.open(time.time_ns()))

    def add(self, data: bytes, *, from_client: bool) -> None:
        self._file.write(self._connection.send(time.time_ns(), data, from_client=from_client))

    def end(self, *, by_client: bool) -> None:
        """Record that one end has nothing more to send."""
        if not self._is_ending:
            self._is_ending, self._is_ended_by_client = True, by_client

    def close(self) -> None:
        time_ns = time.time_ns()
        self._file.write(self._connection.close(time_ns, from_client=self._is_ended_by_client))


async def _pass_requests(
    client: trio.SocketStream,
    server: trio.SocketStream,
    recorder: _Recorder,
    rewriter: Rewriter | None,
) -> None:
    while data := bytes(await client.receive_some(_READ_BYTES)):
        recorder.add(data, from_client=True)
        if rewriter is not None:
            rewriter.on_request(data)
        await server.send_all(data)
    recorder.end(by_client=True)
    await server.send_eof()


async def _pass_answers(
    client: trio.SocketStream,
    server: trio.SocketStream,
    recorder: _Recorder,
    rewriter: Rewriter | None,
) -> None:
    while data := bytes(await server.receive_some(_READ_BYTES)):
        recorder.add(data, from_client=False)
        if rewriter is not None:
            data = rewriter.answer(data)
        if data:
            await client.send_all(data)
    recorder.end(by_client=False)
    await client.send_eof()


def _say(text: str) -> None:
    print(f"capture: {text}", file=sys.stderr)
