"""Tokens from an identity provider: asked for once, kept, refused, unreachable."""

from __future__ import annotations

import base64
import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Self

import pytest

from kraftwire.client import Admin
from kraftwire.errors import ApiError, SecurityError, UsageError
from kraftwire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kraftwire.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kraftwire.messages.sasl_handshake_response import SaslHandshakeResponse
from kraftwire.properties import Properties
from kraftwire.security.settings import client_settings
from kraftwire.transport import token_endpoint
from kraftwire.transport.login import Login, login_of
from kraftwire.transport.token_endpoint import TokenEndpoint
from kraftwire.wire.message import Message
from tests.support.nodes.fake_node import METADATA, FakeNode, metadata
from tests.support.security.certificates import authority, identity, node_context, pem

SECRET = "not-to-be-shown"
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


class Provider:
    """An identity provider on loopback, which answers as told and keeps what it was asked."""

    def __init__(self) -> None:
        self.status = 200
        self.answer: object = {"access_token": "header.claims.", "expires_in": 3600}
        self.location = ""
        self.asked: list[tuple[str, str]] = []
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                provider.asked.append((self.headers["Authorization"], body))
                content = json.dumps(provider.answer).encode()
                self.send_response(provider.status)
                if provider.location:
                    self.send_header("Location", provider.location)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/token"

    def endpoint(self, scope: str | None = None) -> TokenEndpoint:
        """A client of it."""
        return TokenEndpoint(self.url, "me", SECRET, scope, "c.properties:3: url")


@pytest.fixture
def provider() -> Iterator[Provider]:
    """It serves until the end of the test."""
    made = Provider()
    thread = threading.Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()


def test_a_token_is_asked_for_by_id_and_secret_and_kept(provider: Provider) -> None:
    """As RFC 6749 has it; a second login does not ask again."""
    endpoint = provider.endpoint("kafka read")
    assert [endpoint.token(), endpoint.token()] == ["header.claims."] * 2
    basic = base64.b64encode(f"me:{SECRET}".encode()).decode()
    assert provider.asked == [
        (f"Basic {basic}", "grant_type=client_credentials&scope=kafka+read")
    ]
    assert SECRET not in repr(endpoint)
    assert "claims" not in repr(endpoint)


@pytest.mark.parametrize("life", [{}, *({"expires_in": n} for n in (0, -1, 10**400, 1e999, "1"))])
def test_a_token_at_its_end_is_asked_for_again(
    provider: Provider, life: dict[str, object]
) -> None:
    """Here it has no life at all, or one that cannot be."""
    provider.answer = {"access_token": "short", **life}
    endpoint = provider.endpoint()
    assert [endpoint.token(), endpoint.token()] == ["short"] * 2
    assert len(provider.asked) == 2


@pytest.mark.parametrize(
    ("status", "answer", "problem"),
    [
        (401, {"error": "invalid_client"}, "got no token: HTTP 401"),
        (200, {"token": "x"}, "the answer has no access_token"),
        (200, {"access_token": "\ud800"}, "the answer has no access_token"),
        (200, {"access_token": "a\x01auth=Bearer b"}, "the answer has no access_token"),
        (200, ["x"], "the answer is no JSON object"),
    ],
)
def test_a_refusal_is_final(
    provider: Provider, status: int, answer: object, problem: str
) -> None:
    """With the endpoint, the client and the place in the file; without the secret."""
    provider.status, provider.answer = status, answer
    with pytest.raises(SecurityError) as caught:
        provider.endpoint().token()
    text = str(caught.value)
    assert text.startswith(f"token endpoint {provider.url.removesuffix('/token')}: client 'me'")
    assert problem in text
    assert text.endswith("; check c.properties:3: url")
    assert SECRET not in text


def test_a_redirect_does_not_get_the_secret(provider: Provider) -> None:
    """Wherever it leads."""
    provider.status, provider.location = 302, provider.url
    with pytest.raises(SecurityError, match="HTTP 302"):
        provider.endpoint().token()
    assert len(provider.asked) == 1


def test_an_answer_that_is_no_http_is_a_failure() -> None:
    """It ended in a traceback."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            peer, _ = server.accept()
            with peer:
                peer.recv(4096)
                peer.sendall(b"SSH-2.0-OpenSSH\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}/token"
        with pytest.raises(ApiError, match="the answer is no HTTP; check here"):
            TokenEndpoint(url, "me", SECRET, None, "here").token()
        thread.join()


def test_a_failure_may_pass(provider: Provider) -> None:
    """An error of the server, and a server that is not there."""
    provider.status = 503
    with pytest.raises(ApiError, match="HTTP 503"):
        provider.endpoint().token()
    with pytest.raises(ApiError, match="Connection refused; check here"):
        TokenEndpoint("http://127.0.0.1:1/x", "me", SECRET, None, "here").token()


def test_an_endpoint_that_never_gave_a_token_is_given_up(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After ten seconds, as Kafka's login; one that has given a token may come back."""
    now = 1000.0
    monkeypatch.setattr(token_endpoint, "time", SimpleNamespace(monotonic=lambda: now))
    away = TokenEndpoint("http://127.0.0.1:1/x", "me", SECRET, None, "here")
    with pytest.raises(ApiError):
        away.token()
    now += 9.9
    with pytest.raises(ApiError):
        away.token()
    now += 0.1
    with pytest.raises(SecurityError, match=r"no token: Connection refused, for 10 s; check here"):
        away.token()
    known = provider.endpoint()
    known.token()
    provider.status = 429
    for _ in range(2):
        now += 3600
        with pytest.raises(ApiError, match="HTTP 429"):
            known.token()


def _over_tls(provider: Provider, folder: Path) -> dict[str, str]:
    """Let a provider speak TLS; returns the properties of a client that asks it."""
    context = node_context(identity(), folder)
    provider.server.socket = context.wrap_socket(provider.server.socket, server_side=True)
    (folder / "ca.pem").write_text(pem(authority().certificate))
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": provider.url.replace("http:", "https:"),
    }


def _login(properties: dict[str, str], options: str) -> Login:
    entry = f'{MODULE} required clientId="me" clientSecret="{SECRET}" {options};'
    found = Properties.of({**properties, "sasl.jaas.config": entry}, "client")
    login = login_of(client_settings(found))
    assert login is not None
    return login


def test_an_authority_of_an_endpoint_is_an_option_of_the_jaas_entry(
    provider: Provider, tmp_path: Path
) -> None:
    """As in Kafka; without it that of no system passes, and the secret is not sent."""
    properties = _over_tls(provider, tmp_path)
    with pytest.raises(SecurityError, match="no token: the certificate of the endpoint: "):
        _login(properties, "").begin("localhost", "me", None)
    assert provider.asked == []
    trust = f'ssl.truststore.type=PEM ssl.truststore.location="{tmp_path}/ca.pem"'
    _login(properties, trust).begin("localhost", "me", None)
    assert len(provider.asked) == 1
    place = "client: sasl.jaas.config: ssl.truststore.location: "
    with pytest.raises(UsageError, match=f"^{place}.*/none"):
        _login(properties, trust.replace("ca.pem", "none"))


@pytest.mark.parametrize(
    "url",
    [
        "http://[",
        "http://localhost:port/token",
        "http://localhost:99999/token",
        "http://localhost:0/token",
        "https://a b/token",
        "https://idp..example/token",
        f"https://{'a' * 64}.example/token",
    ],
)
def test_what_is_no_url_is_refused(url: str) -> None:
    """With its place, and before anything is asked; some ended in a traceback."""
    key = "sasl.oauthbearer.token.endpoint.url"
    properties = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER", key: url}
    with pytest.raises(UsageError, match=f"^client: {key}: no URL: "):
        _login(properties, "")


def test_an_endpoint_in_clear_is_no_https(provider: Provider) -> None:
    """However often it is asked."""
    url = provider.url.replace("http:", "https:")
    with pytest.raises(SecurityError, match="the endpoint speaks no TLS"):
        TokenEndpoint(url, "me", SECRET, None, "here").token()


def test_a_client_logs_in_with_a_token_of_its_provider(provider: Provider, tmp_path: Path) -> None:
    """Through TLS, one token for all connections."""
    seen: list[bytes] = []

    def authenticate(request: Message) -> Message:
        assert isinstance(request, SaslAuthenticateRequest)
        seen.append(bytes(request.auth_bytes))
        return SaslAuthenticateResponse(error_message="")

    answers = {
        17: lambda _: SaslHandshakeResponse(mechanisms=["OAUTHBEARER"]),
        36: authenticate,
    }
    security = {
        "security.protocol": "SASL_SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": pem(authority().certificate),
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": f'{MODULE} required clientId="me" clientSecret="{SECRET}";',
        "sasl.oauthbearer.token.endpoint.url": provider.url,
    }
    with FakeNode(answers, tls=node_context(identity(), tmp_path)) as node:
        node.answers[METADATA] = lambda _: metadata({1: node})
        admin = Admin(bootstrap_servers=node.address, timeout_s=30, security=security)
        assert len(admin.describe_cluster().nodes) == 1
        assert len(admin.describe_cluster().nodes) == 1
    assert seen == [b"n,,\x01auth=Bearer header.claims.\x01\x01"] * 2
    assert len(provider.asked) == 1
    del security["sasl.jaas.config"]
    security["sasl.jaas.config"] = f"{MODULE} required;"
    with pytest.raises(UsageError, match=r"client\.credentials\.client\.id: missing"):
        Admin(bootstrap_servers="127.0.0.1:1", security=security)


class Dripping:
    """A provider that sends an answer so slowly that no wait for a byte takes long; `is_cut` after
    the client has gone."""

    def __init__(self, answer: bytes) -> None:
        self.is_cut = False
        self.address = ""
        self._answer = answer

    def __enter__(self) -> Self:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._server.getsockname()[1]}"
        self._thread = threading.Thread(target=self._drip)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join()
        self._server.close()

    def _drip(self) -> None:
        peer, _ = self._server.accept()
        with peer:
            peer.settimeout(0.02)
            for byte in self._answer:
                try:
                    peer.sendall(bytes([byte]))
                    while peer.recv(4096):
                        pass
                    self.is_cut = True
                except TimeoutError:
                    continue
                except OSError:
                    self.is_cut = True
                if self.is_cut:
                    return


_ANSWER = b'HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\n{"access_token": "x"}'.ljust(440)


@pytest.mark.parametrize(
    ("scheme", "answer"),
    [
        pytest.param("http", _ANSWER[:40] + _ANSWER, id="headers"),
        pytest.param("http", _ANSWER, id="body"),
        # A handshake of TLS: a record of 16 KiB that never ends.
        pytest.param("https", b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc" + bytes(500), id="handshake"),
    ],
)
def test_a_provider_that_drips_is_cut_off(
    scheme: str, answer: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time is that of the whole exchange; nothing of it is left behind."""
    monkeypatch.setattr(token_endpoint, "_SECONDS", 0.5)
    with Dripping(answer) as dripping:
        endpoint = TokenEndpoint(f"{scheme}://{dripping.address}/x", "me", SECRET, None, "here")
        with pytest.raises(ApiError, match=": timed out; check here"):
            endpoint.token()
    assert dripping.is_cut
