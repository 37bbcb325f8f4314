"""Nodes of ours as observers, and for a while as a voter, of a Java quorum of kraft.version 1."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kraftwire.client import Admin
from kraftwire.decode.files import FileOptions, FileReport, decode_file
from kraftwire.messages.api_versions_request import ApiVersionsRequest
from kraftwire.messages.api_versions_response import ApiVersionsResponse
from kraftwire.messages.metadata_request import MetadataRequest
from kraftwire.messages.metadata_response import MetadataResponse
from kraftwire.records.batch import RecordBatch
from kraftwire.records.reader import read_batches
from kraftwire.testing.ports import free_ports
from tests.support.kafka import dump_log
from tests.support.kafka.dump_compare import compare_file
from tests.support.kafka.java import run_kafka_tool
from tests.support.kafka.mixed_quorum import OURS, Member, wait_until
from tests.support.kafka.process import KafkaCluster, KafkaNode, combined_node
from tests.support.kafka.quorum_tools import ours
from tests.support.nodes.process import ask, describe

BROKER, CONTROLLER = 5, 6
LOG = "__cluster_metadata-0/00000000000000000000.log"


@dataclass(frozen=True)
class Observed:
    """A Java node that is broker and only voter, and its observers."""

    cluster: KafkaCluster
    broker: Member
    controller: Member

    @property
    def java(self) -> KafkaNode:
        """The Java node."""
        return self.cluster.nodes[0]

    def wait_caught_up(self) -> int:
        """Wait until the observers have all that is committed; returns how much that is."""
        admin = Admin(bootstrap_controllers=self.cluster.bootstrap_controllers, timeout_s=60)

        def look() -> int:
            told = admin.describe_quorum()
            ends = {one.id: one.log_end_offset for one in told.voters + told.observers}
            mark = told.high_watermark
            return mark if min(ends.get(i, 0) for i in (BROKER, CONTROLLER)) >= mark else 0

        return wait_until(look, "observers that have all that is committed")


def observer(node_id: int, folder: Path, cluster: KafkaCluster) -> Member:
    """A node of ours that finds the quorum by its bootstrap servers."""
    name = "PLAINTEXT" if node_id == BROKER else "CONTROLLER"
    servers = {"controller.quorum.bootstrap.servers": cluster.bootstrap_controllers}
    node = KafkaNode(node_id, folder / f"node-{node_id}", {name: free_ports(1)[0]}, servers)
    member = Member(OURS, node)
    member.format(cluster.cluster_id, *(("-N",) if node_id == CONTROLLER else ()))
    return member


@pytest.fixture(scope="module")
def observed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Observed]:
    """The quorum with a topic, and both observers."""
    folder = tmp_path_factory.mktemp("observed")
    # A killed broker cannot return before its session has expired.
    with combined_node(folder / "java", {"broker.session.timeout.ms": 1000}) as cluster:
        broker, controller = (observer(i, folder, cluster) for i in (BROKER, CONTROLLER))
        try:
            for member in (broker, controller):
                member.start()
                member.wait_ready()
            yield Observed(cluster, broker, controller)
        finally:
            broker.kill()
            controller.kill()


def test_observers_follow_byte_for_byte(observed: Observed) -> None:
    """Voters, versions and snapshot of the quorum are in the log; no configuration is needed."""
    tool = "org.apache.kafka.tools.TopicCommand"
    words = ("--bootstrap-server", observed.cluster.bootstrap_servers, "--create", "--topic")

    def create() -> bool:
        """With its short session, the broker is sometimes fenced on a slow machine."""
        made = run_kafka_tool(tool, *words, "letters", "--partitions", 3, check=False)
        return made.returncode == 0

    wait_until(create, "a topic")
    mark = observed.wait_caught_up()
    java = below(observed.java.log_dir / LOG, mark)
    for member in (observed.broker, observed.controller):
        assert below(member.java.log_dir / LOG, mark) == java
        assert member.complaints() == []


def below(path: Path, mark: int) -> bytes:
    """The batches of a segment up to the high watermark."""
    batches = [one for one in read_batches(path.read_bytes()) if isinstance(one, RecordBatch)]
    return b"".join(bytes(batch.raw) for batch in batches if batch.last_offset < mark)


def test_observers_come_back_and_find_a_leader_that_came_back(observed: Observed) -> None:
    """The broker is killed as well; the other observer has to notice by itself."""
    observed.java.kill()
    observed.java.start()
    observed.broker.kill()
    observed.broker.start()
    observed.broker.wait_ready()
    observed.java.wait_ready()
    mark = observed.wait_caught_up()
    java = below(observed.java.log_dir / LOG, mark)
    for member in (observed.broker, observed.controller):
        assert below(member.java.log_dir / LOG, mark) == java
        assert member.complaints() == []


def test_an_observer_becomes_a_voter_and_leaves_again(observed: Observed) -> None:
    """It is one of two voters, so Java commits nothing without our fetches."""
    observed.wait_caught_up()
    through = ("--bootstrap-controller", observed.cluster.bootstrap_controllers)
    config = str(observed.controller.config)
    added = ours(*through, "--command-config", config, "add-controller")
    assert added.returncode == 0, added.stderr
    mark = observed.wait_caught_up()
    wait_until(lambda: observed.wait_caught_up() > mark, "commits of two voters")
    told = describe(observed.java.listeners["CONTROLLER"]).topics[0].partitions[0]
    assert {voter.replica_id for voter in told.current_voters} == {1, CONTROLLER}

    properties = (observed.controller.java.log_dir / "meta.properties").read_text()
    directory_id = re.findall(r"^directory\.id=(.+)$", properties, re.MULTILINE)
    removal = ("remove-controller", "-i", str(CONTROLLER), "-d", *directory_id)

    def is_gone() -> bool:
        """During a new election of Java's, which a slow machine may cause, it refuses changes."""
        ours(*through, *removal)
        told = describe(observed.java.listeners["CONTROLLER"]).topics[0].partitions[0]
        return [voter.replica_id for voter in told.current_voters] == [1]

    wait_until(is_gone, "a quorum without the observer")
    mark = observed.wait_caught_up()
    wait_until(lambda: observed.wait_caught_up() > mark, "commits of one voter")
    assert observed.controller.complaints() == []


def test_a_broker_tells_clients_what_the_records_say(observed: Observed) -> None:
    """Features and brokers of the Java quorum, and who leads it."""
    observed.wait_caught_up()
    port = observed.broker.port
    question = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    java = ask(observed.java.listeners["PLAINTEXT"], question, 4)
    mine = ask(port, question, 4)
    assert isinstance(java, ApiVersionsResponse)
    assert isinstance(mine, ApiVersionsResponse)
    assert levels(mine) == levels(java)
    assert levels(mine)["kraft.version"] == 1

    def described() -> MetadataResponse:
        found = ask(port, MetadataRequest(topics=None), 12)
        assert isinstance(found, MetadataResponse)
        return found

    # On a slow machine the Java broker is sometimes fenced, and returns.
    wait_until(lambda: [one.node_id for one in described().brokers] == [1], "broker 1 unfenced")
    (topic,) = described().topics
    assert (topic.name, topic.partitions[0].leader_id) == ("__cluster_metadata", 1)


def levels(answer: ApiVersionsResponse) -> dict[str, int]:
    """The finalized features."""
    return {one.name: one.max_version_level for one in answer.finalized_features}


def test_the_records_are_decoded_as_by_dump_log(observed: Observed) -> None:
    """This runs last, without writes; a broker's registration and a topic are among the records."""
    observed.broker.stop()
    path = observed.broker.java.log_dir / LOG
    tool = "org.apache.kafka.tools.DumpLogSegments"
    result = run_kafka_tool(tool, "--files", path, "--cluster-metadata-decoder")
    dumped = dump_log.parse(result.stdout.splitlines(keepends=True))
    lines = [line.json for line in decode_file(path, FileOptions(), FileReport())]
    compare_file(lines, dumped[str(path)], "metadata")
    for name in ("VotersRecord", "RegisterBrokerRecord", "TopicRecord"):
        assert name in str(lines)
