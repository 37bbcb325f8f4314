"""The keys of a node's properties file are those of the Kafka release, with its defaults."""

from __future__ import annotations

import functools
import html
import re

from kraftwire.node.config_keys import KEYS
from kraftwire.properties import LONG_MAX
from kraftwire.protocol.kafka_keys import kafka_keys
from tests.support.kafka.java import run_kafka_tool

_ENTRY = re.compile(r'<h4><a id="([^"]+)"></a>(.*?)</table>', re.DOTALL)
_FACT = re.compile(r"<th>(\w[\w ]*):</th><td>(.*?)</td>")

# Some of Kafka's texts are lists that have to be split, such as the map of security protocols.
_KINDS = {
    "int": ("int",),
    "long": ("int",),
    "boolean": ("bool",),
    "list": ("list",),
    "string": ("text", "list"),
    "password": ("text",),
    "class": ("text",),
}


@functools.cache
def documented() -> dict[str, dict[str, str]]:
    """Facts by key, from the reference page that Kafka prints about its configuration."""
    page = run_kafka_tool("kafka.server.KafkaConfig").stdout
    return {
        match[1]: {name: html.unescape(text) for name, text in _FACT.findall(match[2])}
        for match in _ENTRY.finditer(page)
    }


def test_the_list_of_keys_is_that_of_the_release() -> None:
    """A missing key would be reported as unknown in a user's working file."""
    public = set(documented())
    assert public <= kafka_keys()
    # Kafka leaves its internal keys out of the page; they are few.
    assert len(kafka_keys() - public) < 40


def test_used_keys_have_kafkas_kinds_defaults_and_least_values() -> None:
    """The same file has to mean the same thing to both."""
    facts = documented()
    for key in KEYS.values():
        if key.name not in facts:
            continue
        fact = facts[key.name]
        assert key.kind in _KINDS[fact["Type"]], key.name
        if key.kind == "int" and key.default is not None:
            assert int(fact["Default"].split(" ")[0]) == key.default, key.name
        if key.kind == "bool":
            assert fact["Default"] == str(key.default).lower(), key.name
        least = re.match(r"\[(\d+),", fact["Valid Values"])
        if key.kind == "int" and least:
            assert key.low == int(least[1]), key.name
        if key.kind == "int" and not least and key.name not in _STRICTER:
            assert key.low == -LONG_MAX, key.name


# Less makes no sense there, and Kafka does not check.
_STRICTER = {
    "broker.heartbeat.interval.ms",
    "broker.session.timeout.ms",
    "connections.max.reauth.ms",
    "request.timeout.ms",
    "sasl.oauthbearer.clock.skew.seconds",
    "sasl.oauthbearer.jwks.endpoint.refresh.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
    "sasl.server.max.receive.size",
}
