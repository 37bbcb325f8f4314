"""`kraftwire quorum` on secured ports: exit codes and the one line, for each command."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from kraftwire.cli.main import main
from kraftwire.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kraftwire.messages.sasl_handshake_response import SaslHandshakeResponse
from kraftwire.protocol.error_codes import ErrorCode
from tests.support.nodes.fake_node import DESCRIBE_CLUSTER, DESCRIBE_QUORUM, FakeNode, controllers
from tests.support.nodes.fake_node import quorum_state as state
from tests.support.security.certificates import authority, identity, pem

_HANDSHAKE, _AUTHENTICATE = 17, 36
_JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required username=a "
    'password="not-to-be-shown";'
)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[FakeNode]:
    """A controller behind TLS, which leads, and has no login."""
    (tmp_path / "node.pem").write_text(identity().key_pem() + identity().chain_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "node.pem")
    no_login = SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    with FakeNode({_HANDSHAKE: lambda _: no_login}, tls=context) as made:
        made.answers[DESCRIBE_CLUSTER] = lambda _: controllers({1: made}, active=1)
        made.answers[DESCRIBE_QUORUM] = lambda _: state(1)
        yield made


def _config(folder: Path, *lines: str) -> str:
    (folder / "ca.pem").write_text(pem(authority().certificate))
    path = folder / "client.properties"
    trust = ("ssl.truststore.type=PEM", f"ssl.truststore.location={folder / 'ca.pem'}")
    path.write_text("\n".join((*lines, *trust)) + "\n")
    return str(path)


def _run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, list[str]]:
    code = main(["quorum", *words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err.splitlines()


def test_a_quorum_behind_tls_is_described(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, node: FakeNode
) -> None:
    """With the same output as in clear, and nothing on standard error."""
    config = _config(tmp_path, "security.protocol=SSL")
    through = ["--bootstrap-controller", node.address, "--command-config", config]
    code, out, err = _run(capsys, "describe", "--status", *through)
    assert (code, err) == (0, [])
    assert "LeaderId:               1" in out


@pytest.mark.parametrize("command", [["describe", "--status"], ["watch"]])
def test_the_wrong_protocol_ends_every_command_with_2(
    capsys: pytest.CaptureFixture[str], node: FakeNode, command: list[str]
) -> None:
    """`watch` too, which would otherwise say it again for ever."""
    code, out, err = _run(capsys, *command, "--bootstrap-controller", node.address)
    assert (code, out) == (2, "")
    assert err == [
        f"kraftwire: {node.address}: this port speaks SSL, and this client PLAINTEXT: set "
        "security.protocol=SSL in the client's properties (--command-config)"
    ]


def test_what_the_node_refuses_ends_with_1(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, node: FakeNode
) -> None:
    """The password is not shown, the place where it stands is."""
    refusal = SaslAuthenticateResponse(
        error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message="no"
    )
    node.answers[_HANDSHAKE] = lambda _: SaslHandshakeResponse(mechanisms=["PLAIN"])
    node.answers[_AUTHENTICATE] = lambda _: refusal
    config = _config(
        tmp_path, "security.protocol=SASL_SSL", "sasl.mechanism=PLAIN", f"sasl.jaas.config={_JAAS}"
    )
    through = ["--bootstrap-controller", node.address, "--command-config", config]
    code, _, err = _run(capsys, "describe", "--status", *through)
    assert code == 1
    assert err == [
        f"kraftwire: {node.address}: the login of user 'a' by PLAIN was refused: no "
        f"(SASL_AUTHENTICATION_FAILED); check {config}:3: sasl.jaas.config"
    ]


def test_warnings_are_printed_once(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, node: FakeNode
) -> None:
    """Also by a command that connects several times."""
    config = _config(tmp_path, "security.protocol=SSL", "ssl.ca.location=x")
    through = ["--bootstrap-controller", node.address, "--command-config", config]
    code, _, err = _run(capsys, "describe", "--status", *through)
    assert code == 0
    assert len(err) == 1
    assert err[0].startswith(f"kraftwire quorum: {config}:2: ssl.ca.location: this key is of")


def test_a_nodes_own_file_is_enough(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, node: FakeNode
) -> None:
    """As for adding a controller; where its protocol comes from is said."""
    config = _config(
        tmp_path,
        "process.roles=controller",
        "controller.listener.names=CTL",
        "listener.security.protocol.map=CTL:SSL",
    )
    through = ["--bootstrap-controller", node.address, "--command-config", config]
    code, _, err = _run(capsys, "describe", "--status", *through)
    assert code == 0
    assert err == [
        f"kraftwire quorum: {config}: security.protocol is not set: using SSL of the listener CTL"
    ]
