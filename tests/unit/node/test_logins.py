"""Where the logins of a node's listeners get their users from."""

from __future__ import annotations

import base64
import subprocess
import sys
from copy import copy
from pathlib import Path

from kraftwire.messages.delegation_token_record import DelegationTokenRecord
from kraftwire.messages.remove_delegation_token_record import RemoveDelegationTokenRecord
from kraftwire.messages.request_header import RequestHeader
from kraftwire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kraftwire.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kraftwire.messages.sasl_handshake_request import SaslHandshakeRequest
from kraftwire.messages.user_scram_credential_record import UserScramCredentialRecord
from kraftwire.node.config import load
from kraftwire.node.logins import guards_of
from kraftwire.protocol.payloads import decode_response, encode_request
from kraftwire.security.credentials import SCRAM_SHA_256, PasswordCredentials
from kraftwire.security.principal import Principal
from kraftwire.security.sasl_server import LoginEnd, LoginStep, SaslServer
from kraftwire.security.scram import ScramClient
from kraftwire.security.tokens import DelegationTokens
from kraftwire.testing.ports import free_ports
from kraftwire.wire.message import Message
from tests.support.nodes.stub import StubNode

PROPERTIES = """process.roles=controller
node.id=1
listeners=CONTROLLER://127.0.0.1:9093
controller.listener.names=CONTROLLER
controller.quorum.voters=1@127.0.0.1:9093
log.dirs=data
listener.security.protocol.map=CONTROLLER:SASL_PLAINTEXT
sasl.mechanism.controller.protocol=PLAIN
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256
listener.name.controller.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.\\
PlainLoginModule required username="c" password="x" user_c="x";
listener.name.controller.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.\\
ScramLoginModule required;
"""
TOKEN = DelegationTokenRecord(
    owner="User:alice",
    requester="User:bob",
    issue_timestamp=0,
    max_timestamp=2**62,
    expiration_timestamp=2**62,
    token_id="an-id",
)
USER = UserScramCredentialRecord(
    name="alice", mechanism=1, salt=b"salt", stored_key=b"s", server_key=b"k", iterations=4096
)


def test_nobody_is_refused_before_the_users_are_known(tmp_path: Path) -> None:
    """SEC-S35: a node that has just started may lack the user; a refusal would be final. What it
    shows of a name does not say so."""
    path = tmp_path / "node.properties"
    path.write_text(PROPERTIES)
    config, node = load(str(path)), StubNode()
    guard = guards_of(config, node, {}, None)["CONTROLLER"]

    def answers(user: str) -> tuple[bytes, LoginStep]:
        server = guard.login()
        assert server is not None
        client = ScramClient(SCRAM_SHA_256, PasswordCredentials(user, "wrong"), "c")
        _ask(server, SaslHandshakeRequest(mechanism=SCRAM_SHA_256), 1)
        first = _ask(server, SaslAuthenticateRequest(auth_bytes=client.first()), 2)
        proof = client.answer(_auth_bytes(first)) or b""
        return _auth_bytes(first), _ask(server, SaslAuthenticateRequest(auth_bytes=proof), 2)

    first, last = answers("alice")
    assert b",i=4096" in first
    assert "has not read the users" in last.problem
    assert (last.reply, last.end) == (None, LoginEnd.DELAYED)
    node.commit_records((USER, 0))
    first, last = answers("alice")
    assert b"s=c2FsdA==" in first
    assert last.reply is not None
    # From now on refusals are final, also while a record is on its way.
    node.raft.high_watermark += 1
    assert answers("nobody")[1].reply is not None


def test_a_token_logs_its_owner_in(tmp_path: Path) -> None:
    """SEC-S38: by SCRAM, with its HMAC as the password, until its life is over."""
    path = tmp_path / "node.properties"
    path.write_text(PROPERTIES + "delegation.token.secret.key=secret\n")
    config = load(str(path))
    node = StubNode(security=config.security)
    guard = guards_of(config, node, {}, None)["CONTROLLER"]
    assert config.security.tokens is not None
    assert "secret'" not in repr(config)
    hmac = DelegationTokens(config.security.tokens).hmac("an-id")

    def login(password: bytes = hmac) -> SaslServer:
        server = guard.login()
        assert server is not None
        secret = base64.b64encode(password).decode()
        client = ScramClient(SCRAM_SHA_256, PasswordCredentials("an-id", secret, True), "c")
        _ask(server, SaslHandshakeRequest(mechanism=SCRAM_SHA_256), 1)
        first = _ask(server, SaslAuthenticateRequest(auth_bytes=client.first()), 2)
        proof = client.answer(_auth_bytes(first)) or b""
        step = _ask(server, SaslAuthenticateRequest(auth_bytes=proof), 2)
        if step.has_logged_in:
            client.answer(_auth_bytes(step))
            assert client.is_complete
        return server

    node.commit_records((TOKEN, 0))
    principal = login().principal
    assert principal == Principal("User", "alice")
    assert principal.is_token
    assert login().is_expired(2**62)
    assert login(b"another").principal is None
    over = copy(TOKEN)
    over.expiration_timestamp = 1
    node.commit_records((over, 0))
    assert login().principal is None
    node.commit_records((RemoveDelegationTokenRecord(token_id="an-id"), 0))
    assert login().principal is None


def _ask(server: SaslServer, message: Message, version: int) -> LoginStep:
    header = RequestHeader(request_api_key=message.API_KEY, request_api_version=version)
    return server.receive(encode_request(header, message), now_ms=0, epoch_ms=0)


def _auth_bytes(step: LoginStep) -> bytes:
    assert step.reply is not None
    _, answer, _ = decode_response(step.reply, SaslAuthenticateRequest.API_KEY, 2)
    assert isinstance(answer, SaslAuthenticateResponse)
    return answer.auth_bytes


# Runs one node until it accepts connections, and prints what was loaded.
_PROGRAM = """
import sys
from kraftwire.cli import main
from kraftwire.node.config import load
from kraftwire.testing.fault_injector import FaultInjector
from kraftwire.testing.threaded_nodes import ThreadedNodes
path = sys.argv[1]
assert main.main(["storage", "format", "-t", "9CIbsF9FQuGtwD837BRpPA", "-c", path]) == 0
nodes = ThreadedNodes({1: load(path)}, FaultInjector())
nodes.start()
nodes.close()
print(*sys.modules)
"""
_OF_SECURED_NODES = {
    "cryptography",
    "gssapi",
    "joserfc",
    "kraftwire.node.key_set_url",
    "kraftwire.security.reloading",
    "kraftwire.security.stores",
    "kraftwire.security.tls",
    "kraftwire.transport.client_security",
    "kraftwire.transport.handshakes",
    "kraftwire.transport.secured_stream",
    "urllib.request",
}


def _loaded(folder: Path, text: str) -> set[str]:
    """What a node with these properties loads of that."""
    path = folder / "node.properties"
    (port,) = free_ports(1)
    path.write_text(text.replace("9093", str(port)).replace("=data", f"={folder / 'data'}"))
    command = [sys.executable, "-c", _PROGRAM, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return _OF_SECURED_NODES & set(done.stdout.split())


def test_a_node_in_clear_loads_nothing_of_this(tmp_path: Path) -> None:
    """Each of these takes time and memory; only a listener that needs it loads it."""
    in_clear = "".join(PROPERTIES.partition("listener.security")[:1])
    assert _loaded(tmp_path, in_clear) == set()
    # The search finds what is there.
    logins = tmp_path / "logins"
    logins.mkdir()
    assert "kraftwire.transport.client_security" in _loaded(logins, PROPERTIES)
