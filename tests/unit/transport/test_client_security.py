"""Secured connections of a client to nodes that are right, wrong, or something else."""

from __future__ import annotations

import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from kraftwire.client import Admin
from kraftwire.client.security import client_security
from kraftwire.client.sync import BlockingConnection
from kraftwire.errors import ApiError, KraftwireError, SecurityError, UsageError
from kraftwire.messages.metadata_request import MetadataRequest
from kraftwire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kraftwire.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kraftwire.messages.sasl_handshake_request import SaslHandshakeRequest
from kraftwire.messages.sasl_handshake_response import SaslHandshakeResponse
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.transport.client_connection import ClientConnection
from kraftwire.wire.message import Message
from tests.support.nodes.fake_node import (
    DESCRIBE_QUORUM,
    METADATA,
    Answer,
    FakeNode,
    HangUpError,
    metadata,
    quorum_state,
)
from tests.support.security.certificates import (
    Identity,
    authority,
    identity,
    node_context,
    of_namesake,
    pem,
)

SASL_HANDSHAKE, SASL_AUTHENTICATE = 17, 36
USER, PASSWORD = "alice", "not-to-be-shown"
# A port is probed without TLS and with it.
PROBES_MAX = 2
JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required"


class Login:
    """A node's side of PLAIN, as Kafka answers it; `lifetime_ms` is that of a session."""

    def __init__(self, lifetime_ms: int = 0) -> None:
        self.count = 0
        self.is_required = True
        self._lifetime_ms = lifetime_ms

    def answers(self) -> dict[int, Answer]:
        """Answers for a FakeNode."""
        return {SASL_HANDSHAKE: self._handshake, SASL_AUTHENTICATE: self._authenticate}

    def _handshake(self, request: Message) -> Message:
        assert isinstance(request, SaslHandshakeRequest)
        if request.mechanism != "PLAIN":
            code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
            return SaslHandshakeResponse(error_code=code, mechanisms=["PLAIN"])
        return SaslHandshakeResponse(mechanisms=["PLAIN"])

    def _authenticate(self, request: Message) -> Message:
        assert isinstance(request, SaslAuthenticateRequest)
        if bytes(request.auth_bytes) != f"\0{USER}\0{PASSWORD}".encode():
            text = "Authentication failed: Invalid username or password"
            code = ErrorCode.SASL_AUTHENTICATION_FAILED
            return SaslAuthenticateResponse(error_code=code, error_message=text)
        self.count += 1
        return SaslAuthenticateResponse(
            session_lifetime_ms=self._lifetime_ms, error_message=""
        )


def _endless(_: Message) -> Message:
    """A token that is longer than any that Kafka's servers send."""
    return SaslAuthenticateResponse(auth_bytes=bytes(512 * 1024), error_message="")


def _no_login(_: Message) -> Message:
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)


@contextmanager
def _node(
    answers: Mapping[int, Answer] | None = None, tls: ssl.SSLContext | None = None
) -> Iterator[FakeNode]:
    """A broker that knows itself."""
    with FakeNode({SASL_HANDSHAKE: _no_login, **(answers or {})}, tls=tls) as node:
        node.answers.setdefault(METADATA, lambda _: metadata({1: node}))
        yield node


def _trusting(**more: str) -> dict[str, str]:
    """Properties of a client that trusts the authority."""
    named = {key.replace("_", "."): value for key, value in more.items()}
    return {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": pem(authority().certificate),
    } | named


def _with_key(holder: Identity) -> dict[str, str]:
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": holder.key_pem(),
        "ssl.keystore.certificate.chain": holder.chain_pem,
    }


def _plain(protocol: str = "SASL_SSL", password: str = PASSWORD) -> dict[str, str]:
    entry = f'{JAAS} username="{USER}" password="{password}";'
    return {
        **_trusting(),
        "security.protocol": protocol,
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": entry,
    }


def _connection(node: FakeNode) -> BlockingConnection:
    address = ("127.0.0.1", node.port)
    return BlockingConnection(address, client_id="me", timeout_s=30, security=_plain())


def _ask(node: FakeNode, security: dict[str, str] | None, host: str = "127.0.0.1") -> int:
    """Discover a cluster; returns how many nodes it has."""
    admin = Admin(bootstrap_servers=f"{host}:{node.port}", timeout_s=30, security=security)
    return len(admin.describe_cluster().nodes)


def _refused(node: FakeNode, security: dict[str, str] | None, host: str = "127.0.0.1") -> str:
    """Fail to connect, and return the one line that explains it with whether it is cured here."""
    before = node.connection_count
    with pytest.raises(SecurityError) as caught:
        _ask(node, security, host)
    # That of the request, and those that find out what the port speaks: nothing was tried again.
    assert node.connection_count - before <= 1 + PROBES_MAX
    text = str(caught.value)
    assert text.startswith(f"{host}:{node.port}: ")
    assert "\n" not in text
    assert PASSWORD not in repr(caught.value) + text
    return f"{'cured here' if caught.value.is_usage else 'refused'}: {text}"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "localhost."])
def test_a_node_is_reached_over_tls(
    tmp_path: Path, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its name, also with a dot at its end, and by its address, both in the certificate."""
    # Not every system's files know a name with the dot.
    monkeypatch.setattr(socket, "getaddrinfo", _without_dot(socket.getaddrinfo))
    with _node(tls=node_context(identity(), tmp_path)) as node:
        assert _ask(node, _trusting(), host) == 1


def _without_dot(resolve: Callable[..., Any]) -> Callable[..., Any]:
    """A resolver that passes over a dot at the end of a name."""

    def resolved(host: Any, *more: Any) -> Any:
        return resolve(host.rstrip(b".") if isinstance(host, bytes) else host, *more)

    return resolved


def test_a_node_sees_the_clients_certificate(tmp_path: Path) -> None:
    """Mutual TLS."""
    with _node(tls=node_context(identity(), tmp_path, needs_certificate=True)) as node:
        assert _ask(node, _trusting() | _with_key(identity("client"))) == 1


@pytest.mark.parametrize("protocol", ["SASL_SSL", "SASL_PLAINTEXT"])
@pytest.mark.filterwarnings("ignore:.*in clear")
def test_a_client_logs_in(tmp_path: Path, protocol: str) -> None:
    """Before any other request, and after TLS."""
    login = Login()
    tls = node_context(identity(), tmp_path) if protocol == "SASL_SSL" else None
    with _node(login.answers(), tls) as node:
        assert _ask(node, _plain(protocol)) == 1
        assert login.count == 1


def test_a_session_is_renewed_on_its_connection(tmp_path: Path) -> None:
    """In time, without another connection; a lifetime of 1 ms is over at the next request."""
    login = Login(lifetime_ms=1)
    with _node(login.answers(), node_context(identity(), tmp_path)) as node:
        with _connection(node) as connection:
            for _ in range(3):
                time.sleep(0.002)
                connection.request(MetadataRequest(topics=[]))
        assert login.count == 4
        assert node.connection_count == 1


def test_a_session_that_is_not_renewed_ends_its_connection_alone(tmp_path: Path) -> None:
    """As one of less than a second: another connection may be tried."""
    login = Login(lifetime_ms=1)
    with _node(login.answers(), node_context(identity(), tmp_path)) as node:
        with _connection(node) as connection:
            node.answers[SASL_HANDSHAKE] = _no_login
            time.sleep(0.002)
            with pytest.raises(ApiError, match="does not renew the session") as caught:
                connection.request(MetadataRequest(topics=[]))
        assert caught.value.code == ErrorCode.NETWORK_EXCEPTION


def test_a_session_is_renewed_once_nothing_is_in_flight(tmp_path: Path) -> None:
    """A login reads its answers itself: it would take one to an earlier request for its own."""
    login, begun, may_end = Login(lifetime_ms=1), threading.Event(), threading.Event()

    def slowly(_: Message) -> Message:
        begun.set()
        may_end.wait(30)
        return metadata({})

    async def run(port: int) -> list[Message]:
        security = client_security(_plain())
        connection = await ClientConnection.connect(
            ("127.0.0.1", port), client_id="me", security=security
        )
        found = []

        async def request() -> None:
            found.append(await connection.request(MetadataRequest(topics=[]), timeout_s=30))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(request)
            await trio.to_thread.run_sync(begun.wait)
            time.sleep(0.002)
            logins = login.count
            nursery.start_soon(request)
            await trio.testing.wait_all_tasks_blocked()
            assert login.count == logins
            may_end.set()
        connection.close()
        assert login.count == logins + 1
        return found

    with _node(login.answers(), node_context(identity(), tmp_path)) as node:
        node.answers[METADATA] = slowly
        found = trio.run(run, node.port)
        assert [each.NAME for each in found] == ["MetadataResponse"] * 2


@pytest.mark.parametrize("protocol", ["SASL_SSL", "SASL_PLAINTEXT"])
@pytest.mark.filterwarnings("ignore:.*in clear")
def test_a_connection_that_is_closed_during_a_renewal_is_an_error_of_the_network(
    tmp_path: Path, protocol: str
) -> None:
    """As one that is closed at any other time; callers of connections know no others."""
    login, begun, may_end = Login(lifetime_ms=1), threading.Event(), threading.Event()

    def slowly(_: Message) -> Message:
        begun.set()
        may_end.wait(30)
        return _no_login(_)

    async def run(port: int) -> None:
        connection = await ClientConnection.connect(
            ("127.0.0.1", port), client_id="me", security=client_security(_plain(protocol))
        )
        node.answers[SASL_HANDSHAKE] = slowly
        time.sleep(0.002)

        async def request() -> None:
            with pytest.raises(ApiError, match="the connection is closed") as caught:
                await connection.request(MetadataRequest(topics=[]), timeout_s=30)
            assert caught.value.code == ErrorCode.NETWORK_EXCEPTION

        async with trio.open_nursery() as nursery:
            nursery.start_soon(request)
            await trio.to_thread.run_sync(begun.wait)
            connection.close()
        may_end.set()

    tls = node_context(identity(), tmp_path) if protocol == "SASL_SSL" else None
    with _node(login.answers(), tls) as node:
        trio.run(run, node.port)


def test_a_session_without_end_is_not_renewed(tmp_path: Path) -> None:
    """A node without session lifetime refuses to renew."""
    login = Login()
    with _node(login.answers(), node_context(identity(), tmp_path)) as node:
        with _connection(node) as connection:
            for _ in range(3):
                connection.request(MetadataRequest(topics=[]))
        assert login.count == 1


def test_a_wrong_password_is_refused_by_the_node(tmp_path: Path) -> None:
    """With its own words, and where the password stands."""
    with _node(Login().answers(), node_context(identity(), tmp_path)) as node:
        assert _refused(node, _plain(password="x")) == (
            f"refused: {node.address}: the login of user 'alice' by PLAIN was refused: "
            "Authentication failed: Invalid username or password (SASL_AUTHENTICATION_FAILED); "
            "check security: sasl.jaas.config"
        )


@pytest.mark.filterwarnings("ignore:.*in clear")
def test_an_answer_that_cannot_be_read_is_not_asked_for_again() -> None:
    """It would come again; the command tried for as long as it might."""
    with _node({**Login().answers(), SASL_AUTHENTICATE: _endless}) as node:
        assert _refused(node, _plain("SASL_PLAINTEXT")).startswith(
            f"refused: {node.address}: the login by PLAIN failed: an answer cannot be read: "
        )
        assert node.connection_count == 1


def test_a_path_and_a_number_are_values(tmp_path: Path) -> None:
    """As programs have them."""
    store = tmp_path / "ca.pem"
    store.write_text(pem(authority().certificate))
    security: dict[str, object] = {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": store,
        "request.timeout.ms": 5000,
    }
    with _node(tls=node_context(identity(), tmp_path)) as node:
        admin = Admin(bootstrap_servers=node.address, timeout_s=30, security=security)
        assert len(admin.describe_cluster().nodes) == 1


def test_another_mechanism_names_those_enabled(tmp_path: Path) -> None:
    """So that the next try succeeds."""
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    jaas = f'{module} required username="{USER}" password="{PASSWORD}";'
    security = _plain() | {"sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": jaas}
    with _node(Login().answers(), node_context(identity(), tmp_path)) as node:
        text = _refused(node, security)
    assert text.startswith("cured here: ")
    assert "enabled mechanisms are [PLAIN]" in text
    assert text.endswith("set security: sasl.mechanism")


CERTIFICATES: dict[str, tuple[Identity, dict[str, str], str]] = {
    "another authority": (
        identity(of="Another CA"), {},
        "cured here: {}: the trust check failed: the certificate of CN=node, issued by "
        "CN=Another CA, is not signed by any authority of the trust store; set security: "
        "ssl.truststore.certificates",
    ),
    "another authority of the same name": (
        of_namesake(), {},
        "cured here: {}: the trust check failed: the certificate of CN=node, issued by "
        "CN=Test CA, is not signed by any authority of the trust store; set security: "
        "ssl.truststore.certificates",
    ),
    "expired": (
        identity(days=(-9, -2)), {},
        "refused: {}: the time check failed: the certificate of CN=node, or one above it, has "
        "expired (it ended ",
    ),
    "not yet valid": (
        identity(days=(9, 20)), {},
        "refused: {}: the time check failed: the certificate of CN=node, or one above it, is not "
        "valid yet (from ",
    ),
    "another host": (
        identity(hosts=("kafka.example",)), {},
        "cured here: {}: the host check failed: the certificate of CN=node is not for this host, "
        "only for kafka.example; use a name of the certificate, or give the "
        "node one for this host",
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("holder", "more", "problem"), CERTIFICATES.values(), ids=CERTIFICATES.keys()
)
def test_a_certificate_that_does_not_pass_is_explained(
    tmp_path: Path, holder: Identity, more: dict[str, str], problem: str
) -> None:
    """Which check, whose certificate, which key."""
    with _node(tls=node_context(holder, tmp_path)) as node:
        assert _refused(node, _trusting() | more).startswith(problem.format(node.address))


def test_no_password_is_sent_to_a_node_that_does_not_pass(tmp_path: Path) -> None:
    """Whoever answers at the address must not learn it."""
    login = Login()
    with _node(login.answers(), node_context(identity(of="Another CA"), tmp_path)) as node:
        _refused(node, _plain())
        sent = [r for r in node.requests if r.API_KEY == SASL_AUTHENTICATE]
        assert (sent, login.count) == ([], 0)


def test_the_host_check_can_be_turned_off(tmp_path: Path) -> None:
    """As in Kafka, by an empty algorithm."""
    with _node(tls=node_context(identity(hosts=("kafka.example",)), tmp_path)) as node:
        security = _trusting(ssl_endpoint_identification_algorithm="")
        assert _ask(node, security) == 1


@pytest.mark.parametrize("newest", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_missing_certificate_is_noticed(tmp_path: Path, newest: ssl.TLSVersion) -> None:
    """With TLS 1.3 only when the first answer should come."""
    tls = node_context(identity(), tmp_path, needs_certificate=True, maximum_version=newest)
    with _node(tls=tls) as node:
        text = _refused(node, _trusting())
    assert text.startswith(f"cured here: {node.address}: the node refused a client without a cert")
    assert text.endswith("; set security: ssl.keystore.location")


def test_a_refused_certificate_is_the_nodes_decision(tmp_path: Path) -> None:
    """Here it is one of another authority."""
    with _node(tls=node_context(identity(), tmp_path, needs_certificate=True)) as node:
        text = _refused(node, _trusting() | _with_key(identity("client", of="Another CA")))
    assert text.startswith(f"refused: {node.address}: the node refused this client's certificate")


def test_no_version_in_common_names_the_key(tmp_path: Path) -> None:
    """The node takes TLS 1.2 alone."""
    tls = node_context(identity(), tmp_path, maximum_version=ssl.TLSVersion.TLSv1_2)
    with _node(tls=tls) as node:
        text = _refused(node, _trusting(ssl_enabled_protocols="TLSv1.3"))
    assert "no version of TLS in common" in text
    assert text.endswith("; set security: ssl.enabled.protocols")


def test_a_suite_that_is_not_allowed_is_refused(tmp_path: Path) -> None:
    """Python offers all suites of TLS 1.3, and the node has chosen another one."""
    with _node(tls=node_context(identity(), tmp_path)) as node:
        text = _refused(node, _trusting(ssl_cipher_suites="TLS_CHACHA20_POLY1305_SHA256"))
    assert "which security: ssl.cipher.suites does not allow" in text


def _hang_up(_: Message) -> Message:
    raise HangUpError


PORTS: dict[str, tuple[bool, bool, str]] = {
    "PLAINTEXT": (False, False, "PLAINTEXT"),
    "SSL": (True, False, "SSL"),
    "SASL_PLAINTEXT": (False, True, "SASL_PLAINTEXT (PLAIN)"),
    "SASL_SSL": (True, True, "SASL_SSL (PLAIN)"),
}


@pytest.mark.parametrize("own", PORTS)
@pytest.mark.parametrize("port", PORTS)
@pytest.mark.filterwarnings("ignore:.*in clear")
def test_every_wrong_protocol_is_recognized(tmp_path: Path, own: str, port: str) -> None:
    """What the port speaks, and what to set; the client's own protocol passes."""
    is_tls, has_login, shown = PORTS[port]
    tls = node_context(identity(), tmp_path) if is_tls else None
    security = None if own == "PLAINTEXT" else _plain(own)
    with _node(Login().answers() if has_login else None, tls) as node:
        if has_login and not own.startswith("SASL"):
            node.answers[METADATA] = _hang_up
        if own == port:
            assert _ask(node, security) == 1
            return
        text = _refused(node, security)
    with_login = " with sasl.mechanism and sasl.jaas.config" if has_login else ""
    assert text == (
        f"cured here: {node.address}: this port speaks {shown}, and this client {own}: set "
        f"security.protocol={port}{with_login} in the client's properties (--command-config)"
    ) or (
        # A login that meets a port without one has not asked what else it could be.
        f"this port speaks {port}, and this client {own}: set security.protocol={port}" in text
    )


def test_other_addresses_are_tried_first(tmp_path: Path) -> None:
    """One wrong address among right ones must not end the command."""
    right = node_context(identity(), tmp_path)
    with _node() as wrong, _node(tls=right) as node:
        both = f"127.0.0.1:{wrong.port},127.0.0.1:{node.port}"
        admin = Admin(bootstrap_servers=both, timeout_s=30, security=_trusting())
        assert len(admin.describe_cluster().nodes) == 1


def test_another_broker_takes_a_request_for_the_leader(tmp_path: Path) -> None:
    """Any broker passes it on, so one with a certificate of nobody does not end the call."""
    good = node_context(identity(), tmp_path)
    bad = node_context(identity(of="Another CA"), tmp_path)
    with _node(tls=good) as right, _node(tls=bad) as wrong:
        brokers = {1: wrong, 2: right}
        right.answers[METADATA] = lambda _: metadata(brokers)
        right.answers[DESCRIBE_QUORUM] = lambda _: quorum_state(2)
        admin = Admin(bootstrap_servers=right.address, timeout_s=30, security=_trusting())
        assert admin.describe_quorum().leader_id == 2


def test_a_silent_address_does_not_delay_the_end_for_long() -> None:
    """Once one address has shown that the settings are wrong, the others get a moment."""
    with socket.create_server(("127.0.0.1", 0)) as silent, _node() as wrong:
        both = f"127.0.0.1:{wrong.port},127.0.0.1:{silent.getsockname()[1]}"
        admin = Admin(
            bootstrap_servers=both, timeout_s=600, connect_timeout_s=300, security=_trusting()
        )
        with pytest.raises(SecurityError, match="this port speaks PLAINTEXT"):
            admin.describe_cluster()


def _server(answer: Callable[[socket.socket], None], count: int) -> tuple[int, threading.Thread]:
    """Something that is no Kafka, for some connections."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with listener:
            for _ in range(count):
                connection, _ = listener.accept()
                with connection:
                    connection.recv(65536)
                    answer(connection)

    thread = threading.Thread(target=serve)
    thread.start()
    return int(listener.getsockname()[1]), thread


def test_another_kind_of_server_is_recognized() -> None:
    """An HTTP server answers a hello with a page."""
    port, thread = _server(lambda each: each.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n"), 2)
    with pytest.raises(SecurityError, match="this port speaks neither TLS nor Kafka"):
        Admin(bootstrap_servers=f"127.0.0.1:{port}", security=_trusting()).describe_cluster()
    thread.join()


def test_a_node_that_closes_may_come_back() -> None:
    """During a handshake that says nothing: it may be ending, so the call is repeated."""
    port, thread = _server(lambda _: None, 2)
    admin = Admin(bootstrap_servers=f"127.0.0.1:{port}", timeout_s=0.2, security=_trusting())
    with pytest.raises(ApiError, match="took more than"):
        admin.describe_cluster()
    thread.join()


WRONG: dict[str, tuple[dict[str, str], str]] = {
    "no login": ({"sasl.mechanism": "PLAIN"}, "sasl.jaas.config: missing, and PLAIN needs it"),
    "no mechanism": (
        {},
        "sasl.jaas.config: missing, and GSSAPI, the default of sasl.mechanism, needs it",
    ),
    "an unknown mechanism": ({"sasl.mechanism": "X"}, "sasl.mechanism: X is not supported"),
    "an unknown class": (
        {"sasl.mechanism": "PLAIN", "sasl.jaas.config": f'com.x.Y required p="{PASSWORD}";'},
        "sasl.jaas.config: login module com.x.Y: expected ",
    ),
    "no password": (
        {"sasl.mechanism": "PLAIN", "sasl.jaas.config": f'{JAAS} username="{PASSWORD}";'},
        "sasl.jaas.config: PlainLoginModule: option password is missing",
    ),
    "no semicolon": (
        {"sasl.mechanism": "PLAIN", "sasl.jaas.config": f'{JAAS} username="{PASSWORD}"'},
        "sasl.jaas.config: ",
    ),
    "a token of no endpoint": (
        {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.login.callback.handler.class": (
                "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
            ),
            "sasl.jaas.config": (
                "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"
            ),
        },
        "sasl.login.callback.handler.class: sasl.oauthbearer.token.endpoint.url is missing",
    ),
    "a token of nowhere": (
        {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.token.endpoint.url": "file:///nowhere/token",
            "sasl.jaas.config": (
                "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"
            ),
        },
        "sasl.oauthbearer.token.endpoint.url: /nowhere/token: No such file",
    ),
}


@pytest.mark.parametrize(("values", "problem"), WRONG.values(), ids=WRONG.keys())
def test_a_login_that_cannot_be_made_is_refused_before_any_connection(
    values: dict[str, str], problem: str
) -> None:
    """With the key, and without what stands in it."""
    with pytest.raises(UsageError) as caught:
        Admin(
            bootstrap_servers="127.0.0.1:1",
            security={**_trusting(), "security.protocol": "SASL_SSL"} | values,
        )
    error: BaseException | None = caught.value
    assert str(error).startswith(f"security: {problem}")
    while error is not None:
        assert PASSWORD not in repr(error)
        error = error.__cause__


def test_no_object_shows_a_secret() -> None:
    """They end in logs and tracebacks."""
    from kraftwire.client.security import read_security

    found = read_security(_plain())
    assert found is not None
    shown = " ".join(map(repr, (found, found.login, found.tls, found.settings)))
    assert PASSWORD not in shown
    assert "SASL_SSL" in shown


def test_a_file_of_properties_serves_as_well(tmp_path: Path) -> None:
    """Its path, as for the commands."""
    path = tmp_path / "client.properties"
    path.write_text("security.protocol=SSL\nssl.truststore.location=/nowhere\n")
    with pytest.raises(UsageError, match=r"client\.properties:2: ssl\.truststore\.location: /now"):
        Admin(bootstrap_servers="127.0.0.1:1", security=path)


def test_a_connection_in_clear_loads_nothing_of_this() -> None:
    """Start-up counts in milliseconds, and TLS costs fifty."""
    code = (
        "import sys\n"
        "from kraftwire.client import Admin\n"
        "from kraftwire.errors import KraftwireError\n"
        "admin = Admin(bootstrap_servers='127.0.0.1:1', timeout_s=0.2)\n"
        "try:\n    admin.describe_cluster()\n"
        "except KraftwireError as error:\n    print(type(error).__name__)\n"
        "print(*[m for m in sys.modules if m.startswith(('kraftwire.security', "
        "'cryptography', 'joserfc'))])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == ["ApiError"], done.stderr
    assert issubclass(ApiError, KraftwireError)
