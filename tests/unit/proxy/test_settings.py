"""How both sides are secured: TLS of either side, and what is refused with its reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kraftwire.errors import UsageError
from kraftwire.messages.list_groups_request import ListGroupsRequest
from kraftwire.messages.list_groups_response import ListGroupsResponse
from kraftwire.properties import Properties
from kraftwire.proxy.server import Proxy
from kraftwire.proxy.settings import ProxySettings, listener_tls, upstream_security
from kraftwire.transport.client_connection import ClientConnection
from kraftwire.transport.client_security import ClientSecurity
from tests.support.nodes.fake_node import METADATA, FakeNode, metadata
from tests.support.security.certificates import identity, node_context
from tests.support.security.kafka import client_properties, write_properties, write_stores
from tests.unit.proxy.test_server import LIST_GROUPS, Run, proxied


def _own_tls(stores: Path) -> dict[str, str]:
    return {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(stores / "node.pem")}


def _read(path: Path, values: dict[str, str]) -> Properties:
    """Properties that a file has, for the places in messages."""
    return Properties.given(write_properties(path, values), "")


@pytest.fixture
def stores(tmp_path: Path) -> Path:
    """A folder with keys and certificates."""
    write_stores(tmp_path)
    return tmp_path


def _security(stores: Path, **more: str) -> ClientSecurity:
    values = client_properties("SSL", stores) | more
    found = upstream_security(_read(stores / "client.properties", values))
    assert found is not None
    return found


def test_both_sides_may_have_tls(stores: Path) -> None:
    """Each with its own certificate; clients verify that of the proxy."""
    tls = listener_tls(_read(stores / "own.properties", _own_tls(stores)))
    security = _security(stores)
    with FakeNode(tls=node_context(identity(), stores)) as node:
        node.answers[METADATA] = lambda _: metadata({1: node})
        node.answers[LIST_GROUPS] = lambda _: ListGroupsResponse(throttle_time_ms=7)

        async def use(run: Run) -> None:
            connection = await ClientConnection.connect(
                run.address("broker 1"), client_id="c", timeout_s=10, security=security
            )
            answer: Any = await connection.request(ListGroupsRequest(), timeout_s=10)
            assert answer.throttle_time_ms == 7
            connection.close()

        settings = ProxySettings(
            upstream=(("127.0.0.1", node.port),), upstream_security=security, listener_tls=tls
        )
        assert proxied(settings, use).said == []


def test_files_of_connections_in_clear_need_nothing(tmp_path: Path) -> None:
    """As PLAINTEXT says."""
    clear = _read(tmp_path / "a.properties", {"security.protocol": "PLAINTEXT"})
    assert upstream_security(clear) is None
    assert listener_tls(clear) is None


def test_what_cannot_pass_upstream_is_refused(stores: Path) -> None:
    """Kerberos and mutual TLS, with file, line and the reason."""
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "GSSAPI"}
    kerberos = _read(stores / "kerberos.properties", login)
    with pytest.raises(UsageError, match=r"kerberos.properties:2.*a ticket is for one host"):
        upstream_security(kerberos)
    with pytest.raises(UsageError, match=r"client.properties:\d.*mutual TLS is not for a proxy"):
        _security(stores, **_own_tls(stores))


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"ssl.client.auth": "required"}, "cannot show a client's certificate"),
        ({"security.protocol": "SASL_SSL"}, "it has no users"),
        ({"security.protocol": "TLS"}, "expected SSL or PLAINTEXT, found 'TLS'"),
    ],
)
def test_what_the_proxy_cannot_serve_is_refused(
    stores: Path, values: dict[str, str], reason: str
) -> None:
    """A listener is never less than its properties say."""
    own = _read(stores / "own.properties", _own_tls(stores) | values)
    with pytest.raises(UsageError, match=reason):
        listener_tls(own)


def test_a_capture_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    """Before anything listens."""
    upstream = (("127.0.0.1", 1),)
    settings = ProxySettings(upstream=upstream, capture=str(tmp_path / "no" / "out.pcapng"))
    with pytest.raises(UsageError, match="--capture"):
        Proxy(settings, announce=print, say=print)
