"""How a node's listeners and its own connections are secured, from its properties.

Rules SEC-T1 to SEC-T5, SEC-A1. What restricts who may do what is understood in full or ends the
start: a node never serves a listener as less than its properties say.

Source: Kafka's `SecurityConfig`, `JaasContext.loadServerContext`, `AuthorizerUtils`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

from kraftwire.errors import UsageError
from kraftwire.properties import Properties
from kraftwire.security.acls import parse_super_users
from kraftwire.security.credentials import (
    GSSAPI,
    MECHANISMS,
    OAUTHBEARER,
    PLAIN,
    SCRAM_SHA_256,
    SCRAM_SHA_512,
    check_module,
)
from kraftwire.security.jaas import JaasEntry, JaasError, parse_entry
from kraftwire.security.jwks import KeyRefresh, TokenChecks
from kraftwire.security.kerberos import KerberosAccount
from kraftwire.security.oauth import UnsecuredValidator
from kraftwire.security.principal import Principal, parse_principal
from kraftwire.security.settings import (
    OWN_MACHINE,
    PLAINTEXT,
    SecuritySettings,
    client_settings,
    url_parts,
)
from kraftwire.security.tokens import TokenSettings

_AUTHORIZER = "authorizer.class.name"
_AUTHORIZERS = ("org.apache.kafka.metadata.authorizer.StandardAuthorizer", "StandardAuthorizer")
_RULES = "ssl.principal.mapping.rules"
_BLANK_AT_START = re.compile(r"^\s|\s:|^[^:]*:\s")
_BLANK_AFTER_COMMA = re.compile(r",\s+[A-Za-z0-9.]+=")
_ALLOW = "allow.everyone.if.no.acl.found"
# Keys that restrict nothing without an authorizer.
_OF_AUTHORIZER = ("super.users", _ALLOW)
_VOTERS = "kraftwire.voter.principals"
_BUILDER = "principal.builder.class"
_BUILDERS = ("org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",)

_MECHANISMS = "sasl.enabled.mechanisms"
_JAAS = "sasl.jaas.config"
_HANDLER = "sasl.server.callback.handler.class"
_SECURITY = "org.apache.kafka.common.security."
_SIGNED = f"{_SECURITY}oauthbearer.OAuthBearerValidatorCallbackHandler"
_UNSECURED = (
    f"{_SECURITY}oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
)
# The classes that do what happens here anyway.
_HANDLERS = {
    PLAIN: f"{_SECURITY}plain.internals.PlainServerCallbackHandler",
    "SCRAM-SHA-256": f"{_SECURITY}scram.internals.ScramServerCallbackHandler",
    "SCRAM-SHA-512": f"{_SECURITY}scram.internals.ScramServerCallbackHandler",
    GSSAPI: f"{_SECURITY}authenticator.SaslServerCallbackHandler",
}
_BEARER = "sasl.oauthbearer."
_KEYS_URL = "sasl.oauthbearer.jwks.endpoint.url"
_OWN_MACHINE = tuple(("http", host) for host in OWN_MACHINE)
# Keys that say which key, certificate or login to use.
_SECURING = re.compile(r"(?:listener\.name\..*\.)?(?:ssl\.(?:key|trust)|ssl\.client|sasl\.)")
_NEXT_PRINCIPAL = re.compile(r",\s*(?:\d+:)?User:")
_REAUTH = "connections.max.reauth.ms"
_RECEIVE = "sasl.server.max.receive.size"
_RECEIVE_MAX = 524288


@dataclass(frozen=True, slots=True)
class SignedTokens:
    """How tokens are verified: the provider's keys, and what claims have to say.

    The keys are in the file `path`, or without one at `url`.
    """

    path: str
    url: str
    checks: TokenChecks
    refresh: KeyRefresh


@dataclass(frozen=True, slots=True)
class ListenerSecurity:
    """How a listener is secured. `mechanisms` are those enabled, with their JAAS entries.

    `max_lifetime_ms` is that of a session, by mechanism, 0 for none. `tokens` are those of
    OAUTHBEARER; None for tokens without a signature. The repr has no secret.
    """

    settings: SecuritySettings
    mechanisms: Mapping[str, JaasEntry] = field(default_factory=dict)
    max_lifetime_ms: Mapping[str, int] = field(default_factory=dict)
    receive_max_bytes: int = _RECEIVE_MAX
    tokens: SignedTokens | None = None

    @property
    def protocol(self) -> str:
        """One of Kafka's four."""
        return self.settings.protocol


@dataclass(frozen=True, slots=True)
class AuthorizerSettings:
    """The settings of StandardAuthorizer."""

    super_users: frozenset[str]
    allow_if_no_acl: bool


@dataclass(frozen=True, slots=True)
class NodeSecurity:
    """How a node is secured. `listeners` has those that are not PLAINTEXT.

    `client` is for connections to controllers; None if they are PLAINTEXT. Without an `authorizer`
    everybody may do everything. `voter_principals` says who may speak for a voter. Without `tokens`
    there are no delegation tokens.
    """

    listeners: Mapping[str, ListenerSecurity] = field(default_factory=dict)
    client: SecuritySettings | None = None
    authorizer: AuthorizerSettings | None = None
    voter_principals: Mapping[int, Principal] = field(default_factory=dict)
    tokens: TokenSettings | None = None

    @property
    def is_plain(self) -> bool:
        """Whether nothing is encrypted and nobody logs in."""
        return not self.listeners and self.client is None

    @property
    def has_scram(self) -> bool:
        """Whether clients log in at a listener by SCRAM."""
        mechanisms = (name for each in self.listeners.values() for name in each.mechanisms)
        return not {SCRAM_SHA_256, SCRAM_SHA_512}.isdisjoint(mechanisms)


def read_security(properties: Properties, protocols: Mapping[str, str]) -> NodeSecurity:
    """Read how a node is secured; `protocols` has that of each of its listeners.

    Raises: UsageError with file, line and key for what cannot be used.
    """
    secured = {name: protocol for name, protocol in protocols.items() if protocol != PLAINTEXT}
    client = None
    if properties.has("process.roles"):
        client = client_settings(properties)
    elif secured:
        name, protocol = next(iter(secured.items()))
        problem = f"listener {name} is {protocol}, which needs process.roles"
        raise UsageError(f"{properties.path}: {problem}")
    _check_class(properties, _BUILDER, _BUILDERS)
    if not secured and (client is None or client.protocol == PLAINTEXT):
        _warn_of_unused(properties)
    return NodeSecurity(
        {name: _listener(properties, name, protocol) for name, protocol in secured.items()},
        client if client is not None and client.protocol != PLAINTEXT else None,
        _authorizer(properties),
        _voter_principals(properties),
        _tokens(properties),
    )


def _warn_of_unused(properties: Properties) -> None:
    """Warn of a node that looks secured, and is not: none of its listeners uses such a key."""
    for key in properties.names():
        if _SECURING.match(key) and properties.get(key):
            text = f"{properties.place(key)}: no listener is SSL or SASL, so nothing uses this key"
            properties.warnings.append(text)
            return


def _listener(properties: Properties, name: str, protocol: str) -> ListenerSecurity:
    view = properties.of_listener(name)
    _check_class(view, _BUILDER, _BUILDERS)
    settings = SecuritySettings(protocol, view)
    if not settings.is_sasl:
        return ListenerSecurity(settings)
    mechanisms = view.listed(_MECHANISMS) or [GSSAPI]
    for mechanism in mechanisms:
        if mechanism not in MECHANISMS:
            known = ", ".join(MECHANISMS)
            problem = f"{mechanism} is not supported: expected some of {known}"
            raise view.error(_MECHANISMS, problem)
    return ListenerSecurity(
        settings,
        {mechanism: _jaas(view, mechanism) for mechanism in mechanisms},
        {mechanism: view.integer(_REAUTH, mechanism) for mechanism in mechanisms},
        view.integer(_RECEIVE),
        _signed_tokens(view) if OAUTHBEARER in mechanisms else None,
    )


def _jaas(view: Properties, mechanism: str) -> JaasEntry:
    """Return the entry of a mechanism, which a listener has under its name alone (SEC-T3)."""
    key = f"{mechanism.lower()}.{_JAAS}"
    text = view.get(key)
    if text is None:
        own = f"listener.name.{(view.listener or '').lower()}.{key}"
        default = "" if view.has(_MECHANISMS) else ", the default mechanism,"
        needed = f"and {mechanism}{default} of the listener needs it"
        problem = f"{view.path}: {own} is not set, {needed}"
        if view.get(_JAAS) is not None:
            problem += f"; {_JAAS} without the mechanism before it is for clients"
        raise UsageError(problem)
    handler = view.get(_HANDLER, mechanism)
    if mechanism == OAUTHBEARER and handler is None:
        problem = (
            "not set, so Kafka would take tokens without a signature, which anybody can make: "
            f"name {_SIGNED}, or for tests {_UNSECURED}"
        )
        raise view.error(_HANDLER, problem, mechanism)
    known = (_SIGNED, _UNSECURED) if mechanism == OAUTHBEARER else (None, _HANDLERS[mechanism])
    if handler not in known:
        raise view.error(_HANDLER, f"Java's class {handler} is not supported", mechanism)
    try:
        entry = parse_entry(text)
        check_module(entry, mechanism)
        if mechanism == OAUTHBEARER:
            UnsecuredValidator.of(entry.options)
        if mechanism == GSSAPI:
            KerberosAccount.of(entry, is_server=True)
    except JaasError as error:
        raise view.error(key, str(error)) from None
    return entry


def _signed_tokens(view: Properties) -> SignedTokens | None:
    """Read how tokens are verified (SEC-S42); None for tokens without a signature."""
    if view.get(_HANDLER, OAUTHBEARER) != _SIGNED:
        return None
    url = view.get(_KEYS_URL, OAUTHBEARER)
    if url is None:
        raise view.error(_KEYS_URL, "missing: it names the provider's keys", OAUTHBEARER)
    try:
        parts = url_parts(url)
        path = unquote(parts.path) if parts.scheme == "file" else ""
        # An attacker on the network may answer with keys of their own.
        is_safe = parts.scheme == "https" or (parts.scheme, parts.hostname) in _OWN_MACHINE
    except ValueError:
        path, is_safe = "", False
    if not path and not is_safe:
        problem = "expected file:///PATH or https://... of the provider's key set"
        raise view.error(_KEYS_URL, f"{problem}, found {url!r}", OAUTHBEARER)
    for claim in ("audience", "issuer"):
        _check_expected(view, claim)
    checks = TokenChecks(
        frozenset(view.listed("sasl.oauthbearer.expected.audience")),
        view.get("sasl.oauthbearer.expected.issuer"),
        view.get("sasl.oauthbearer.sub.claim.name") or "sub",
        view.get("sasl.oauthbearer.scope.claim.name") or "scope",
        view.integer("sasl.oauthbearer.clock.skew.seconds", OAUTHBEARER),
    )
    refresh = KeyRefresh(
        view.integer("sasl.oauthbearer.jwks.endpoint.refresh.ms", OAUTHBEARER),
        view.integer("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", OAUTHBEARER),
        view.integer("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", OAUTHBEARER),
    )
    return SignedTokens(path, url, checks, refresh)


def _check_expected(view: Properties, claim: str) -> None:
    """Check that tokens for others are not taken without a word of the operator (SEC-S42)."""
    expected, allow = f"{_BEARER}expected.{claim}", f"{_BEARER}allow.unverified.{claim}"
    if not view.flag(allow) and not view.get(expected):
        raise view.error(expected, f"missing: without it set {allow}=true to take tokens of any")


def _check_class(properties: Properties, key: str, known: tuple[str, ...]) -> None:
    name = properties.get(key)
    if name is not None and name not in known:
        problem = f"Java's class {name} is not supported: expected {known[0]}"
        raise properties.error(key, problem)


def _authorizer(properties: Properties) -> AuthorizerSettings | None:
    """Read the authorizer's settings (SEC-A1).

    They are refused where they would have no effect: with the prefix of a listener, and without an
    authorizer, for a node that ignored them would let in whom they keep out.
    """
    for name in (_AUTHORIZER, *_OF_AUTHORIZER):
        for key in properties.names():
            if key.endswith(f".{name}") and properties.get(key):
                raise properties.error(key, f"no listener has its own: set {name}")
    name = properties.get(_AUTHORIZER) or ""
    if not name:
        for key in _OF_AUTHORIZER:
            if properties.has(key) and properties.get(key):
                problem = f"without {_AUTHORIZER} everybody may do everything"
                raise properties.error(key, f"{problem}: set it to {_AUTHORIZERS[0]}")
        return None
    _check_class(properties, _AUTHORIZER, _AUTHORIZERS)
    try:
        text = properties.get("super.users") or ""
        _check_separator(text)
        super_users = parse_super_users(text)
    except UsageError as error:
        raise properties.error("super.users", str(error)) from None
    _warn_of_blanks(properties, "super.users", super_users)
    # As in Kafka an empty one is false.
    allow = bool(properties.get(_ALLOW)) and properties.flag(_ALLOW)
    return AuthorizerSettings(super_users, allow)


def _tokens(properties: Properties) -> TokenSettings | None:
    """Return the settings of delegation tokens; an empty secret is none."""
    secret = properties.get("delegation.token.secret.key")
    return TokenSettings(secret.encode(), **properties.group("tokens")) if secret else None


def _voter_principals(properties: Properties) -> dict[int, Principal]:
    """Read ``1:User:CN=a;2:User:CN=b``: who may speak for a voter."""
    found: dict[int, Principal] = {}
    for part in filter(None, map(str.strip, (properties.get(_VOTERS) or "").split(";"))):
        number, _, text = part.partition(":")
        try:
            _check_separator(part)
            if not (number.isascii() and number.isdigit() and len(number) <= 10):
                raise UsageError("expected a voter's id")
            if int(number) in found:
                raise UsageError("each id once")
            found[int(number)] = parse_principal(text)
        except UsageError as error:
            problem = f"expected ID:TYPE:NAME;..., such as 1:User:CN=a, found {part!r}: {error}"
            raise properties.error(_VOTERS, problem) from None
    _warn_of_blanks(properties, _VOTERS, map(str, found.values()))
    return found


def _warn_of_blanks(properties: Properties, key: str, principals: Iterable[str]) -> None:
    """Warn of principals that nobody can be, above all names of certificates with blanks."""
    has_rules = any(name.endswith(_RULES) for name in properties.names())
    for each in sorted(principals):
        if _BLANK_AT_START.search(each):
            why = "neither type nor name begins or ends with a blank"
        elif not has_rules and _BLANK_AFTER_COMMA.search(each):
            why = "the name of a certificate has no blank after a comma"
        else:
            continue
        properties.warnings.append(f"{properties.place(key)}: {each!r} matches nobody: {why}")


def _check_separator(text: str) -> None:
    """Refuse principals that are separated by commas, which belong to names: they would be one."""
    found = _NEXT_PRINCIPAL.search(text)
    if found is not None:
        raise UsageError(f"expected ';' between principals, found {found[0]!r}")
