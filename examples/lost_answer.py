"""An answer to a producer is lost: `python -m examples.lost_answer HOST:PORT [CAPTURE]`.

The record is in the log, but the producer does not know, and sends it again. Kafka recognises the
duplicate. This needs confluent-kafka and a cluster, in which it makes a topic.
"""

from __future__ import annotations

import sys
import time

from confluent_kafka import Consumer, Producer, TopicPartition

from kraftwire.testing import proxy


def send(servers: str, topic: str) -> int:
    """Send a record, and return the offset that the producer is told."""
    offsets: list[int] = []
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True})
    producer.produce(topic, b"once", on_delivery=lambda _, sent: offsets.append(sent.offset()))
    producer.flush()
    return offsets[0]


def record_count(servers: str, topic: str) -> int:
    """Return how many records the only partition of a topic has."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "none"})
    low, high = consumer.get_watermark_offsets(TopicPartition(topic, 0))
    consumer.close()
    return int(high - low)


def main(servers: str, capture: str = "lost-answer.pcapng") -> None:
    """Say what the producer was told, and what is in the log."""
    topic = f"lost-answer-{time.time_ns()}"
    with proxy(servers, capture=capture) as p, p.drop("Produce", "after", times=1) as lost:
        offset = send(p.bootstrap_servers, topic)
    print(f"{lost.count} answer was lost; the producer was told the offset {offset}")
    print(f"records in the log: {record_count(servers, topic)}")
    print(f"kraftwire story clients {capture}")


if __name__ == "__main__":
    main(*sys.argv[1:])
