"""The real nodes that other tests rely on: they start, answer, survive a kill and stop."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.kafka.class_archive import archive_options
from tests.support.kafka.java import JVM_OPTIONS, run_kafka_tool
from tests.support.kafka.maven import KAFKA, OLDER, Release, kafka_classpath
from tests.support.kafka.process import combined_node, quorum

_QUORUM_TOOL = "org.apache.kafka.tools.MetadataQuorumCommand"


def test_a_combined_node_serves_brokers_clients_and_stops_gracefully(tmp_path: Path) -> None:
    """The load that benchmarks record runs on such a node; a graceful stop leaves clean files."""
    with combined_node(tmp_path) as cluster:
        tool = "org.apache.kafka.tools.TopicCommand"
        run_kafka_tool(
            tool, "--bootstrap-server", cluster.bootstrap_servers, "--create", "--topic", "letters"
        )
    assert "shutdown completed" in cluster.nodes[0].last_lines().lower()
    assert (cluster.nodes[0].log_dir / "letters-0").is_dir()


def test_a_quorum_keeps_its_leader_when_a_killed_voter_comes_back(tmp_path: Path) -> None:
    """Interoperability tests kill and restart voters; a restart reuses folder, port and id."""
    with quorum(tmp_path) as cluster:
        cluster.nodes[0].kill()
        cluster.nodes[0].start()
        cluster.nodes[0].wait_ready()
        status = run_kafka_tool(
            *(_QUORUM_TOOL, "--bootstrap-controller", cluster.bootstrap_controllers),
            *("describe", "--status"),
        ).stdout
    assert cluster.cluster_id in status
    assert all(node.directory_id in status for node in cluster.nodes)


@pytest.mark.parametrize("release", [KAFKA, *OLDER], ids=lambda each: each.version)
def test_a_node_maps_its_classes_from_the_archive(release: Release) -> None:
    """A JVM that cannot use it says nothing, and takes twice as long."""
    options = (*JVM_OPTIONS, *archive_options(release), "-Xlog:class+load")
    command = ["java", *options, "-cp", kafka_classpath(release), "kafka.Kafka", "--version"]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "kafka.Kafka source: shared objects file (top)" in loaded
