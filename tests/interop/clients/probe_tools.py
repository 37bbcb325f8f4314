"""Kafka's command line tools, each run once on the quorum."""

from __future__ import annotations

import re
from pathlib import Path

from kraftwire.log.features import choose_features, parse_features
from tests.interop.clients.probe import METADATA_TOPIC, bootstrap_servers, login, run
from tests.support.kafka.java import run_kafka_tool
from tests.support.kafka.maven import KAFKA
from tests.support.security.kafka import login_properties, write_properties

_TOOLS = "org.apache.kafka.tools"
# The level of metadata.version that a new quorum has.
_NEWEST = choose_features(parse_features(None, ()), is_dynamic=False).release


def _server() -> tuple[str, ...]:
    """The options with the bootstrap servers, and with how to log in."""
    found = login()
    server = ("--bootstrap-server", bootstrap_servers())
    if found is None:
        return server
    values = login_properties(found.ca, found.mechanism, found.user, found.password)
    path = Path(found.ca).with_name("tools.properties")
    return (*server, "--command-config", write_properties(path, values))


def _tool(main_class: str, *arguments: object) -> str:
    """What a tool prints. Raises: AssertionError with its output if it fails."""
    return run_kafka_tool(main_class, *arguments).stdout


def _expect(output: str, *patterns: str) -> None:
    for pattern in patterns:
        assert re.search(pattern, output, re.MULTILINE), f"no {pattern!r} in {output!r}"


def connect() -> str:
    """kafka-cluster and kafka-broker-api-versions."""
    server = _server()
    output = _tool(f"{_TOOLS}.ClusterTool", "cluster-id", *server)
    _expect(output, r"^Cluster ID: \S{22}$")
    endpoints = _tool(f"{_TOOLS}.ClusterTool", "list-endpoints", *server)
    _expect(endpoints, *(rf"^{node} .* unfenced +broker" for node in (1, 2, 3)))
    versions = _tool(f"{_TOOLS}.BrokerApiVersionsCommand", *server)
    _expect(versions, r"DescribeQuorum\(55\): 0 to 2 \[usable: 2\]")
    assert "UNKNOWN" not in versions, versions
    return "cluster-id, list-endpoints, broker-api-versions"


def describe() -> str:
    """kafka-metadata-quorum, kafka-features, kafka-topics and kafka-get-offsets."""
    server = _server()
    quorum = f"{_TOOLS}.MetadataQuorumCommand"
    _expect(_tool(quorum, *server, "describe", "--status"), r"^LeaderId: +[123]$")
    table = _tool(quorum, *server, "describe", "--replication", "--human-readable")
    assert table.count("Follower") == 2, table
    features = _tool(f"{_TOOLS}.FeatureCommand", *server, "describe")
    _expect(features, rf"^Feature: metadata\.version\b.*FinalizedVersionLevel: {_NEWEST}")
    topics = f"{_TOOLS}.TopicCommand"
    _expect(_tool(topics, *server, "--list"), f"^{METADATA_TOPIC}$")
    topic = _tool(topics, *server, "--describe", "--topic", METADATA_TOPIC)
    _expect(topic, r"Partition: 0\s+Leader: [123]\s+Replicas: 1,2,3")
    offsets = _tool(f"{_TOOLS}.GetOffsetShell", *server, "--topic", METADATA_TOPIC)
    _expect(offsets, rf"^{METADATA_TOPIC}:0:\d+$")
    return "metadata-quorum, features, topics, get-offsets"


def read() -> str:
    """kafka-console-consumer, by partition, without a group."""
    output = _tool(
        f"{_TOOLS}.consumer.ConsoleConsumer",
        *_server(),
        *("--topic", METADATA_TOPIC, "--partition", 0, "--offset", "earliest"),
        *("--max-messages", 10, "--timeout-ms", 30000),
        # Values are not text.
        *("--formatter-property", "print.offset=true"),
        *("--formatter-property", "print.value=false"),
    )
    offsets = re.findall(r"^Offset:(\d+)", output, re.MULTILINE)
    assert len(offsets) == 10, output
    return f"console-consumer: offsets {offsets[0]}-{offsets[-1]}"


if __name__ == "__main__":
    run(KAFKA.version, {"connect": connect, "describe": describe, "read": read})
