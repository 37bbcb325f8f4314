"""`kraftwire cluster`: Kafka's brokers on kraftwire controllers, started, hurt, ended by hand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kraftwire.cli import main as cli
from tests.support.kafka.class_archive import archive_options
from tests.support.kafka.maven import KAFKA, directory_of, kafka_classpath

pytest.importorskip("confluent_kafka")

from tests.failures.senders import NumberProducer


class Cluster:
    """The command with a folder of its own."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capsys = capsys

    def run(self, *arguments: object) -> str:
        """Run a subcommand, which has to succeed; returns what it printed."""
        assert cli.main(["cluster", *map(str, arguments), "--dir", str(self.folder)]) == 0
        return self._capsys.readouterr().out

    def states(self) -> dict[int, str]:
        """What every node does."""
        lines = map(json.loads, self.run("status", "--json").splitlines())
        return {each["id"]: each["state"] for each in lines}


@pytest.fixture
def cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Cluster]:
    """The command; whatever it has started is ended."""
    kafka_classpath()
    monkeypatch.setenv("KAFKA_OPTS", " ".join(archive_options()))
    command = Cluster(tmp_path / "cluster", capsys)
    yield command
    if command.folder.exists():
        cli.main(["cluster", "down", "--dir", str(command.folder)])


def produce(servers: str) -> None:
    """Send a record that both brokers have to acknowledge."""
    assert NumberProducer(servers, "orders").send(1) == [None]


def test_a_cluster_is_started_hurt_and_ended(cluster: Cluster) -> None:
    """Its state is in its folder, so each command stands alone."""
    options = ("--controllers", 1, "--brokers", 1, "--kafka", directory_of(KAFKA), "--detach")
    servers, controllers = (line.split()[1] for line in cluster.run("up", *options).splitlines())
    assert len(controllers.split(",")) == 1
    assert cluster.states() == {1: "leads", 101: "active"}
    assert cli.main(["cluster", "up", "--dir", str(cluster.folder)]) == 2
    produce(servers)

    cluster.run("kill", 1)
    assert cluster.states()[1] == "not running"
    cluster.run("restart", 1)
    assert cluster.states() == {1: "leads", 101: "active"}
    produce(servers)
    cluster.run("down")
    assert not cluster.folder.exists()
