"""The records of a real broker: read from its log directory by Spark, and by Kafka's Java consumer.

Both read every record of one topic; CPU time of all processes counts, including that of the broker
while it serves the consumer. The consumer is Kafka's own performance tool, which ignores contents.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from statistics import median

from kraftwire.testing.ports import free_ports
from tests.bench.log_job import query_seconds
from tests.bench.report import Bar, console, print_bars, print_table
from tests.bench.tree import Tree, run_tree
from tests.support.kafka.java import run_kafka_tool
from tests.support.kafka.maven import KAFKA, directory_of, kafka_classpath
from tests.support.kafka.process import KafkaCluster, KafkaNode

__all__ = ["run"]

_RECORDS = 2_000_000
_RECORD_SIZE = 110
_PARTITIONS = 4
_ROUNDS = 5
_WARM_ROUNDS = 2
_TOOLS = "org.apache.kafka.tools"


def run() -> list[Bar]:
    """Measure, print, and return the bars that were missed."""
    if shutil.which("java") is None or not directory_of(KAFKA).is_dir():
        console.print("broker is skipped: no java, or the tests have not fetched Kafka's jars")
        return []
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        ports = free_ports(2)
        listeners = dict(zip(("PLAINTEXT", "CONTROLLER"), ports, strict=True))
        node = KafkaNode(1, Path(folder), listeners, {})
        with KafkaCluster([node], is_dynamic=True):
            _produce(f"127.0.0.1:{ports[0]}")
            assert node.process is not None
            return _measure(Path(folder), f"127.0.0.1:{ports[0]}", node.process.pid)


def _produce(server: str) -> None:
    where = ("--bootstrap-server", server, "--topic", "orders")
    run_kafka_tool(f"{_TOOLS}.TopicCommand", *where, "--create", "--partitions", str(_PARTITIONS))
    tool = ("--num-records", _RECORDS, "--record-size", _RECORD_SIZE, "--throughput", -1)
    run_kafka_tool(f"{_TOOLS}.ProducerPerformance", *where, *map(str, tool))


def _measure(folder: Path, server: str, broker: int) -> list[Bar]:
    from kraftwire.spark.session import local_session

    logs = sorted(str(path) for path in folder.rglob("orders-*") if path.is_dir())
    spark = local_session("local[2]", {"spark.ui.showConsoleProgress": "false"})
    reader = spark.read.format("kafka-log")
    names = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
    frame = reader.load(",".join(logs)).select(*names)
    frame = reader.schema(frame.schema).load(",".join(logs))
    rows, pairs = [], []
    for _ in range(_ROUNDS):
        ours = query_seconds(frame, _RECORDS)
        client, server_side = _consume(server, broker)
        pairs.append((ours, client))
        figures = (ours, client, server_side, os.getloadavg()[0])
        rows.append(tuple(f"{figure:.1f}" for figure in figures))
    spark.stop()
    columns = ("kafka-log job CPU s", "Java consumer CPU s", "its broker CPU s", "load")
    print_table(f"{_RECORDS / 1e6:.0f} million records of a broker", columns, rows)
    # The first rounds warm up the session; the consumer is a program that starts every time.
    ratio = median(client / ours for ours, client in pairs[_WARM_ROUNDS:])
    bar = Bar("kafka-log job, warm / Java consumer, CPU", ratio, 0.0)
    return print_bars("Broker: summary", [bar])


def _consume(server: str, broker: int) -> tuple[float, float]:
    """CPU seconds of the consumer and of the broker meanwhile."""
    before = _cpu_seconds(broker)
    java = ["java", "-Xmx512m", "-XX:+UseSerialGC", "-cp", kafka_classpath()]
    tool = [*java, f"{_TOOLS}.ConsumerPerformance"]
    where = ["--bootstrap-server", server, "--topic", "orders"]
    done = run_tree([*tool, *where, "--num-records", str(_RECORDS), "--timeout", "60000"])
    if done.exit_code:
        raise RuntimeError(done.output)
    return done.tree.cpu_seconds(), _cpu_seconds(broker) - before


def _cpu_seconds(pid: int) -> float:
    tree = Tree((pid,))
    tree.look()
    return tree.cpu_seconds()
