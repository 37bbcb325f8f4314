"""What a Java controller and ours answer to DescribeConfigs after the same changes.

Owns the changes, the questions, and what makes two answers comparable: without texts, in the order
of the keys, without what kraftwire shows differently on purpose (C-CFG-16) or does not have, which
are Kafka's other properties and its loggers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import trio

from tests.oracle.our_controller import Connection, our_controller
from tests.oracle.shared_scripts import Tools

_TOPIC, _BROKER, _LOGGER, _METRICS, _GROUP = 2, 4, 8, 16, 32
FILE: Mapping[str, str] = {
    "log.retention.hours": "100",
    "min.insync.replicas": "2",
    "compression.type": "gzip",
    "group.consumer.heartbeat.interval.ms": "6000",
    "group.streams.num.warmup.replicas": "3",
    "group.share.assignor.offload.enable": "false",
    "group.streams.min.task.offset.interval.ms": "20000",
    "group.streams.assignors": (
        "org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor"
    ),
}
_CHANGES = (
    (_BROKER, "", {"log.segment.bytes": "2000000", "min.insync.replicas": "3"}),
    (_BROKER, "1", {"log.roll.ms": "5000000"}),
    (_BROKER, "5", {"log.roll.ms": "6000000"}),
    (_METRICS, "m", {"interval.ms": " 500 ", "metrics": "a, b", "match": "client_id = x"}),
    (
        _GROUP, "g",
        {
            "consumer.session.timeout.ms": "50000",
            "streams.acceptable.recovery.lag": "5",
            "consumer.assignor.offload.enable": "false",
            "streams.num.warmup.replicas": "4",
        },
    ),
)
# Values of groups that are allowed or not, as Kafka's controller says.
_TRIED = (
    ("streams.task.offset.interval.ms", "0", "19999", "20000", "2147483648", "x"),
    ("streams.num.warmup.replicas", "-1", "0", "20", "21"),
    ("streams.acceptable.recovery.lag", "-1", "0", "9223372036854775807", "9223372036854775808"),
    ("consumer.assignor.offload.enable", "no", " True "),
    ("share.assignor.offload.enable", "", "false"),
    ("streams.assignor.offload.enable", "1", "true"),
    ("streams.assignor.name", " sticky ", "Sticky", "", FILE["group.streams.assignors"]),
)
_TOPICS = {
    "t": {"retention.ms": " 77 ", "cleanup.policy": "compact, delete", "preallocate": "TRUE"},
    "u": {},
}
_ASKED = (
    *((_TOPIC, name) for name in ("t", "u", "nope", "a b", "", "__cluster_metadata_")),
    *((_BROKER, name) for name in ("", "1", "2", "x", "5")),
    *((_LOGGER, name) for name in ("", "1", "2")),
    *((_METRICS, name) for name in ("m", "none", "")),
    *((_GROUP, name) for name in ("g", "none", "")),
    (7, "x"),
)
_DEFAULT = 5
# Keys with several keys of brokers, of which Kafka shows only some.
_IN_UNITS = ("retention.ms", "flush.ms", "segment.ms", "segment.jitter.ms")
_OTHER_ORIGIN = ("u", "retention.ms")


def java_answers(tools: Tools, connection: Any) -> list[str]:
    """What a fresh Java controller answers, which runs with `FILE`."""
    return list(_trace(tools.oracle, connection))


def our_answers(tools: Tools) -> list[str]:
    """What our controller answers."""
    return trio.run(_our_answers, tools)


async def _our_answers(tools: Tools) -> list[str]:
    config: dict[str, Any] = {"resource_settings": FILE, "idle_interval_ms": 0}
    async with our_controller(tools, **config) as (node, comparison):
        connection = Connection(tools, node, comparison)
        return await trio.to_thread.run_sync(lambda: list(_trace(tools.oracle, connection)))


def _trace(oracle: Any, connection: Any) -> Iterator[str]:
    """Yield a line for each resource that is asked for."""
    oracle.Broker(connection, 5).up()
    for topic, values in _TOPICS.items():
        oracle.topic(connection, topic, [[5]], configs=values)
    for kind, name, changes in _CHANGES:
        ops = [(key, 0, value) for key, value in changes.items()]
        assert [code for code, *_ in oracle.configs(connection, kind, name, ops)] == [0], name
    for key, *tried in _TRIED:
        codes = [oracle.configs(connection, _GROUP, "t", [(key, 0, v)])[0][0] for v in tried]
        yield json.dumps([key, codes])
    # Kafka answers from what it has published: ask until the last change is there.
    while all(config["ConfigSource"] == _DEFAULT for config in _ask(connection, _GROUP, "g")[1]):
        pass
    for kind, name in _ASKED:
        code, configs = _ask(connection, kind, name)
        is_ours = kind != _LOGGER and name != "1"
        shown = [_plain(kind, name, config) for config in configs if is_ours]
        yield json.dumps([kind, name, code, shown])


def _ask(connection: Any, kind: int, name: str) -> tuple[int, list[dict[str, Any]]]:
    """Return the error of a resource, and its configurations by name."""
    resource = {"ResourceType": kind, "ResourceName": name, "ConfigurationKeys": None}
    body = {"Resources": [resource], "IncludeSynonyms": True, "IncludeDocumentation": False}
    (result,) = connection.call("DescribeConfigs", 4, body)["Results"]
    return result["ErrorCode"], sorted(result["Configs"], key=lambda config: config["Name"])


def _plain(kind: int, topic: str, config: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration without what differs on purpose."""
    left_out = {"Documentation"}
    if kind == _TOPIC and config["Name"] in _IN_UNITS:
        left_out.add("Synonyms")
        if (topic, config["Name"]) == _OTHER_ORIGIN:
            left_out.add("ConfigSource")
    return {key: value for key, value in config.items() if key not in left_out}
