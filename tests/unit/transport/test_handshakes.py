"""Handshakes of accepted connections, SEC-HANDSHAKE: passed, refused, stalled, flooded."""

from __future__ import annotations

import gc
import itertools
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
import trio
import trio.testing

from kraftwire.errors import SecurityError
from kraftwire.security.tls import TlsContext
from kraftwire.transport.handshakes import HANDSHAKE_BYTES_MAX, Handshakes
from kraftwire.transport.paced_stream import PacedStream, Readiness
from tests.support.nodes.stub import in_virtual_time
from tests.support.security.certificates import (
    authority,
    der,
    identity,
    long_chain,
    node_context,
    pem,
)


@pytest.fixture
def tls(tmp_path: Path) -> TlsContext:
    """A node's context."""
    return TlsContext(node_context(identity(), tmp_path), has_key=True, has_roots=True)


def _client() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=pem(authority().certificate))
    return context


@asynccontextmanager
async def _pair() -> AsyncIterator[tuple[PacedStream, trio.SocketStream]]:
    """Two ends of a connection on loopback: the node's and the client's."""
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with listener:
        client = await trio.open_tcp_stream("127.0.0.1", listener.socket.getsockname()[1])
        accepted = await listener.accept()
        async with accepted, client:
            yield PacedStream(accepted, Readiness(), 1), client


async def _connect(client: trio.SocketStream) -> trio.SSLStream[trio.SocketStream]:
    secured = trio.SSLStream(client, _client(), server_hostname="localhost", https_compatible=True)
    await secured.do_handshake()
    return secured


def _run(test: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        with trio.fail_after(60):
            await test()

    trio.run(limited)


async def _refusal(handshakes: Handshakes, node: PacedStream, tls: TlsContext) -> str:
    with pytest.raises(SecurityError) as caught:
        await handshakes.accept(node, tls)
    assert not caught.value.is_usage
    return str(caught.value)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_client_passes_and_talks(tls: TlsContext, version: ssl.TLSVersion) -> None:
    """The stream carries more than one record can hold, both ways."""

    async def run() -> None:
        handshakes, large = Handshakes(), b"x" * 100_000
        tls.context.maximum_version = version
        async with _pair() as (node, client), trio.open_nursery() as nursery:

            async def serve() -> None:
                secured, _ = await handshakes.accept(node, tls)
                got = b""
                while len(got) < len(large):
                    got += await secured.receive_some()
                await secured.send_all(got)

            nursery.start_soon(serve)
            secured = await _connect(client)
            nursery.start_soon(secured.send_all, large)
            back = b""
            while len(back) < len(large):
                back += await secured.receive_some()
            assert back == large
            assert secured.version() == version.name.replace("_", ".")
        assert handshakes.unfinished == 0

    _run(run)


def test_bytes_that_are_no_hello_are_refused(tls: TlsContext) -> None:
    """A client without TLS, the most common mistake, gets the alert that Java's server sends."""

    async def run() -> None:
        async with _pair() as (node, client):
            await client.send_all(bytes.fromhex("0000001400120004000000000004646961670000"))
            await client.send_eof()
            text = await _refusal(Handshakes(), node, tls)
            assert await client.receive_some(100) == bytes.fromhex("15030300020250")
        assert text.startswith("TLS handshake: ")
        assert "is this a client without TLS?" in text

    _run(run)


def test_a_missing_certificate_is_refused(tmp_path: Path) -> None:
    """Where the listener requires one."""

    async def run() -> None:
        limits = {"maximum_version": ssl.TLSVersion.TLSv1_2}
        context = node_context(identity(), tmp_path, needs_certificate=True, **limits)
        tls = TlsContext(context, has_key=True, has_roots=True)
        async with _pair() as (node, client), trio.open_nursery() as nursery:

            async def connect() -> None:
                with pytest.raises(trio.BrokenResourceError):
                    await _connect(client)

            nursery.start_soon(connect)
            text = await _refusal(Handshakes(), node, tls)
            await node.transport_stream.aclose()
        assert "peer did not return a certificate" in text

    _run(run)


@pytest.mark.parametrize("sent", [b"", b"\x16\x03\x01\x02\x00\x01"])
def test_a_peer_that_leaves_is_noticed(tls: TlsContext, sent: bytes) -> None:
    """Before the hello, and in the middle of it."""

    async def run() -> None:
        async with _pair() as (node, client):
            if sent:
                await client.send_all(sent)
            await client.aclose()
            text = await _refusal(Handshakes(), node, tls)
        assert text == "TLS handshake: the peer closed the connection"

    _run(run)


def test_a_silent_connection_has_not_begun(tls: TlsContext) -> None:
    """It holds nothing of TLS, however long it stays."""

    async def run() -> None:
        handshakes = Handshakes()
        async with _pair() as (node, _), trio.open_nursery() as nursery:
            nursery.start_soon(handshakes.accept, node, tls)
            await trio.testing.wait_all_tasks_blocked()
            assert handshakes.unfinished == 0
            nursery.cancel_scope.cancel()

    _run(run)


@pytest.mark.parametrize("passes", [True, False])
def test_tls_is_freed_with_its_connection(tls: TlsContext, passes: bool) -> None:
    """A node collects garbage rarely: 1,500 handshakes that stop, again and again, took 300 MiB."""

    async def run() -> None:
        handshakes = Handshakes()
        async with _pair() as (node, client), trio.open_nursery() as nursery:
            if passes:
                nursery.start_soon(_connect, client)
                await handshakes.accept(node, tls)
            else:
                await client.send_all(b"no hello")
                await client.aclose()
                # What `pytest.raises` returns refers to itself.
                with suppress(SecurityError):
                    await handshakes.accept(node, tls)

    gc.collect()
    before = _tls_of_nodes()
    gc.disable()
    try:
        _run(run)
        assert _tls_of_nodes() == before
    finally:
        gc.enable()


def _tls_of_nodes() -> int:
    kinds = (one for one in gc.get_objects() if isinstance(one, ssl.SSLObject))
    return sum(one.server_side for one in kinds)


def test_those_that_stop_give_way_to_those_that_go_on(tls: TlsContext) -> None:
    """The longest wait ends first; who answers passes, however many have stopped."""

    async def run() -> None:
        handshakes = Handshakes(unfinished_max=4, clock=lambda: 0.0)
        ended: list[int] = []

        async def stall(number: int) -> None:
            async with _pair() as (node, client):
                await client.send_all(b"\x16\x03\x01\x02\x00\x01")
                text = await _refusal(handshakes, node, tls)
                assert "too many others have begun" in text
                ended.append(number)

        async with trio.open_nursery() as nursery:
            for number in range(6):
                nursery.start_soon(stall, number)
                await trio.testing.wait_all_tasks_blocked()
            assert ended == [0, 1]
            async with _pair() as (node, client), trio.open_nursery() as inner:
                inner.start_soon(handshakes.accept, node, tls)
                await _connect(client)
            assert ended == [0, 1, 2]
            assert handshakes.unfinished == 3
            nursery.cancel_scope.cancel()

    _run(run)


def test_a_client_passes_while_many_begin_again_and_again(tls: TlsContext) -> None:
    """Those that had not had their first turn pushed out all that waited for an answer."""

    async def run() -> None:
        handshakes = Handshakes(unfinished_max=4, clock=lambda: 0.0)

        async def begin() -> None:
            while True:
                async with _pair() as (node, client):
                    await client.send_all(_hello())
                    with suppress(SecurityError):
                        await handshakes.accept(node, tls)

        async with trio.open_nursery() as nursery:
            for _ in range(40):
                nursery.start_soon(begin)
            for _ in range(3):
                async with _pair() as (node, client), trio.open_nursery() as inner:
                    inner.start_soon(handshakes.accept, node, tls)
                    await _connect(client)
            nursery.cancel_scope.cancel()

    _run(run)


def _hello() -> bytes:
    """The first message of a client that says no more."""
    outgoing = ssl.MemoryBIO()
    session = _client().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with suppress(ssl.SSLWantReadError):
        session.do_handshake()
    return outgoing.read()


class _Ready:
    """A handshake whose stream always has something to read."""

    def __init__(self) -> None:
        self.stream = self
        self.received_bytes = 0

    async def receive_some(self, _: int | None) -> bytes:
        await trio.lowlevel.checkpoint()
        return b"x"


def test_a_round_of_the_loop_takes_one_step() -> None:
    """Between two steps everybody else has a turn: a vote must not wait for a hundred keys."""

    async def run() -> None:
        handshakes = Handshakes()
        steps: list[int] = []
        rounds = 0

        async def count() -> None:
            nonlocal rounds
            while True:
                rounds += 1
                await trio.lowlevel.checkpoint()

        async def step() -> None:
            await handshakes.receive(_Ready())  # type: ignore[arg-type]
            steps.append(rounds)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(count)
            async with trio.open_nursery() as inner:
                for _ in range(50):
                    inner.start_soon(step)
            nursery.cancel_scope.cancel()
        # The order of tasks in a round is random, so the counter may lag by one round.
        assert max(steps.count(each) for each in steps) <= 2

    _run(run)


@in_virtual_time
async def test_the_next_step_waits_for_twice_the_time_of_the_last() -> None:
    """Handshakes get a third of the thread, however long their steps are."""
    took_s = 0.25
    now_s = 0.0
    handshakes = Handshakes(clock=lambda: now_s)
    times: list[float] = []

    async def step() -> None:
        nonlocal now_s
        await handshakes.receive(_Ready())  # type: ignore[arg-type]
        times.append(trio.current_time())
        now_s += took_s
        handshakes.end_step()
        # Without a step nothing is noted.
        handshakes.end_step()

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(step)
    assert [b - a for a, b in itertools.pairwise(times)] == pytest.approx([2 * took_s] * 4)


def test_requests_may_follow_a_handshake_at_once(tmp_path: Path) -> None:
    """More than the handshake itself may have, and behind as many certificates as Java takes."""
    holder = long_chain(8)
    own = tmp_path / "client.pem"
    own.write_text(holder.key_pem() + holder.chain_pem)
    node_tls = node_context(identity(), tmp_path, needs_certificate=True)
    node_tls.load_verify_locations(cadata=pem(authority("Far away").certificate))
    node_tls.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    client_tls, data = _client(), b"x" * 8 * HANDSHAKE_BYTES_MAX
    client_tls.load_cert_chain(own)

    async def run() -> None:
        async with _pair() as (node, client), trio.open_nursery() as nursery:

            async def send() -> None:
                secured = trio.SSLStream(
                    client, client_tls, server_hostname="localhost", https_compatible=True
                )
                await secured.send_all(data)

            nursery.start_soon(send)
            tls = TlsContext(node_tls, has_key=True, has_roots=True)
            secured, certificate = await Handshakes().accept(node, tls)
            received = b""
            while len(received) < len(data):
                received += bytes(await secured.receive_some())
            assert received == data
            assert certificate == der(holder.certificate)

    _run(run)
