"""Which clients a listener serves: by `ssl.client.auth`, and by the certificate that they show."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
import trio

from kraftwire.messages.api_versions_request import ApiVersionsRequest
from kraftwire.messages.api_versions_response import ApiVersionsResponse
from kraftwire.messages.request_header import RequestHeader
from kraftwire.node.config import ConnectionLimits, load
from kraftwire.node.context import Request
from kraftwire.node.logins import guards_of, stores_of
from kraftwire.protocol.payloads import encode_request
from kraftwire.wire.frame import frame
from kraftwire.wire.message import Message
from tests.support.nodes.accepted import accepted
from tests.support.nodes.stub import StubNode
from tests.support.security.certificates import Identity, authority, identity, pem

LIMITS = ConnectionLimits(handshake_ms=30_000, failed_login_delay_ms=0, idle_ms=60_000)
PROPERTIES = """process.roles=controller
node.id=1
listeners=CONTROLLER://127.0.0.1:9093
controller.listener.names=CONTROLLER
controller.quorum.voters=1@127.0.0.1:9093
log.dirs=data
listener.security.protocol.map=CONTROLLER:{protocol}
sasl.mechanism.controller.protocol=PLAIN
sasl.enabled.mechanisms=PLAIN
listener.name.controller.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.\\
PlainLoginModule required username="c" password="x" user_c="x";
ssl.keystore.type=PEM
ssl.keystore.location={folder}/node.pem
ssl.truststore.type=PEM
ssl.truststore.location={folder}/ca.pem
{more}
"""
NOBODY, OURS, FOREIGN = "no certificate", "of the trust store", "of another authority"
CLIENTS: dict[str, Identity | None] = {
    NOBODY: None,
    OURS: identity("client"),
    FOREIGN: identity("client", of="Another CA"),
}
OWN, COMMON = "listener.name.controller.ssl.client.auth", "ssl.client.auth"
SERVED = [
    ("SSL", "", {NOBODY, OURS, FOREIGN}),
    ("SSL", f"{COMMON}=none", {NOBODY, OURS, FOREIGN}),
    ("SSL", f"{COMMON}=requested", {NOBODY, OURS}),
    ("SSL", f"{COMMON}=required", {OURS}),
    ("SSL", f"{COMMON}=none\n{OWN}=required", {OURS}),
    ("SSL", f"{COMMON}=required\n{OWN}=requested", {NOBODY, OURS}),
    # Where clients log in, a certificate is asked for by the listener's own key alone.
    ("SASL_SSL", f"{COMMON}=required", {NOBODY, OURS, FOREIGN}),
    ("SASL_SSL", f"{OWN}=requested", {NOBODY, OURS}),
    ("SASL_SSL", f"{OWN}=required", {OURS}),
]


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize(("protocol", "more", "served"), SERVED)
def test_clients_are_served_as_the_listener_says(
    tmp_path: Path, protocol: str, more: str, served: set[str], version: ssl.TLSVersion
) -> None:
    """An answer counts, and not the end of the handshake: TLS 1.3 refuses only after it."""
    (tmp_path / "ca.pem").write_text(pem(authority().certificate))
    (tmp_path / "node.pem").write_text(identity().key_pem() + identity().chain_pem)
    (tmp_path / "node.pem").chmod(0o600)
    path = tmp_path / "node.properties"
    path.write_text(PROPERTIES.format(protocol=protocol, folder=tmp_path, more=more))
    found = {
        name
        for name, holder in CLIENTS.items()
        if trio.run(_is_served, path, _client(holder, tmp_path, version))
    }
    assert found == served


def _client(holder: Identity | None, folder: Path, version: ssl.TLSVersion) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=pem(authority().certificate))
    context.minimum_version = context.maximum_version = version
    if holder is not None:
        path = folder / "client.pem"
        path.write_text(holder.key_pem() + holder.chain_pem)
        context.load_cert_chain(path)
    return context


async def _is_served(path: Path, context: ssl.SSLContext) -> bool:
    config = load(str(path))
    (listener,) = config.listeners
    guard = guards_of(config, StubNode(), stores_of(config), None)[listener.name]
    listening = (await trio.open_tcp_listeners(0, host="127.0.0.1"))[0]

    async def serve() -> None:
        stream = await listening.accept()
        connection = accepted(
            stream, {18: (0, 4)}, _versions, listener=listener, guard=guard, limits=LIMITS
        )
        await connection.serve()

    async with listening, trio.open_nursery() as nursery:
        nursery.start_soon(serve)
        plain = await trio.open_tcp_stream(*listening.socket.getsockname()[:2])
        client = trio.SSLStream(plain, context, server_hostname="127.0.0.1")
        try:
            header = RequestHeader(request_api_key=18, request_api_version=0)
            await client.send_all(frame(encode_request(header, ApiVersionsRequest())))
            return bool(await client.receive_some())
        except trio.BrokenResourceError:
            return False
        finally:
            await trio.aclose_forcefully(client)


async def _versions(_: Request) -> Message | None:
    return ApiVersionsResponse()
