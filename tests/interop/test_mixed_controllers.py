"""Leadership moves between controllers of both kinds, which all serve the same real brokers.

With KRAFTWIRE_TESTED_KIND=java, the same script runs on Java's controllers alone; with
KRAFTWIRE_MOVES=10, leadership moves ten times each way.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("confluent_kafka")

from confluent_kafka import admin as admin_module

from tests.failures.senders import Sender, contents
from tests.interop.test_brokers import BROKERS, TOPIC, in_sync
from tests.support.kafka.mixed_quorum import JAVA, OURS, Member, MixedQuorum, wait_until
from tests.support.kafka.mixed_quorum.complaints import errors_told
from tests.support.kafka.mixed_quorum.kinds import kind_under_test

NODE, OTHERS = 3, (1, 2)
ROUNDS = int(os.environ.get("KRAFTWIRE_MOVES", "2"))

PROPERTIES = {
    "metadata.max.idle.interval.ms": 100,
    "offsets.topic.num.partitions": 1,
    "offsets.topic.replication.factor": 2,
}


@pytest.mark.parametrize("is_alone", [True, False], ids=["one of ours", "two of ours"])
def test_leadership_moves_both_ways_while_clients_work(tmp_path: Path, is_alone: bool) -> None:
    """Whoever leads decides: nothing acknowledged is lost, no broker is fenced, logs are equal."""
    node, others = (kind_under_test(), JAVA) if is_alone else (JAVA, kind_under_test())
    move_under_load(tmp_path, node, others)


def test_java_logs_no_error_that_it_would_not_log_alone(tmp_path: Path) -> None:
    """Nor one that is taken for harmless: three of Java's controllers do the same first."""
    alone = move_under_load(tmp_path / "alone", JAVA, JAVA)
    assert move_under_load(tmp_path / "one", OURS, JAVA) <= alone
    assert move_under_load(tmp_path / "two", JAVA, OURS) <= alone


def move_under_load(folder: Path, node: str, others: str) -> set[str]:
    """Let the one lead and one of the two others in turn, under a producer; returns which kinds of
    errors Java's nodes have logged."""
    kinds = {**dict.fromkeys(OTHERS, others), NODE: node}
    brokers = dict.fromkeys(BROKERS, JAVA)
    with MixedQuorum(folder, kinds, PROPERTIES, brokers=brokers) as quorum:
        quorum.start()
        servers = quorum.bootstrap_servers
        admin = admin_module.AdminClient({"bootstrap.servers": servers, "log_level": 0})
        topic = admin_module.NewTopic(TOPIC, num_partitions=3, replication_factor=2)
        admin.create_topics([topic])[TOPIC].result(60)
        with Sender(servers, TOPIC) as sender:
            for number in range(ROUNDS):
                move_both_ways(quorum, admin, number, sender)
        wait_until(lambda: in_sync(admin) == 2 * ROUNDS + 3, "replicas that are in sync")
        assert sender.failures == []
        found = contents(servers, TOPIC)
        assert [found[sent] for sent in sender.acknowledged] == [1] * len(sender.acknowledged)
        for member in quorum.controllers:
            assert not [line for line in member.lines if "brokers-fenced" in line]
        quorum.check_logs_agree()
        quorum.check_health()
        members = quorum.members.values()
        return errors_told([each.java.console for each in members if each.is_java])


def move_both_ways(quorum: MixedQuorum, admin: Any, number: int, sender: Sender) -> None:
    """Let the one lead, then one of the two; records are sent and changes are made under each."""
    if quorum.leader() != NODE:
        former = quorum.depose(NODE)
        sender.wait_flow()
        quorum.start(former)
    change(admin, f"one-{number}", 2 * number + 4)
    sender.wait_flow()
    assert quorum.leader() == NODE
    hand_over(quorum.members[NODE])
    sender.wait_flow()
    assert quorum.leader(among=OTHERS) in OTHERS
    change(admin, f"two-{number}", 2 * number + 5)
    sender.wait_flow()


def hand_over(leader: Member) -> None:
    """Let a leader resign. Java's does when it stops."""
    if leader.ours is not None:
        leader.ours.send(signal.SIGUSR1)
    else:
        leader.stop()
        leader.start()
        leader.wait_ready()


def change(admin: Any, name: str, count: int) -> None:
    """Create a topic, configure it, delete it; give the topic in use one more partition."""
    topic = admin_module.NewTopic(name, num_partitions=2, replication_factor=2)
    admin.create_topics([topic])[name].result(60)
    kind, entry = admin_module.ResourceType.TOPIC, admin_module.ConfigEntry
    value = entry(
        "retention.ms",
        "60000",
        incremental_operation=admin_module.AlterConfigOpType.SET,
    )
    resource = admin_module.ConfigResource(kind, name, incremental_configs=[value])
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(60)
    resized = admin_module.NewPartitions(TOPIC, count)
    admin.create_partitions([resized])[TOPIC].result(60)
    admin.delete_topics([name])[name].result(60)
