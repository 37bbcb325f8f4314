"""Kafka's words for protocols, cipher suites and the host check."""

from __future__ import annotations

import os
import ssl
import tempfile
from pathlib import Path

import pytest

from kraftwire.errors import UsageError
from kraftwire.properties import Properties
from kraftwire.security.settings import SecuritySettings, client_settings
from kraftwire.security.tls import client_tls, openssl_cipher, server_tls
from tests.support.security.certificates import identity


def _context(**values: str) -> ssl.SSLContext:
    named = {key.replace("_", "."): value for key, value in values.items()}
    properties = Properties.of({"security.protocol": "SSL"} | named, "given")
    return client_tls(client_settings(properties)).context


def _suites(context: ssl.SSLContext) -> set[str]:
    return {each["name"] for each in context.get_ciphers() if each["protocol"] != "TLSv1.3"}


def test_kafkas_defaults_hold() -> None:
    """TLS 1.2 and 1.3, the host is checked, a certificate is needed."""
    context = _context()
    versions = context.minimum_version, context.maximum_version
    assert versions == (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)
    assert (context.checks_host, context.verify_mode) == (True, ssl.CERT_REQUIRED)


def test_an_empty_algorithm_turns_the_host_check_off() -> None:
    """And only that: the certificate is verified all the same."""
    context = _context(ssl_endpoint_identification_algorithm="")
    assert (context.checks_host, context.verify_mode) == (False, ssl.CERT_REQUIRED)
    assert _context(ssl_endpoint_identification_algorithm="HTTPS").checks_host
    with pytest.raises(UsageError, match="expected https or nothing, found 'ldaps'"):
        _context(ssl_endpoint_identification_algorithm="ldaps")


@pytest.mark.parametrize(
    ("text", "lowest", "highest"),
    [
        ("TLSv1.2", ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_2),
        (" TLSv1.3 , TLSv1.2", ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3),
        ("TLSv1.3", ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_3),
    ],
)
def test_protocols_are_limited(text: str, lowest: object, highest: object) -> None:
    """In any order."""
    context = _context(ssl_enabled_protocols=text)
    assert (context.minimum_version, context.maximum_version) == (lowest, highest)


def test_an_unknown_protocol_is_refused() -> None:
    """SSLv3 has a name in Java, and must not turn into something else."""
    with pytest.raises(UsageError, match=r"given: ssl\.enabled\.protocols: expected some of"):
        _context(ssl_enabled_protocols="SSLv3")


@pytest.mark.skipif(ssl.OPENSSL_VERSION_INFO < (3,), reason="OpenSSL 1 has older ones, too")
def test_versions_that_the_library_refuses_are_named() -> None:
    """A node started with them, and every handshake failed."""
    with pytest.raises(UsageError, match=r"protocols: this OpenSSL has TLSv1\.2 and TLSv1\.3 al"):
        _context(ssl_enabled_protocols="TLSv1,TLSv1.1")


def test_suites_have_their_iana_names() -> None:
    """And are the only ones offered."""
    context = _context(ssl_cipher_suites="TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384")
    assert _suites(context) == {"ECDHE-RSA-AES256-GCM-SHA384"}
    assert context.maximum_version == ssl.TLSVersion.TLSv1_2
    newer = _context(ssl_cipher_suites="TLS_AES_256_GCM_SHA384")
    assert newer.minimum_version == ssl.TLSVersion.TLSv1_3


def test_a_suite_of_tls_13_is_checked_where_it_cannot_be_chosen() -> None:
    """Python offers all of them."""
    properties = {"security.protocol": "SSL", "ssl.cipher.suites": "TLS_AES_256_GCM_SHA384"}
    found = client_tls(client_settings(Properties.of(properties, "given")))
    assert found.allows("TLS_AES_256_GCM_SHA384")
    assert not found.allows("TLS_AES_128_GCM_SHA256")


@pytest.mark.parametrize("name", ["TLS_NULL_WITH_NO_SUCH", "ECDHE-RSA-AES256-GCM-SHA384", "x"])
def test_an_unknown_suite_is_refused(name: str) -> None:
    """To ignore one would weaken what the file asks for."""
    with pytest.raises(UsageError, match=f"{name} is no cipher suite.*TLS_AES_256_GCM_SHA384"):
        _context(ssl_cipher_suites=f"TLS_AES_256_GCM_SHA384,{name}")


def test_suites_must_belong_to_an_enabled_protocol() -> None:
    """Otherwise no handshake can succeed."""
    with pytest.raises(UsageError, match="none of these belongs to a protocol of"):
        _context(ssl_cipher_suites="TLS_AES_256_GCM_SHA384", ssl_enabled_protocols="TLSv1.2")


@pytest.mark.parametrize(
    ("iana", "openssl"),
    [
        ("TLS_RSA_WITH_AES_128_CBC_SHA", "AES128-SHA"),
        ("TLS_RSA_WITH_AES_256_GCM_SHA384", "AES256-GCM-SHA384"),
        ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256"),
        ("TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256", "ECDHE-RSA-AES128-SHA256"),
        ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"),
        ("TLS_DHE_RSA_WITH_AES_256_CBC_SHA256", "DHE-RSA-AES256-SHA256"),
        ("TLS_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256"),
        ("TLS_RSA_WITH_RC4_128_MD5", None),
    ],
)
def test_names_of_suites_are_translated(iana: str, openssl: str | None) -> None:
    """As OpenSSL's own table has them."""
    assert openssl_cipher(iana) == openssl


def test_a_key_without_memory_files_leaves_no_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The temporary one is private and gone at once."""
    monkeypatch.delattr(os, "memfd_create")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    modes = []
    load = ssl.SSLContext.load_cert_chain

    def watched(context: ssl.SSLContext, path: str) -> None:
        modes.append(Path(path).stat().st_mode & 0o777)
        load(context, path)

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", watched)
    node = identity()
    _context(
        ssl_keystore_type="PEM",
        ssl_keystore_key=node.key_pem(),
        ssl_keystore_certificate_chain=node.chain_pem,
    )
    assert modes == [0o600]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("wanted", ["none", "requested", "required"])
def test_a_node_without_a_trust_store_says_whom_it_accepts(wanted: str) -> None:
    """SEC-T15: without one, the authorities of the system count, which are many."""
    holder = identity()
    values = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": holder.key_pem(),
        "ssl.keystore.certificate.chain": holder.chain_pem,
        "ssl.client.auth": wanted,
    }
    found = server_tls(SecuritySettings("SSL", Properties.of(values, "n.properties"))).warnings
    text = (
        "n.properties: ssl.truststore.location: not set, so clients of every authority of this "
        "system are accepted"
    )
    assert found == (() if wanted == "none" else (text,))
