"""Logins by GSSAPI with tickets of a real KDC (SEC-S50 to SEC-S52)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from kraftwire.errors import ApiError, UsageError
from kraftwire.properties import Properties
from kraftwire.properties_file import parse_properties
from kraftwire.security.errors import TICKET, Refused, SaslError
from kraftwire.security.jaas import parse_entry
from kraftwire.security.kerberos import (
    KerberosAccount,
    KerberosClient,
    KerberosCredentials,
    KerberosServer,
)
from kraftwire.security.local_names import LocalNames
from kraftwire.security.settings import client_settings
from kraftwire.testing import quorum
from kraftwire.transport.kerberos import Acceptors, Initiators, default_realm
from kraftwire.transport.login import login_of
from tests.support.kafka.quorum_tools import ours
from tests.support.security.kafka import write_properties
from tests.support.security.kdc import MODULE, REALM, Kdc, jaas, running_kdc

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    """A realm with a service and a user."""
    folder = tmp_path_factory.mktemp("kdc")
    with running_kdc(folder) as found:
        found.keys("node", "kafka/localhost")
        found.keys("alice", "alice/admin")
        yield found


def account(text: str) -> KerberosAccount:
    """What a JAAS entry says."""
    return KerberosAccount.of(parse_entry(text))


def initiators(kdc: Kdc, *, service: str = "kafka") -> Initiators:
    """The user's ends."""
    return Initiators(account(jaas(kdc.folder / "alice.keytab", "alice/admin")), service)


def server(kdc: Kdc, *rules: str) -> KerberosServer:
    """The service's side of one login."""
    acceptors = Acceptors(account(jaas(kdc.folder / "node.keytab", "kafka/localhost")))
    return KerberosServer(acceptors.next(), LocalNames(rules, default_realm).name)


def log_in(client: KerberosClient, server: KerberosServer) -> None:
    """Carry tokens until the server knows who it is."""
    token: bytes | None = client.first()
    while server.name is None:
        assert token is not None
        token = client.answer(server.answer(token))
    assert client.is_complete
    assert client.answer(b"") is None


def test_a_login_with_keys(kdc: Kdc) -> None:
    """Each end proves who it is; rules make the name of a user."""
    made = initiators(kdc)
    joined = "RULE:[2:$1-$2@$0](.*)s/@.*//"
    for rules, name in (((), "alice"), ((joined, "DEFAULT"), "alice-admin")):
        one = server(kdc, *rules)
        log_in(KerberosClient(KerberosCredentials(made.towards("localhost"))), one)
        assert one.name == name
    assert default_realm() == REALM


def test_a_login_with_a_ticket(kdc: Kdc) -> None:
    """From a cache that kinit filled; one that is not there is an error, or the keys help."""
    cache = kdc.login(kdc.folder / "alice.keytab", "alice/admin")
    entry = f'{MODULE} useTicketCache=true ticketCache="{cache}";'
    one = server(kdc)
    credentials = KerberosCredentials(Initiators(account(entry), "kafka").towards("localhost"))
    log_in(KerberosClient(credentials), one)
    assert one.name == "alice"
    none = f'useTicketCache=true ticketCache="{kdc.folder}/none"'
    client = Initiators(account(f"{MODULE} {none};"), "kafka").towards("localhost")
    with pytest.raises(SaslError, match="No credentials cache found") as failed:
        KerberosClient(KerberosCredentials(client)).first()
    assert failed.value.check == TICKET
    both = jaas(kdc.folder / "alice.keytab", "alice/admin").replace("required", f"required {none}")
    one = server(kdc)
    credentials = KerberosCredentials(Initiators(account(both), "kafka").towards("localhost"))
    log_in(KerberosClient(credentials), one)


def test_what_the_kdc_does_not_know(kdc: Kdc, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another service is an error of the settings; a KDC that is away may come back."""
    other = initiators(kdc, service="other").towards("localhost")
    with pytest.raises(SaslError, match="not found in Kerberos database"):
        KerberosClient(KerberosCredentials(other)).first()
    away = kdc.folder / "away.conf"
    text = (kdc.folder / "krb5.conf").read_text()
    away.write_text("\n".join(
        "  kdc = 127.0.0.1:1" if "kdc =" in line and "dns" not in line else line
        for line in text.splitlines()
    ))  # fmt: skip
    monkeypatch.setenv("KRB5_CONFIG", str(away))
    with pytest.raises(ApiError, match="Cannot contact any KDC") as failed:
        KerberosClient(KerberosCredentials(initiators(kdc).towards("localhost"))).first()
    assert not isinstance(failed.value, SaslError)


def test_what_a_listener_refuses(kdc: Kdc) -> None:
    """Bytes that are no token, a token of other keys, one that comes twice, no rule."""
    with pytest.raises(Refused):
        server(kdc).answer(b"\x60\x82 no token")
    kdc.keys("other", "kafka/otherhost")
    token = KerberosClient(KerberosCredentials(initiators(kdc).towards("otherhost"))).first()
    with pytest.raises(Refused):
        server(kdc).answer(token)
    token = KerberosClient(KerberosCredentials(initiators(kdc).towards("localhost"))).first()
    server(kdc).answer(token)
    # Whoever saw a token may send it again, but has not the key to go on with.
    again = server(kdc)
    with suppress(Refused):
        again.answer(token)
        again.answer(b"")
    with pytest.raises(Refused):
        again.answer(b"\x01\0\0\0")
    assert again.name is None
    client = KerberosClient(KerberosCredentials(initiators(kdc).towards("localhost")))
    with pytest.raises(Refused, match="no rule"):
        log_in(client, server(kdc, "RULE:[1:$1]"))


def test_keys_that_are_not_there(kdc: Kdc) -> None:
    """A node does not start, and a client ends before it connects."""
    with pytest.raises(UsageError, match="cannot be read"):
        Acceptors(account(jaas(kdc.folder / "missing", "kafka/localhost")))
    with pytest.raises(UsageError, match=r"alice\.keytab: .*"):
        Acceptors(account(jaas(kdc.folder / "alice.keytab", "kafka/localhost")))
    with pytest.raises(UsageError, match=r"alice\.keytab: .*carol"):
        Initiators(account(jaas(kdc.folder / "alice.keytab", "carol")), "kafka")


def properties(jaas_text: str, more: str = "") -> Properties:
    """A client's file."""
    text = f"security.protocol=SASL_PLAINTEXT\n{more}\nsasl.jaas.config={jaas_text}\n"
    return Properties(parse_properties(text, "c.properties"), "c.properties")


def test_the_service_of_a_client(kdc: Kdc) -> None:
    """It stands in the properties or in the JAAS entry; GSSAPI is the default mechanism."""
    entry = jaas(kdc.folder / "alice.keytab", "alice/admin")
    with pytest.raises(UsageError, match=r"sasl\.kerberos\.service\.name: missing"):
        login_of(client_settings(properties(entry)))
    with_service = entry.replace("required", "required serviceName=kafka")
    for text, more in ((entry, "sasl.kerberos.service.name=kafka"), (with_service, "")):
        login = login_of(client_settings(properties(text, more)))
        assert login is not None
        assert (login.mechanism, login.is_slow) == ("GSSAPI", True)
    other = client_settings(properties(with_service, "sasl.kerberos.service.name=other"))
    with pytest.raises(UsageError, match="'other', but serviceName of the JAAS is 'kafka'"):
        login_of(other)
    missing = jaas(kdc.folder / "missing", "alice/admin")
    with pytest.raises(UsageError, match=r"c\.properties:3.*missing cannot be read"):
        login_of(client_settings(properties(missing, "sasl.kerberos.service.name=kafka")))


@pytest.fixture(scope="module")
def node(kdc: Kdc) -> Iterator[str]:
    """The address of one node's listener, SASL_PLAINTEXT with GSSAPI alone."""
    kdc.keys("one", "kafka/127.0.0.1")
    kdc.keys("bob", "bob")
    keys = jaas(kdc.folder / "one.keytab", "kafka/127.0.0.1")
    properties = {
        "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT,PLAINTEXT:SASL_PLAINTEXT",
        "sasl.kerberos.service.name": "kafka",
        "listener.name.controller.gssapi.sasl.jaas.config": keys,
        "listener.name.plaintext.gssapi.sasl.jaas.config": keys,
    }
    client = client_properties(jaas(kdc.folder / "bob.keytab", "bob"))
    with quorum(nodes=1, properties=properties, security=client, timeout_s=120) as found:
        yield found.bootstrap_controllers


def client_properties(entry: str) -> dict[str, str]:
    """A client of such a listener."""
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.kerberos.service.name": "kafka",
        "sasl.jaas.config": entry,
    }


def refused(kdc: Kdc, node: str, entry: str) -> str:
    """What our command says of a login that cannot succeed, in one line."""
    path = write_properties(kdc.folder / "wrong.properties", client_properties(entry))
    done = ours("--bootstrap-controller", node, "--command-config", path, "describe", "--status")
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    (line,) = done.stderr.splitlines()
    assert f"{node}: Kerberos refuses the login: " in line
    assert f"{path}:3: sasl.jaas.config" in line
    return line


def test_a_ticket_that_has_expired(kdc: Kdc, node: str) -> None:
    """The library says that the mechanism had success, and what failed in another text."""
    cache = kdc.login(kdc.folder / "bob.keytab", "bob", seconds=1)
    # Its clock is that of the machine.
    time.sleep(2)
    entry = f'{MODULE} useTicketCache=true ticketCache="{cache}";'
    assert "The referenced credential has expired" in refused(kdc, node, entry)


def test_keys_that_are_no_longer_valid(kdc: Kdc, node: str) -> None:
    """Somebody made others, and the file is an old one."""
    keys = kdc.keys("carol", "carol")
    kdc.change_keys("carol")
    assert "Decrypt integrity check failed" in refused(kdc, node, jaas(keys, "carol"))


def test_a_quorum_of_nodes(kdc: Kdc) -> None:
    """Nodes elect a leader over logins by Kerberos, and a command reaches them."""
    kdc.keys("nodes", "kafka/127.0.0.1")
    keys = jaas(kdc.folder / "nodes.keytab", "kafka/127.0.0.1")
    client = client_properties(jaas(kdc.folder / "alice.keytab", "alice/admin"))
    nodes = {
        "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT,PLAINTEXT:SASL_PLAINTEXT",
        "sasl.kerberos.service.name": "kafka",
        "listener.name.controller.gssapi.sasl.jaas.config": keys,
        "listener.name.plaintext.gssapi.sasl.jaas.config": keys,
    }
    path = kdc.folder / "client.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in client.items()))
    with quorum(nodes=3, properties=nodes, security=client, timeout_s=120) as found:
        leader = found.leader()
        there = ("--bootstrap-server", found.bootstrap_servers, "--command-config", str(path))
        described = ours(*there, "describe", "--status")
        assert described.returncode == 0, described.stderr
        assert f"LeaderId:               {leader}" in described.stdout
