"""Leadership moves between controllers of both kinds, which all serve the same real brokers.

With KRAFTWIRE_TESTED_KIND=java, the same script runs on Java's controllers alone.
"""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from tests.interop.test_brokers import BROKERS, TOPIC, Producer, in_sync, read_all
from tests.support.mixed_quorum import JAVA, Member, MixedQuorum, wait_until
from tests.support.mixed_quorum.kinds import kind_under_test

admin_module = pytest.importorskip("confluent_kafka.admin")

NODE, JAVAS = 3, (1, 2)
ROUNDS = 2

PROPERTIES = {
    "metadata.max.idle.interval.ms": 100,
    "offsets.topic.num.partitions": 1,
    "offsets.topic.replication.factor": 2,
}


def test_leadership_moves_both_ways_while_clients_work(tmp_path: Path) -> None:
    """Whoever leads decides: nothing acknowledged is lost, no broker is fenced, logs are equal."""
    kinds = {1: JAVA, 2: JAVA, NODE: kind_under_test()}
    brokers = dict.fromkeys(BROKERS, JAVA)
    with MixedQuorum(tmp_path, kinds, PROPERTIES, brokers=brokers) as quorum:
        quorum.start()
        node = quorum.members[NODE]
        servers = quorum.bootstrap_servers
        admin = admin_module.AdminClient({"bootstrap.servers": servers, "log_level": 0})
        topic = admin_module.NewTopic(TOPIC, num_partitions=3, replication_factor=2)
        admin.create_topics([topic])[TOPIC].result(60)
        producer = Producer(servers)
        for number in range(ROUNDS):
            if quorum.leader() != NODE:
                former = quorum.depose(NODE)
                producer.send(20)
                quorum.start(former)
            change(admin, f"ours-{number}", 2 * number + 4)
            producer.send(20)
            assert quorum.leader() == NODE
            hand_over(node)
            producer.send(20)
            assert quorum.leader(among=JAVAS) in JAVAS
            change(admin, f"theirs-{number}", 2 * number + 5)
            producer.send(20)
        wait_until(lambda: in_sync(admin) == 2 * ROUNDS + 3, "replicas that are in sync")
        assert read_all(servers, producer.sent) == list(range(producer.sent))
        assert not [line for line in node.lines if "brokers-fenced" in line]
        quorum.check_logs_agree()
        quorum.check_health()


def hand_over(leader: Member) -> None:
    """Let a leader resign. Java's does when it stops."""
    if leader.ours is not None:
        leader.ours.send(signal.SIGUSR1)
    else:
        leader.stop()
        leader.start()


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
