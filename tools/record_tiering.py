"""Records the `__remote_log_metadata` log of a broker with tiered storage, and its dump.

Run as ``python -m tools.record_tiering FOLDER``. Owns the recording of one golden file: a topic
whose old segments go to Kafka's storage for tests (`LocalTieredStorage`, in the test jar of
kafka-storage), and are deleted there with the topic. Needs Java, Maven, and kafka-python.
"""

from __future__ import annotations

import argparse
import lzma
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from kafka import KafkaAdminClient, KafkaProducer  # type: ignore[import-untyped]
from kafka.admin import NewTopic  # type: ignore[import-untyped]

import kraftwire.decode
from kraftwire.records.json_form import decode_record
from tests.support.kafka.java import run_kafka_tool
from tests.support.kafka.maven import KAFKA
from tests.support.kafka.process import combined_node

_TOPIC = "tiered"
_PARTITION = "__remote_log_metadata-0"
_LOG = "00000000000000000000.log"
_SEGMENT_BYTES = 1 << 20  # the least that a topic may have
_RECORD_BYTES = 100_000
_RECORDS = 35
_WAIT_S = 120.0
_STORAGE = "org.apache.kafka.server.log.remote.storage.LocalTieredStorage"


def record(out: Path) -> None:
    """Record segment and dump into a folder. Raises: TimeoutError if the broker copies no segment.
    """
    with tempfile.TemporaryDirectory(prefix="record-tiering-") as name:
        folder = Path(name)
        with combined_node(folder / "node", _properties(folder)) as cluster:
            admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
            configs = {
                "remote.storage.enable": "true",
                "segment.bytes": str(_SEGMENT_BYTES),
                "local.retention.bytes": "1",
            }
            admin.create_topics([NewTopic(_TOPIC, 1, 1, topic_configs=configs)])
            producer = KafkaProducer(bootstrap_servers=cluster.bootstrap_servers)
            for number in range(_RECORDS):
                producer.send(_TOPIC, bytes(_RECORD_BYTES), str(number).encode())
            producer.close()
            log = cluster.nodes[0].log_dir / _PARTITION / _LOG
            _wait_for(log, lambda states: states.count("COPY_SEGMENT_FINISHED") >= 2)
            admin.delete_topics([_TOPIC])
            _wait_for(log, _is_deleted)
            admin.close()
        _keep(log.parent, out)


def _properties(folder: Path) -> dict[str, object]:
    return {
        "remote.log.storage.system.enable": "true",
        "remote.log.storage.manager.class.name": _STORAGE,
        "remote.log.storage.manager.class.path": _test_jar(folder),
        "remote.log.metadata.manager.listener.name": "PLAINTEXT",
        "rlmm.config.remote.log.metadata.topic.num.partitions": 1,
        "rlmm.config.remote.log.metadata.topic.replication.factor": 1,
        "rlmm.config.remote.log.metadata.initialization.retry.interval.ms": 500,
        "rsm.config.dir": folder / "remote",
        "remote.log.manager.task.interval.ms": 500,
        "log.retention.check.interval.ms": 500,
    }


def _test_jar(folder: Path) -> Path:
    """Return the jar of Kafka's storage for tests, fetched by Maven."""
    artifact = f"org.apache.kafka:kafka-storage:{KAFKA.version}:jar:test"
    plugin = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
    command = ["mvn", "-B", "-q", plugin, f"-Dartifact={artifact}", f"-DoutputDirectory={folder}"]
    subprocess.run(command, check=True)
    return folder / f"kafka-storage-{KAFKA.version}-test.jar"


_STATES = {
    0: "COPY_SEGMENT_STARTED", 1: "COPY_SEGMENT_FINISHED",
    2: "DELETE_SEGMENT_STARTED", 3: "DELETE_SEGMENT_FINISHED",
}  # fmt: skip


def _is_deleted(states: list[str]) -> bool:
    """Whether all copied segments have been deleted again."""
    return states.count("DELETE_SEGMENT_FINISHED") == states.count("COPY_SEGMENT_STARTED")


def _states(log: Path) -> list[str]:
    """Return the segment states in the log so far."""
    found = []
    for each in kraftwire.decode.records(log):
        decoded = decode_record(each.record, "remote-log", is_control=False)
        data = {} if decoded is None else decoded.to_json()["data"]
        if "remoteLogSegmentState" in data:
            found.append(_STATES[data["remoteLogSegmentState"]])
    return found


def _wait_for(log: Path, is_done: Callable[[list[str]], bool]) -> None:
    until = time.monotonic() + _WAIT_S
    while not (log.exists() and is_done(_states(log))):
        if time.monotonic() > until:
            raise TimeoutError(f"{log}: {_states(log) if log.exists() else 'not there'}")
        time.sleep(0.5)


def _keep(partition: Path, out: Path) -> None:
    """Copy the segment, and write what Kafka's tool prints for it."""
    place = out / "tiered" / partition.name
    place.mkdir(parents=True, exist_ok=True)
    shutil.copy(partition / _LOG, place / _LOG)
    main_class = "org.apache.kafka.tools.DumpLogSegments"
    words = ("--deep-iteration", "--remote-log-metadata-decoder", "--files", place / _LOG)
    text = run_kafka_tool(main_class, *words).stdout.replace(f"{out}/", "")
    (out / "dump-log").mkdir(exist_ok=True)
    (out / "dump-log" / "remote-log.txt.xz").write_bytes(lzma.compress(text.encode()))


def main() -> int:
    """Record into the given folder."""
    parser = argparse.ArgumentParser(prog="python -m tools.record_tiering", description=__doc__)
    parser.add_argument("folder", type=Path, help="such as tests/golden/logs")
    record(parser.parse_args().folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
