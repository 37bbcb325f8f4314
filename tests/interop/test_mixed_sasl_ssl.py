"""Quorums of both kinds over SASL_SSL: logins between controllers, certificates of each member.

A broker of Kafka's is attached, and clients produce while members are killed and certificates
replaced. Each test leaves all members running.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.kafka.mixed_quorum import JAVA, OURS, MixedQuorum, wait_until
from tests.support.kafka.mixed_quorum.stores import MemberStores
from tests.support.kafka.mixed_quorum.tools import Tools
from tests.support.kafka.mixed_quorum.traffic import Traffic
from tests.support.kafka.quorum_tools import ours, theirs
from tests.support.security.certificates import der
from tests.support.security.kafka import MODULES, write_properties

NODE, BROKER = 3, 11
NODES = (1, 2, NODE)
PLAIN, SCRAM = "PLAIN", "SCRAM-SHA-512"
_USER = 'username="node" password="node-secret"'
_JAAS = {mechanism: f"{MODULES[mechanism]} required {_USER}" for mechanism in (PLAIN, SCRAM)}
_LISTENER = "listener.name.controller"
_BETWEEN = "sasl.mechanism.controller.protocol"


@dataclass(frozen=True)
class Secured:
    """Two Java controllers, one of ours and a Java broker, and the stores of all."""

    quorum: MixedQuorum
    stores: MemberStores

    def shown(self, node_id: int) -> bytes | None:
        """The certificate that a member's listener shows."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(self.stores.trust["ssl.truststore.location"])
        address = ("127.0.0.1", self.quorum.members[node_id].port)
        with (
            socket.create_connection(address, 30) as plain,
            context.wrap_socket(plain, server_hostname=address[0]) as stream,
        ):
            return stream.getpeercert(binary_form=True)

    def set_mechanism(self, node_id: int, mechanism: str) -> None:
        """Log in at controllers by a mechanism from the next start on."""
        member = self.quorum.members[node_id]
        member.java.properties[_BETWEEN] = mechanism
        member.java.write_config()


def _client(stores: MemberStores, mechanism: str) -> dict[str, str]:
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f"{_JAAS[mechanism]};",
        **stores.trust,
    }


def _properties(stores: MemberStores) -> dict[str, object]:
    return {
        "listener.security.protocol.map": "CONTROLLER:SASL_SSL,PLAINTEXT:PLAINTEXT",
        _BETWEEN: PLAIN,
        f"{_LISTENER}.sasl.enabled.mechanisms": f"{PLAIN},{SCRAM}",
        f"{_LISTENER}.plain.sasl.jaas.config": f'{_JAAS[PLAIN]} user_node="node-secret";',
        f"{_LISTENER}.scram-sha-512.sasl.jaas.config": f"{_JAAS[SCRAM]};",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:node;User:ANONYMOUS",
        "metadata.max.idle.interval.ms": 200,
        **stores.trust,
    }


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """The user of the nodes is in the log, too: the broker logs in by it from the start."""
    folder = tmp_path_factory.mktemp("sasl-ssl")
    stores = MemberStores(folder, (*NODES, BROKER))
    special: dict[int, dict[str, object]] = {
        number: {**stores.key(number)} for number in (*NODES, BROKER)
    }
    special[BROKER][_BETWEEN] = SCRAM
    with MixedQuorum(
        folder,
        {1: JAVA, 2: JAVA, NODE: OURS},
        _properties(stores),
        special,
        brokers={BROKER: JAVA},
        format_options=("--add-scram", f"{SCRAM}=[name=node,password=node-secret]"),
        client=_client(stores, PLAIN),
    ) as quorum:
        quorum.start()
        quorum.wait_commit(0, *NODES)
        yield Secured(quorum, stores)


def test_tools_log_in_by_each_mechanism(secured: Secured, tmp_path: Path) -> None:
    """At either kind of node; a wrong password is refused by both, with one text."""
    for mechanism in (PLAIN, SCRAM):
        values = _client(secured.stores, mechanism)
        right = write_properties(tmp_path / f"{mechanism}.properties", values)
        jaas = values["sasl.jaas.config"].replace("node-secret", "wrong")
        values = {**values, "sasl.jaas.config": jaas}
        wrong = write_properties(tmp_path / f"{mechanism}-wrong.properties", values)
        for tool, node_id in ((ours, 1), (ours, NODE), (theirs, NODE)):
            where = ("--bootstrap-controller", secured.quorum.address(node_id))
            described = tool(*where, "--command-config", right, "describe", "--status")
            assert described.returncode == 0, described.stderr
            refused = tool(*where, "--command-config", wrong, "describe", "--status")
            assert refused.returncode == 1
            assert "Authentication failed" in refused.stdout + refused.stderr


def test_members_are_killed_and_certificates_replaced_under_load(secured: Secured) -> None:
    """Whoever is hit, what was acknowledged is consumed, and the logs are equal."""
    quorum = secured.quorum
    Tools(quorum).create_topic("letters", 2)
    with Traffic(quorum.bootstrap_servers, "letters") as traffic:
        traffic.wait_flow()
        renewed = der(secured.stores.renew(NODE).certificate)
        wait_until(lambda: secured.shown(NODE) == renewed, "the new certificate of ours")
        for number in NODES:
            mark = quorum.wait_commit(0)
            # Kafka's nodes read theirs again when they start.
            renewed = der(secured.stores.renew(number).certificate)
            quorum.members[number].kill()
            rest = [one for one in NODES if one != number]
            quorum.leader(among=rest)
            quorum.wait_commit(mark, *rest)
            quorum.start(number)
            assert secured.shown(number) == renewed
            quorum.wait_commit(mark, *NODES)
            traffic.wait_flow(20)
        former = quorum.depose(NODE)
        traffic.wait_flow(20)
        quorum.start(former)
        report = traffic.finish()
    assert (report.lost, report.failures) == ([], [])
    assert report.acknowledged > 100
    _check_health(quorum)


def test_controllers_change_to_scram_once_the_log_has_users(secured: Secured) -> None:
    """One after the other: each finds the user of the others in its own log."""
    quorum = secured.quorum
    for number in NODES:
        secured.set_mechanism(number, SCRAM)
        mark = quorum.wait_commit(0, *NODES)
        quorum.members[number].kill()
        quorum.start(number)
        quorum.wait_commit(mark, *NODES)
    former = quorum.depose(NODE)
    quorum.start(former)
    quorum.wait_commit(quorum.status().high_watermark, *NODES)
    _check_health(quorum)


def _check_health(quorum: MixedQuorum) -> None:
    assert quorum.check_logs_agree() > 0
    for member in quorum.members.values():
        assert not member.ended(), f"node {member.node_id} has ended"
    text = "\n".join(quorum.members[NODE].lines)
    assert "Traceback" not in text
    assert "node-secret" not in text
