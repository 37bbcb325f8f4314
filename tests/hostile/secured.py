"""The way into a listener with TLS and logins, and a peer that takes it: alice, by PLAIN.

Attacks by whoever has a credential are those of anybody on a listener in clear, so their tests run
on both: `each_entry` is their parameter.
"""

from __future__ import annotations

import ssl
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import trio

from kraftwire.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from kraftwire.node.guard import Guard
from kraftwire.security.credentials import PLAIN, SCRAM_SHA_256, PasswordCredentials
from kraftwire.security.mapping import PrincipalMapper
from kraftwire.security.plain import PlainServer
from kraftwire.security.sasl_client import SaslClient
from kraftwire.security.sasl_server import LoginSettings
from kraftwire.security.scram import ScramCredential, ScramServer, ScramUser, salted_password
from kraftwire.security.tls import TlsContext
from kraftwire.transport.handshakes import Handshakes
from kraftwire.transport.paced_stream import PacedStream
from kraftwire.transport.streams import Stream
from kraftwire.wire.frame import LENGTH_SIZE, frame
from tests.support.security.certificates import authority, identity, node_context, pem
from tests.support.security.scram_decoys import decoys

CLEAR, SECURED = "PLAINTEXT", "SASL_SSL, logged in"
each_entry = pytest.mark.parametrize("entry", [CLEAR, SECURED])


def settings(nonce: str = "server") -> LoginSettings:
    """One user, by PLAIN and SCRAM; `nonce` is the server's part, random on a node."""
    keys = [ApiVersion(api_key=key, max_version=high) for key, high in ((3, 13), (17, 1), (36, 2))]
    salted = salted_password(SCRAM_SHA_256, "secret", b"salt", 4096)
    user = ScramUser("alice", ScramCredential.of(SCRAM_SHA_256, salted, b"salt", 4096))
    return LoginSettings(
        {
            PLAIN: lambda: PlainServer({"alice": "secret"}.get),
            SCRAM_SHA_256: lambda: ScramServer(
                SCRAM_SHA_256, lambda *_: user, nonce=nonce, decoy_of=decoys(SCRAM_SHA_256)
            ),
        },
        {},
        lambda _: ApiVersionsResponse(api_keys=keys),
    )


def secured_guard() -> Guard:
    """That of a listener whose protocol is SASL_SSL."""
    # Work takes no time here, so a handshake needs no pause.
    handshakes = Handshakes(clock=lambda: 0.0)

    async def accept(stream: PacedStream) -> tuple[Stream, bytes | None]:
        return await handshakes.accept(stream, _node_tls())

    return Guard(accept, settings(), PrincipalMapper(), lambda _: "")


async def enter(stream: trio.SocketStream) -> trio.SSLStream[trio.SocketStream]:
    """Shake hands and log in as a peer; returns the stream for requests."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=pem(authority().certificate))
    # Unlike that of a node, it says that it closes, as most peers do.
    secured = trio.SSLStream(stream, context, server_hostname="localhost")
    await log_in(secured)
    return secured


async def log_in(stream: Any, password: str = "secret") -> None:
    """Log in by the right password."""
    login = SaslClient(PLAIN, PasswordCredentials("alice", password), "n")
    request = login.next_request()
    while request is not None:
        await stream.send_all(frame(request))
        request = login.next_request(await read_frame(stream))


async def read_frame(stream: Any) -> bytes:
    """A frame's payload; nothing at the end of the stream."""
    data = b""
    while len(data) < LENGTH_SIZE or len(data) < LENGTH_SIZE + int.from_bytes(data[:4]):
        part = await stream.receive_some()
        if not part:
            return b""
        data += part
    return data[LENGTH_SIZE:]


async def read_end(stream: Any) -> None:
    """Read until the node has closed the connection."""
    try:
        while await stream.receive_some(1 << 20):
            pass
    except trio.BrokenResourceError:
        pass  # It has not read all that was sent.


@cache
def _node_tls() -> TlsContext:
    with tempfile.TemporaryDirectory() as folder:
        context = node_context(identity(), Path(folder))
    return TlsContext(context, has_key=True, has_roots=True)
