"""How one end secures its connections, from Kafka's properties of a client, node or program.

A key of a listener wins over the key alone (SEC-T2, SEC-T3). No value appears in an error or a repr
unless it is harmless.

Source: Kafka's `CommonClientConfigs`, `SslConfigs` and `SaslConfigs`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from kraftwire.properties import Properties
from kraftwire.properties_file import suggestion
from kraftwire.protocol.kafka_keys import kafka_keys

PLAINTEXT, SSL = "PLAINTEXT", "SSL"
SASL_PLAINTEXT, SASL_SSL = "SASL_PLAINTEXT", "SASL_SSL"
PROTOCOLS = (PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL)

_PROTOCOL = "security.protocol"
_MECHANISM = "sasl.mechanism"
# Of the keys of TLS and SASL, those that brokers and controllers do not have.
_CLIENT_KEYS = {_MECHANISM, "sasl.oauthbearer.header.urlencode"}
_GSSAPI = "GSSAPI"
_TOKEN_URL = "sasl.oauthbearer.token.endpoint.url"
# The secret that a login shows as it is: to the node, and without TLS to whoever is on the way.
_SENT_IN_CLEAR = {"PLAIN": "password", "OAUTHBEARER": "token"}
OWN_MACHINE = ("localhost", "127.0.0.1", "::1")
_OF_LISTENER = re.compile(r"listener\.name\.[^.]+\.(?:.*\.)?(?:ssl|sasl)\.")

# Classes of Java that a file may name: nothing here can load them, so they must not go unnoticed.
_CLASS_KEYS = (
    "sasl.client.callback.handler.class",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "security.providers",
    "ssl.engine.factory.class",
    "ssl.provider",
)
# Kafka's own classes for what happens here anyway.
_CLASSES_HERE = (
    "org.apache.kafka.common.security.ssl.DefaultSslEngineFactory",
    "org.apache.kafka.common.security.authenticator.DefaultLogin",
    "org.apache.kafka.common.security.kerberos.KerberosLogin",
    "org.apache.kafka.common.security.kerberos.KerberosClientCallbackHandler",
    "org.apache.kafka.common.security.authenticator.AbstractLogin$DefaultLoginCallbackHandler",
    "org.apache.kafka.common.security.authenticator.SaslClientCallbackHandler",
    "org.apache.kafka.common.security.scram.internals.ScramSaslClientCallbackHandler",
    "org.apache.kafka.common.security.oauthbearer.internals.OAuthBearerSaslClientCallbackHandler",
    "org.apache.kafka.common.security.oauthbearer.internals.unsecured."
    "OAuthBearerUnsecuredLoginCallbackHandler",
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler",
    "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler",
)

# The keys of librdkafka's clients, and Kafka's for the same (SEC-C6).
_FOREIGN = {
    "sasl.mechanisms": "sasl.mechanism",
    "sasl.password": "sasl.jaas.config",
    "sasl.username": "sasl.jaas.config",
    "ssl.ca.location": "ssl.truststore.type=PEM and ssl.truststore.location",
    "ssl.ca.pem": "ssl.truststore.type=PEM and ssl.truststore.certificates",
    "ssl.certificate.location": "ssl.keystore.type=PEM and ssl.keystore.location",
    "ssl.certificate.pem": "ssl.keystore.type=PEM and ssl.keystore.certificate.chain",
    "ssl.key.location": "ssl.keystore.type=PEM and ssl.keystore.location",
    "ssl.key.pem": "ssl.keystore.type=PEM and ssl.keystore.key",
}


@dataclass(frozen=True, slots=True)
class SecuritySettings:
    """How one end secures its connections: the protocol, and the properties with the rest.

    `mechanism` is None without SASL. `mechanism_key` is the key that sets it. `warnings` are for
    people, a line each.
    """

    protocol: str
    properties: Properties
    mechanism: str | None = None
    mechanism_key: str = _MECHANISM
    warnings: tuple[str, ...] = ()

    @property
    def is_tls(self) -> bool:
        """Whether connections are encrypted."""
        return self.protocol in (SSL, SASL_SSL)

    @property
    def is_sasl(self) -> bool:
        """Whether connections begin with a login."""
        return self.protocol in (SASL_PLAINTEXT, SASL_SSL)


def client_settings(properties: Properties, *, to_controllers: bool = True) -> SecuritySettings:
    """Read a client's settings, or those of the client in a node from the node's own file.

    `to_controllers` selects the listener of a node's file. Raises: UsageError with file, line and
    key for what cannot be used, above all keys of TLS or SASL without a protocol.
    """
    _check_classes(properties)
    if properties.has(_PROTOCOL):
        protocol = _read_protocol(properties, _PROTOCOL)
        if protocol in (SASL_PLAINTEXT, SASL_SSL):
            _check_foreign_login(properties)
        return _security_settings(properties, protocol, _MECHANISM, _without_effect(properties))
    if properties.has("process.roles"):
        return _node_settings(properties, to_controllers=to_controllers)
    for key in properties.names():
        if key.startswith(("ssl.", "sasl.")) or _OF_LISTENER.match(key):
            raise properties.error(
                key,
                f"{_PROTOCOL} is missing, so nothing would use this key: add {_PROTOCOL}=SSL, "
                "SASL_SSL, SASL_PLAINTEXT or PLAINTEXT",
            )
    return SecuritySettings(PLAINTEXT, properties)


def _security_settings(
    properties: Properties, protocol: str, mechanism_key: str, warnings: tuple[str, ...]
) -> SecuritySettings:
    mechanism = None
    if protocol in (SASL_PLAINTEXT, SASL_SSL):
        mechanism = properties.get(mechanism_key) or _GSSAPI
        if mechanism in _SENT_IN_CLEAR and protocol == SASL_PLAINTEXT:
            place, what = properties.place(mechanism_key), _SENT_IN_CLEAR[mechanism]
            warnings += (f"{place}: {mechanism} over {SASL_PLAINTEXT} sends the {what} in clear",)
        if mechanism == "OAUTHBEARER" and _is_in_clear(properties.get(_TOKEN_URL) or ""):
            place = properties.place(_TOKEN_URL)
            warnings += (f"{place}: over http the client's secret is sent in clear",)
    return SecuritySettings(protocol, properties, mechanism, mechanism_key, warnings)


def url_parts(url: str) -> SplitResult:
    """Return the parts of a URL. Raises: ValueError for one that nobody can connect to."""
    parts = urlsplit(url)
    (parts.hostname or "").encode("idna")
    if parts.port == 0 or any(character <= " " for character in url):
        raise ValueError("a port of 0, or a blank")
    return parts


def _is_in_clear(url: str) -> bool:
    """Whether a request goes over a network in clear; what is no URL is refused elsewhere."""
    try:
        parts = url_parts(url)
        return parts.scheme == "http" and parts.hostname not in OWN_MACHINE
    except ValueError:
        return False


def _node_settings(properties: Properties, *, to_controllers: bool) -> SecuritySettings:
    """Return how a node connects to the others of its kind, as its file says (SEC-T4, SEC-T5)."""
    if to_controllers:
        listener = next(iter(properties.listed("controller.listener.names")), None)
        mechanism_key = "sasl.mechanism.controller.protocol"
    else:
        listener = properties.get("inter.broker.listener.name")
        mechanism_key = "sasl.mechanism.inter.broker.protocol"
    if listener is None:
        protocol = PLAINTEXT
        if not to_controllers and properties.has("security.inter.broker.protocol"):
            protocol = _read_protocol(properties, "security.inter.broker.protocol")
        view = properties
    else:
        protocol = _listener_protocol(properties, listener)
        view = properties.of_listener(listener)
    if protocol == PLAINTEXT:
        return SecuritySettings(PLAINTEXT, properties)
    note = f"{properties.path}: {_PROTOCOL} is not set: using {protocol}"
    note += f" of the listener {listener}" if listener else " of the inter-broker protocol"
    return _security_settings(view, protocol, mechanism_key, (note,))


def _listener_protocol(properties: Properties, listener: str) -> str:
    """Return the protocol of a listener (SEC-T1)."""
    key = "listener.security.protocol.map"
    for part in properties.listed(key):
        name, _, protocol = part.partition(":")
        if name.strip().upper() == listener.upper():
            return _check_protocol(properties, key, protocol.strip())
    name = listener.upper()
    return name if name in PROTOCOLS else PLAINTEXT


def _read_protocol(properties: Properties, key: str) -> str:
    return _check_protocol(properties, key, properties.get(key) or "")


def _check_protocol(properties: Properties, key: str, protocol: str) -> str:
    if protocol.upper() not in PROTOCOLS:
        raise properties.error(key, f"expected {_alternatives(PROTOCOLS)}, found {protocol!r}")
    return protocol.upper()


def _check_classes(properties: Properties) -> None:
    for key in _CLASS_KEYS:
        name = properties.get(key)
        if name is not None and name not in _CLASSES_HERE:
            raise properties.error(key, f"Java's class {name} is not supported: remove the key")


def _check_foreign_login(properties: Properties) -> None:
    """Refuse a login that is written for librdkafka alone: without Kafka's keys there is none."""
    for key in ("sasl.mechanisms", "sasl.username", "sasl.password"):
        if properties.has(key) and not properties.has(_FOREIGN[key]):
            problem = f"this key is of librdkafka and has no effect: set {_FOREIGN[key]}"
            raise properties.error(key, problem)


def _without_effect(properties: Properties) -> tuple[str, ...]:
    """Name the keys of TLS and SASL that Kafka does not know: librdkafka's, and mistyped ones."""
    known = kafka_keys() | _CLIENT_KEYS
    unknown = [
        key
        for key in properties.names()
        if key.startswith(("ssl.", "sasl.")) and key not in known
    ]
    return tuple(
        f"{properties.place(key)}: this key is of librdkafka and has no effect; "
        f"Kafka's is {_FOREIGN[key]}"
        if key in _FOREIGN
        else f"{properties.place(key)}: Kafka has no such key{suggestion(key, known)}"
        for key in unknown
    )


def _alternatives(names: Iterable[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} or {last}"
