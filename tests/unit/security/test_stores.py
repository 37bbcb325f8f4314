"""Key stores and trust stores of every kind, right and wrong."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from kraftwire.errors import UsageError
from kraftwire.properties import Properties
from kraftwire.properties_file import parse_properties
from kraftwire.security.jks import read_jks
from kraftwire.security.password_encryption import open_key
from kraftwire.security.settings import client_settings
from kraftwire.security.store_entries import StoreError
from kraftwire.security.stores import certificate_facts, read_key, read_roots
from kraftwire.security.tls import TlsContext, client_tls
from tests.support.security.certificates import (
    KEY_PASSWORD,
    PASSWORD,
    authority,
    below_intermediate,
    der,
    identity,
    jks,
    pem,
    trust_pkcs12,
    trusted_pem,
    unmarked_pkcs12,
)

Load = Callable[..., TlsContext]


def _properties(folder: Path, text: str) -> Properties:
    """The properties of a file in a folder of stores."""
    name = "client.properties"
    # Base64 may have these letters, too, but never behind a =.
    filled = f"security.protocol=SSL\n{text}".replace("=DIR", f"={folder}")
    return Properties(parse_properties(filled, name), name)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the same key and the same authority in every kind of store."""
    node, ca = identity(), authority().certificate
    files: dict[str, str | bytes] = {
        "all.pem": f"some text\n{node.key_pem()}{node.chain_pem}",
        "locked.pem": f"{node.key_pem(KEY_PASSWORD)}{node.chain_pem}",
        "ca.pem": f"# the authority\n{pem(ca)}",
        "node.p12": node.pkcs12(),
        "ca.p12": trust_pkcs12(ca),
        "node.jks": jks(keys=[("node", node, KEY_PASSWORD)]),
        "old.jks": jks(keys=[("node", node, PASSWORD)], version=1),
        "ca.jks": jks(trusted=[("ca", ca)]),
        "unmarked.p12": unmarked_pkcs12(ca),
        "x509.pem": pem(ca).replace(" CERT", " X509 CERT"),
        "trusted.pem": trusted_pem(ca),
        "order.pem": node.key_pem() + pem(ca) + pem(node.certificate),
        "empty.jks": jks(keys=[("node", node, "")], password=""),
        "other.txt": "nothing",
    }
    for name, content in files.items():
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        path.chmod(0o600)
    return tmp_path


def _escaped(text: str) -> str:
    return text.replace("\n", "\\n")


KEY_STORES = {
    "PEM file": "ssl.keystore.type=PEM\nssl.keystore.location=DIR/all.pem",
    "PEM file, encrypted": (
        "ssl.keystore.type=PEM\nssl.keystore.location=DIR/locked.pem\n"
        f"ssl.key.password={KEY_PASSWORD}"
    ),
    "PKCS12": (
        "ssl.keystore.type=PKCS12\nssl.keystore.location=DIR/node.p12\n"
        f"ssl.keystore.password={PASSWORD}"
    ),
    "PKCS12, called JKS": (f"ssl.keystore.location=DIR/node.p12\nssl.keystore.password={PASSWORD}"),
    "JKS": (
        f"ssl.keystore.location=DIR/node.jks\nssl.keystore.password={PASSWORD}\n"
        f"ssl.key.password={KEY_PASSWORD}"
    ),
    "an empty password": "ssl.keystore.location=DIR/empty.jks\nssl.keystore.password=",
    "JKS of version 1, called PKCS12": (
        f"ssl.keystore.type=PKCS12\nssl.keystore.location=DIR/old.jks\n"
        f"ssl.keystore.password={PASSWORD}"
    ),
}


@pytest.mark.parametrize("text", KEY_STORES.values(), ids=KEY_STORES.keys())
def test_every_kind_of_key_store_holds_the_same_key(folder: Path, text: str) -> None:
    """Java opens PKCS12 as JKS and the other way round, and so do people's files."""
    properties = _properties(folder, text)
    found = read_key(properties)
    assert found is not None
    assert found.key == identity().key_der
    assert found.chain == tuple(map(der, identity().chain))
    assert found.warnings == ()
    assert client_tls(client_settings(properties)).has_key


@pytest.mark.parametrize("password", [None, KEY_PASSWORD], ids=["in clear", "encrypted"])
def test_a_key_may_stand_in_the_properties_themselves(folder: Path, password: str | None) -> None:
    """On one line, with escapes for the line ends, as Kafka's documentation shows."""
    node = identity()
    lines = [
        "ssl.keystore.type=PEM",
        f"ssl.keystore.key={_escaped(node.key_pem(password))}",
        f"ssl.keystore.certificate.chain={_escaped(node.chain_pem)}",
        "ssl.truststore.type=PEM",
        f"ssl.truststore.certificates={_escaped(pem(authority().certificate))}",
        *([f"ssl.key.password={password}"] if password else []),
    ]
    found = client_tls(client_settings(_properties(folder, "\n".join(lines))))
    assert (found.has_key, found.has_roots) == (True, True)


TRUST_STORES = {
    "PEM": "ssl.truststore.type=PEM\nssl.truststore.location=DIR/ca.pem",
    "PKCS12": f"ssl.truststore.location=DIR/ca.p12\nssl.truststore.password={PASSWORD}",
    "JKS": f"ssl.truststore.location=DIR/ca.jks\nssl.truststore.password={PASSWORD}",
    "JKS, unchecked": "ssl.truststore.location=DIR/ca.jks",
    "PEM of older tools": "ssl.truststore.type=PEM\nssl.truststore.location=DIR/x509.pem",
    "PEM with its uses": "ssl.truststore.type=PEM\nssl.truststore.location=DIR/trusted.pem",
}


@pytest.mark.parametrize("text", TRUST_STORES.values(), ids=TRUST_STORES.keys())
def test_every_kind_of_trust_store_holds_the_authority(folder: Path, text: str) -> None:
    """And nothing else: the system's authorities are not trusted besides."""
    properties = _properties(folder, text)
    assert read_roots(properties) == (der(authority().certificate),)
    loaded = client_tls(client_settings(properties)).context.get_ca_certs(binary_form=True)
    assert loaded == [der(authority().certificate)]


def test_without_a_trust_store_the_systems_authorities_count(folder: Path) -> None:
    """As in Java, whose default is that of the JVM."""
    assert read_roots(_properties(folder, "")) is None
    assert not client_tls(client_settings(_properties(folder, ""))).has_roots


def test_the_certificate_of_a_key_is_trusted_too(folder: Path) -> None:
    """Java's trust manager takes it from a store with a key, and not those that issued it."""
    for name in ("node.jks", "node.p12"):
        text = f"ssl.truststore.location=DIR/{name}\nssl.truststore.password={PASSWORD}"
        assert read_roots(_properties(folder, text)) == (der(identity().certificate),)


def test_a_chain_goes_from_the_key_to_the_authority(folder: Path) -> None:
    """Whatever the order in a PKCS12 store is: some servers refuse another one."""
    holder = below_intermediate()
    (folder / "chain.p12").write_bytes(holder.pkcs12())
    text = f"ssl.keystore.location=DIR/chain.p12\nssl.keystore.password={PASSWORD}"
    found = read_key(_properties(folder, text))
    assert found is not None
    assert found.chain == tuple(map(der, holder.chain))
    assert len(found.chain) == 3


WRONG = {
    "a wrong password of PKCS12": (
        "ssl.keystore.location=DIR/node.p12\nssl.keystore.password=wrong-one",
        "client.properties:3: ssl.keystore.password: DIR/node.p12: the password is wrong",
    ),
    "a wrong password of JKS": (
        "ssl.keystore.location=DIR/node.jks\nssl.keystore.password=wrong-one",
        "client.properties:3: ssl.keystore.password: DIR/node.jks: the password is wrong",
    ),
    "a wrong password of a key in JKS": (
        f"ssl.keystore.location=DIR/node.jks\nssl.keystore.password={PASSWORD}\n"
        "ssl.key.password=wrong-one",
        "client.properties:4: ssl.key.password: DIR/node.jks: the key's password is wrong",
    ),
    "a key with another password than its JKS": (
        f"ssl.keystore.location=DIR/node.jks\nssl.keystore.password={PASSWORD}",
        "client.properties:2: ssl.keystore.location: DIR/node.jks: the key's password is wrong; "
        "set ssl.key.password",
    ),
    "a wrong password of a PEM key": (
        "ssl.keystore.type=PEM\nssl.keystore.location=DIR/locked.pem\nssl.key.password=wrong-one",
        "client.properties:4: ssl.key.password: the password is wrong",
    ),
    "no password of a PEM key": (
        "ssl.keystore.type=PEM\nssl.keystore.location=DIR/locked.pem",
        "client.properties:3: ssl.keystore.location: the key is encrypted, and ssl.key.password is "
        "missing",
    ),
    "no password of a store": (
        "ssl.keystore.location=DIR/node.jks",
        "client.properties:2: ssl.keystore.location: ssl.keystore.password is missing",
    ),
    "a password without a store": (
        "ssl.keystore.password=some-one",
        "client.properties:2: ssl.keystore.password: ssl.keystore.location is missing",
    ),
    "a password of a PEM store": (
        "ssl.keystore.type=PEM\nssl.keystore.location=DIR/all.pem\nssl.keystore.password=some-one",
        "client.properties:4: ssl.keystore.password: a PEM key store has no password",
    ),
    "a missing file": (
        "ssl.truststore.location=DIR/gone.jks",
        "client.properties:2: ssl.truststore.location: DIR/gone.jks: No such file or directory",
    ),
    "a folder": (
        "ssl.truststore.location=DIR",
        "client.properties:2: ssl.truststore.location: DIR: Is a directory",
    ),
    "PEM that is called JKS": (
        "ssl.truststore.location=DIR/ca.pem",
        "client.properties:2: ssl.truststore.location: expected a JKS or PKCS12 store, and "
        "DIR/ca.pem is PEM text: set ssl.truststore.type=PEM",
    ),
    "PEM that is called PKCS12": (
        "ssl.truststore.type=PKCS12\nssl.truststore.location=DIR/ca.pem",
        "client.properties:2: ssl.truststore.type: expected a JKS or PKCS12 store, and DIR/ca.pem "
        "is PEM text: set ssl.truststore.type=PEM",
    ),
    "neither": (
        "ssl.truststore.location=DIR/other.txt",
        "client.properties:2: ssl.truststore.location: expected a JKS or PKCS12 store, and "
        "DIR/other.txt is neither",
    ),
    "JKS that is called PEM": (
        "ssl.truststore.type=PEM\nssl.truststore.location=DIR/ca.jks",
        "client.properties:3: ssl.truststore.location: DIR/ca.jks has no PEM text",
    ),
    "an unknown type": (
        "ssl.truststore.type=BCFKS\nssl.truststore.location=DIR/ca.jks",
        "client.properties:2: ssl.truststore.type: expected JKS, PKCS12, PEM, found 'BCFKS'",
    ),
    "PKCS12 without a password": (
        "ssl.truststore.location=DIR/ca.p12",
        "client.properties:2: ssl.truststore.location: a PKCS12 store needs "
        "ssl.truststore.password",
    ),
    "certificates that Java does not count": (
        f"ssl.truststore.location=DIR/unmarked.p12\nssl.truststore.password={PASSWORD}",
        "client.properties:2: ssl.truststore.location: DIR/unmarked.p12 has no trusted "
        "certificates: Java counts those that keytool -importcert has added",
    ),
    "an empty password of a PKCS12 that has another": (
        "ssl.keystore.location=DIR/node.p12\nssl.keystore.password=",
        "client.properties:3: ssl.keystore.password: DIR/node.p12: the password is wrong",
    ),
    "another password of a key in PKCS12": (
        f"ssl.keystore.location=DIR/node.p12\nssl.keystore.password={PASSWORD}\n"
        "ssl.key.password=wrong-one",
        "client.properties:4: ssl.key.password: DIR/node.p12: the key's password is wrong",
    ),
    "a chain that begins with the authority": (
        "ssl.keystore.type=PEM\nssl.keystore.location=DIR/order.pem",
        "client.properties:3: ssl.keystore.location: certificate 1 (CN=Test CA) is issued by "
        "CN=Test CA, and certificate 2 is CN=node: the certificate of the key has to come first",
    ),
    "a chain without a key": (
        "ssl.keystore.type=PEM\nssl.keystore.certificate.chain=x",
        "client.properties:3: ssl.keystore.certificate.chain: ssl.keystore.key is missing",
    ),
    "a key without a chain": (
        "ssl.keystore.type=PEM\nssl.keystore.key=x",
        "client.properties:3: ssl.keystore.key: ssl.keystore.certificate.chain is missing",
    ),
    "a key as text, and a store": (
        f"ssl.keystore.location=DIR/node.jks\nssl.keystore.password={PASSWORD}\nssl.keystore.key=x",
        "client.properties:4: ssl.keystore.key: ssl.keystore.location is set as well",
    ),
    "certificates as text, and a store": (
        "ssl.truststore.type=PEM\nssl.truststore.location=DIR/ca.pem\n"
        "ssl.truststore.certificates=x",
        "client.properties:4: ssl.truststore.certificates: expected ssl.truststore.type=PEM and no "
        "ssl.truststore.location",
    ),
    "certificates that are none": (
        "ssl.truststore.type=PEM\nssl.truststore.certificates=x",
        "client.properties:3: ssl.truststore.certificates: expected a PEM block CERTIFICATE",
    ),
    "a trust store without certificates": (
        "ssl.keystore.type=PEM\nssl.keystore.location=DIR/ca.pem",
        "client.properties:3: ssl.keystore.location: expected one PEM block PRIVATE KEY or "
        "ENCRYPTED PRIVATE KEY, found 0",
    ),
    "a trust store in place of a key store": (
        f"ssl.keystore.location=DIR/ca.p12\nssl.keystore.password={PASSWORD}",
        "client.properties:2: ssl.keystore.location: DIR/ca.p12 has no private key",
    ),
}


@pytest.mark.parametrize(("text", "problem"), WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_is_named_with_file_line_and_key(
    folder: Path, text: str, problem: str
) -> None:
    """And without any password."""
    properties = _properties(folder, text)
    with pytest.raises(UsageError) as caught:
        client_tls(client_settings(properties))
    message = str(caught.value)
    assert message.startswith(problem.replace("DIR", str(folder)))
    assert not {PASSWORD, KEY_PASSWORD, "wrong-one", "some-one"} & set(message.split())


def test_a_key_of_another_certificate_is_refused(folder: Path) -> None:
    """Before any connection: a server would only close it."""
    (folder / "mixed.pem").write_text(identity("other").key_pem() + identity().chain_pem)
    text = "ssl.keystore.type=PEM\nssl.keystore.location=DIR/mixed.pem"
    with pytest.raises(UsageError, match="the private key does not belong to the certificate"):
        client_tls(client_settings(_properties(folder, text)))


def test_a_key_of_openssls_own_form_is_refused_with_the_remedy(folder: Path) -> None:
    """Kafka reads PKCS 8 alone; a file that works here only would surprise."""
    text = identity().key_pem().replace("PRIVATE KEY", "EC PRIVATE KEY")
    (folder / "own.pem").write_text(text + identity().chain_pem)
    text = "ssl.keystore.type=PEM\nssl.keystore.location=DIR/own.pem"
    with pytest.raises(UsageError, match="a block EC PRIVATE KEY: Kafka reads PKCS 8 only"):
        read_key(_properties(folder, text))


def test_a_key_that_all_can_read_is_a_warning(folder: Path) -> None:
    """A trust store may be public; a key must not."""
    (folder / "all.pem").chmod(0o644)
    found = read_key(_properties(folder, KEY_STORES["PEM file"]))
    assert found is not None
    place = "client.properties:3: ssl.keystore.location: every user of this machine can read"
    assert found.warnings == (f"{place} {folder}/all.pem (mode 0644)",)


def test_nothing_shows_a_key(folder: Path) -> None:
    """Neither a repr nor an error may carry one into a log."""
    found = read_key(_properties(folder, KEY_STORES["PEM file"]))
    assert found is not None
    assert repr(found.key)[2:40] not in repr(found)
    assert "SSLContext" not in repr(client_tls(client_settings(_properties(folder, ""))))


@pytest.mark.parametrize("cut", [0, 3, 11, 40, 200, -1])
def test_a_damaged_jks_store_is_an_error_and_nothing_else(cut: int) -> None:
    """Without a password nothing else would notice."""
    data = jks(keys=[("node", identity(), PASSWORD)])
    with pytest.raises(StoreError):
        read_jks(data[:cut], None)
    with pytest.raises(StoreError, match="the password is wrong, or the file is damaged"):
        read_jks(data[:cut], PASSWORD)


def test_any_flipped_byte_of_a_jks_store_is_noticed() -> None:
    """The digest covers all of it; without it, damage ends in an error or in another key."""
    data = jks(keys=[("node", identity(), PASSWORD)], trusted=[("ca", authority().certificate)])
    for at in range(0, len(data), 7):
        flipped = data[:at] + bytes([data[at] ^ 0x41]) + data[at + 1 :]
        with pytest.raises(StoreError):
            read_jks(flipped, PASSWORD)
        try:
            for entry in read_jks(flipped, None):
                if entry.hidden_key is not None:
                    open_key(entry.hidden_key, PASSWORD)
        except StoreError:
            pass


def test_a_certificate_is_described_for_messages() -> None:
    """Names and times, as people know them from other tools."""
    facts = certificate_facts(der(identity("facts").certificate))
    assert facts is not None
    assert (facts.subject, facts.issuer) == ("CN=facts", "CN=Test CA")
    assert facts.names == ("localhost", "127.0.0.1")
    assert (facts.ends - facts.starts).days == 3651
    assert certificate_facts(b"\x30\x00") is None


def test_the_context_trusts_what_is_in_the_store_alone(folder: Path) -> None:
    """A node's own certificate, or one between, may be all that a store holds, as in Java."""
    context = client_tls(client_settings(_properties(folder, ""))).context
    assert context.verify_flags & ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
