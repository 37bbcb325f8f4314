"""Keys for a quorum: `python -m examples.secured.make_keys FOLDER NAME=HOST,HOST ...`.

Writes ca.pem, which everybody trusts, and for each name a file with its key and certificate.
Whoever has ca.key can make more of them: keep it elsewhere.
"""

from __future__ import annotations

import ipaddress
import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAYS = 365
Key = ec.EllipticCurvePrivateKey


def make_keys(folder: Path, hosts: dict[str, list[str]]) -> None:
    """Write an authority, and a key and certificate for each name and its hosts."""
    folder.mkdir(parents=True, exist_ok=True)
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name("Example authority")
    authority = _certificate(name, key, name, key, [])
    _write(folder / "ca.key", _key_pem(key))
    _write(folder / "ca.pem", _pem(authority))
    for holder, names in hosts.items():
        own = ec.generate_private_key(ec.SECP256R1())
        signed = _certificate(_name(holder), own, name, key, names)
        _write(folder / f"{holder}.pem", _key_pem(own) + _pem(signed))


def _certificate(
    subject: x509.Name, key: Key, issuer: x509.Name, issuer_key: Key, hosts: list[str]
) -> x509.Certificate:
    """Sign a certificate; without hosts it is an authority's."""
    # The clocks of other machines may be behind.
    start = datetime.now(UTC) - timedelta(hours=1)
    number = x509.random_serial_number()
    builder = x509.CertificateBuilder(issuer, subject, key.public_key(), number)
    builder = builder.not_valid_before(start).not_valid_after(start + timedelta(days=DAYS))
    authority = x509.BasicConstraints(ca=not hosts, path_length=None)
    builder = builder.add_extension(authority, critical=True)
    if hosts:
        names = x509.SubjectAlternativeName([_host(host) for host in hosts])
        builder = builder.add_extension(names, critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _host(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _key_pem(key: Key) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _write(path: Path, content: bytes) -> None:
    """Write a file that only this user can read."""
    path.unlink(missing_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)


if __name__ == "__main__":
    pairs = (word.partition("=") for word in sys.argv[2:])
    make_keys(Path(sys.argv[1]), {name: hosts.split(",") for name, _, hosts in pairs})
