"""The relays that cut links between nodes: tests of a tool of the tests."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

import pytest

from tests.support.nodes.links import Links

CALLER, CALLEE = 1, 2
PIECES = (b"one", b"two")


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """Where node 2 listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(30)
        yield server


@pytest.fixture
def links(listener: socket.socket) -> Iterator[Links]:
    """A relay in front of it."""
    with Links([CALLEE]) as links:
        links.aim(CALLEE, listener.getsockname()[1])
        yield links


def hello(client_id: bytes) -> bytes:
    """The start of a request."""
    return struct.pack(">ihhih", 99, 18, 4, 1, len(client_id)) + client_id


def call(links: Links) -> socket.socket:
    return socket.create_connection(("127.0.0.1", links.ports[CALLEE]), 30)


@pytest.mark.parametrize("client_id", [b"raft-client-1", b"1"])
def test_both_directions_pass_and_each_can_be_cut(
    links: Links, listener: socket.socket, client_id: bytes
) -> None:
    """Data held back by a cut arrives when the cut ends, in order."""
    with call(links) as caller:
        caller.sendall(hello(client_id))
        callee, _ = listener.accept()
        with callee:
            assert callee.recv(100) == hello(client_id)
            links.cut((CALLER, CALLEE))
            caller.sendall(PIECES[0])
            callee.sendall(PIECES[1])
            assert caller.recv(100) == PIECES[1]
            callee.settimeout(0.1)
            with pytest.raises(TimeoutError):
                callee.recv(100)
            links.heal((CALLER, CALLEE))
            callee.settimeout(30)
            assert callee.recv(100) == PIECES[0]


def test_a_new_connection_waits_for_the_end_of_a_cut(
    links: Links, listener: socket.socket
) -> None:
    """It is accepted, as the relay cannot know the caller yet, and gets no data."""
    links.cut((CALLER, CALLEE))
    with call(links) as caller:
        caller.sendall(hello(b"raft-client-1"))
        listener.settimeout(0.1)
        with pytest.raises(TimeoutError):
            listener.accept()
        listener.settimeout(30)
        links.heal_all()
        callee, _ = listener.accept()
        with callee:
            assert callee.recv(100) == hello(b"raft-client-1")


def test_others_pass_a_cut_of_somebody_else(links: Links, listener: socket.socket) -> None:
    """A tool of the tests is not a node."""
    links.cut((CALLER, CALLEE))
    with call(links) as caller:
        caller.sendall(hello(b"admin"))
        callee, _ = listener.accept()
        callee.close()


def test_the_end_of_either_side_reaches_the_other(
    links: Links, listener: socket.socket
) -> None:
    """A node that was killed is gone for its peers."""
    with call(links) as caller:
        caller.sendall(hello(b"raft-client-1"))
        callee, _ = listener.accept()
        callee.close()
        assert caller.recv(100) == b""
    with call(links) as caller:
        caller.sendall(hello(b"raft-client-1"))
        callee, _ = listener.accept()
    with callee:
        callee.settimeout(30)
        assert callee.recv(100) == hello(b"raft-client-1")
        assert callee.recv(100) == b""


def test_a_relay_of_a_node_that_is_down_hangs_up(links: Links) -> None:
    """The caller sees it like a refused connection."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        links.aim(CALLEE, unused.getsockname()[1])
    with call(links) as caller:
        caller.sendall(hello(b"raft-client-1"))
        assert caller.recv(100) == b""
