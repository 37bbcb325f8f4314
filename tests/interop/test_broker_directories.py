"""Real brokers with two log directories each on a controller of ours: cordoned ones, lost ones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("confluent_kafka")

from confluent_kafka import admin as admin_module

from kraftwire.controller.cluster import UNASSIGNED
from kraftwire.messages.partition_record import PartitionRecord
from kraftwire.wire.json_form import uuid_from_text
from tests.failures.senders import Sender, contents
from tests.support.kafka.java import run_kafka_tool
from tests.support.kafka.mixed_quorum import JAVA, OURS, MixedQuorum, wait_until

BROKERS = (101, 102)
NAMES = ("data", "more")
TOPIC = "orders"


@pytest.fixture
def quorum(tmp_path: Path) -> Iterator[MixedQuorum]:
    """A controller and two brokers, all running."""
    special = {
        id: {"log.dirs": ",".join(str(directory(tmp_path, id, name)) for name in NAMES)}
        for id in BROKERS
    }
    # A broker notices that a directory is gone when it writes its checkpoints there.
    properties = {
        "broker.heartbeat.interval.ms": 500,
        "replica.high.watermark.checkpoint.interval.ms": 500,
    }
    brokers = dict.fromkeys(BROKERS, JAVA)
    with MixedQuorum(tmp_path, {1: OURS}, properties, special, brokers=brokers) as found:
        found.start()
        yield found


def directory(folder: Path, broker: int, name: str) -> Path:
    """The path of a broker's log directory."""
    return folder / f"node-{broker}" / name


def directory_id(path: Path) -> bytes:
    """The id of a log directory."""
    (found,) = re.findall(r"^directory\.id=(.+)$", (path / "meta.properties").read_text(), re.M)
    return uuid_from_text(found)


def partitions(quorum: MixedQuorum) -> list[PartitionRecord]:
    """The partitions of all topics that clients have made, as they are in the log."""
    topics = quorum.members[1].image().topics
    return [
        partition
        for name, id in topics.ids.items()
        if not name.startswith("__")
        for partition in topics.partitions(id).values()
    ]


def used(quorum: MixedQuorum, broker: int) -> set[bytes]:
    """The directories in which a broker has replicas."""
    return {
        where
        for each in partitions(quorum)
        for replica, where in zip(each.replicas, each.directories, strict=True)
        if replica == broker
    }


def test_directories_are_reported_cordoned_and_lost(quorum: MixedQuorum, tmp_path: Path) -> None:
    """A broker goes on with the directory that is left; nothing acknowledged is lost."""
    servers = quorum.bootstrap_servers
    admin = admin_module.AdminClient({"bootstrap.servers": servers, "log_level": 0})
    ids = {
        id: [directory_id(directory(tmp_path, id, name)) for name in NAMES] for id in BROKERS
    }

    def create(name: str, count: int) -> None:
        topic = admin_module.NewTopic(name, num_partitions=count, replication_factor=2)
        admin.create_topics([topic])[name].result(60)
        wait_until(
            lambda: partitions(quorum)
            and not any(UNASSIGNED in each.directories for each in partitions(quorum)),
            "directories that the brokers have reported",
            quorum.last_lines,
        )

    create(TOPIC, 4)
    for id in BROKERS:
        assert used(quorum, id) == set(ids[id])

    kept, cordoned = ids[101]
    path = directory(tmp_path, 101, "more")
    words = ("--alter", "--entity-type", "brokers", "--entity-name", "101")
    value = f"cordoned.log.dirs={path}"
    words = ("--bootstrap-server", servers, *words, "--add-config", value)
    run_kafka_tool("org.apache.kafka.tools.ConfigCommand", *words)
    wait_until(
        lambda: quorum.members[1].image().brokers[101].cordoned_log_dirs == (cordoned,),
        "a directory that is cordoned",
        quorum.last_lines,
    )
    before = len([each for each in partitions(quorum) if cordoned in each.directories])
    create("others", 4)
    assert len([each for each in partitions(quorum) if cordoned in each.directories]) == before

    with Sender(servers, TOPIC) as sender:
        sender.wait_flow()
        path.rename(path.with_name("gone"))
        wait_until(
            lambda: quorum.members[1].image().brokers[101].log_dirs == (kept,),
            "a directory that is lost",
            quorum.last_lines,
        )
        wait_until(
            lambda: all(
                (101 in each.isr) == (cordoned not in each.directories) and each.leader > 0
                for each in partitions(quorum)
            ),
            "replicas that have left the in-sync ones",
            quorum.last_lines,
        )
        sender.wait_flow()
    assert sender.failures == []
    assert set(sender.acknowledged) <= contents(servers, TOPIC).keys()
    assert quorum.members[101].is_running
    assert not quorum.members[101].ended()
