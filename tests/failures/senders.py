"""Idempotent producers that note how long each send takes, and what their topics then hold."""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import Any, Self

import confluent_kafka

from tests.support.kafka.mixed_quorum import wait_until

_SEND_SECONDS_MAX = 120.0
_PAUSE_SECONDS = 0.02
_READ_SECONDS_MAX = 60.0


class NumberProducer:
    """An idempotent producer of numbers, which waits for all in-sync replicas each time."""

    def __init__(self, servers: str, topic: str) -> None:
        self._topic = topic
        settings = {
            "bootstrap.servers": servers,
            "acks": "all",
            "enable.idempotence": True,
            "linger.ms": 0,
            # What is measured is the cluster, not the patience of the client.
            "reconnect.backoff.max.ms": 500,
            "log_level": 0,
        }
        self._producer = confluent_kafka.Producer(settings)

    def send(self, number: int) -> list[Any]:
        """Send a number; returns [None] once it is acknowledged, else errors or nothing."""
        errors: list[Any] = []
        self._producer.produce(
            self._topic, str(number), callback=lambda error, _: errors.append(error)
        )
        self._producer.flush(_SEND_SECONDS_MAX)
        return errors


class Sender:
    """Sends numbers to a topic, each acknowledged by all in-sync replicas before the next; use it
    as a context manager.

    `sends` are the ends of all sends so far, with the seconds that each took. `failures` are those
    that the producer gave up.
    """

    def __init__(self, servers: str, topic: str) -> None:
        self.topic = topic
        self.sends: list[tuple[float, float]] = []
        self.acknowledged: list[int] = []
        self.failures: list[str] = []
        self._producer = NumberProducer(servers, topic)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        number = 0
        while not self._is_over.wait(_PAUSE_SECONDS):
            self._send(number)
            number += 1

    def _send(self, number: int) -> None:
        began = time.monotonic()
        errors = self._producer.send(number)
        ended = time.monotonic()
        if errors == [None]:
            self.acknowledged.append(number)
        else:
            self.failures.append(f"{number}: {errors}")
        self.sends.append((ended, ended - began))

    def wait_flow(self, count: int = 10) -> None:
        """Return once so many more sends have ended."""
        wanted = len(self.sends) + count
        wait_until(lambda: len(self.sends) >= wanted, f"{count} more sends to {self.topic}")

    def worst(self, since: float) -> float:
        """Return how long the longest of the sends took that ended after a time."""
        return max(seconds for ended, seconds in list(self.sends) if ended >= since)


def contents(servers: str, topic: str) -> Counter[int]:
    """Return how often each number is in a topic."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "contents",
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    found: Counter[int] = Counter()
    try:
        indexes = consumer.list_topics(topic, timeout=30).topics[topic].partitions
        begin = confluent_kafka.OFFSET_BEGINNING
        consumer.assign([confluent_kafka.TopicPartition(topic, each, begin) for each in indexes])
        read: set[int] = set()
        deadline = time.monotonic() + _READ_SECONDS_MAX
        while len(read) < len(indexes):
            assert time.monotonic() < deadline, f"{topic} has no end"
            for one in consumer.consume(500, 1.0):
                if one.error() is None:
                    found[int(one.value())] += 1
                elif one.error().code() == confluent_kafka.KafkaError._PARTITION_EOF:
                    read.add(one.partition())
    finally:
        consumer.close()
    return found
