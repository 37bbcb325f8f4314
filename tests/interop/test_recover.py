"""A lost majority: `kraftwire storage recover`, and real controllers that go on with its result."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kraftwire.client import Admin
from kraftwire.client.results import QuorumInfo
from kraftwire.errors import KraftwireError
from kraftwire.testing import quorum as our_quorum
from kraftwire.testing.ports import free_ports
from tests.support.kafka.java import run_kafka_tool
from tests.support.kafka.process import KafkaCluster, KafkaNode, quorum
from tests.support.kafka.quorum_tools import ours, theirs

SECONDS_MAX = 60
_HOST = "127.0.0.1"


def recover(*configs: Path, yes: bool = False) -> subprocess.CompletedProcess[str]:
    """Run the command."""
    words = [word for config in configs for word in ("-c", str(config))]
    command = [sys.executable, "-m", "kraftwire", "storage", "recover", *words]
    return subprocess.run(
        [*command, *(["--yes"] if yes else [])], capture_output=True, text=True, check=False
    )


def described(address: str, wanted: Callable[[QuorumInfo], bool]) -> QuorumInfo:
    """Return what a controller says of the quorum, once that is what is wanted."""
    admin = Admin(bootstrap_controllers=[address], timeout_s=5.0)
    last: object = None
    deadline = time.monotonic() + SECONDS_MAX
    while time.monotonic() < deadline:
        try:
            last = info = admin.describe_quorum()
        except KraftwireError as error:
            last = error
            continue
        if wanted(info):
            return info
    raise AssertionError(f"not in time: {last}")


def address_of(node: KafkaNode) -> str:
    """The controller's address."""
    return f"{_HOST}:{node.listeners['CONTROLLER']}"


def config_of(node: KafkaNode) -> Path:
    """The controller's properties file."""
    return node.folder / "server.properties"


def has_caught_up(node_id: int) -> Callable[[QuorumInfo], bool]:
    """Whether a node, voter or observer, has all that is committed."""
    return lambda info: any(
        one.id == node_id and one.log_end_offset >= info.high_watermark > 0
        for one in (*info.voters, *info.observers)
    )


def topics(cluster: KafkaCluster, *arguments: str) -> str:
    """Run kafka-topics against the broker."""
    server = ("--bootstrap-server", cluster.bootstrap_servers)
    return run_kafka_tool("org.apache.kafka.tools.TopicCommand", *server, *arguments).stdout


def with_broker(folder: Path, *, is_dynamic: bool) -> KafkaCluster:
    """Three controllers with the ids 1 to 3, and the broker 4."""
    made = quorum(folder, is_dynamic=is_dynamic)
    broker = KafkaNode(4, folder / "node-4", {"PLAINTEXT": free_ports(1)[0]}, {})
    return KafkaCluster([*made.nodes, broker], is_dynamic=is_dynamic)


@pytest.mark.parametrize("is_dynamic", [True, False], ids=["kraft.version 1", "kraft.version 0"])
def test_kafka_goes_on_after_two_of_three_controllers_are_lost(
    tmp_path: Path, is_dynamic: bool
) -> None:
    """The broker, which never stopped, serves old topics and new ones."""
    with with_broker(tmp_path, is_dynamic=is_dynamic) as cluster:
        topics(cluster, "--create", "--topic", "before")
        before = described(address_of(cluster.nodes[0]), lambda info: info.leader_id > 0)
        survivor = next(one for one in cluster.nodes if one.node_id == before.leader_id)
        for yes in (False, True):
            in_use = recover(config_of(survivor), yes=yes)
            assert (in_use.returncode, "another process uses" in in_use.stderr) == (1, True)
        for node in cluster.controllers:
            node.kill()
        config = config_of(survivor)
        plan = recover(config)
        assert plan.returncode == 3, plan.stderr
        assert "cannot be known from offset" in plan.stdout
        if not is_dynamic:
            line = f"controller.quorum.voters={survivor.node_id}@{address_of(survivor)}"
            refused = recover(config, yes=True)
            assert (refused.returncode, line in refused.stderr) == (1, True)
            assert line in plan.stdout
            survivor.properties["controller.quorum.voters"] = line.partition("=")[2]
            survivor.write_config()
        done = recover(config, yes=True)
        assert done.returncode == 0, done.stderr
        survivor.start()
        survivor.wait_ready()
        info = described(
            address_of(survivor), lambda info: info.high_watermark > before.high_watermark
        )
        assert [one.id for one in info.voters] == [survivor.node_id] == [info.leader_id]
        topics(cluster, "--create", "--topic", "after")
        # The broker answers by what it has replayed.
        described(address_of(survivor), has_caught_up(4))
        assert set(topics(cluster, "--list").split()) == {"before", "after"}
        broker = cluster.nodes[-1]
        assert broker.process is not None
        assert broker.process.poll() is None, broker.last_lines()


def test_kafkas_other_survivor_starts_empty_and_is_added(tmp_path: Path) -> None:
    """It copies the log of the one that goes on, and Kafka's tool makes it a voter."""
    with quorum(tmp_path) as cluster:
        described(address_of(cluster.nodes[0]), lambda info: info.high_watermark > 0)
        for node in cluster.nodes:
            node.kill()
        survivors = cluster.nodes[:2]
        done = recover(*map(config_of, survivors), yes=True)
        assert done.returncode == 0, done.stderr
        for node in survivors:
            node.start()
        for node in survivors:
            node.wait_ready()
        info = described(address_of(survivors[0]), lambda info: info.high_watermark > 0)
        first, other = sorted(survivors, key=lambda node: node.node_id != info.leader_id)
        described(address_of(first), has_caught_up(other.node_id))
        assert (other.folder / "data.before-recover-1" / "__cluster_metadata-0").is_dir()
        added = theirs(
            *("--bootstrap-controller", address_of(first)),
            *("--command-config", str(config_of(other)), "add-controller"),
        )
        assert added.returncode == 0, added.stderr
        info = described(address_of(first), lambda info: len(info.voters) == 2)
        assert {one.directory_id for one in info.voters} == {one.directory_id for one in survivors}


def test_kafkas_static_voter_starts_empty_and_copies_the_log(tmp_path: Path) -> None:
    """It votes for the one that has the log, as its own is empty."""
    with quorum(tmp_path, is_dynamic=False) as cluster:
        before = described(address_of(cluster.nodes[0]), lambda info: info.high_watermark > 0)
        for node in cluster.nodes:
            node.kill()
        survivors = cluster.nodes[:2]
        plan = recover(*map(config_of, survivors))
        line = ",".join(f"{node.node_id}@{address_of(node)}" for node in survivors)
        assert f"  controller.quorum.voters={line}" in plan.stdout.splitlines()
        for node in survivors:
            node.properties["controller.quorum.voters"] = line
            node.write_config()
        done = recover(*map(config_of, survivors), yes=True)
        assert done.returncode == 0, done.stderr
        for node in survivors:
            node.start()
        for node in survivors:
            node.wait_ready()
        info = described(
            address_of(survivors[0]), lambda info: info.high_watermark > before.high_watermark
        )
        assert {one.id for one in info.voters} == {1, 2}
        assert f"node {info.leader_id}," in done.stdout.split("furthest log first:")[1][:30]


def test_nodes_of_ours_go_on_after_two_of_three_are_lost() -> None:
    """One of them alone; then a new node joins it and becomes a voter."""
    with our_quorum(3, dynamic=True) as q:
        survivor = q.leader()
        before = q.admin().describe_quorum()
        config = q.config_file(survivor)
        in_use = recover(config, yes=True)
        assert (in_use.returncode, "another process uses" in in_use.stderr) == (1, True)
        for node in q.node_ids:
            q.kill(node)
        assert recover(config).returncode == 3
        done = recover(config, yes=True)
        assert done.returncode == 0, done.stderr
        q.start(survivor)
        info = q.admin().describe_quorum()
        assert [one.id for one in info.voters] == [survivor] == [info.leader_id]
        assert info.leader_epoch > before.leader_epoch + 1
        address = q.bootstrap_controllers.split(",")[survivor - 1]
        new = q.add_node()
        described(address, has_caught_up(new))
        _add(address, q.config_file(new))
        described(address, lambda info: {one.id for one in info.voters} == {survivor, new})


def test_the_other_survivor_of_ours_starts_empty_and_is_added() -> None:
    """Only the furthest log goes on; a second run of the command has nothing to do."""
    with our_quorum(3, dynamic=True) as q:
        for node in q.node_ids:
            q.kill(node)
        configs = [q.config_file(node) for node in (1, 2)]
        done = recover(*configs, yes=True)
        assert done.returncode == 0, done.stderr
        assert "nothing that was acknowledged" in done.stdout
        again = recover(*configs)
        assert (again.returncode, "Nothing is left to write" in again.stdout) == (0, True)
        q.start(1)
        q.start(2)
        first = q.leader()
        other = 3 - first
        address = q.bootstrap_controllers.split(",")[first - 1]
        described(address, has_caught_up(other))
        _add(address, q.config_file(other))
        described(address, lambda info: {one.id for one in info.voters} == {1, 2})


def _add(address: str, config: Path) -> None:
    words = ("--bootstrap-controller", address, "--command-config", str(config))
    added = ours(*words, "add-controller")
    assert added.returncode == 0, added.stderr
