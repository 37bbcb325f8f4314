"""The guards of a node's listeners, and how it secures its own connections.

Owns where logins get users, randomness, clocks and the answer to ApiVersions from: SCRAM users are
those of the committed records, and until these are known those of the own log if controllers need
them to elect a leader; users of PLAIN stand in the listener's JAAS entry (SEC-S20, SEC-S35,
SEC-S37).
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import trio

from kraftwire.errors import UsageError
from kraftwire.messages.api_versions_response import ApiVersionsResponse
from kraftwire.node.config import Listener, NodeConfig
from kraftwire.node.config_security import ListenerSecurity, SignedTokens
from kraftwire.node.context import Context, has_caught_up
from kraftwire.node.guard import Accept, Guard
from kraftwire.node.handlers import api_versions
from kraftwire.node.handlers.versions import offered
from kraftwire.node.key_set_file import KeySetFile
from kraftwire.node.logs import log
from kraftwire.node.scram_quorum import ScramUsers
from kraftwire.properties import Properties
from kraftwire.security.credentials import GSSAPI, OAUTHBEARER, PLAIN, PlainUsers
from kraftwire.security.decoys import Decoys
from kraftwire.security.jaas import JaasEntry
from kraftwire.security.kerberos import KerberosAccount, KerberosServer
from kraftwire.security.local_names import LocalNames
from kraftwire.security.mapping import PrincipalMapper
from kraftwire.security.oauth import BearerToken, OAuthServer, UnsecuredValidator
from kraftwire.security.plain import PlainServer
from kraftwire.security.sasl_server import LoginSettings, MechanismServer
from kraftwire.security.scram import ScramCredential, ScramServer, ScramUser, mechanism_number
from kraftwire.security.tokens import DelegationTokens, has_expired
from kraftwire.transport.streams import Stream

if TYPE_CHECKING:
    from kraftwire.node.key_set_url import KeySetUrl
    from kraftwire.security.reloading import ReloadedTls
    from kraftwire.transport.client_security import ClientSecurity
    from kraftwire.transport.handshakes import Handshakes
    from kraftwire.transport.paced_stream import PacedStream

_LOCAL_NAMES = "sasl.kerberos.principal.to.local.rules"
_JAAS = "sasl.jaas.config"

# How often the files of stores are looked at.
_STORES_SECONDS = 2.0

# So many credentials of tokens are kept.
_CREDENTIALS_MAX = 4096


def client_security(config: NodeConfig) -> ClientSecurity | None:
    """Return how connections to controllers are secured (SEC-T4); None if they are not.

    Raises: UsageError with file, line and key.
    """
    if config.security.client is None:
        return None
    from kraftwire.transport.client_security import ClientSecurity

    return ClientSecurity(config.security.client)


def stores_of(config: NodeConfig) -> dict[str, ReloadedTls]:
    """Return the contexts of the listeners that have TLS, by name.

    Raises: UsageError with file, line and key for what cannot be used.
    """
    listeners = config.security.listeners
    secured = {name: each.settings for name, each in listeners.items() if each.settings.is_tls}
    if not secured:
        return {}
    # Neither Python's ssl nor a library is loaded for listeners without TLS.
    from kraftwire.security.reloading import ReloadedTls
    from kraftwire.security.tls import server_tls

    return {name: ReloadedTls(settings, server_tls) for name, settings in secured.items()}


def store_warnings(stores: Iterable[ReloadedTls]) -> list[str]:
    """Return the warnings about stores; several ends may share one, which counts once."""
    return list(dict.fromkeys(text for each in stores for text in each.tls.warnings))


async def follow_stores(
    stores: Sequence[ReloadedTls], configuration: Callable[[], Mapping[str, str]]
) -> None:
    """Read stores again when their files change, until cancelled (SEC-T19), or when the committed
    `configuration` of this node names others (SEC-T25).

    What is not acceptable is logged, and the old store stays. A certificate in use that is not
    valid is logged once, at the start too.
    """
    lapses: set[str] = set()
    while True:
        now = datetime.now(UTC)
        # Several ends may share a store.
        for text in sorted({each.validity_problem(now) or "" for each in stores} - lapses - {""}):
            log("error", "certificate-refused", problem=text)
            lapses.add(text)
        await trio.sleep(_STORES_SECONDS)
        changes = dict(configuration())
        for each in stores:
            try:
                changed = await trio.to_thread.run_sync(each.refresh, datetime.now(UTC), changes)
            except UsageError as error:
                log("error", "store-kept-out", problem=error)
                continue
            if changed is not None:
                log("info", "store-replaced", text=changed)


def guards_of(
    config: NodeConfig,
    context: Context,
    stores: Mapping[str, ReloadedTls],
    users: ScramUsers | None,
) -> dict[str, Guard]:
    """Return the guards of the listeners that have TLS or logins, by name.

    `users` are those of SCRAM until the committed ones are known, if not those of the image.
    Raises: UsageError with file, line and key for what cannot be used.
    """
    handshakes = None
    if stores:
        from kraftwire.transport.handshakes import Handshakes

        handshakes = Handshakes()
    scram_users = _UsersOfLog(context, users)
    found = {}
    for listener in config.listeners:
        if listener.name in config.security.listeners:
            accept = _accept(handshakes, stores.get(listener.name))
            security = config.security.listeners[listener.name]
            found[listener.name] = _guard(security, listener, context, accept, scram_users)
    return found


def _accept(handshakes: Handshakes | None, stores: ReloadedTls | None) -> Accept | None:
    if handshakes is None or stores is None:
        return None

    async def accept(stream: PacedStream) -> tuple[Stream, bytes | None]:
        return await handshakes.accept(stream, stores.tls)

    return accept


def _guard(
    security: ListenerSecurity,
    listener: Listener,
    context: Context,
    accept: Accept | None,
    users: _UsersOfLog,
) -> Guard:
    settings = security.settings
    subject_of: Callable[[bytes], str] = _no_subject
    if settings.is_tls:
        from kraftwire.security.names import distinguished_name

        subject_of = distinguished_name
    rules = settings.properties.get("ssl.principal.mapping.rules") or "DEFAULT"
    try:
        mapper = PrincipalMapper(rules)
    except UsageError as error:
        raise settings.properties.error("ssl.principal.mapping.rules", str(error)) from None
    logins = None
    if settings.is_sasl:
        versions = offered(is_controller=listener.is_controller, is_client=listener.is_client)
        logins = login_settings(security, users, partial(_versions, versions, context))
    return Guard(accept, logins, mapper, subject_of)


def _versions(
    versions: Mapping[int, tuple[int, int]], context: Context, version: int
) -> ApiVersionsResponse:
    return api_versions.answer(versions, version, context)


def _no_subject(_: bytes) -> str:
    raise UsageError("a listener without TLS sees no certificates")


def login_settings(
    security: ListenerSecurity,
    users: _UsersOfLog,
    versions: Callable[[int], ApiVersionsResponse],
) -> LoginSettings:
    """Return the settings that all logins of a listener share."""
    return LoginSettings(
        {
            mechanism: _maker(mechanism, entry, users, security)
            for mechanism, entry in security.mechanisms.items()
        },
        security.max_lifetime_ms,
        versions,
        security.receive_max_bytes,
    )


def _maker(
    mechanism: str,
    entry: JaasEntry,
    users: _UsersOfLog,
    security: ListenerSecurity,
) -> Callable[[], MechanismServer]:
    if mechanism == PLAIN:
        passwords = PlainUsers(entry)
        return lambda: PlainServer(passwords.password)
    if mechanism == OAUTHBEARER:
        place = security.settings.properties.place(_JAAS, OAUTHBEARER)
        validate = _validator(entry, security.tokens, place)
        return lambda: OAuthServer(validate)
    if mechanism == GSSAPI:
        return _kerberos(entry, security.settings.properties)

    find, decoy_of = partial(users.find, mechanism), partial(users.decoy_of, mechanism)
    return lambda: ScramServer(
        mechanism,
        find,
        nonce=secrets.token_urlsafe(24),
        decoy_of=decoy_of,
        are_known=users.are_known,
    )


def _kerberos(entry: JaasEntry, properties: Properties) -> Callable[[], MechanismServer]:
    """Return a factory of the listener's side of GSSAPI (SEC-S51).

    Raises: UsageError with file, line and key for rules or keys that cannot be used.
    """
    # The library is loaded where a listener needs it.
    from kraftwire.transport.kerberos import Acceptors, default_realm

    try:
        names = LocalNames(properties.listed(_LOCAL_NAMES), default_realm)
    except UsageError as error:
        raise properties.error(_LOCAL_NAMES, str(error)) from None
    try:
        acceptors = Acceptors(KerberosAccount.of(entry, is_server=True))
    except UsageError as error:
        raise properties.error(_JAAS, str(error), GSSAPI) from None
    return lambda: KerberosServer(acceptors.next(), names.name)


def _validator(
    entry: JaasEntry, tokens: SignedTokens | None, place: str
) -> Callable[[str], BearerToken]:
    """Return the validator of tokens. Raises: UsageError if there are no keys."""
    if tokens is None:
        unsecured = UnsecuredValidator.of(entry.options)
        return lambda token: unsecured.validate(token, time.time_ns() // 1_000_000)
    checks, keys = tokens.checks, _keys(tokens, entry, place)
    return lambda token: keys.validate(token, checks, time.time_ns() // 1_000_000)


def _keys(tokens: SignedTokens, entry: JaasEntry, place: str) -> KeySetFile | KeySetUrl:
    if tokens.path:
        return KeySetFile(tokens.path)
    # A client of HTTP is loaded where a listener needs it.
    from kraftwire.node.key_set_url import KeySetUrl
    from kraftwire.security.tls import provider_tls

    return KeySetUrl(tokens.url, tokens.refresh, provider_tls(entry.options, place))


class _UsersOfLog:
    """The users and tokens of SCRAM: the committed ones, once it is known what is committed.

    Order: `before` counts until then, and never again.
    """

    def __init__(self, context: Context, before: ScramUsers | None) -> None:
        settings = context.config.security.tokens
        self._context = context
        self._before = before
        self._is_known = False
        self._own_secret = secrets.token_bytes(32)
        self._credential: Callable[[str, str, bytes], ScramCredential] | None = None
        if settings is not None:
            # Each costs milliseconds once.
            self._credential = lru_cache(_CREDENTIALS_MAX)(DelegationTokens(settings).credential)

    def are_known(self) -> bool:
        """Return whether a user that is not found does not exist (SEC-S35)."""
        # Later records are a matter of moments.
        self._is_known = self._is_known or has_caught_up(self._context)
        if self._is_known:
            self._before = None
        return self._is_known

    def find(self, mechanism: str, name: str, is_token: bool) -> ScramUser | None:
        """Return a user by name, or the owner of a token by its id."""
        return self._token(mechanism, name) if is_token else self._user(mechanism, name)

    def decoy_of(self, mechanism: str, name: str, is_token: bool) -> ScramCredential:
        """Return a decoy: the credential of a user, or of a token, that does not exist."""
        log_or_image = self._before or self._context.image
        secret = log_or_image.decoy_secret
        # There is none yet if no controller that takes SCRAM has led (C-ACT-5).
        decoys = Decoys(
            self._own_secret if secret is None else secret.encode(),
            log_or_image.scram.forms(mechanism_number(mechanism)),
        )
        return decoys.token(mechanism, name) if is_token else decoys.user(mechanism, name)

    def _user(self, mechanism: str, name: str) -> ScramUser | None:
        log_or_image = self._before or self._context.image
        credential = log_or_image.scram.find(name, mechanism_number(mechanism))
        return None if credential is None else ScramUser(name, credential)

    def _token(self, mechanism: str, token_id: str) -> ScramUser | None:
        token = self._context.image.tokens.get(token_id)
        now_ms = time.time_ns() // 1_000_000
        if self._credential is None or token is None or has_expired(token, now_ms):
            return None
        owner = token.owner.partition(":")[2]
        salt = self.decoy_of(mechanism, token_id, True).salt
        credential = self._credential(mechanism, token_id, salt)
        return ScramUser(owner, credential, token.expiration_timestamp)
