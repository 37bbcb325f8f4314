"""The coordinator of a consumer's group moves: `python -m examples.coordinator_moves HOST:PORT`.

The broker that was the coordinator says that it is not, and for a while there is none. The consumer
goes on where it was. This needs confluent-kafka and a cluster, in which it makes a topic.
"""

from __future__ import annotations

import sys
import time

from confluent_kafka import Consumer, Producer, TopicPartition

from kraftwire.testing import proxy

COUNT = 10


def produce(servers: str, topic: str) -> None:
    """Send the numbers that the consumer reads."""
    producer = Producer({"bootstrap.servers": servers})
    for number in range(COUNT):
        producer.produce(topic, str(number))
    producer.flush()


def new_consumer(servers: str, topic: str) -> Consumer:
    """Return a consumer that reads from the start, and commits only what it is told to."""
    settings = {"auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = Consumer({"bootstrap.servers": servers, "group.id": topic, **settings})
    consumer.subscribe([topic])
    return consumer


def read(consumer: Consumer, count: int) -> list[str]:
    """Read so many records, and commit each."""
    found: list[str] = []
    while len(found) < count:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            found.append(message.value().decode())
            consumer.commit(message=message, asynchronous=False)
    return found


def main(servers: str) -> None:
    """Say what the consumer has read, and what it was told in between."""
    topic = f"coordinator-moves-{time.time_ns()}"
    produce(servers, topic)
    with proxy(servers) as p:
        consumer = new_consumer(p.bootstrap_servers, topic)
        found = read(consumer, COUNT // 2)
        moved = p.refuse("OffsetCommit", "NOT_COORDINATOR", times=1)
        nobody = p.refuse("FindCoordinator", "COORDINATOR_NOT_AVAILABLE", times=3)
        with moved, nobody:
            found += read(consumer, COUNT - COUNT // 2)
        (committed,) = consumer.committed([TopicPartition(topic, 0)])
        consumer.close()
    print(f"not the coordinator: {moved.count}; no coordinator: {nobody.count}")
    print(f"read: {' '.join(found)}; committed: {committed.offset}")


if __name__ == "__main__":
    main(*sys.argv[1:])
