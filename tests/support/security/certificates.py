"""Keys, certificates and stores for tests of TLS: one authority, and what it has signed."""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import ssl
import struct
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID

_DAY = timedelta(days=1)
PASSWORD = "store-secret"
KEY_PASSWORD = "key-secret"


@dataclass(frozen=True)
class Identity:
    """A key, its certificate, and those above it."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate
    issuers: tuple[x509.Certificate, ...] = ()

    @property
    def chain(self) -> tuple[x509.Certificate, ...]:
        """The own certificate, then those above it."""
        return (self.certificate, *self.issuers)

    @property
    def chain_pem(self) -> str:
        """The chain as PEM text."""
        return "".join(pem(each) for each in self.chain)

    def key_pem(self, password: str | None = None) -> str:
        """The key as PKCS 8 in PEM, encrypted if there is a password."""
        return self.key.private_bytes(
            form.Encoding.PEM, form.PrivateFormat.PKCS8, _encryption(password)
        ).decode()

    @property
    def key_der(self) -> bytes:
        """The key as PKCS 8 in DER."""
        return self.key.private_bytes(
            form.Encoding.DER, form.PrivateFormat.PKCS8, form.NoEncryption()
        )

    def pkcs12(self, password: str = PASSWORD) -> bytes:
        """Key and chain as a PKCS12 store, the issuers in the wrong order."""
        others = list(reversed(self.issuers))
        return pkcs12.serialize_key_and_certificates(
            b"node", self.key, self.certificate, others, _encryption(password)
        )


def authority(name: str = "Test CA") -> Identity:
    """An authority that signs itself, one for each name."""
    return _authority(name)


@cache
def _authority(name: str) -> Identity:
    return _signed(name, None, is_authority=True)


@cache
def identity(
    name: str = "node",
    hosts: tuple[str, ...] = ("localhost", "127.0.0.1"),
    *,
    of: str = "Test CA",
    days: tuple[int, int] = (-1, 3650),
) -> Identity:
    """What an authority has signed for some hosts, valid between two days from now."""
    return _signed(name, authority(of), hosts=hosts, days=days)


@cache
def of_namesake() -> Identity:
    """What another authority of the same name has signed."""
    return _signed("node", _signed("Test CA", None, is_authority=True), hosts=("127.0.0.1",))


@cache
def below_intermediate() -> Identity:
    """A node's certificate that an authority below the authority has signed."""
    between = _signed("Between", authority(), is_authority=True)
    return _signed("node", between, hosts=("localhost",))


@cache
def long_chain(length: int) -> Identity:
    """What the last of many authorities has signed, each below the one before."""
    last = authority("Far away")
    for number in range(length - 1):
        last = _signed(f"authority {number} {'x' * 40}", last, is_authority=True)
    return _signed("far below", last, hosts=("localhost",))


def pem(certificate: x509.Certificate) -> str:
    """A certificate as PEM text."""
    return certificate.public_bytes(form.Encoding.PEM).decode()


def trusted_pem(certificate: x509.Certificate) -> str:
    """A certificate as openssl writes it with what it is trusted for, here for everything."""
    body = base64.encodebytes(der(certificate) + bytes.fromhex("3000")).decode()
    label = "TRUSTED CERTIFICATE"
    return f"-----BEGIN {label}-----\n{body}-----END {label}-----\n"


def der(certificate: x509.Certificate) -> bytes:
    """A certificate in DER."""
    return certificate.public_bytes(form.Encoding.DER)


def trust_pkcs12(*certificates: x509.Certificate, password: str = PASSWORD) -> bytes:
    """Certificates alone as a PKCS12 store, marked as trusted, as keytool does."""
    named = [pkcs12.PKCS12Certificate(each, b"%d" % at) for at, each in enumerate(certificates)]
    return pkcs12.serialize_java_truststore(named, _encryption(password))


def unmarked_pkcs12(*certificates: x509.Certificate, password: str = PASSWORD) -> bytes:
    """Certificates alone as a PKCS12 store, as openssl makes it with -nokeys."""
    return pkcs12.serialize_key_and_certificates(
        None, None, None, certificates, _encryption(password)
    )


def jks(
    keys: Sequence[tuple[str, Identity, str]] = (),
    trusted: Sequence[tuple[str, x509.Certificate]] = (),
    *,
    password: str = PASSWORD,
    version: int = 2,
) -> bytes:
    """A JKS store: keys with alias and password, and certificates with alias."""
    body = b"\xfe\xed\xfe\xed" + struct.pack(">II", version, len(keys) + len(trusted))
    for alias, holder, key_password in keys:
        hidden = _hidden(holder.key_der, key_password)
        body += struct.pack(">I", 1) + _text(alias) + struct.pack(">QI", 0, len(hidden)) + hidden
        body += struct.pack(">I", len(holder.chain))
        body += b"".join(_certificate(each, version) for each in holder.chain)
    for alias, certificate in trusted:
        body += struct.pack(">I", 2) + _text(alias) + struct.pack(">Q", 0)
        body += _certificate(certificate, version)
    wide = password.encode("utf-16-be")
    return body + hashlib.sha1(wide + b"Mighty Aphrodite" + body).digest()


def node_context(
    holder: Identity, folder: Path, *, needs_certificate: bool = False, **limits: ssl.TLSVersion
) -> ssl.SSLContext:
    """A node's context; its key is written into the folder."""
    path = folder / "node.pem"
    path.write_text(holder.key_pem() + holder.chain_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    if needs_certificate:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=pem(authority().certificate))
    for name, version in limits.items():
        setattr(context, name, version)
    return context


def shaken(
    context: ssl.SSLContext, holder: Identity, folder: Path, host: str | None = None
) -> ssl.SSLObject:
    """A client's side of a handshake in memory with a node that has this certificate.

    Raises: ssl.SSLError as the client does.
    """
    to_node, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(to_client, to_node, server_hostname=host)
    node = node_context(holder, folder).wrap_bio(to_node, to_client, server_side=True)
    for side in (client, node, client, node):
        with suppress(ssl.SSLWantReadError):
            side.do_handshake()
    return client


def _certificate(certificate: x509.Certificate, version: int) -> bytes:
    data = der(certificate)
    kind = _text("X.509") if version > 1 else b""
    return kind + struct.pack(">I", len(data)) + data


def _text(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()


def _hidden(key: bytes, password: str) -> bytes:
    wide, salt = password.encode("utf-16-be"), bytes(range(20))
    mask, digest = b"", salt
    while len(mask) < len(key):
        digest = hashlib.sha1(wide + digest).digest()
        mask += digest
    octets = salt + bytes(a ^ b for a, b in zip(key, mask, strict=False))
    octets += hashlib.sha1(wide + key).digest()
    oid = bytes.fromhex("300e060a2b060104012a021101010500")
    return _sequence(0x30, oid + _sequence(0x04, octets))


def _sequence(tag: int, content: bytes) -> bytes:
    size = len(content)
    short = bytes([size]) if size < 128 else b"\x82" + size.to_bytes(2, "big")
    return bytes([tag]) + short + content


def _encryption(password: str | None) -> form.KeySerializationEncryption:
    return form.BestAvailableEncryption(password.encode()) if password else form.NoEncryption()


def _signed(
    name: str,
    issuer: Identity | None,
    *,
    hosts: tuple[str, ...] = (),
    days: tuple[int, int] = (-1, 3650),
    is_authority: bool = False,
) -> Identity:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(subject).public_key(key.public_key())
    builder = builder.issuer_name(issuer.certificate.subject if issuer else subject)
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now + days[0] * _DAY).not_valid_after(now + days[1] * _DAY)
    constraints = x509.BasicConstraints(ca=is_authority, path_length=None)
    builder = builder.add_extension(constraints, critical=True)
    if hosts:
        names = x509.SubjectAlternativeName([_name(host) for host in hosts])
        builder = builder.add_extension(names, critical=False)
    made = builder.sign(issuer.key if issuer else key, hashes.SHA256())
    return Identity(key, made, issuer.chain if issuer else ())


def _name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
