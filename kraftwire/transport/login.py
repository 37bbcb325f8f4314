"""Logins of clients, from Kafka's `sasl.*` properties; a secret never leaves its object by itself.

Source: SEC-S40 to SEC-S60; Kafka's `JaasContext`, `OAuthBearerLoginModule`.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import unquote

from kraftwire.errors import UsageError
from kraftwire.properties import Properties
from kraftwire.security.credentials import (
    GSSAPI,
    MECHANISMS,
    OAUTHBEARER,
    PLAIN,
    BearerCredentials,
    Credentials,
    PasswordCredentials,
    check_module,
    password_credentials,
)
from kraftwire.security.jaas import JaasEntry, JaasError, parse_entry
from kraftwire.security.kerberos import KerberosAccount, KerberosCredentials
from kraftwire.security.oauth import is_bearer_token, unsecured_credentials
from kraftwire.security.sasl_client import SaslClient
from kraftwire.security.settings import SecuritySettings, url_parts
from kraftwire.small_files import read_small_file

if TYPE_CHECKING:
    from kraftwire.transport.token_endpoint import TokenEndpoint

_JAAS = "sasl.jaas.config"
_TOKEN_URL = "sasl.oauthbearer.token.endpoint.url"
_HANDLER = "sasl.login.callback.handler.class"
# Kafka's class for tokens from an endpoint; without it, Java makes one without a signature.
_FROM_ENDPOINT = ".OAuthBearerLoginCallbackHandler"
# Kafka's keys for the client of an identity provider, and the older options of a JAAS entry.
_CLIENT_KEYS = {
    "sasl.oauthbearer.client.credentials.client.id": "clientId",
    "sasl.oauthbearer.client.credentials.client.secret": "clientSecret",
    "sasl.oauthbearer.scope": "scope",
}
_EXTENSION = "extension_"
_SERVICE, _SERVICE_OPTION = "sasl.kerberos.service.name", "serviceName"


@dataclass(frozen=True, slots=True)
class Login:
    """A mechanism and who logs in by it; `place` is that of the JAAS text, for messages.

    `mechanism_place` is that of the key with the mechanism. `is_slow` says that `begin` and the
    steps after it belong in a thread where others wait.
    """

    mechanism: str
    place: str
    mechanism_place: str
    user: str
    is_slow: bool
    _credentials: Callable[[str], Credentials] = field(repr=False)

    def begin(
        self, host: str, client_id: str, versions: dict[int, tuple[int, int]] | None
    ) -> SaslClient:
        """Begin one login at a host; `versions` are known if it renews a session.

        Raises: UsageError if a token can no longer be read; as `TokenEndpoint.token`.
        """
        nonce = secrets.token_urlsafe(24)
        return SaslClient(
            self.mechanism, self._credentials(host), nonce, client_id=client_id, versions=versions
        )


def login_of(settings: SecuritySettings) -> Login | None:
    """Return the login of a client; None without SASL.

    Raises: UsageError with file, line and key.
    """
    mechanism, properties = settings.mechanism, settings.properties
    if mechanism is None:
        return None
    if mechanism not in MECHANISMS:
        known = ", ".join(MECHANISMS)
        problem = f"{mechanism} is not supported: expected one of {known}"
        raise properties.error(settings.mechanism_key, problem)
    text = properties.get(_JAAS, mechanism)
    if text is None:
        is_set = properties.has(settings.mechanism_key)
        default = "" if is_set else f", the default of {settings.mechanism_key},"
        problem = f"missing, and {mechanism}{default} needs it: it names who logs in"
        raise properties.error(_JAAS, problem, mechanism)
    try:
        entry = parse_entry(text)
        check_module(entry, mechanism)
        find = _credentials(properties, entry, mechanism)
        is_remote = (properties.get(_TOKEN_URL) or "").startswith("http")
        first = None if is_remote else find("")
    except JaasError as error:
        is_set = properties.has(settings.mechanism_key)
        hint = "" if is_set else f"; {mechanism} is the default of {settings.mechanism_key}"
        raise properties.error(_JAAS, f"{error}{hint}", mechanism) from None
    user = first.username if isinstance(first, PasswordCredentials) else ""
    return Login(
        mechanism,
        properties.place(_JAAS, mechanism),
        properties.place(settings.mechanism_key),
        user,
        # A KDC is asked, or a password is hashed thousands of times.
        mechanism not in (PLAIN, OAUTHBEARER) or is_remote,
        find,
    )


def _credentials(
    properties: Properties, entry: JaasEntry, mechanism: str
) -> Callable[[str], Credentials]:
    """Return a function from host to credentials: a token is another one each time."""
    if mechanism == GSSAPI:
        return _kerberos(properties, entry)
    if mechanism != OAUTHBEARER:
        found = password_credentials(entry, mechanism)
        return lambda _: found
    url, handler = properties.get(_TOKEN_URL), properties.get(_HANDLER)
    if url is None and handler is not None and handler.endswith(_FROM_ENDPOINT):
        raise properties.error(_HANDLER, f"{_TOKEN_URL} is missing: it says where the token is")
    if url is None:
        return lambda _: unsecured_credentials(entry.options, time.time_ns() // 1_000_000)
    extensions = {
        key.removeprefix(_EXTENSION): value
        for key, value in entry.options.items()
        if key.startswith(_EXTENSION)
    }
    try:
        parts = url_parts(url)
    except ValueError as error:
        raise properties.error(_TOKEN_URL, f"no URL: {error}") from None
    if parts.scheme in ("http", "https") and parts.hostname:
        endpoint = _endpoint(properties, entry, url)
        return lambda _: BearerCredentials(endpoint.token(), extensions)
    if parts.scheme != "file":
        problem = f"expected file:///PATH or https://..., found scheme {parts.scheme!r}"
        raise properties.error(_TOKEN_URL, problem)
    path = unquote(parts.path)
    return lambda _: BearerCredentials(_token(properties, path), extensions)


def _kerberos(properties: Properties, entry: JaasEntry) -> Callable[[str], Credentials]:
    """Return a function from host to the context for its service (SEC-S50).

    Raises: JaasError for options that say too little; UsageError without the library or the keys.
    """
    from kraftwire.transport.kerberos import Initiators

    own, other = entry.options.get(_SERVICE_OPTION), properties.get(_SERVICE)
    if own and other and own != other:
        raise properties.error(_SERVICE, f"{other!r}, but {_SERVICE_OPTION} of the JAAS is {own!r}")
    if not (service := own or other):
        raise properties.error(_SERVICE, "missing, and GSSAPI needs it: expected such as kafka")
    account = KerberosAccount.of(entry)
    try:
        initiators = Initiators(account, service)
    except UsageError as error:
        raise properties.error(_JAAS, str(error), GSSAPI) from None
    return lambda host: KerberosCredentials(initiators.context_for(host))


def _endpoint(properties: Properties, entry: JaasEntry, url: str) -> TokenEndpoint:
    """Return an identity provider; the old options of the JAAS entry still count."""
    # They load an HTTP client and TLS, which other logins do not need.
    from kraftwire.security.tls import provider_tls
    from kraftwire.transport.token_endpoint import TokenEndpoint

    found = {}
    for key, option in _CLIENT_KEYS.items():
        found[option] = properties.get(key) or entry.options.get(option)
    for key, option in _CLIENT_KEYS.items():
        if found[option] is None and option != "scope":
            raise properties.error(key, f"missing, and {_TOKEN_URL} needs it")
    place = properties.place(_TOKEN_URL)
    tls = provider_tls(entry.options, properties.place(_JAAS, OAUTHBEARER))
    return TokenEndpoint(
        url, found["clientId"] or "", found["clientSecret"] or "", found["scope"], place, tls
    )


def _token(properties: Properties, path: str) -> str:
    """Read a token again: another program keeps it fresh."""
    try:
        token = read_small_file(path).decode("ascii").strip()
    except OSError as error:
        raise properties.error(_TOKEN_URL, f"{path}: {error.strerror or error}") from error
    except UnicodeDecodeError:
        raise properties.error(_TOKEN_URL, f"{path} has no token: expected ASCII") from None
    if not token:
        raise properties.error(_TOKEN_URL, f"{path} is empty")
    if not is_bearer_token(token):
        raise properties.error(_TOKEN_URL, f"{path} has no token: expected one word")
    return token


