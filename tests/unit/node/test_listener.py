"""Accepting connections: where, how many, and what happens beyond that."""

from __future__ import annotations

import socket
from contextlib import ExitStack

import pytest
import trio

from kraftwire.errors import UsageError
from kraftwire.node.config import ConnectionLimits
from kraftwire.node.config_listeners import Listener
from kraftwire.node.listener import Acceptor, bind
from kraftwire.node.logs import RateLimit


def place(host: str = "127.0.0.1", port: int = 0) -> Listener:
    return Listener("PLAINTEXT", host, port, True, True)


class Door:
    """An acceptor whose connections stay until the client leaves."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.refused = 0
        self.served = 0
        limit = RateLimit(trio.current_time)
        self.acceptor = Acceptor(limits, on_refused=self._count, refusals=limit)
        self.address = ("", 0)

    def _count(self) -> None:
        self.refused += 1

    async def open(self, nursery: trio.Nursery) -> None:
        sockets = await bind(place(), 50)
        self.address = sockets[0].socket.getsockname()[:2]
        nursery.start_soon(self.acceptor.run, sockets, self._serve)

    async def _serve(self, stream: trio.SocketStream, peer: str) -> None:
        assert peer.startswith("127.0.0.1:")
        self.served += 1
        async with stream:
            await stream.send_all(b"hello")
            await stream.receive_some(1)

    async def enter(self) -> tuple[trio.SocketStream, bytes]:
        """Connect; the first byte read shows whether the connection was accepted."""
        stream = await trio.open_tcp_stream(*self.address)
        return stream, bytes(await stream.receive_some(10))


@pytest.mark.trio
async def test_all_that_wait_are_accepted_in_one_round(nursery: trio.Nursery) -> None:
    """One in each round let a flood fill the queue of 50: an honest client then took a second."""
    door = Door(ConnectionLimits())
    await door.open(nursery)
    with ExitStack() as stack:
        for _ in range(40):
            stack.enter_context(socket.create_connection(door.address))
        for _ in range(10):
            await trio.lowlevel.checkpoint()
        assert door.served == 40
    nursery.cancel_scope.cancel()


@pytest.mark.trio
@pytest.mark.parametrize(
    "limits",
    [
        ConnectionLimits(connections=2),
        ConnectionLimits(connections_per_address=2),
        ConnectionLimits(overrides=(("127.0.0.1", 2),)),
    ],
)
async def test_connections_beyond_a_cap_are_closed_and_the_others_stay(
    nursery: trio.Nursery, limits: ConnectionLimits
) -> None:
    """One address, or all of them together, must not use up the node's descriptors."""
    door = Door(limits)
    await door.open(nursery)
    first, greeting = await door.enter()
    second, _ = await door.enter()
    assert greeting == b"hello"
    third, refusal = await door.enter()
    assert refusal == b""
    assert door.refused == 1
    assert door.acceptor.connection_count == 2
    await first.aclose()
    while door.acceptor.connection_count > 1:
        await trio.lowlevel.checkpoint()
    fourth, greeting = await door.enter()
    assert greeting == b"hello"
    for stream in (second, third, fourth):
        await stream.aclose()


@pytest.mark.trio
async def test_an_override_may_allow_more_than_the_rule() -> None:
    """max.connections.per.ip.overrides exists for a proxy in front of all clients."""
    door = Door(ConnectionLimits(connections_per_address=0, overrides=(("127.0.0.1", 1),)))
    async with trio.open_nursery() as nursery:
        await door.open(nursery)
        stream, greeting = await door.enter()
        assert greeting == b"hello"
        await stream.aclose()
        nursery.cancel_scope.cancel()


@pytest.mark.trio
async def test_localhost_is_bound_on_all_its_addresses_with_one_port() -> None:
    """A client may resolve localhost to either; a missing IPv6 is not an error."""
    sockets = await bind(place("localhost"), 50)
    assert len({listening.socket.getsockname()[1] for listening in sockets}) == 1
    for listening in sockets:
        await listening.aclose()


@pytest.mark.trio
async def test_a_port_in_use_names_listener_and_reason() -> None:
    """An operator who starts a node twice should know at once."""
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = busy.getsockname()[1]
        with pytest.raises(UsageError, match=rf"PLAINTEXT://127.0.0.1:{port}: cannot listen"):
            await bind(place(port=port), 50)


@pytest.mark.trio
async def test_a_host_that_does_not_exist_is_a_usage_error() -> None:
    """A typing error in `listeners`."""
    with pytest.raises(UsageError, match="listener PLAINTEXT://no such host"):
        await bind(place("no such host", 1), 50)
