"""Kafka's command line tools on brokers, one after the other in one JVM."""

from __future__ import annotations

import re

from tests.interop.clients.probe import bootstrap_servers, run
from tests.interop.clients.traffic.orders import (
    COUNT,
    MORE,
    PARTITIONS,
    RETENTION,
    feature_levels,
    until,
)
from tests.support.kafka.java import shared_tools
from tests.support.kafka.maven import KAFKA

TOPIC = "tools-orders"
GROUPS = {"classic": "tools-readers", "consumer": "tools-watchers"}
SERVER = ("--bootstrap-server", bootstrap_servers())

_TOOLS = "org.apache.kafka.tools"
_QUORUM, _FEATURES, _CONFIGS = "quorum", "features", "configs"
_CLUSTER = f"{_TOOLS}.ClusterTool"
_TOPICS = f"{_TOOLS}.TopicCommand"
_GROUPS = f"{_TOOLS}.consumer.group.ConsumerGroupCommand"
_CONSUMER = f"{_TOOLS}.consumer.ConsoleConsumer"
_PRODUCER = f"{_TOOLS}.ProducerPerformance"
_TRANSACTIONS = f"{_TOOLS}.TransactionsCommand"


def tool(name: str, *words: object) -> str:
    """What a tool prints. Raises: AssertionError with all of it if it fails."""
    done = shared_tools().run(name, *words)
    assert done.returncode == 0, f"{name} {words}: {done.stdout} {done.stderr}"
    return done.stdout


def cluster() -> str:
    """kafka-cluster."""
    assert re.search(r"^Cluster ID: \S{22}$", tool(_CLUSTER, "cluster-id", *SERVER), re.MULTILINE)
    endpoints = tool(_CLUSTER, "list-endpoints", *SERVER)
    return f"{endpoints.count('unfenced')} brokers"


def quorum() -> str:
    """kafka-metadata-quorum."""
    table = tool(_QUORUM, *SERVER, "describe", "--replication")
    return f"{table.count('Leader') + table.count('Follower')} voters"


def features() -> str:
    """kafka-features."""
    shown = tool(_FEATURES, *SERVER, "describe")
    found = re.findall(r"^Feature: (\S+)\s.*FinalizedVersionLevel: (\S+)", shown, re.MULTILINE)
    return feature_levels({name: level for name, level in found if level != "0"})


def topics() -> str:
    """kafka-topics."""
    named = (*SERVER, "--topic", TOPIC)
    tool(_TOPICS, *named, "--create", "--partitions", PARTITIONS - 1)
    until(lambda: TOPIC in tool(_TOPICS, *SERVER, "--list"), "a topic")
    tool(_TOPICS, *named, "--alter", "--partitions", PARTITIONS)
    until(lambda: _described().count("Partition: ") == PARTITIONS, "partitions")
    match = re.search(r"ReplicationFactor: (\d+)", _described())
    assert match is not None
    return f"{PARTITIONS} partitions of {match[1]} replicas"


def _described() -> str:
    return tool(_TOPICS, *SERVER, "--topic", TOPIC, "--describe")


def configs() -> str:
    """kafka-configs."""
    named = (*SERVER, "--entity-type", "topics", "--entity-name", TOPIC)
    changed = f"retention.ms={RETENTION}"
    tool(_CONFIGS, *named, "--alter", "--add-config", changed)
    until(lambda: changed in tool(_CONFIGS, *named, "--describe"), "a changed property")
    return f"{tool(_CONFIGS, *named, '--describe', '--all').count('synonyms=')} properties"


def _produce(count: int, *more: str) -> str:
    """kafka-producer-perf-test."""
    sent = ("--topic", TOPIC, "--num-records", count, "--record-size", 200, "--throughput", -1)
    shown = tool(_PRODUCER, *SERVER, *sent, *more)
    assert f"{count} records sent" in shown, shown
    return f"{count} records"


def _consume(protocol: str) -> str:
    """kafka-console-consumer."""
    count = COUNT + MORE
    shown = tool(
        _CONSUMER,
        *SERVER,
        *("--topic", TOPIC, "--from-beginning", "--group", GROUPS[protocol]),
        *("--command-property", f"group.protocol={protocol}"),
        *("--max-messages", count, "--timeout-ms", 30000),
    )
    return f"{len(shown.splitlines())} records"


def groups() -> str:
    """kafka-consumer-groups."""
    listed = tool(_GROUPS, *SERVER, "--list").split()
    assert set(GROUPS.values()) <= set(listed), listed
    lags = []
    for group in GROUPS.values():
        shown = tool(_GROUPS, *SERVER, "--describe", "--group", group)
        rows = re.findall(rf"^{group} +{TOPIC} +\d+ +\d+ +\d+ +(\d+)", shown, re.MULTILINE)
        lags.append(f"lag {sum(map(int, rows))} in {len(rows)} partitions")
    return " and ".join(lags)


def transactions() -> str:
    """kafka-transactions, of transactions by kafka-producer-perf-test."""
    _produce(MORE, "--transactional-id", "tools-transactions")
    shown = tool(_TRANSACTIONS, *SERVER, "list")
    match = re.search(r"^tools-transactions\S*\s+\d+\s+\d+\s+(\w+)", shown, re.MULTILINE)
    assert match is not None, shown
    return match[1]


def delete() -> str:
    """Groups and the topic."""
    for group in GROUPS.values():
        tool(_GROUPS, *SERVER, "--delete", "--group", group)
    tool(_TOPICS, *SERVER, "--delete", "--topic", TOPIC)
    until(lambda: TOPIC not in tool(_TOPICS, *SERVER, "--list").split(), "a topic that is gone")
    return "groups, topic"


if __name__ == "__main__":
    run(
        KAFKA.version,
        {
            "cluster": cluster,
            "quorum": quorum,
            "features": features,
            "topics": topics,
            "configs": configs,
            "produce": lambda: _produce(COUNT, "--command-property", "enable.idempotence=false"),
            "idempotent": lambda: _produce(MORE),
            "classic": lambda: _consume("classic"),
            "consumer": lambda: _consume("consumer"),
            "groups": groups,
            "transactions": transactions,
            "delete": delete,
        },
    )
