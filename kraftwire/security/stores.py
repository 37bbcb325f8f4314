"""Key stores and trust stores: PEM as text or file, PKCS12, JKS; read into keys and certificates.

What is encrypted, other than in JKS, needs the library `cryptography`. Type and content of a store
may differ as in Java, where either of JKS and PKCS12 opens the other.

Source: SEC-T10 to SEC-T12; Kafka's `DefaultSslEngineFactory`.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise

from kraftwire.properties import Properties
from kraftwire.security.jks import JKS_MAGIC, read_jks
from kraftwire.security.names import issuer_and_subject, subject_text
from kraftwire.security.password_encryption import open_key
from kraftwire.security.pem import ENCRYPTED_KEY, KEY, PEM_START, pem_certificates, pem_keys
from kraftwire.security.pkcs12 import read_pkcs12
from kraftwire.security.store_entries import StoreEntry, StoreError
from kraftwire.small_files import read_small_file

_TYPES = ("JKS", "PKCS12", "PEM")
# A PKCS12 file is a DER sequence.
_PKCS12_START = b"\x30"


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
    password = properties.text("ssl.keystore.password")
    if password is None:
        raise properties.error("ssl.keystore.location", "ssl.keystore.password is missing")
    return _store_key(properties, data, password, warnings)


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
    password = properties.text("ssl.truststore.password")
    return _store_roots(properties, data, password)


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
        _chain(properties, chain, texts[1] or ""),
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
        _chain(properties, key, text),
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
    if PEM_START not in text:
        raise properties.error(key, f"{properties.get(key)} has no PEM text")
    return text


def _certificates(properties: Properties, key: str, text: str) -> tuple[bytes, ...]:
    try:
        found = pem_certificates(text)
    except ValueError as error:
        raise properties.error(key, "a CERTIFICATE block is not base64, or is cut") from error
    if not found:
        raise properties.error(key, "expected a PEM block CERTIFICATE, found none")
    return found


def _chain(properties: Properties, key: str, text: str) -> tuple[bytes, ...]:
    """Return certificates that are in order, as Java wants them and as some peers do."""
    found = _certificates(properties, key, text)
    try:
        names = [issuer_and_subject(each) for each in found]
        for at, ((issuer, subject), (_, above)) in enumerate(pairwise(names), 1):
            if issuer != above:
                problem = (
                    f"certificate {at} ({subject_text(subject)}) is issued by "
                    f"{subject_text(issuer)}, and certificate {at + 1} is {subject_text(above)}: "
                    "the certificate of the key has to come first, then each one's issuer"
                )
                raise properties.error(key, problem)
    except (ValueError, IndexError) as error:
        raise properties.error(key, "a CERTIFICATE block is no certificate") from error
    return found


def _pem_key(properties: Properties, key: str, text: str) -> bytes:
    try:
        found = pem_keys(text)
    except ValueError as error:
        raise properties.error(key, "the PRIVATE KEY block is not base64") from error
    if len(found) != 1:
        expected = "expected one PEM block PRIVATE KEY or ENCRYPTED PRIVATE KEY"
        raise properties.error(key, f"{expected}, found {len(found)}")
    label, content = found[0]
    if label not in (KEY, ENCRYPTED_KEY):
        problem = f"the key is a block {label}: Kafka reads PKCS 8 only (openssl pkcs8 -topk8)"
        raise properties.error(key, problem)
    if label == KEY:
        return content
    password = properties.text("ssl.key.password")
    if password is None:
        raise properties.error(key, "the key is encrypted, and ssl.key.password is missing")
    try:
        return open_key(content, password)
    except StoreError as error:
        if error.is_password:
            problem = f"the password is wrong for the key of {key}"
            raise properties.error("ssl.key.password", problem) from error
        raise properties.error(key, f"the key cannot be read: {error}") from error


# JKS and PKCS12


def _entries(
    properties: Properties, store: str, data: bytes, password: str | None
) -> list[StoreEntry]:
    """Return the entries of a store of either type. Raises: UsageError."""
    key = f"{store}.location"
    location = properties.get(key)
    if not data.startswith((JKS_MAGIC, _PKCS12_START)):
        kind = f"{store}.type"
        found = f"PEM text: set {kind}=PEM" if PEM_START.encode() in data else "neither"
        problem = f"expected a JKS or PKCS12 store, and {location} is {found}"
        raise properties.error(kind if properties.has(kind) else key, problem)
    try:
        read = read_jks if data.startswith(JKS_MAGIC) else read_pkcs12
        return read(data, password)
    except StoreError as error:
        name = f"{store}.password" if error.is_password else key
        raise properties.error(name, f"{location}: {error}") from error


def _store_key(
    properties: Properties, data: bytes, password: str, warnings: tuple[str, ...]
) -> KeyEntry:
    """Return the first key of a store that has a certificate, as Java looks for one."""
    at = "ssl.keystore.location"
    location, key_password = properties.get(at), properties.text("ssl.key.password")
    place = f"{properties.place(at)}: {location}"
    entries = _entries(properties, "ssl.keystore", data, password)
    keys = [each for each in entries if each.hidden_key is not None and each.chain]
    if not keys:
        has_any = any(each.hidden_key is not None for each in entries)
        which = " with a certificate" if has_any else ""
        raise properties.error(at, f"{location} has no private key{which}")
    first = keys[0]
    if len(keys) > 1:
        warnings += (f"{place} has {len(keys)} keys: that of {first.alias!r} is used",)
    try:
        key = open_key(first.hidden_key or b"", password if key_password is None else key_password)
    except StoreError as error:
        if error.is_password and key_password is not None:
            at = "ssl.key.password"
        advice = "; set ssl.key.password" if error.is_password and key_password is None else ""
        raise properties.error(at, f"{location}: {error}{advice}") from error
    return KeyEntry(key, first.chain, place, warnings)


def _store_roots(properties: Properties, data: bytes, password: str | None) -> tuple[bytes, ...]:
    """Return what Java trusts: trusted certificates, and of each key its own certificate alone."""
    at = "ssl.truststore.location"
    entries = _entries(properties, "ssl.truststore", data, password)
    found = tuple(each.chain[0] for each in entries if each.chain)
    if found:
        return found
    location = properties.get(at)
    if password is None and not data.startswith(JKS_MAGIC):
        # Java leaves out what is encrypted, and then trusts nobody.
        raise properties.error(at, "a PKCS12 store needs ssl.truststore.password")
    problem = (
        f"{location} has no trusted certificates: Java counts those that keytool -importcert has "
        "added, not those of openssl pkcs12; add them so, or use a file of PEM with "
        "ssl.truststore.type=PEM"
    )
    raise properties.error(at, problem)
