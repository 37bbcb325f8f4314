"""Logins by GSSAPI between Kafka and nodes of ours, with tickets of a real KDC.

A quorum of both kinds over SASL_SSL, with a Java broker; all of them are kafka/localhost.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.support.kafka.java import JavaTools
from tests.support.kafka.mixed_quorum import JAVA, OURS, MixedQuorum, wait_until
from tests.support.kafka.mixed_quorum.stores import MemberStores
from tests.support.kafka.quorum_tools import check_same_status, ours
from tests.support.security.kafka import write_properties
from tests.support.security.kdc import Kdc, jaas, running_kdc

NODE, BROKER = 3, 11
NODES = (1, 2, NODE)
# Java asks for a ticket of this name at a loopback address, too.
HOST = "localhost"
_SERVICE = {"sasl.kerberos.service.name": "kafka"}


@dataclass(frozen=True)
class Realm:
    """Two Java controllers, one of ours, a Java broker, and who gives tickets to all and to Kafka's
    tools."""

    kdc: Kdc
    quorum: MixedQuorum
    stores: MemberStores
    tools: JavaTools

    def client(self, user: str) -> str:
        """A client's file for a user."""
        found = _client(self.kdc, self.stores, user)
        return write_properties(self.kdc.folder / f"{user}.properties", found)


def _client(kdc: Kdc, stores: MemberStores, user: str) -> dict[str, str]:
    return {
        "security.protocol": "SASL_SSL",
        "sasl.jaas.config": jaas(kdc.folder / f"{user}.keytab", user),
        **_SERVICE,
        **stores.trust,
    }


def _properties(kdc: Kdc, stores: MemberStores) -> dict[str, object]:
    return {
        "listener.security.protocol.map": "CONTROLLER:SASL_SSL,PLAINTEXT:PLAINTEXT",
        "sasl.mechanism.controller.protocol": "GSSAPI",
        "listener.name.controller.sasl.enabled.mechanisms": "GSSAPI",
        "listener.name.controller.gssapi.sasl.jaas.config": jaas(
            kdc.folder / "node.keytab", f"kafka/{HOST}"
        ),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:kafka;User:alice;User:ANONYMOUS",
        "metadata.max.idle.interval.ms": 200,
        **_SERVICE,
        **stores.trust,
    }


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    """One quorum for all tests: each leaves all members running."""
    folder = tmp_path_factory.mktemp("kerberos")
    with running_kdc(folder) as kdc:
        for name, principal in (("node", f"kafka/{HOST}"), ("alice", "alice"), ("bob", "bob")):
            kdc.keys(name, principal)
        stores = MemberStores(folder, (*NODES, BROKER))
        with MixedQuorum(
            folder,
            {1: JAVA, 2: JAVA, NODE: OURS},
            _properties(kdc, stores),
            {number: {**stores.key(number)} for number in (*NODES, BROKER)},
            brokers={BROKER: JAVA},
            client=_client(kdc, stores, "alice"),
            host=HOST,
        ) as quorum:
            quorum.start()
            quorum.wait_commit(0, *NODES)
            with JavaTools() as tools:
                yield Realm(kdc, quorum, stores, tools)


def test_both_tools_log_in_at_both_kinds(realm: Realm) -> None:
    """With one file, and with the same output."""
    for number in (1, NODE):
        check_same_status(realm.tools, realm.quorum.address(number), realm.client("alice"))


def test_who_may_not_is_refused_by_both_kinds(realm: Realm) -> None:
    """Bob proves who he is, and may do nothing."""
    words = ("--command-config", realm.client("bob"), "describe", "--status")
    for number in (1, NODE):
        where = ("--bootstrap-controller", realm.quorum.address(number))
        refused = ours(*where, *words)
        assert refused.returncode == 1
        assert "CLUSTER_AUTHORIZATION_FAILED" in refused.stderr
        refused = realm.tools.run("quorum", *where, *words)
        assert refused.returncode == 1
        assert "ClusterAuthorizationException" in refused.stderr


def test_a_node_by_a_name_that_the_kdc_does_not_know_is_final(realm: Realm) -> None:
    """Unlike Java, we do not look up the name of an IP address."""
    path = realm.client("alice")
    for number in (1, NODE):
        address = realm.quorum.address(number).replace(HOST, "127.0.0.1")
        words = ("--bootstrap-controller", address, "--command-config", path)
        refused = ours(*words, "describe", "--status")
        assert (refused.returncode, refused.stdout) == (2, ""), refused.stderr
        assert f"{address}: Kerberos refuses the login: " in refused.stderr
        assert "kafka/127.0.0.1@KAFKA.TEST not found in Kerberos" in refused.stderr
        assert len(refused.stderr.splitlines()) == 1


def test_both_tools_log_in_without_tls(realm: Realm) -> None:
    """At a node of ours whose listener is SASL_PLAINTEXT."""
    folder = realm.kdc.folder / "bare"
    folder.mkdir()
    keys = jaas(realm.kdc.folder / "node.keytab", f"kafka/{HOST}")
    nodes = {
        "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT",
        "listener.name.controller.gssapi.sasl.jaas.config": keys,
        **_SERVICE,
    }
    alice = jaas(realm.kdc.folder / "alice.keytab", "alice")
    client = {"security.protocol": "SASL_PLAINTEXT", "sasl.jaas.config": alice, **_SERVICE}
    path = write_properties(folder / "client.properties", client)
    with MixedQuorum(folder, {NODE: OURS}, nodes, client=client, host=HOST) as quorum:
        quorum.start()
        quorum.leader()
        check_same_status(realm.tools, quorum.address(NODE), path)


def test_either_kind_leads_when_the_other_is_killed(realm: Realm) -> None:
    """Ours over Java's, then Java's over ours; the broker follows, and the logs are equal."""
    quorum = realm.quorum
    former = quorum.depose(NODE)
    mark = quorum.wait_commit(0)
    quorum.start(former)
    quorum.wait_commit(mark, *NODES)

    def is_fetching() -> bool:
        found = quorum.replica(BROKER)
        return found is not None and found.log_end_offset >= mark

    wait_until(is_fetching, "the broker beyond the change", quorum.last_lines)
    quorum.members[NODE].kill()
    quorum.leader(among=(1, 2))
    mark = quorum.wait_commit(mark, 1, 2)
    quorum.start(NODE)
    quorum.wait_commit(mark, *NODES)
    assert quorum.check_logs_agree() > 0
    for member in quorum.members.values():
        assert not member.ended(), f"node {member.node_id} has ended"
    assert "Traceback" not in "\n".join(quorum.members[NODE].lines)
