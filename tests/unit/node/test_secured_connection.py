"""Connections of listeners with logins and TLS: what comes before the first request, in time."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from kraftwire.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from kraftwire.messages.metadata_request import MetadataRequest
from kraftwire.messages.metadata_response import MetadataResponse
from kraftwire.messages.request_header import RequestHeader
from kraftwire.messages.sasl_handshake_request import SaslHandshakeRequest
from kraftwire.messages.sasl_handshake_response import SaslHandshakeResponse
from kraftwire.node.config import ConnectionLimits
from kraftwire.node.connection_end import ConnectionStats
from kraftwire.node.context import Request
from kraftwire.node.guard import Guard, host_of
from kraftwire.node.logins import follow_stores, store_warnings
from kraftwire.properties import Properties
from kraftwire.protocol.payloads import decode_response, encode_request
from kraftwire.security.credentials import PLAIN, PasswordCredentials
from kraftwire.security.errors import SaslError
from kraftwire.security.mapping import PrincipalMapper
from kraftwire.security.plain import PlainServer
from kraftwire.security.principal import Principal
from kraftwire.security.reloading import ReloadedTls
from kraftwire.security.sasl_client import SaslClient
from kraftwire.security.sasl_server import LoginSettings
from kraftwire.security.settings import client_settings
from kraftwire.security.tls import TlsContext, client_tls, server_tls
from kraftwire.transport.handshakes import Handshakes
from kraftwire.transport.paced_stream import PacedStream
from kraftwire.transport.streams import Stream
from kraftwire.wire.frame import LENGTH_SIZE, frame
from kraftwire.wire.message import Message
from tests.support.nodes.accepted import accepted
from tests.support.nodes.stub import in_virtual_time
from tests.support.security.certificates import identity

VERSIONS = {3: (0, 13), 17: (0, 1), 18: (0, 4), 36: (0, 2)}
LIMITS = ConnectionLimits(handshake_ms=5_000, failed_login_delay_ms=100, idle_ms=60_000)


def guard(max_lifetime_ms: int = 0) -> Guard:
    """The guard of a listener with PLAIN, for one user."""
    keys = [ApiVersion(api_key=key, max_version=high) for key, (_, high) in VERSIONS.items()]
    logins = LoginSettings(
        {PLAIN: lambda: PlainServer({"alice": "secret"}.get)},
        {PLAIN: max_lifetime_ms},
        lambda _: ApiVersionsResponse(api_keys=keys),
        receive_max_bytes=1000,
    )
    return Guard(None, logins, PrincipalMapper(), lambda _: "")


class Peer:
    """The other end of a connection, and what the node saw of it."""

    def __init__(self, nursery: trio.Nursery, passed: Guard) -> None:
        self.seen: list[Request] = []
        self.stats = ConnectionStats()
        self.stream, far = trio.testing.memory_stream_pair()

        async def answer(request: Request) -> Message:
            self.seen.append(request)
            return MetadataResponse()

        connection = accepted(
            far,
            VERSIONS,
            answer,
            guard=passed,
            limits=LIMITS,
            stats=self.stats,
            peer="10.0.0.1:5000",
        )
        nursery.start_soon(connection.serve)

    async def ask(self, payload: bytes) -> bytes:
        """Send a payload and return that of the answer; empty at the end of the stream."""
        await self.stream.send_all(frame(payload))
        return await self.read()

    async def read(self) -> bytes:
        """Return the payload of an answer; empty at the end of the stream."""
        data = b""
        while len(data) < LENGTH_SIZE or len(data) < LENGTH_SIZE + int.from_bytes(data[:4]):
            part = await self.stream.receive_some()
            if not part:
                return b""
            data += part
        return data[LENGTH_SIZE:]

    async def log_in(self, password: str = "secret", **values: Any) -> SaslClient:
        """Log in as alice."""
        login = SaslClient(PLAIN, PasswordCredentials("alice", password), "n", **values)
        request = login.next_request()
        while request is not None:
            request = login.next_request(await self.ask(request))
        return login


def request_of(message: Message, version: int) -> bytes:
    """A request's payload."""
    header = RequestHeader(request_api_key=message.API_KEY, request_api_version=version)
    return encode_request(header, message)


METADATA = request_of(MetadataRequest(), 12)


@in_virtual_time
async def test_requests_after_a_login() -> None:
    """They carry who the peer is, and its address."""
    async with trio.open_nursery() as nursery:
        peer = Peer(nursery, guard())
        await peer.log_in()
        assert await peer.ask(METADATA)
        (request,) = peer.seen
        assert (request.principal, request.host) == (Principal("User", "alice"), "10.0.0.1")
        await peer.stream.aclose()
    assert peer.stats.closed == {"by-peer": 1}


@in_virtual_time
async def test_no_request_is_served_before() -> None:
    """The connection ends at once, without an answer."""
    for payload in (METADATA, b"", b"\x16\x03\x01\0\0"):
        async with trio.open_nursery() as nursery:
            peer = Peer(nursery, guard())
            begin = trio.current_time()
            assert await peer.ask(payload) == b""
            assert trio.current_time() == begin
        assert (peer.seen, peer.stats.closed) == ([], {"login-refused": 1})


@in_virtual_time
async def test_a_wrong_password() -> None:
    """The answer is late, so that passwords cannot be tried quickly (SEC-S9)."""
    async with trio.open_nursery() as nursery:
        peer = Peer(nursery, guard())
        begin = trio.current_time()
        with pytest.raises(SaslError, match="Invalid username or password"):
            await peer.log_in("wrong")
        assert trio.current_time() - begin == pytest.approx(0.1)
        assert await peer.read() == b""
    assert peer.stats.closed == {"login-refused": 1}


@in_virtual_time
async def test_a_login_has_a_deadline() -> None:
    """Bytes that trickle do not extend it."""
    async with trio.open_nursery() as nursery:
        peer = Peer(nursery, guard())
        begin = trio.current_time()
        handshake = request_of(SaslHandshakeRequest(mechanism=PLAIN), 1)
        answer = await peer.ask(handshake)
        found = decode_response(answer, 17, 1)[1]
        assert isinstance(found, SaslHandshakeResponse)
        for _ in range(3):
            await peer.stream.send_all(b"\0")
            await trio.sleep(1)
        assert await peer.read() == b""
        assert trio.current_time() - begin == pytest.approx(5)
    assert peer.stats.closed == {"slow-request": 1}


@in_virtual_time
async def test_frames_are_short_before_success() -> None:
    """A flood of long tokens would fill the memory (SEC-S7)."""
    async with trio.open_nursery() as nursery:
        peer = Peer(nursery, guard())
        begin = trio.current_time()
        await peer.stream.send_all((1001).to_bytes(4))
        assert await peer.read() == b""
        assert trio.current_time() - begin == pytest.approx(0.1)
    async with trio.open_nursery() as nursery:
        peer = Peer(nursery, guard())
        await peer.log_in()
        assert await peer.ask(METADATA + bytes(1000))
        await peer.stream.aclose()


@in_virtual_time
async def test_a_session_ends() -> None:
    """Then the next request is the last, unless the session was renewed (SEC-S12)."""
    async with trio.open_nursery() as nursery:
        peer = Peer(nursery, guard(max_lifetime_ms=2_000))
        login = await peer.log_in()
        assert login.lifetime_ms == 2_000
        await trio.sleep(1.9)
        assert await peer.ask(METADATA)
        await peer.log_in(versions=login.versions)
        await trio.sleep(1.9)
        assert await peer.ask(METADATA)
        await trio.sleep(0.2)
        assert await peer.ask(METADATA) == b""
    assert peer.stats.closed == {"session-ended": 1}


@in_virtual_time
async def test_a_renewal_has_a_deadline_of_its_own() -> None:
    """Not that of the login, which has long passed."""
    async with trio.open_nursery() as nursery:
        peer = Peer(nursery, guard(max_lifetime_ms=20_000))
        login = await peer.log_in()
        await trio.sleep(15)
        handshake = request_of(SaslHandshakeRequest(mechanism=PLAIN), 1)
        assert await peer.ask(handshake)
        await trio.sleep(4)
        assert peer.stats.closed == {}
        begin = trio.current_time()
        assert await peer.read() == b""
        assert trio.current_time() - begin == pytest.approx(1)
    async with trio.open_nursery() as nursery:
        peer = Peer(nursery, guard(max_lifetime_ms=20_000))
        login = await peer.log_in()
        await trio.sleep(15)
        await peer.log_in(versions=login.versions)
        await trio.sleep(15)
        assert await peer.ask(METADATA)
        await peer.stream.aclose()


def test_addresses() -> None:
    """As ACLs have them."""
    assert host_of("10.0.0.1:5000") == "10.0.0.1"
    assert host_of("::1:5000") == "0:0:0:0:0:0:0:1"
    assert host_of("") == ""


def test_a_handshake_of_tls_that_fails() -> None:
    """Plaintext at a listener with TLS is one reason of many, and never more than one line."""
    assert trio.run(_plaintext_at_tls) == {"tls-failed": 1}


async def _plaintext_at_tls() -> dict[str, int]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls, handshakes = TlsContext(context, has_key=True, has_roots=False), Handshakes()

    async def accept(stream: PacedStream) -> tuple[Stream, bytes | None]:
        return await handshakes.accept(stream, tls)

    guard = Guard(accept, None, PrincipalMapper(), lambda _: "")
    listening = (await trio.open_tcp_listeners(0, host="127.0.0.1"))[0]
    stats = ConnectionStats()
    address = listening.socket.getsockname()[:2]

    async def serve() -> None:
        stream = await listening.accept()
        await accepted(stream, VERSIONS, _unused, guard=guard, limits=LIMITS, stats=stats).serve()

    async with listening, trio.open_nursery() as nursery:
        nursery.start_soon(serve)
        client = await trio.open_tcp_stream(*address)
        await client.send_all(frame(METADATA))
        while await client.receive_some():
            pass
        await client.aclose()
    return stats.closed


async def _unused(_: Request) -> Message | None:
    raise AssertionError("no request was sent")


def test_a_store_that_two_ends_share_is_warned_of_once(tmp_path: Path) -> None:
    """The listener and the connections to other controllers have the same key."""
    path = tmp_path / "node.pem"
    path.write_text(identity().key_pem() + identity().chain_pem)
    path.chmod(0o644)
    values = {"security.protocol": "SSL", "ssl.keystore.type": "PEM"}
    values["ssl.keystore.location"] = str(path)
    settings = client_settings(Properties.of(values, "node"))
    stores = [ReloadedTls(settings, server_tls), ReloadedTls(settings, client_tls)]
    (warning,) = store_warnings(stores)
    assert warning.endswith(f"can read {path} (mode 0644)")


class _Stores:
    """Stores that note which configuration they are asked with."""

    def __init__(self) -> None:
        self.seen: list[Mapping[str, str]] = []

    def validity_problem(self, _: datetime) -> str | None:
        """Nothing is wrong with them."""

    def refresh(self, _: datetime, changes: Mapping[str, str]) -> str | None:
        """Nothing is new."""
        self.seen.append(changes)
        return None


@in_virtual_time
async def test_stores_follow_the_committed_configuration() -> None:
    """SEC-T25: as it is when they are looked at."""
    stores: Any = _Stores()
    configuration = {"a": "1"}
    async with trio.open_nursery() as nursery:
        nursery.start_soon(follow_stores, [stores], lambda: configuration)
        for _ in range(2):
            count = len(stores.seen)
            while len(stores.seen) == count:
                await trio.sleep(1)
            configuration["a"] = "2"
        nursery.cancel_scope.cancel()
    assert stores.seen[0] == {"a": "1"}
    assert stores.seen[-1] == {"a": "2"}
