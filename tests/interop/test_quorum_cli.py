"""`kraftwire quorum` next to kafka-metadata-quorum, on the same quorum of real Kafka nodes."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kraftwire.client import Admin
from kraftwire.testing import quorum
from kraftwire.testing.ports import free_ports
from tests.support.kafka.process import KafkaCluster, KafkaNode, kafka_uuid
from tests.support.kafka.quorum_tools import masked, ours, reason, theirs

# Without idle records, offsets do not change between two looks.
QUIET = {"metadata.max.idle.interval.ms": 0}

# Something is still committed now and then, for example when a broker was slow to answer.
_LOOKS = 4


@dataclass(frozen=True)
class Kafka:
    """A dynamic quorum of three, one of them also a broker, and a controller that is not a
    voter."""

    cluster: KafkaCluster
    extra: KafkaNode

    @property
    def bootstrap_server(self) -> list[str]:
        """Option and value."""
        return ["--bootstrap-server", self.cluster.bootstrap_servers]

    @property
    def bootstrap_controller(self) -> list[str]:
        """Option and value, all three."""
        return ["--bootstrap-controller", self.cluster.bootstrap_controllers]

    @property
    def extra_directory_id(self) -> str:
        """Chosen when the fourth controller's directory was formatted."""
        return directory_id(self.extra)

    @property
    def extra_config(self) -> list[str]:
        """What add-controller reads."""
        return config_of(self.extra)

    def leader(self) -> KafkaNode:
        """Who leads now."""
        through = Admin(bootstrap_controllers=self.cluster.bootstrap_controllers, timeout_s=30)
        leader_id = through.describe_quorum().leader_id
        return next(node for node in self.cluster.nodes if node.node_id == leader_id)


def directory_id(node: KafkaNode) -> str:
    """The id of a formatted directory."""
    text = (node.log_dir / "meta.properties").read_text()
    found = re.search(r"^directory\.id=(.+)$", text, re.MULTILINE)
    assert found is not None, text
    return found[1]


def config_of(node: KafkaNode) -> list[str]:
    """What add-controller reads of a node."""
    return ["--command-config", str(node.folder / "server.properties")]


def other_config(node: KafkaNode, folder: Path, changes: dict[str, str]) -> list[str]:
    """What add-controller reads of a node that is described wrongly."""
    (folder / "data").mkdir(parents=True)
    changes = {str(node.log_dir): str(folder / "data"), **changes}
    for source, target in (
        (node.log_dir / "meta.properties", folder / "data/meta.properties"),
        (node.folder / "server.properties", folder / "server.properties"),
    ):
        text = source.read_text()
        for old, new in changes.items():
            text = text.replace(old, new)
        target.write_text(text)
    return ["--command-config", str(folder / "server.properties")]


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """Four nodes that all tests of this module share."""
    folder = tmp_path_factory.mktemp("kafka")
    ports = free_ports(5)
    listeners = [{"CONTROLLER": port} for port in ports[:3]]
    listeners[2]["PLAINTEXT"] = ports[3]
    nodes = [
        KafkaNode(number, folder / f"node-{number}", each, QUIET)
        for number, each in enumerate(listeners, 1)
    ]
    with KafkaCluster(nodes, is_dynamic=True) as cluster:
        peers = {"controller.quorum.bootstrap.servers": cluster.bootstrap_controllers}
        extra = KafkaNode(4, folder / "node-4", {"CONTROLLER": ports[4]}, QUIET | peers)
        extra.format(cluster.cluster_id, "--no-initial-controllers")
        extra.start()
        try:
            extra.wait_ready()
            yield Kafka(cluster, extra)
        finally:
            extra.kill()


@pytest.mark.parametrize("through", ["bootstrap_server", "bootstrap_controller"])
@pytest.mark.parametrize(
    "view",
    [["--status"], ["--replication"], ["--replication", "--human-readable"]],
    ids=["status", "replication", "human readable"],
)
def test_describe_prints_what_kafkas_tool_prints(
    kafka: Kafka, through: str, view: list[str]
) -> None:
    """Scripts that read the tool's columns must not notice which one they call."""
    connection = getattr(kafka, through)
    for _ in range(_LOOKS):
        expected = theirs(*connection, "describe", *view)
        found = ours(*connection, "describe", *view)
        assert expected.returncode == 0, expected.stderr
        assert (found.returncode, found.stderr) == (0, "")
        if masked(found.stdout) == masked(expected.stdout):
            break
    assert masked(found.stdout) == masked(expected.stdout)
    assert "\n4 " in found.stdout or '"id": 4' in found.stdout


def test_connection_options_may_follow_the_subcommand(kafka: Kafka) -> None:
    """Kafka's tool insists on an order that users do not remember."""
    before = ours(*kafka.bootstrap_controller, "describe", "--describe", "status")
    after = ours("describe", "--status", *kafka.bootstrap_controller)
    assert masked(before.stdout) == masked(after.stdout) != ""


def test_controllers_are_added_and_removed_as_by_kafkas_tool(kafka: Kafka) -> None:
    """Both tools change the same voters, print the same, and refuse the same."""
    add = ["add-controller"]
    remove = ["remove-controller", "-i", "4", "-d", kafka.extra_directory_id]
    through = [*kafka.bootstrap_controller, *kafka.extra_config]
    dry = [ours(*through, *add, "--dry-run").stdout, theirs(*through, *add, "--dry-run").stdout]
    assert dry[0] == dry[1] != ""
    added = ours(*through, *add)
    assert added.returncode == 0, added.stderr
    again = ours(*through, *add), theirs(*through, *add)
    assert [each.returncode for each in again] == [1, 1]
    detail = re.search(r"DuplicateVoterException: (The voter .*?) is already", again[1].stderr)
    assert detail is not None
    assert detail[1] in again[0].stderr
    assert len(again[0].stderr.splitlines()) == 1
    removed = theirs(*kafka.bootstrap_server, *remove, "--unregister")
    assert removed.returncode == 0, removed.stderr
    assert removed.stdout.endswith("\nUnregistered KRaft controller 4\n")
    assert theirs(*through, *add).stdout == added.stdout
    removed_by_us = ours(*kafka.bootstrap_server, *remove, "--unregister")
    assert (removed_by_us.returncode, removed_by_us.stdout) == (0, removed.stdout)
    missing = ours(*kafka.bootstrap_controller, *remove)
    assert missing.returncode == 1
    assert "VOTER_NOT_FOUND" in missing.stderr


@pytest.mark.parametrize("through", ["bootstrap_server", "bootstrap_controller"])
def test_voters_are_refused_in_the_same_words(
    kafka: Kafka, tmp_path: Path, through: str
) -> None:
    """Each check of the leader, as either tool reports it."""
    connection = getattr(kafka, through)
    extra, voter = kafka.extra, kafka.cluster.nodes[0]
    lost = other_config(extra, tmp_path / "lost", {kafka.extra_directory_id: kafka_uuid()})
    port = f":{extra.listeners['CONTROLLER']}"
    # Under another id: the leader keeps its connection to node 4, whatever address is given.
    nobody = {"node.id=4": "node.id=5", port: f":{free_ports(1)[0]}"}
    gone = other_config(extra, tmp_path / "gone", nobody)
    renamed = other_config(extra, tmp_path / "renamed", {"CONTROLLER": "OTHER"})
    remove = ["remove-controller", "-i"]
    for arguments, text in (
        ([*config_of(voter), "add-controller"], "is already part of the set of voters"),
        ([*lost, "add-controller"], "since it is lagging behind"),
        ([*gone, "add-controller"], "API_VERSIONS returned an error BROKER_NOT_AVAILABLE"),
        ([*renamed, "add-controller"], "for the default listener ListenerName(CONTROLLER)"),
        ([*remove, "4", "-d", kafka.extra_directory_id], "Cannot remove voter ReplicaKey(id=4"),
        (
            [*remove, "4", "-d", kafka.extra_directory_id, "--unregister"],
            "Failed to remove KRaft voter 4: Cannot remove voter ReplicaKey(id=4",
        ),
        ([*remove, "1", "-d", kafka.extra_directory_id], "Cannot remove voter ReplicaKey(id=1"),
        ([*remove, "1", "-d", "A" * 22], "didn't include a valid voter"),
    ):
        expected, found = theirs(*connection, *arguments), ours(*connection, *arguments)
        while "is not ready to receive requests" in found.stderr:
            # The leader pauses before it connects again.
            found = ours(*connection, *arguments)
        assert (found.returncode, found.stdout) == (expected.returncode, expected.stdout) == (1, "")
        assert reason(found) == reason(expected)
        assert text in found.stderr
        assert len(found.stderr.splitlines()) == 1


def test_the_leader_is_removed_and_the_broker_finds_the_next(kafka: Kafka) -> None:
    """A broker keeps forwarding voter changes to the old leader; only ours makes it look again."""
    removed = []
    try:
        for tool in (theirs, ours):
            leader = kafka.leader()
            key = ["-i", str(leader.node_id), "-d", directory_id(leader)]
            # The first of the two has told the broker who leads.
            assert ours(*kafka.bootstrap_server, "describe", "--status").returncode == 0
            result = tool(*kafka.bootstrap_server, "remove-controller", *key)
            assert result.returncode == 0, result.stderr
            removed.append(leader)
            again = ours(*kafka.bootstrap_server, "remove-controller", *key)
            while "fence previous voter changes" in again.stderr:
                # The next leader has to commit something of its epoch before it can judge.
                again = ours(*kafka.bootstrap_server, "remove-controller", *key)
            assert again.returncode == 1
            assert "Cannot remove voter" in again.stderr
            back = ours(*kafka.bootstrap_server, *config_of(leader), "add-controller")
            while "is lagging behind" in back.stderr:
                # It has to follow the next leader before that leader adds it.
                back = ours(*kafka.bootstrap_server, *config_of(leader), "add-controller")
            assert back.returncode == 0, back.stderr
            removed.pop()
    finally:
        for node in removed:
            ours(*kafka.bootstrap_controller, *config_of(node), "add-controller")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        pytest.param(
            ["--bootstrap-controller", "{server}", "describe", "--status"],
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of "
            "type CONTROLLER",
            id="a broker taken for a controller",
        ),
        pytest.param(
            ["--bootstrap-server", "{controllers}", "describe", "--status"],
            "The node does not support METADATA",
            id="a controller taken for a broker",
        ),
        pytest.param(
            ["--bootstrap-server", "{server}", "add-controller"],
            "You must supply the configuration file of the controller you are adding when using "
            "add-controller.",
            id="nothing to add",
        ),
        pytest.param(
            ["--bootstrap-server", "{server}", "describe"],
            "One of --status or --replication must be specified with describe sub-command",
            id="no view",
        ),
        pytest.param(
            ["--bootstrap-server", "{server}", "describe", "--status", "--human-readable"],
            "The option --human-readable is only supported along with --replication",
            id="a readable status",
        ),
    ],
)
def test_mistakes_are_reported_in_the_same_words(
    kafka: Kafka, arguments: list[str], text: str
) -> None:
    """A web search for the error finds what was written about Kafka's tool."""
    values = {
        "server": kafka.cluster.bootstrap_servers,
        "controllers": kafka.cluster.bootstrap_controllers,
    }
    filled = [argument.format(**values) for argument in arguments]
    expected, found = theirs(*filled), ours(*filled)
    assert (found.returncode, found.stdout) == (expected.returncode, expected.stdout) == (1, "")
    assert text in expected.stderr
    assert text in found.stderr
    assert len(found.stderr.splitlines()) == 1


def test_the_client_describes_nodes_features_and_topics(kafka: Kafka) -> None:
    """The calls that no command of ours uses, through brokers and through controllers."""
    through_brokers = Admin(bootstrap_servers=kafka.cluster.bootstrap_servers, timeout_s=30)
    through_controllers = Admin(
        bootstrap_controllers=kafka.cluster.bootstrap_controllers, timeout_s=30
    )
    brokers = through_brokers.describe_cluster()
    controllers = through_controllers.describe_cluster()
    assert brokers.cluster_id == controllers.cluster_id == kafka.cluster.cluster_id
    assert [node.id for node in brokers.nodes] == [3]
    assert {node.id for node in controllers.nodes} == {1, 2, 3, 4}
    assert controllers.controller_id == through_brokers.describe_quorum().leader_id
    for admin in (through_brokers, through_controllers):
        assert admin.describe_features().finalized["kraft.version"] == 1
    assert through_brokers.list_topics() == []


def test_watch_tells_of_the_leaders_snapshot_and_log(tmp_path: Path) -> None:
    """DescribeQuorum does not; a Fetch that the leader does not count does."""
    node = KafkaNode(
        1,
        tmp_path,
        {"CONTROLLER": free_ports(1)[0]},
        {"metadata.log.max.snapshot.interval.ms": 1000, "metadata.max.idle.interval.ms": 100},
    )
    with KafkaCluster([node], is_dynamic=True) as cluster:
        connection = ["--bootstrap-controller", cluster.bootstrap_controllers]
        # Only the snapshot itself ends the wait for it.
        deadline = time.monotonic() + 60
        while not list((node.log_dir / "__cluster_metadata-0").glob("*[1-9]*.checkpoint")):
            assert time.monotonic() < deadline, node.last_lines()
            time.sleep(0.1)
        watched = ours(*connection, "watch", "--count", "1")
    assert watched.returncode == 0, watched.stderr
    assert re.search(r"; log from 0, snapshot \d+-1$", watched.stdout.rstrip())


def test_a_static_quorum_looks_the_same_in_both_tools(tmp_path: Path) -> None:
    """Its voters have no directory ids in the log; the columns have to allow for that."""
    broker, controller = free_ports(2)
    node = KafkaNode(1, tmp_path, {"PLAINTEXT": broker, "CONTROLLER": controller}, QUIET)
    with KafkaCluster([node], is_dynamic=False) as cluster:
        connection = ["--bootstrap-controller", cluster.bootstrap_controllers]
        for view in ("--status", "--replication"):
            expected = theirs(*connection, "describe", view)
            assert expected.returncode == 0, expected.stderr
            assert masked(ours(*connection, "describe", view).stdout) == masked(expected.stdout)


def test_both_tools_say_the_same_of_our_nodes(tmp_path: Path) -> None:
    """The tests above prove little if our nodes answer differently."""
    with quorum(folder=tmp_path, properties=QUIET) as nodes:
        for connection, view in (
            (["--bootstrap-server", nodes.bootstrap_servers], ["--status"]),
            (["--bootstrap-controller", nodes.bootstrap_controllers], ["--replication"]),
        ):
            expected = theirs(*connection, "describe", *view)
            assert expected.returncode == 0, expected.stderr
            assert masked(ours(*connection, "describe", *view).stdout) == masked(expected.stdout)
