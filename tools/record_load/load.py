"""A real Kafka node and the load on it: Kafka's own performance tools with default settings."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from kraftwire.testing.ports import free_ports
from tests.support.kafka.java import JVM_OPTIONS, run_kafka_tool
from tests.support.kafka.maven import kafka_classpath
from tests.support.kafka.process import KafkaCluster, KafkaNode
from tools.record_load.capture import CaptureFile
from tools.record_load.mix import Mix
from tools.record_load.proxy import Proxy

_TOOLS = "org.apache.kafka.tools"


_ADMIN_ROUNDS = 2


@dataclass(frozen=True, slots=True)
class Stream:
    """Records of one kind from a producer over a topic to a consumer.

    Units: `record_size` bytes, `throughput` records per second. A throttled producer sends what
    has accumulated within its default linger, a few kilobytes, as most applications do.
    """

    topic: str
    partition_count: int
    record_size: int
    throughput: int


# Together 2.4 MB/s, which a node on two idle cores serves without falling behind: beyond that
# point producers fill whole batches and the frames no longer look like everyday ones.
STREAMS = (
    Stream("orders", 4, 500, 1200),
    Stream("metrics", 1, 100, 4000),
    Stream("payments", 2, 800, 750),
    Stream("documents", 1, 2000, 400),
)


def record(path: Path, size: int, folder: Path, *, rate: float = 1.0) -> tuple[CaptureFile, Mix]:
    """Record a capture of about `size` bytes.

    `folder` receives the node's files; `rate` scales how fast the producers send.
    """
    mix = Mix()
    capture = CaptureFile(path)
    node_port, controller_port = free_ports(2)
    with Proxy(node_port, capture, mix) as proxy:
        listeners = {"PLAINTEXT": node_port, "CONTROLLER": controller_port}
        advertised = (
            f"PLAINTEXT://127.0.0.1:{proxy.port},CONTROLLER://127.0.0.1:{controller_port}"
        )
        node = KafkaNode(1, folder, listeners, {"advertised.listeners": advertised})
        with KafkaCluster([node], is_dynamic=True):
            _load(f"127.0.0.1:{proxy.port}", size, rate)
    capture.close()
    return capture, mix


def _load(server: str, size: int, rate: float) -> None:
    for stream in STREAMS:
        topic = ("--topic", stream.topic, "--partitions", stream.partition_count)
        _admin("TopicCommand", server, "--create", *topic)
    # Every byte is sent twice, to the broker and to the consumer.
    seconds = size / 2 / sum(stream.record_size * stream.throughput for stream in STREAMS)
    counts = {stream: int(stream.throughput * seconds) for stream in STREAMS}
    running = [_consumer(server, stream, count) for stream, count in counts.items()]
    running += [_producer(server, stream, count, rate) for stream, count in counts.items()]
    for _ in range(_ADMIN_ROUNDS):
        _admin("TopicCommand", server, "--describe")
        _admin("consumer.group.ConsumerGroupCommand", server, "--describe", "--all-groups")
        _admin("ConfigCommand", server, "--describe", "--entity-type", "topics")
        _admin("GetOffsetShell", server)
    failed = [process.args for process in running if process.wait()]
    if failed:
        raise RuntimeError(f"failed: {failed}")


def _producer(server: str, stream: Stream, count: int, rate: float) -> subprocess.Popen[bytes]:
    throughput = max(1, int(stream.throughput * rate))
    options = ("--record-size", stream.record_size, "--throughput", throughput)
    return _start("ProducerPerformance", server, stream, "--num-records", count, *options)


def _consumer(server: str, stream: Stream, count: int) -> subprocess.Popen[bytes]:
    # The tool gives up after this many milliseconds without a record; producers start slowly.
    options = ("--timeout", 60_000, "--group", f"readers-of-{stream.topic}")
    return _start("ConsumerPerformance", server, stream, "--num-records", count, *options)


def _start(tool: str, server: str, stream: Stream, *options: object) -> subprocess.Popen[bytes]:
    command = ["java", *JVM_OPTIONS, "-cp", kafka_classpath(), f"{_TOOLS}.{tool}"]
    target = ("--bootstrap-server", server, "--topic", stream.topic)
    return subprocess.Popen(
        [*command, *target, *map(str, options)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _admin(tool: str, server: str, *options: object) -> None:
    package = "kafka.admin" if tool == "ConfigCommand" else _TOOLS
    run_kafka_tool(f"{package}.{tool}", "--bootstrap-server", server, *options)
