"""Security properties as people write them: clients' files, nodes' files, mistakes."""

from __future__ import annotations

import pytest

from kraftwire.errors import UsageError
from kraftwire.properties import Properties
from kraftwire.properties_file import parse_properties
from kraftwire.security.settings import SecuritySettings, client_settings

SECRET = "a-secret-value"


def _of(text: str, *, to_controllers: bool = True) -> SecuritySettings:
    name = "c.properties"
    return client_settings(
        Properties(parse_properties(text, name), name), to_controllers=to_controllers
    )


@pytest.mark.parametrize("protocol", ["SSL", "sasl_ssl", " SASL_PLAINTEXT", "PLAINTEXT"])
def test_a_protocol_may_be_in_any_case(protocol: str) -> None:
    """As in Kafka."""
    found = _of(f"security.protocol={protocol}\n")
    assert found.protocol == protocol.strip().upper()
    assert found.is_tls == found.protocol.endswith("SSL")
    assert found.is_sasl == found.protocol.startswith("SASL")


def test_an_unknown_protocol_is_refused_with_its_place() -> None:
    """The line is that of the key."""
    text = "client.id=x\nsecurity.protocol=TLS\n"
    with pytest.raises(
        UsageError,
        match=r"^c\.properties:2: security\.protocol: expected PLAINTEXT, SSL, SASL_PLAINTEXT or "
        r"SASL_SSL, found 'TLS'$",
    ):
        _of(text)


@pytest.mark.parametrize("key", [
    "ssl.truststore.location", "sasl.jaas.config", "ssl.ca.location",
    "listener.name.controller.ssl.keystore.location",
    "listener.name.controller.plain.sasl.jaas.config",
])  # fmt: skip
def test_keys_without_a_protocol_are_refused(key: str) -> None:
    """Kafka's clients ignore them and speak in clear, which nobody wants who writes them."""
    with pytest.raises(UsageError, match=rf"^c\.properties:2: {key}: .*protocol is missing"):
        _of(f"client.id=x\n{key}={SECRET}\n")


def test_no_security_at_all_is_plaintext() -> None:
    """The default of every client of Kafka."""
    assert _of("client.id=x\n").protocol == "PLAINTEXT"


@pytest.mark.parametrize(
    "key",
    ["sasl.client.callback.handler.class", "sasl.login.class", "ssl.engine.factory.class",
     "security.providers", "sasl.login.callback.handler.class"],
)  # fmt: skip
def test_classes_of_java_are_refused_by_name(key: str) -> None:
    """They decide whom to trust or what to send; to ignore them would be worse."""
    with pytest.raises(UsageError, match=rf"c\.properties:2: {key}: Java's class com\.x\.Y is not"):
        _of(f"security.protocol=SASL_SSL\n{key}=com.x.Y\n")


def test_kafkas_default_classes_are_what_happens_anyway() -> None:
    """Files that are written out in full have them."""
    name = "org.apache.kafka.common.security.ssl.DefaultSslEngineFactory"
    assert _of(f"security.protocol=SSL\nssl.engine.factory.class={name}\n").is_tls


def test_a_mistyped_key_is_a_warning_that_names_the_right_one() -> None:
    """Kafka takes no notice of it; the next error would be about a trust store that is set."""
    found = _of("security.protocol=SSL\nssl.trustore.location=x\nsasl.mechanism=PLAIN\n")
    assert found.warnings == (
        "c.properties:2: ssl.trustore.location: Kafka has no such key; did you mean "
        "ssl.truststore.location?",
    )


def test_keys_of_librdkafka_are_recognized() -> None:
    """They are a warning that names Kafka's key; files are shared among tools."""
    found = _of("security.protocol=SSL\nssl.ca.location=x\n")
    assert found.warnings == (
        "c.properties:2: ssl.ca.location: this key is of librdkafka and has no effect; Kafka's is "
        "ssl.truststore.type=PEM and ssl.truststore.location",
    )


@pytest.mark.parametrize(
    ("key", "right"),
    [("sasl.mechanisms", "sasl.mechanism"), ("sasl.username", "sasl.jaas.config"),
     ("sasl.password", "sasl.jaas.config")],
)  # fmt: skip
def test_a_login_of_librdkafka_alone_is_refused(key: str, right: str) -> None:
    """It would end in the default mechanism, or without a user."""
    with pytest.raises(UsageError, match=rf"^c\.properties:2: {key}: .*set {right}$"):
        _of(f"security.protocol=SASL_SSL\n{key}={SECRET}\n")
    assert _of(f"security.protocol=SASL_SSL\n{key}={SECRET}\n{right}=x\n").warnings


def test_a_secret_in_clear_is_a_warning() -> None:
    """Kafka's clients send them silently: passwords, tokens, and what a token is got by."""
    for mechanism, what in (("PLAIN", "password"), ("OAUTHBEARER", "token")):
        login = f"sasl.mechanism={mechanism}\n"
        found = _of(f"security.protocol=SASL_PLAINTEXT\n{login}")
        assert found.mechanism == mechanism
        (warning,) = found.warnings
        assert warning.endswith(f"{mechanism} over SASL_PLAINTEXT sends the {what} in clear")
        assert _of(f"security.protocol=SASL_SSL\n{login}").warnings == ()


@pytest.mark.parametrize(
    ("url", "is_safe"),
    [
        ("http://idp.example/token", False),
        ("https://idp.example/token", True),
        ("http://localhost:8080/token", True),
        ("file:///token", True),
        ("http://[", True),
    ],
)
def test_a_token_endpoint_in_clear_is_a_warning(url: str, is_safe: bool) -> None:
    """It gets the client's secret; on the same machine nobody is on the way."""
    key = "sasl.oauthbearer.token.endpoint.url"
    found = _of(f"security.protocol=SASL_SSL\nsasl.mechanism=OAUTHBEARER\n{key}={url}\n")
    assert [key in warning for warning in found.warnings] == ([] if is_safe else [True])


NODE = """
process.roles=controller
controller.listener.names=CTL,OTHER
listener.security.protocol.map=CTL:SASL_SSL,OTHER:SSL,INTERNAL:SSL
inter.broker.listener.name=INTERNAL
sasl.mechanism.controller.protocol=PLAIN
ssl.truststore.location=all.jks
listener.name.ctl.ssl.truststore.location=ctl.jks
listener.name.ctl.plain.sasl.jaas.config=a b;
"""


def test_a_nodes_file_says_how_to_reach_its_controllers() -> None:
    """By the first controller listener, whose own keys win, one by one."""
    found = _of(NODE)
    assert (found.protocol, found.mechanism) == ("SASL_SSL", "PLAIN")
    assert found.mechanism_key == "sasl.mechanism.controller.protocol"
    properties = found.properties
    assert properties.get("ssl.truststore.location") == "ctl.jks"
    assert properties.get("sasl.jaas.config", "PLAIN") == "a b;"
    assert properties.place("sasl.jaas.config", "PLAIN") == (
        "c.properties:9: listener.name.ctl.plain.sasl.jaas.config"
    )
    assert found.warnings == (
        "c.properties: security.protocol is not set: using SASL_SSL of the listener CTL",
    )


def test_a_nodes_file_says_how_to_reach_its_brokers() -> None:
    """By the inter-broker listener."""
    found = _of(NODE, to_controllers=False)
    assert (found.protocol, found.mechanism) == ("SSL", None)
    assert found.properties.get("ssl.truststore.location") == "all.jks"


def test_a_nodes_file_may_have_a_clients_keys_besides() -> None:
    """Then these count, as for Kafka's tools."""
    assert _of(NODE + "security.protocol=SSL\n").properties.get("ssl.truststore.location") == (
        "all.jks"
    )


@pytest.mark.parametrize(
    "text",
    [
        "process.roles=controller\ncontroller.listener.names=CTL\n"
        "listener.security.protocol.map=CTL:PLAINTEXT\n",
        "process.roles=controller\ncontroller.listener.names=CTL\n",
        "process.roles=broker\n",
    ],
)
def test_a_nodes_file_without_security_is_plaintext(text: str) -> None:
    """And says nothing about it."""
    found = _of(text)
    assert (found.protocol, found.warnings) == ("PLAINTEXT", ())


def test_a_listener_may_be_named_like_its_protocol() -> None:
    """Without a map, names stand for themselves."""
    assert _of("process.roles=controller\ncontroller.listener.names=SSL\n").protocol == "SSL"


def test_no_value_is_part_of_a_repr() -> None:
    """Settings end in logs and tracebacks."""
    found = _of(f"security.protocol=SSL\nssl.key.password={SECRET}\n")
    assert SECRET not in repr(found)
    assert SECRET not in repr(found.properties)
