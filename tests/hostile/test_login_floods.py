"""Logins that are many, slow, huge or heard before: SEC-LOGIN, SEC-HANDSHAKE."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trio

from kraftwire.errors import SecurityError
from kraftwire.limits import CONNECTION_BYTES_MAX
from kraftwire.messages.metadata_request import MetadataRequest
from kraftwire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kraftwire.messages.sasl_handshake_request import SaslHandshakeRequest
from kraftwire.node.admission import LOGINS_BYTES_PER_SECOND
from kraftwire.node.guard import Guard
from kraftwire.security.credentials import PLAIN, SCRAM_SHA_256, PasswordCredentials
from kraftwire.security.mapping import PrincipalMapper
from kraftwire.security.plain import PlainServer
from kraftwire.security.sasl_client import SaslClient
from kraftwire.security.sasl_server import LoginEnd, SaslServer
from kraftwire.security.tls import TlsContext
from kraftwire.transport.handshakes import HANDSHAKE_BYTES_MAX, Handshakes
from kraftwire.transport.paced_stream import PacedStream, Readiness
from kraftwire.transport.streams import Stream
from kraftwire.wire.frame import LENGTH_SIZE
from tests.hostile.secured import log_in, read_frame, settings
from tests.hostile.served import Served, request_frame
from tests.support.nodes.stub import in_virtual_time
from tests.support.security.certificates import (
    Identity,
    authority,
    identity,
    long_chain,
    node_context,
    pem,
)

_MIB = 1024 * 1024
_TOKEN_BYTES = 512 * 1024
_METADATA = request_frame(MetadataRequest(topics=[]), 8)
_HANDSHAKE = request_frame(SaslHandshakeRequest(mechanism=PLAIN), 1)


def guard() -> Guard:
    """That of a listener with logins, without TLS."""
    return Guard(None, settings(), PrincipalMapper(), lambda _: "")


async def _log_in_honestly(stream: Any) -> None:
    """By the right password, and one request after it."""
    await log_in(stream)
    await stream.send_all(_METADATA)
    assert await read_frame(stream)
    await stream.aclose()


@in_virtual_time
async def test_passwords_are_tried_ten_times_a_second_at_most() -> None:
    """By each connection; the right one is not held up by them."""
    guesses, guessers, seconds = 0, 10, 10

    async def guess(node: Served) -> None:
        nonlocal guesses
        while True:
            stream = node.connect()
            wrong = SaslAuthenticateRequest(auth_bytes=b"\0alice\0wrong")
            await stream.send_all(_HANDSHAKE + request_frame(wrong, 1))
            assert await read_frame(stream)
            await read_frame(stream)
            guesses += 1
            assert not await read_frame(stream)

    async with trio.open_nursery() as nursery:
        node = Served(nursery, guard=guard())
        start = trio.current_time()
        for _ in range(guessers):
            nursery.start_soon(guess, node)
        for _ in range(seconds):
            before = trio.current_time()
            await _log_in_honestly(node.connect())
            assert trio.current_time() == before
            await trio.sleep(1)
        passed = trio.current_time() - start
        nursery.cancel_scope.cancel()
    assert passed == seconds
    assert guessers * seconds * 5 < guesses <= guessers * seconds * 10


@in_virtual_time
async def test_tokens_that_are_never_finished_are_given_up() -> None:
    """They hold no more than all connections may, and keep nobody out."""
    limit, count = 4 * _MIB, 40
    whole = request_frame(SaslAuthenticateRequest(auth_bytes=bytes(_TOKEN_BYTES - 100)), 1)
    async with trio.open_nursery() as nursery:
        node = Served(nursery, guard=guard(), limit=limit)
        for _ in range(count):
            stream = node.connect()
            await stream.send_all(_HANDSHAKE)
            assert await read_frame(stream)
            await stream.send_all(whole[:-1])
            await trio.sleep(1)
            assert node.budget.used <= limit
        await _log_in_honestly(node.connect())
        assert node.ended["no-memory"] >= count - limit // _TOKEN_BYTES
        nursery.cancel_scope.cancel()
    # The bound of a node is this for any number of connections.
    assert CONNECTION_BYTES_MAX == 256 * _MIB


@in_virtual_time
async def test_a_long_token_does_not_wait_for_huge_ones() -> None:
    """They take turns; a token as long as honest ones are waits for two of them, not for all."""
    count, long_password = 60, "s" * 6000
    users = {"alice": long_password}.get
    token = request_frame(SaslAuthenticateRequest(auth_bytes=b"\0alice\0" + b"w" * 500_000), 1)
    logins = replace(settings(), mechanisms={PLAIN: lambda: PlainServer(users)})
    refused = 0

    async def guess(node: Served) -> None:
        nonlocal refused
        stream = node.connect()
        await stream.send_all(_HANDSHAKE)
        assert await read_frame(stream)
        await stream.send_all(token)
        assert await read_frame(stream)
        refused += 1
        assert not await read_frame(stream)

    async with trio.open_nursery() as nursery:
        node = Served(nursery, guard=Guard(None, logins, PrincipalMapper(), lambda _: ""))
        start = trio.current_time()
        async with trio.open_nursery() as inner:
            for _ in range(count):
                inner.start_soon(guess, node)
            await trio.sleep(0.2)
            before = trio.current_time()
            await log_in(node.connect(), long_password)
            assert trio.current_time() - before < 3 * len(token) / LOGINS_BYTES_PER_SECOND
            assert refused < count
        # What waits holds its own length, and does not push out others.
        assert refused == count
        assert trio.current_time() - start > count * len(token) / LOGINS_BYTES_PER_SECOND
        assert node.budget.used < len(token)
        nursery.cancel_scope.cancel()


class _Pieces:
    """A peer that begins a login and has all of a token in its socket, in pieces."""

    def __init__(self, data: bytes, size: int, read: Callable[[int], None]) -> None:
        """`read` is told at which position each piece begins."""
        self._data, self._size, self._read = data, size, read
        self._position = 0

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Answers are not looked at."""

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """The next piece, at once."""
        await trio.lowlevel.checkpoint()
        start = self._position
        if start == len(self._data):
            await trio.sleep_forever()
        self._read(start)
        self._position = min(start + min(self._size, max_bytes or self._size), len(self._data))
        return self._data[start : self._position]


class _Rounds(trio.abc.Instrument):
    """The most reads in one round of the event loop."""

    def __init__(self) -> None:
        self.reads = self.most = self.total = 0

    def before_io_wait(self, timeout: float) -> None:  # noqa: ARG002 - trio's names
        """A round has ended."""
        self.most, self.reads = max(self.most, self.reads), 0

    def count(self) -> None:
        """A read."""
        self.reads += 1
        self.total += 1


@pytest.mark.parametrize(("size", "record", "free"), [(128 * 1024, 16 * 1024, 1), (64, 1, 16)])
@in_virtual_time
async def test_long_logins_are_read_in_turns(size: int, record: int, free: int) -> None:
    """One read in a round of the loop, whether a login has many bytes or many pieces of them."""
    token = request_frame(SaslAuthenticateRequest(auth_bytes=bytes(size)), 1)[:-1]
    data, count, rounds = _HANDSHAKE + token, 20, _Rounds()

    def read(start: int) -> None:
        if start >= free * record:
            rounds.count()

    async with trio.open_nursery() as nursery:
        node = Served(nursery, guard=guard())
        trio.lowlevel.add_instrument(rounds)
        for _ in range(count):
            node.serve(_Pieces(data, record, read))
        for _ in range(5):
            before = trio.current_time()
            await _log_in_honestly(node.connect())
            assert trio.current_time() == before
        assert 0 < rounds.total < count
        # All of it is read long before the time of a login is over.
        await trio.sleep(5)
        trio.lowlevel.remove_instrument(rounds)
        nursery.cancel_scope.cancel()
    assert rounds.total == count * (-(-len(data) // record) - free)
    assert rounds.most == 1


@in_virtual_time
async def test_tokens_that_are_too_long_are_not_read() -> None:
    """The length alone ends the connection, after the delay of a failed login."""
    async with trio.open_nursery() as nursery:
        node = Served(nursery, guard=guard())
        for size in (_TOKEN_BYTES + 1, (1 << 31) - 1):
            stream = node.connect()
            await stream.send_all(_HANDSHAKE)
            assert await read_frame(stream)
            before = trio.current_time()
            await stream.send_all(size.to_bytes(LENGTH_SIZE))
            assert not await read_frame(stream)
            assert trio.current_time() == pytest.approx(before + 0.1)
        assert node.ended == {"bad-frame": 2}
        nursery.cancel_scope.cancel()


@in_virtual_time
async def test_a_handshake_has_thirty_seconds() -> None:
    """However slowly its bytes come."""

    async def accept(stream: PacedStream) -> tuple[Stream, bytes | None]:
        while await stream.receive_some():
            pass
        return stream, None

    slow = Guard(accept, None, PrincipalMapper(), lambda _: "")
    async with trio.open_nursery() as nursery:
        node = Served(nursery, guard=slow)
        near, far = trio.socket.socketpair()
        node.serve(trio.SocketStream(far))
        before, client = trio.current_time(), trio.SocketStream(near)
        with pytest.raises(trio.BrokenResourceError):
            await _trickle(client)
        near.close()
        assert 30 <= trio.current_time() - before <= 32
        assert node.ended == {"slow-request": 1}
        nursery.cancel_scope.cancel()


async def _trickle(stream: trio.SocketStream) -> None:
    while True:
        await stream.send_all(b"\x16")
        await trio.sleep(1)


def _shown(node_tls: TlsContext, holder: Identity, folder: Path) -> str:
    """Why a node refuses a client that shows a chain."""
    store = folder / "chain.pem"
    store.write_text(holder.key_pem() + holder.chain_pem)
    client_tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client_tls.load_verify_locations(cadata=pem(authority().certificate))
    client_tls.load_cert_chain(store)

    async def show(port: int) -> None:
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        secured = trio.SSLStream(
            stream, client_tls, server_hostname="localhost", https_compatible=True
        )
        try:
            await secured.do_handshake()
            await secured.receive_some()
        except trio.BrokenResourceError:
            pass
        await trio.aclose_forcefully(stream)

    async def run() -> str:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        async with listener, trio.open_nursery() as nursery:
            nursery.start_soon(show, listener.socket.getsockname()[1])
            node = await listener.accept()
            with trio.fail_after(60), pytest.raises(SecurityError) as caught:
                await Handshakes().accept(PacedStream(node, Readiness(), 1), node_tls)
            node.socket.close()
        return str(caught.value)

    return trio.run(run)


def test_chains_of_certificates_are_bounded(tmp_path: Path) -> None:
    """Each costs time, trusted or not: a long chain is not looked at, a short one is refused."""
    context = node_context(identity(), tmp_path, needs_certificate=True)
    node = TlsContext(context, has_key=True, has_roots=True)
    assert "the peer's certificate does not pass" in _shown(node, long_chain(8), tmp_path)
    problem = f"more than {HANDSHAKE_BYTES_MAX} bytes"
    for length in (60, 330):
        assert problem in _shown(node, long_chain(length), tmp_path)


def test_a_login_that_was_heard_is_of_no_use() -> None:
    """The messages of a login by SCRAM, again: the nonce of the server is another one."""
    login = SaslClient(SCRAM_SHA_256, PasswordCredentials("alice", "secret"), "client")
    heard: list[bytes] = []
    listener = SaslServer(settings("first"))
    request = login.next_request()
    while request is not None:
        heard.append(request)
        step = listener.receive(request, now_ms=0, epoch_ms=0)
        request = login.next_request(step.reply)
    assert listener.principal is not None
    for nonce, is_same in (("first", True), ("second", False)):
        listener = SaslServer(settings(nonce))
        for payload in heard:
            step = listener.receive(payload, now_ms=0, epoch_ms=0)
        assert (listener.principal is not None) is is_same
        assert (step.end is LoginEnd.OPEN) is is_same
