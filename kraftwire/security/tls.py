"""Kafka's `ssl.*` properties as contexts of Python's own `ssl`.

`ssl` loads private keys from files alone. A key is handed over in a file that exists only in
memory, elsewhere in one that only this user can read and that is removed at once.

Source: SEC-T10 to SEC-T14, SEC-T21; Kafka's `DefaultSslEngineFactory`.
"""

from __future__ import annotations

import os
import re
import ssl
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from kraftwire.errors import UsageError
from kraftwire.properties import Properties
from kraftwire.security.host_check import HostCheckingContext
from kraftwire.security.pem import KEY, pem_block
from kraftwire.security.settings import SSL, SecuritySettings
from kraftwire.security.stores import KeyEntry, read_key, read_roots

_VERSIONS = {
    "TLSv1": ssl.TLSVersion.TLSv1,
    "TLSv1.1": ssl.TLSVersion.TLSv1_1,
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}
_OFF = {
    "TLSv1.1": ssl.OP_NO_TLSv1_1,
    "TLSv1.2": ssl.OP_NO_TLSv1_2,
}
_ENABLED = "ssl.enabled.protocols"
_DEFAULT_VERSIONS = ("TLSv1.2", "TLSv1.3")
_SUITES = "ssl.cipher.suites"
_SUITES_13 = (
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
)
_CLIENT_AUTH = "ssl.client.auth"
_CLIENT_AUTHS = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
# OpenSSL's reasons for a key that is not the certificate's; the last one, if they differ in kind.
_MISMATCHES = ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH", "NO_CERTIFICATE_ASSIGNED")
_ENDPOINT = "ssl.endpoint.identification.algorithm"


@dataclass(frozen=True, slots=True)
class TlsContext:
    """A context, and what messages and checks need besides.

    `suites` are OpenSSL's names of all cipher suites allowed, None for any: Python cannot choose
    those of TLS 1.3, so the one agreed on is checked after the handshake. `has_key` says whether
    this end shows a certificate, which is `certificate` in DER, `has_roots` whether it has a trust
    store of its own.
    """

    context: ssl.SSLContext = field(repr=False)
    has_key: bool
    has_roots: bool
    suites: frozenset[str] | None = None
    warnings: tuple[str, ...] = ()
    certificate: bytes | None = None

    def allows(self, suite: str) -> bool:
        """Return whether a cipher suite, by OpenSSL's name, may be used."""
        return self.suites is None or suite in self.suites


def client_tls(settings: SecuritySettings) -> TlsContext:
    """Return the context of a client.

    Raises: UsageError with file, line and key for what cannot be used.
    """
    properties = settings.properties
    context = HostCheckingContext(ssl.PROTOCOL_TLS_CLIENT)
    context.checks_host = _checks_host(properties)
    # Java trusts what is in the store, an intermediate or a node's own certificate included.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    suites = _restrict_protocols(context, properties)
    roots = read_roots(properties)
    if roots is None:
        context.is_public = True
        context.load_default_certs()
    else:
        _load_roots(context, properties, roots)
    key = read_key(properties)
    if key is not None:
        _load_key(context, key)
    shown, warnings = (key.chain[0], key.warnings) if key is not None else (None, ())
    return TlsContext(context, key is not None, roots is not None, suites, warnings, shown)


def provider_tls(options: Mapping[str, str], place: str) -> TlsContext | None:
    """Return how a provider of tokens or keys is verified: `ssl.*` among the options of a JAAS
    entry; None for the platform's authorities.

    Source: SEC-S43; `JaasOptionsUtils.getSslClientConfig`. Raises: UsageError for what cannot be
    used.
    """
    found = {key: value for key, value in options.items() if key.startswith("ssl.")}
    if not found:
        return None
    return client_tls(SecuritySettings(SSL, Properties.of(found, place)))


def server_tls(settings: SecuritySettings) -> TlsContext:
    """Return the context of a listener (SEC-T10, SEC-T15).

    Raises: UsageError with file, line and key for what cannot be used.
    """
    properties = settings.properties
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    suites = _restrict_protocols(context, properties)
    key = read_key(properties)
    if key is None:
        raise properties.error("ssl.keystore.location", "missing, and a TLS listener needs a key")
    _load_key(context, key)
    wanted = (properties.get(_CLIENT_AUTH) or "none").lower()
    if wanted not in _CLIENT_AUTHS:
        known = ", ".join(_CLIENT_AUTHS)
        raise properties.error(_CLIENT_AUTH, f"expected one of {known}, found {wanted!r}")
    own = f"listener.name.{(properties.listener or '').lower()}.{_CLIENT_AUTH}"
    if settings.is_sasl and properties.place(_CLIENT_AUTH).rpartition(" ")[2] != own:
        # Where clients log in, a certificate is asked for only by the listener's own key.
        wanted = "none"
    roots = read_roots(properties) if wanted != "none" else None
    warnings = key.warnings
    if wanted != "none":
        context.verify_mode = _CLIENT_AUTHS[wanted]
        if roots is None:
            context.load_default_certs(ssl.Purpose.CLIENT_AUTH)
            place = properties.place("ssl.truststore.location")
            text = f"{place}: not set, so clients of every authority of this system are accepted"
            warnings += (text,)
        else:
            _load_roots(context, properties, roots)
    return TlsContext(context, True, roots is not None, suites, warnings, key.chain[0])


def unverified_tls() -> ssl.SSLContext:
    """Return a context that trusts everybody: to look at a certificate, never to send a secret."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def openssl_cipher(name: str) -> str | None:
    """Return OpenSSL's name of a cipher suite from its IANA name; None if it is not one.

    The suites of TLS 1.3 have one name in both.
    """
    if name in _SUITES_13:
        return name
    exchange, found, rest = name.removeprefix("TLS_").partition("_WITH_")
    if not found or not name.startswith("TLS_"):
        return None
    rest = rest.replace("AES_128", "AES128").replace("AES_256", "AES256")
    rest = rest.replace("ARIA_128", "ARIA128").replace("ARIA_256", "ARIA256")
    rest = rest.replace("CAMELLIA_128", "CAMELLIA128").replace("CAMELLIA_256", "CAMELLIA256")
    if "CAMELLIA" not in rest:
        rest = rest.replace("_CBC_", "_")
    if rest.startswith("CHACHA20_POLY1305"):
        rest = "CHACHA20_POLY1305"
    parts = [] if exchange == "RSA" else [exchange]
    known = "-".join([*parts, rest]).replace("_", "-")
    return known if known in _available_ciphers() else None


def _available_ciphers() -> frozenset[str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_ciphers("ALL:@SECLEVEL=0")
    return frozenset(each["name"] for each in context.get_ciphers())


def _checks_host(properties: Properties) -> bool:
    value = properties.get(_ENDPOINT)
    if value is None:
        return not properties.has(_ENDPOINT)
    if value.lower() != "https":
        raise properties.error(_ENDPOINT, f"expected https or nothing, found {value!r}")
    return True


def _restrict_protocols(context: ssl.SSLContext, properties: Properties) -> frozenset[str] | None:
    """Set the versions of TLS and the cipher suites; returns the suites."""
    versions = properties.listed(_ENABLED) or list(_DEFAULT_VERSIONS)
    for name in versions:
        if name not in _VERSIONS:
            known = ", ".join(_VERSIONS)
            raise properties.error(_ENABLED, f"expected some of {known}, found {name!r}")
    if not set(versions).intersection(_DEFAULT_VERSIONS) and _has_modern_alone(context):
        problem = f"this OpenSSL has {' and '.join(_DEFAULT_VERSIONS)} alone"
        raise properties.error(_ENABLED, f"{problem}, found {', '.join(versions)}")
    names = properties.listed(_SUITES)
    if not names:
        _set_versions(context, versions)
        return None
    suites = [_openssl_suite(properties, name) for name in names]
    older = [each for each in suites if each not in _SUITES_13]
    if older:
        context.set_ciphers(":".join(older))
    has_newer = len(older) < len(suites)
    usable = [v for v in versions if (has_newer if v == "TLSv1.3" else bool(older))]
    if not usable:
        problem = f"none of these belongs to a protocol of {_ENABLED}: {', '.join(versions)}"
        raise properties.error(_SUITES, problem)
    _set_versions(context, usable)
    return frozenset(suites)


def _openssl_suite(properties: Properties, name: str) -> str:
    found = openssl_cipher(name)
    if found is None:
        known = "expected IANA's names, such as TLS_AES_256_GCM_SHA384"
        problem = f"{name} is no cipher suite that this OpenSSL has: {known}"
        raise properties.error(_SUITES, problem)
    return found


def _has_modern_alone(context: ssl.SSLContext) -> bool:
    """Whether the library refuses what is older than TLS 1.2, as it does above level 0."""
    return ssl.OPENSSL_VERSION_INFO >= (3,) and context.security_level > 0


def _set_versions(context: ssl.SSLContext, names: list[str]) -> None:
    ordered = [name for name in _VERSIONS if name in names]
    context.minimum_version = _VERSIONS[ordered[0]]
    context.maximum_version = _VERSIONS[ordered[-1]]
    between = list(_VERSIONS)[list(_VERSIONS).index(ordered[0]) :]
    for name in between[: between.index(ordered[-1])]:
        if name not in ordered:
            context.options |= _OFF[name]


def _load_roots(context: ssl.SSLContext, properties: Properties, roots: tuple[bytes, ...]) -> None:
    try:
        context.load_verify_locations(cadata=b"".join(roots))
    except ssl.SSLError as error:
        key = "ssl.truststore.certificates"
        key = key if properties.get(key) is not None else "ssl.truststore.location"
        problem = f"a certificate cannot be read: {_openssl_reason(error)}"
        raise properties.error(key, problem) from error


def _load_key(context: ssl.SSLContext, entry: KeyEntry) -> None:
    """Give a context a key and its chain. Raises: UsageError if they do not belong together."""
    text = pem_block(KEY, entry.key)
    text += "".join(pem_block("CERTIFICATE", each) for each in entry.chain)
    try:
        with _private_file(text.encode()) as path:
            context.load_cert_chain(path)
    except ssl.SSLError as error:
        if error.reason in _MISMATCHES:
            problem = "the private key does not belong to the certificate"
        else:
            problem = f"key or certificate cannot be used: {_openssl_reason(error)}"
        raise UsageError(f"{entry.place}: {problem}") from error


@contextmanager
def _private_file(content: bytes) -> Iterator[str]:
    """A file that nobody else sees, for as long as the block lasts."""
    if hasattr(os, "memfd_create"):
        handle = os.memfd_create("key", os.MFD_CLOEXEC)
        try:
            os.write(handle, content)
            yield f"/proc/self/fd/{handle}"
        finally:
            os.close(handle)
        return
    handle, path = tempfile.mkstemp(prefix="kraftwire-")  # mode 0600
    try:
        os.write(handle, content)
        os.close(handle)
        yield path
    finally:
        os.unlink(path)


def _openssl_reason(error: ssl.SSLError) -> str:
    text = error.reason or re.sub(r" *\(_ssl\.c:\d+\)$", "", str(error))
    return text.replace("_", " ").lower()
