"""Controllers that log in at each other by SCRAM: without users there is no leader (SEC-S37)."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kraftwire.cli import main as cli
from kraftwire.controller.image import DECOY_SECRET_CONFIG
from kraftwire.controller.step import config_record
from kraftwire.errors import UsageError
from kraftwire.log.files import LocalFiles
from kraftwire.messages.remove_user_scram_credential_record import RemoveUserScramCredentialRecord
from kraftwire.messages.request_header import RequestHeader
from kraftwire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kraftwire.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kraftwire.messages.sasl_handshake_request import SaslHandshakeRequest
from kraftwire.messages.user_scram_credential_record import UserScramCredentialRecord
from kraftwire.node.config import NodeConfig, load
from kraftwire.node.directories import directories_of
from kraftwire.node.scram_quorum import users_before_leader
from kraftwire.protocol.config_resources import BROKER_RESOURCE
from kraftwire.protocol.payloads import decode_response, encode_request
from kraftwire.replica.storage import Storage
from kraftwire.security.decoys import credential_of
from kraftwire.wire.frame import frame
from kraftwire.wire.message import Message
from tests.support.kafka.mixed_quorum import OURS, Member, MixedQuorum, wait_until
from tests.support.nodes.stub import batch_of

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
USER = UserScramCredentialRecord(name="node", mechanism=1)

# Controllers that know each other by PLAIN and take SCRAM as well, and one user.
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_WHO = 'username="node" password="node-secret"'
_LISTENER = "listener.name.controller"
PLAIN_AND_SCRAM = {
    "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "sasl.mechanism.controller.protocol": "PLAIN",
    f"{_LISTENER}.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    f"{_LISTENER}.plain.sasl.jaas.config": f'{_PLAIN} {_WHO} user_node="node-secret";',
    f"{_LISTENER}.scram-sha-256.sasl.jaas.config": f"{SCRAM} {_WHO};",
}
PLAIN_CLIENT = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": f"{_PLAIN} {_WHO};",
}
USERS = ("--add-scram", "SCRAM-SHA-256=[name=node,password=node-secret]")


def config(folder: Path) -> NodeConfig:
    """A formatted controller of a quorum of three."""
    path = folder / "node.properties"
    path.write_text(
        "process.roles=controller\nnode.id=1\nlisteners=CONTROLLER://127.0.0.1:9093\n"
        "controller.listener.names=CONTROLLER\n"
        "controller.quorum.voters=1@127.0.0.1:9093,2@127.0.0.1:9094,3@127.0.0.1:9095\n"
        "listener.security.protocol.map=CONTROLLER:SASL_PLAINTEXT\n"
        "sasl.mechanism.controller.protocol=SCRAM-SHA-256\n"
        "sasl.enabled.mechanisms=SCRAM-SHA-256\n"
        f"log.dirs={folder / 'data'}\nlistener.name.controller.scram-sha-256.sasl.jaas.config="
        f'{SCRAM} username="node" password="hunter2";\n'
    )
    assert cli.main(["storage", "format", "-t", "9CIbsF9FQuGtwD837BRpPA", "-c", str(path)]) == 0
    return load(str(path))


@contextmanager
def storage(node: NodeConfig, *records: Message) -> Iterator[Storage]:
    """Its directory, with a log of these records."""
    opened = Storage.open(directories_of(node), LocalFiles())
    try:
        for offset, record in enumerate(records):
            data = bytes(batch_of([(record, 0)], offset).raw)
            opened.log.append(data, offset, offset + 1)
        yield opened
    finally:
        opened.close()


def test_a_quorum_without_users(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It says why, where Kafka tries for ever; a single voter has nobody to log in at it."""
    node = config(tmp_path)
    with storage(node) as found:
        assert users_before_leader(node, found, 1) is None
        assert users_before_leader(node, found, 0) is None
        with pytest.raises(UsageError, match=r":7: .*there would never be a leader") as caught:
            users_before_leader(node, found, 3)
        assert "hunter2" not in str(caught.value) + capsys.readouterr().out


def test_a_quorum_with_users(tmp_path: Path) -> None:
    """Those that the log leaves, and the secret for all other names."""
    node = config(tmp_path)
    secret, _ = config_record(BROKER_RESOURCE, "", DECOY_SECRET_CONFIG, "shared")
    gone = RemoveUserScramCredentialRecord(name="node", mechanism=1)
    with storage(node, USER, secret) as found:
        users = users_before_leader(node, found, 3)
        assert users is not None
        assert (len(users.scram), users.decoy_secret) == (1, "shared")
        assert users.scram.find("node", 1) == credential_of(USER)
        found.log.append(bytes(batch_of([(gone, 0)], 2).raw), 2, 3)
        with pytest.raises(UsageError):
            users_before_leader(node, found, 3)


def _shown(port: int, name: str) -> bytes | None:
    """What a node's first answer shows of a name, without the nonce; None if it ends the login."""
    first = f"n,,n={name},r=client".encode()
    handshake = SaslHandshakeRequest(mechanism="SCRAM-SHA-256")
    requests = (handshake, 1), (SaslAuthenticateRequest(auth_bytes=first), 2)
    with socket.create_connection(("localhost", port), timeout=30) as connection:
        for message, version in requests:
            header = RequestHeader(
                request_api_key=message.API_KEY, request_api_version=version, client_id=""
            )
            connection.sendall(frame(encode_request(header, message)))
            answer = _received(connection)
            if answer is None:
                return None
    _, found, _ = decode_response(answer, SaslAuthenticateRequest.API_KEY, 2)
    assert isinstance(found, SaslAuthenticateResponse)
    return bytes(found.auth_bytes).partition(b",")[2]


def _received(connection: socket.socket) -> bytes | None:
    with connection.makefile("rb") as stream:
        size = stream.read(4)
        return stream.read(int.from_bytes(size)) if size else None


def all_shown(quorum: MixedQuorum, name: str, members: Iterable[int]) -> set[bytes | None]:
    """What members show of a name, once they know the users."""
    ports = [quorum.members[number].port for number in members]

    def found() -> set[bytes | None]:
        return {_shown(port, name) for port in ports}

    wait_until(lambda: None not in found(), "members that know the users")
    return found()


def _has_user(member: Member) -> bool:
    return member.image().scram.find("node", 1) is not None


@pytest.mark.slow
def test_a_quorum_that_lost_power(tmp_path: Path) -> None:
    """Nobody knows what is committed then: the users of each log are those of the first logins."""
    kinds = dict.fromkeys((1, 2, 3), OURS)
    options = {"format_options": USERS, "client": PLAIN_CLIENT}
    with MixedQuorum(tmp_path, kinds, PLAIN_AND_SCRAM, **options) as quorum:
        quorum.start()
        wait_until(lambda: all(map(_has_user, quorum.members.values())), "users in all logs")
        mark = quorum.wait_commit(0)
        shown = {name: all_shown(quorum, name, kinds) for name in ("node", "nobody")}
        for member in quorum.members.values():
            member.kill()
        overrides = ("sasl.mechanism.controller.protocol=SCRAM-SHA-256",)
        for member in quorum.members.values():
            member.start(None, *overrides)
        quorum.wait_commit(mark)
        # A voter that has not followed yet still has what was not committed before.
        wait_until(
            lambda: all(one.log_end_offset >= mark for one in quorum.status().current_voters),
            "voters that have followed",
        )
        assert quorum.check_logs_agree() > 0
        # Nor does anybody learn from three nodes and a restart who exists (SEC-S33).
        assert {name: all_shown(quorum, name, kinds) for name in shown} == shown
        assert {len(found) for found in shown.values()} == {1}
