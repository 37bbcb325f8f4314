"""Log directories that Kafka and kraftwire write for each other."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from kraftwire.log.files import LocalFiles
from kraftwire.log.metadata_log import MetadataLog
from kraftwire.log.quorum_state import QuorumState, QuorumStateFile
from kraftwire.log.settings import LogSettings
from kraftwire.testing.ports import free_ports
from tests.support.kafka.java import run_kafka_tool
from tests.support.kafka.process import KafkaNode, kafka_uuid
from tests.support.logs.batches import TOPIC, TOPIC_ID
from tests.support.metadata.records import LogWriter

_FOLDER = f"{TOPIC}-0"

def _open(folder: Path, settings: LogSettings | None = None) -> MetadataLog:
    settings = settings or LogSettings()
    return MetadataLog.open(LocalFiles(), str(folder), settings, TOPIC, TOPIC_ID)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A partition directory with several segments, epochs and a truncation."""
    folder = tmp_path_factory.mktemp("written")
    log = _open(folder, LogSettings(segment_bytes=60_000))
    for epoch in (1, 2, 5):
        writer = LogWriter(log, epoch, 1_700_000_000_000 + epoch * 100_000)
        writer.leader_change(1, [1, 2, 3])
        if epoch == 1:
            writer.bootstrap()
        writer.no_ops(500)
        writer.no_ops(20, 50)
        log.flush()
    log.truncate(log.end_offset - 60)
    LogWriter(log, 6, writer.now_ms).no_ops(200)
    log.close()
    assert len(list((folder / _FOLDER).glob("*.log"))) >= 3
    return folder / _FOLDER


@pytest.mark.parametrize(
    ("suffixes", "options"),
    [
        (("log",), ("--deep-iteration", "--cluster-metadata-decoder")),
        (("index", "timeindex"), ("--verify-index-only",)),
        (("index", "timeindex"), ("--index-sanity-check",)),
        (("log", "index", "timeindex", "snapshot"), ()),
    ],
)
def test_dump_log_reads_what_we_write(
    written: Path, suffixes: tuple[str, ...], options: tuple[str, ...]
) -> None:
    """It reports neither mismatches in indexes nor invalid batches."""
    files = sorted(path for suffix in suffixes for path in written.glob(f"*.{suffix}"))
    names = ",".join(map(str, files))
    result = run_kafka_tool("org.apache.kafka.tools.DumpLogSegments", "--files", names, *options)
    assert result.stdout.count("Dumping ") == len(files)
    complaints = ("Found ", "isvalid: false", "Exception", "WARNING", "rror")
    bad = [line for line in result.stdout.splitlines() if any(c in line for c in complaints)]
    assert bad == []
    assert "Exception" not in result.stderr
    if "--cluster-metadata-decoder" in options:
        assert result.stdout.count('"type":"NO_OP_RECORD"') > 3000
        assert result.stdout.count("LeaderChange") == 3
    elif not options:
        batches = sum(1 for line in result.stdout.splitlines() if "isvalid: true" in line)
        log = _open(written.parent)
        assert batches == len(log.batches())
        log.close()


def test_lost_indexes_are_rebuilt(written: Path, tmp_path: Path) -> None:
    """They get the entries that were there, which dump-log has checked above."""
    copy = tmp_path / _FOLDER
    copy.mkdir()
    for path in written.iterdir():
        if path.suffix not in (".index", ".timeindex"):
            (copy / path.name).write_bytes(path.read_bytes())
    log = _open(tmp_path)
    log.close()
    first = "0" * 20
    for suffix in ("index", "timeindex"):
        name = f"{first}.{suffix}"
        assert (copy / name).read_bytes() == (written / name).read_bytes()


def _wait_for_leader(node: KafkaNode) -> str:
    address = f"127.0.0.1:{node.listeners['CONTROLLER']}"
    tool = "org.apache.kafka.tools.MetadataQuorumCommand"
    return run_kafka_tool(tool, "--bootstrap-controller", address, "describe", "--status").stdout


def _content(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted((folder / _FOLDER).glob("*.log")))


def test_a_java_controller_and_kraftwire_continue_each_others_log(tmp_path: Path) -> None:
    """Ours begins, Java continues and is killed, ours continues, then Java: nothing is lost."""
    node = KafkaNode(1, tmp_path, {"CONTROLLER": free_ports(1)[0]}, {})
    voters = f"1@127.0.0.1:{node.listeners['CONTROLLER']}"
    node.properties["controller.quorum.voters"] = voters
    node.format(kafka_uuid())
    now_ms = int(time.time() * 1000) - 100_000
    begun = _begin(node, now_ms)
    mark = (node.log_dir / _FOLDER / "flushed-offset").read_bytes()
    assert b"crc32c" in _state_file(node).read_bytes()

    node.start()
    try:
        status = _wait_for_leader(node.wait_ready())
    finally:
        node.kill()
    assert re.search(r"LeaderEpoch:\s+5\n", status)
    assert b"crc32c" not in _state_file(node).read_bytes()
    assert (node.log_dir / _FOLDER / "flushed-offset").read_bytes() == mark

    log = _open(node.log_dir)
    assert b"crc32c" in _state_file(node).read_bytes()
    assert _content(node.log_dir).startswith(begun)
    assert log.epochs()[:2] == [(4, 0), (5, 109)]
    state_file = QuorumStateFile(LocalFiles(), str(_state_file(node)))
    state = state_file.read()
    assert state is not None
    assert (state.epoch, state.leader_id) == (5, 1)
    state_file.write(QuorumState(7, 1), 0, [1])
    LogWriter(log, 7, now_ms + 90_000).leader_change(1, [1])
    LogWriter(log, 7, now_ms + 90_001).no_ops(30)
    end = log.end_offset
    log.close()
    continued = _content(node.log_dir)

    node.start()
    try:
        status = _wait_for_leader(node.wait_ready())
    finally:
        node.stop()
    assert re.search(r"LeaderEpoch:\s+8\n", status)
    log = _open(node.log_dir)
    assert log.epochs()[-1] == (8, end)
    assert _content(node.log_dir).startswith(continued)
    log.close()


def _begin(node: KafkaNode, now_ms: int) -> bytes:
    """The log and state of a controller that led epoch 4; returns the log's bytes."""
    log = _open(node.log_dir)
    writer = LogWriter(log, 4, now_ms)
    writer.leader_change(1, [1])
    writer.bootstrap()
    writer.no_ops(100)
    log.close()
    QuorumStateFile(LocalFiles(), str(_state_file(node))).write(QuorumState(4, 1), 0, [1])
    return _content(node.log_dir)


def _state_file(node: KafkaNode) -> Path:
    return node.log_dir / _FOLDER / "quorum-state"


def test_a_java_controller_of_a_dynamic_quorum_takes_our_files(tmp_path: Path) -> None:
    """It reads a vote of version 1 from the first line and ignores checksum and mark; what it
    wrote since then lacks the checksum."""
    node = KafkaNode(1, tmp_path, {"CONTROLLER": free_ports(1)[0]}, {})
    address = f"127.0.0.1:{node.listeners['CONTROLLER']}"
    node.properties["controller.quorum.bootstrap.servers"] = address
    node.format(kafka_uuid(), "--standalone")
    node.start()
    try:
        _wait_for_leader(node.wait_ready())
    finally:
        node.stop()
    log = _open(node.log_dir)
    state_file = QuorumStateFile(LocalFiles(), str(_state_file(node)))
    (epoch, _) = log.epochs()[-1]
    state_file.write(QuorumState(epoch + 3, 1), 1, [])
    end = log.end_offset
    log.close()
    assert not state_file.is_foreign

    node.start()
    try:
        status = _wait_for_leader(node.wait_ready())
    finally:
        node.kill()
    assert re.search(rf"LeaderEpoch:\s+{epoch + 4}\n", status)
    assert state_file.is_foreign
    log = _open(node.log_dir)
    assert log.epochs()[-1] == (epoch + 4, end)
    log.close()
    assert not state_file.is_foreign
