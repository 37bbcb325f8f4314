"""Key stores and trust stores: PEM as text or file, PKCS12, JKS; read into keys and certificates.

The only user of the library `cryptography`, which PEM without a password and JKS do not need. Type
and content of a store may differ as in Java, where either of JKS and PKCS12 opens the other.

Source: SEC-T10 to SEC-T12; Kafka's `DefaultSslEngineFactory`.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
import stat
from dataclasses import dataclass, field
from datetime import datetime

from kraftwire.errors import UsageError
from kraftwire.security.jks import JKS_MAGIC, JksError, read_jks
from kraftwire.security.settings import Properties
from kraftwire.small_files import read_small_file

_TYPES = ("JKS", "PKCS12", "PEM")
# A PKCS12 file is a DER sequence.
_PKCS12_START = b"\x30"
_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)
_KEY_LABELS = ("PRIVATE KEY", "ENCRYPTED PRIVATE KEY")
_CERTIFICATE = "CERTIFICATE"
_INSTALL = "install kraftwire[security]"


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """A private key with its chain, the own certificate first. Units: all are DER.

    `key` is not encrypted. `place` names the origin in messages, `warnings` are for people.
    """

    key: bytes = field(repr=False)
    chain: tuple[bytes, ...]
    place: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CertificateFacts:
    """What messages say of a certificate: names in RFC 4514's form, and times in UTC."""

    subject: str
    issuer: str
    starts: datetime
    ends: datetime
    names: tuple[str, ...]


def read_key(properties: Properties) -> KeyEntry | None:
    """Read the key store; None if none is set.

    Raises: UsageError with file, line and key for what is missing, contradicts or cannot be read.
    """
    kind = _kind(properties, "ssl.keystore.type")
    location = properties.get("ssl.keystore.location")
    if kind == "PEM" and location is None:
        return _inline_key(properties)
    for key in ("ssl.keystore.key", "ssl.keystore.certificate.chain"):
        if properties.get(key) is not None:
            other = "ssl.keystore.location is set as well" if location else "PEM only"
            text = f"{other}: expected ssl.keystore.type=PEM and no ssl.keystore.location"
            raise properties.error(key, text)
    if location is None:
        if properties.get("ssl.keystore.password") is not None:
            raise properties.error("ssl.keystore.password", "ssl.keystore.location is missing")
        return None
    data = _content(properties, "ssl.keystore.location", location)
    warnings = _exposed(properties, "ssl.keystore.location", location)
    if kind == "PEM":
        return _pem_file_key(properties, data, location, warnings)
    password = properties.get("ssl.keystore.password")
    if password is None:
        raise properties.error("ssl.keystore.location", "ssl.keystore.password is missing")
    _check_binary(properties, "ssl.keystore", data, location)
    if data.startswith(JKS_MAGIC):
        return _jks_key(properties, data, password, warnings)
    return _pkcs12_key(properties, data, password, warnings)


def read_roots(properties: Properties) -> tuple[bytes, ...] | None:
    """Read the trust store: its certificates in DER; None if none is set.

    Raises: UsageError as `read_key`, also for a store without a certificate.
    """
    kind = _kind(properties, "ssl.truststore.type")
    location = properties.get("ssl.truststore.location")
    text = properties.get("ssl.truststore.certificates")
    password = properties.get("ssl.truststore.password")
    if text is not None:
        if kind != "PEM" or location is not None:
            problem = "expected ssl.truststore.type=PEM and no ssl.truststore.location"
            raise properties.error("ssl.truststore.certificates", problem)
        return _certificates(properties, "ssl.truststore.certificates", text)
    if location is None:
        if password is not None:
            raise properties.error("ssl.truststore.password", "ssl.truststore.location is missing")
        return None
    key = "ssl.truststore.location"
    data = _content(properties, key, location)
    if kind == "PEM":
        if password is not None:
            raise properties.error("ssl.truststore.password", "a PEM trust store has no password")
        return _certificates(properties, key, _text(properties, key, data))
    _check_binary(properties, "ssl.truststore", data, location)
    if data.startswith(JKS_MAGIC):
        found = _jks_roots(properties, data, password)
    elif password is None:
        # Java opens it as if it were empty, and then trusts nobody.
        raise properties.error(key, "a PKCS12 store needs ssl.truststore.password")
    else:
        found = _pkcs12_roots(properties, data, password)
    if not found:
        raise properties.error(key, f"{location} has no trusted certificates")
    return found


def certificate_facts(certificate: bytes) -> CertificateFacts | None:
    """Return what messages say of a certificate in DER; None without the library, or if it cannot
    be read."""
    try:
        from cryptography import x509
    except ImportError:
        return None
    try:
        found = x509.load_der_x509_certificate(certificate)
        try:
            extension = found.extensions.get_extension_for_class(x509.SubjectAlternativeName)
            names = [str(name.value) for name in extension.value]
        except x509.ExtensionNotFound:
            names = []
        return CertificateFacts(
            found.subject.rfc4514_string(),
            found.issuer.rfc4514_string(),
            found.not_valid_before_utc,
            found.not_valid_after_utc,
            tuple(names),
        )
    except ValueError:
        return None


def _kind(properties: Properties, key: str) -> str:
    kind = (properties.get(key) or "JKS").upper()
    if kind not in _TYPES:
        raise properties.error(key, f"expected {', '.join(_TYPES)}, found {kind!r}")
    return kind


def _content(properties: Properties, key: str, location: str) -> bytes:
    try:
        return read_small_file(location)
    except OSError as error:
        raise properties.error(key, f"{location}: {error.strerror or error}") from error


def _exposed(properties: Properties, key: str, location: str) -> tuple[str, ...]:
    mode = stat.S_IMODE(os.stat(location).st_mode)
    if os.name != "posix" or not mode & stat.S_IROTH:
        return ()
    place = properties.place(key)
    return (f"{place}: every user of this machine can read {location} (mode {mode:04o})",)


def _check_binary(properties: Properties, store: str, data: bytes, location: str) -> None:
    if data.startswith((JKS_MAGIC, _PKCS12_START)):
        return
    key = f"{store}.type"
    found = f"PEM text: set {key}=PEM" if b"-----BEGIN " in data else "neither"
    problem = f"expected a JKS or PKCS12 store, and {location} is {found}"
    raise properties.error(key if properties.has(key) else f"{store}.location", problem)


# PEM


def _inline_key(properties: Properties) -> KeyEntry | None:
    _refuse_pem_password(properties)
    key, chain = "ssl.keystore.key", "ssl.keystore.certificate.chain"
    texts = properties.get(key), properties.get(chain)
    if texts == (None, None):
        return None
    for name, other, text in ((key, chain, texts[1]), (chain, key, texts[0])):
        if text is None:
            raise properties.error(name, f"{other} is missing")
    return KeyEntry(
        _pem_key(properties, key, texts[0] or ""),
        _certificates(properties, chain, texts[1] or ""),
        properties.place(key),
    )


def _pem_file_key(
    properties: Properties, data: bytes, location: str, warnings: tuple[str, ...]
) -> KeyEntry:
    _refuse_pem_password(properties)
    key = "ssl.keystore.location"
    text = _text(properties, key, data)
    return KeyEntry(
        _pem_key(properties, key, text),
        _certificates(properties, key, text),
        f"{properties.place(key)}: {location}",
        warnings,
    )


def _refuse_pem_password(properties: Properties) -> None:
    if properties.get("ssl.keystore.password") is not None:
        problem = "a PEM key store has no password; that of its key is ssl.key.password"
        raise properties.error("ssl.keystore.password", problem)


def _text(properties: Properties, key: str, data: bytes) -> str:
    # Only the blocks count, so any text may stand around them.
    text = data.decode("latin-1")
    if "-----BEGIN " not in text:
        raise properties.error(key, f"{properties.get(key)} has no PEM text")
    return text


def _blocks(text: str, *labels: str) -> list[tuple[str, bytes]]:
    """Return the blocks with one of the labels. Raises: ValueError for what is no base64."""
    return [
        (match[1], base64.b64decode(_without_attributes(match[2]), validate=True))
        for match in _BLOCK.finditer(text)
        if match[1] in labels or (match[1].endswith("PRIVATE KEY") and _KEY_LABELS[0] in labels)
    ]


def _without_attributes(body: str) -> str:
    """Return the base64 of a block, which may follow lines like ``Bag Attributes: ...``."""
    lines = (line.strip() for line in body.splitlines())
    return "".join(line.replace(" ", "") for line in lines if ":" not in line)


def _certificates(properties: Properties, key: str, text: str) -> tuple[bytes, ...]:
    try:
        found = tuple(der for _, der in _blocks(text, _CERTIFICATE))
    except (binascii.Error, ValueError) as error:
        raise properties.error(key, "a CERTIFICATE block is not base64") from error
    if not found:
        raise properties.error(key, "expected a PEM block CERTIFICATE, found none")
    return found


def _pem_key(properties: Properties, key: str, text: str) -> bytes:
    try:
        found = _blocks(text, *_KEY_LABELS)
    except (binascii.Error, ValueError) as error:
        raise properties.error(key, "the PRIVATE KEY block is not base64") from error
    if len(found) != 1:
        expected = "expected one PEM block PRIVATE KEY or ENCRYPTED PRIVATE KEY"
        raise properties.error(key, f"{expected}, found {len(found)}")
    label, der = found[0]
    if label not in _KEY_LABELS:
        problem = f"the key is a block {label}: Kafka reads PKCS 8 only (openssl pkcs8 -topk8)"
        raise properties.error(key, problem)
    if label == "PRIVATE KEY":
        return der
    password = properties.get("ssl.key.password")
    if password is None:
        raise properties.error(key, "the key is encrypted, and ssl.key.password is missing")
    return _decrypted(properties, key, der, password)


def _decrypted(properties: Properties, key: str, der: bytes, password: str) -> bytes:
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.serialization import load_der_private_key
    except ImportError as error:
        raise properties.error(key, f"for an encrypted key, {_INSTALL}") from error
    try:
        return _plain(load_der_private_key(der, password.encode()))
    except (ValueError, TypeError) as error:
        place = properties.place("ssl.key.password")
        raise UsageError(f"{place}: the password is wrong for the key of {key}") from error
    except UnsupportedAlgorithm as error:
        raise properties.error(key, f"the key is encrypted in an unknown way: {error}") from error


def _plain(key: object) -> bytes:
    """Return a key as PKCS 8 in DER."""
    from cryptography.hazmat.primitives import serialization as form

    data: bytes = key.private_bytes(  # type: ignore[attr-defined]
        form.Encoding.DER, form.PrivateFormat.PKCS8, form.NoEncryption()
    )
    return data


# JKS


def _jks_key(
    properties: Properties, data: bytes, password: str, warnings: tuple[str, ...]
) -> KeyEntry:
    key = "ssl.keystore.location"
    at, key_password = "ssl.keystore.password", properties.get("ssl.key.password")
    advice = ""
    try:
        entries = [each for each in read_jks(data, password) if each.hidden_key is not None]
        if not entries:
            raise properties.error(key, f"{properties.get(key)} has no private key")
        at = "ssl.key.password"
        if key_password is None:
            at, advice = key, "; set ssl.key.password"
        own = entries[0].key(key_password or password)
    except JksError as error:
        name = at if error.is_password else key
        raise properties.error(name, f"{properties.get(key)}: {error}{advice}") from error
    place = f"{properties.place(key)}: {properties.get(key)}"
    return KeyEntry(own, entries[0].chain, place, warnings)


def _jks_roots(properties: Properties, data: bytes, password: str | None) -> tuple[bytes, ...]:
    key = "ssl.truststore.location"
    try:
        entries = read_jks(data, password)
    except JksError as error:
        name = "ssl.truststore.password" if error.is_password else key
        raise properties.error(name, f"{properties.get(key)}: {error}") from error
    # As in Java, the own certificate of a key is trusted too.
    return tuple(each.chain[0] for each in entries if each.chain)


# PKCS12


def _pkcs12(properties: Properties, name: str, data: bytes, password: str) -> tuple[object, ...]:
    """Return key, own certificate and the others of a store, as objects of the library."""
    key = f"ssl.{name}.location"
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12
    except ImportError as error:
        raise properties.error(key, f"for a PKCS12 store, {_INSTALL}") from error
    try:
        found = load_pkcs12(data, password.encode())
    except ValueError as error:
        problem = f"{properties.get(key)}: the password is wrong, or the file is damaged"
        raise properties.error(f"ssl.{name}.password", problem) from error
    except UnsupportedAlgorithm as error:
        raise properties.error(key, f"{properties.get(key)}: {error}") from error
    own = found.cert.certificate if found.cert else None
    return found.key, own, [each.certificate for each in found.additional_certs]


def _pkcs12_key(
    properties: Properties, data: bytes, password: str, warnings: tuple[str, ...]
) -> KeyEntry:
    location = "ssl.keystore.location"
    key, own, others = _pkcs12(properties, "keystore", data, password)
    if key is None or own is None:
        raise properties.error(location, f"{properties.get(location)} has no private key")
    place = f"{properties.place(location)}: {properties.get(location)}"
    return KeyEntry(_plain(key), _chain(own, others), place, warnings)


def _chain(own: object, others: object) -> tuple[bytes, ...]:
    """Return the certificates in the order in which each is issued by the next."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    assert isinstance(own, x509.Certificate)
    assert isinstance(others, list)
    chain, left = [own], list(others)
    while chain[-1].issuer != chain[-1].subject:
        issuer = next((each for each in left if each.subject == chain[-1].issuer), None)
        if issuer is None:
            break
        left.remove(issuer)
        chain.append(issuer)
    return tuple(each.public_bytes(Encoding.DER) for each in chain)


def _pkcs12_roots(properties: Properties, data: bytes, password: str) -> tuple[bytes, ...]:
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    _, own, others = _pkcs12(properties, "truststore", data, password)
    assert isinstance(others, list)
    found = [each for each in (own, *others) if isinstance(each, x509.Certificate)]
    return tuple(each.public_bytes(Encoding.DER) for each in found)
