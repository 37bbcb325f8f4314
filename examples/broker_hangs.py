"""One broker of several hangs: `python -m examples.broker_hangs HOST:PORT,... [SECONDS]`.

It answers nothing for 40 seconds. A producer reaches the other brokers meanwhile, and this one
afterwards. This needs confluent-kafka and a cluster, in which it makes a topic.
"""

from __future__ import annotations

import sys
import time

from confluent_kafka import Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kraftwire.testing import proxy

PARTITIONS = 4


def new_topic(servers: str) -> tuple[str, dict[int, int]]:
    """Make a topic; return its name, and the leader of each partition."""
    topic = f"broker-hangs-{time.time_ns()}"
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result()
    while True:
        found = admin.list_topics(topic).topics[topic].partitions
        if len(found) == PARTITIONS and all(one.leader >= 0 for one in found.values()):
            return topic, {id: one.leader for id, one in found.items()}


class Sender:
    """An idempotent producer that notes how long each record takes, by partition."""

    def __init__(self, servers: str, topic: str) -> None:
        self._producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True})
        self._topic = topic

    def send(self, took: dict[int, float]) -> None:
        """Send a record to each partition, without waiting for an answer."""
        began = time.monotonic()

        def note(_: object, message: Message) -> None:
            took[message.partition()] = time.monotonic() - began

        for partition in range(PARTITIONS):
            self._producer.produce(self._topic, b"one more", partition=partition, on_delivery=note)

    def wait(self, seconds: float = 300) -> None:
        """Wait for all answers, or so long."""
        self._producer.flush(seconds)


def main(servers: str, seconds: float = 40) -> None:
    """Say how long a record took to each partition."""
    topic, leaders = new_topic(servers)
    hung = leaders[0]
    took: dict[int, float] = {}
    with proxy(servers) as p:
        sender = Sender(p.bootstrap_servers, topic)
        sender.send({})
        sender.wait()
        with p.hold("*", node=hung, undecided=True):
            sender.send(took)
            sender.wait(seconds)
        sender.wait()
        del sender
    print(f"broker {hung} was silent for {seconds:g} s")
    for partition, leader in leaders.items():
        print(f"partition {partition}, broker {leader}: {took[partition]:.1f} s")


if __name__ == "__main__":
    main(sys.argv[1], *map(float, sys.argv[2:]))
