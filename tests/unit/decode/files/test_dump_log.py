"""Real log directories decode to what `kafka-dump-log` prints for them, without a false alarm."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import pytest

from kraftwire.decode.files import FileFinding, FileOptions, FileReport, decode_file, walk
from tests.support.kafka import dump_log
from tests.support.kafka.dump_compare import compare_entries, compare_file

ROOT = Path(__file__).resolve().parents[4]
GOLDEN = ROOT / "tests" / "golden" / "logs"
SHARED = ROOT.parent / "shared" / "logs"

# Dump text -> family of records that its decoder reads.
GOLDEN_TEXTS = {
    "metadata": "metadata",
    "snapshots": "metadata",
    "group": "group",
    "transaction": "transaction",
    "share": "share",
    "records": None,
}
SHARED_TEXTS = {
    "metadata_c3": "metadata",
    "snapshots_c3": "metadata",
    "consumer_offsets": "group",
    "txn_state": "transaction",
    "share_state": "share",
}


@pytest.fixture(scope="module")
def shared_logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log directories of a whole cluster, if they are available."""
    archive = SHARED / "kafka-4.3.1-logs.tar.xz"
    if not archive.exists():
        pytest.skip("the log directories of a whole cluster are not next to this project")
    folder = tmp_path_factory.mktemp("logs")
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    return folder


def decoded(path: Path, findings: list[FileFinding] | None = None) -> list[dict[str, Any]]:
    report = FileReport(None if findings is None else findings.append)
    return [line.json for line in decode_file(path, FileOptions(show_secrets=True), report)]


@pytest.mark.parametrize("name", sorted(GOLDEN_TEXTS))
def test_golden_segments_equal_the_dump(name: str) -> None:
    """Every number of every batch and record, and every decoded payload."""
    files = dump_log.read(GOLDEN / "dump-log" / f"{name}.txt.xz")
    assert files
    for dumped in files.values():
        assert dumped.complaints == []
        compare_file(decoded(GOLDEN / dumped.name), dumped, GOLDEN_TEXTS[name])


def test_golden_indexes_equal_the_dump() -> None:
    """Offset, time and transaction indexes, and producer snapshots."""
    files = dump_log.read(GOLDEN / "dump-log" / "indexes.txt.xz")
    assert len(files) > 20
    for dumped in files.values():
        compare_entries(decoded(GOLDEN / dumped.name), dumped)


@pytest.mark.parametrize("name", sorted(SHARED_TEXTS))
def test_segments_of_a_whole_cluster_equal_the_dump(shared_logs: Path, name: str) -> None:
    """A thousand batches of metadata and every kind of coordinator record."""
    files = dump_log.read(SHARED / "dump-log" / f"{name}.txt.xz")
    for dumped in files.values():
        path = shared_logs / dumped.name.removeprefix("logs/")
        compare_file(decoded(path), dumped, SHARED_TEXTS[name])


def test_indexes_of_a_whole_cluster_equal_the_dump(shared_logs: Path) -> None:
    """The indexes that the archive still has."""
    files = dump_log.read(SHARED / "dump-log" / "indexes.txt.xz")
    compared = 0
    for dumped in files.values():
        path = shared_logs / dumped.name.removeprefix("logs/")
        if path.exists():
            compare_entries(decoded(path), dumped)
            compared += 1
    assert compared >= 7


def test_a_real_log_directory_gives_no_false_alarm() -> None:
    """Segments that begin above offset 0, compacted topics, open transactions: all are legal."""
    check_quiet(GOLDEN / "controller")
    check_quiet(GOLDEN / "observer")
    check_quiet(GOLDEN / "broker")
    check_quiet(GOLDEN / "tiered")


def test_records_of_tiered_segments_equal_the_dump() -> None:
    """A topic with real tiering: segments are copied to remote storage, and deleted there."""
    files = dump_log.read(GOLDEN / "dump-log" / "remote-log.txt.xz")
    (dumped,) = files.values()
    lines = decoded(GOLDEN / dumped.name)
    batches = [(each["baseOffset"], each["lastOffset"], each["crc"]) for each in lines]
    assert batches == [
        (each.fields["baseOffset"], each.fields["lastOffset"], each.fields["crc"])
        for each in dumped.batches
    ]
    records = [record for line in lines for record in line["records"]]
    told = [record.text for batch in dumped.batches for record in batch.records]
    assert [f"payload: {_as_kafka_says(each['decoded'])}" for each in records] == told
    states = [each["decoded"]["data"]["remoteLogSegmentState"] for each in records]
    assert sorted(states) == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]


_STATES = (
    "COPY_SEGMENT_STARTED", "COPY_SEGMENT_FINISHED", "DELETE_SEGMENT_STARTED",
    "DELETE_SEGMENT_FINISHED",
)  # fmt: skip


def _as_kafka_says(record: dict[str, Any]) -> str:
    """A record about a segment in the form of Kafka's `toString`."""
    data = record["data"]
    segment = data["remoteLogSegmentId"]
    place = segment["topicIdPartition"]
    partition = f"{place['id']}:{place['name']}-{place['partition']}"
    id = f"RemoteLogSegmentId{{topicIdPartition={partition}, id={segment['id']}}}"
    assert data["customMetadata"] is None
    end = f"state={_STATES[data['remoteLogSegmentState']]}"
    if record["type"] == "RemoteLogSegmentMetadataUpdateRecord":
        return (
            f"RemoteLogSegmentMetadataUpdate{{remoteLogSegmentId={id}, "
            f"customMetadata=Optional.empty, {end}, "
            f"eventTimestampMs={data['eventTimestampMs']}, brokerId={data['brokerId']}}}"
        )
    epochs = ", ".join(f"{e['leaderEpoch']}={e['offset']}" for e in data["segmentLeaderEpochs"])
    return (
        f"RemoteLogSegmentMetadata{{remoteLogSegmentId={id}, startOffset={data['startOffset']}, "
        f"endOffset={data['endOffset']}, brokerId={data['brokerId']}, "
        f"maxTimestampMs={data['maxTimestampMs']}, eventTimestampMs={data['eventTimestampMs']}, "
        f"segmentLeaderEpochs={{{epochs}}}, segmentSizeInBytes={data['segmentSizeInBytes']}, "
        f"customMetadata=Optional.empty, {end}, txnIdxEmpty={str(data['txnIndexEmpty']).lower()}}}"
    )


def test_a_whole_cluster_gives_no_false_alarm(shared_logs: Path) -> None:
    """Four controllers and a broker; one index still has its 10 MiB of padding."""
    check_quiet(shared_logs)


def check_quiet(folder: Path) -> None:
    findings: list[FileFinding] = []
    count = 0
    for path in walk([folder], lambda error: pytest.fail(str(error))):
        count += len(decoded(path, findings))
    assert findings == []
    assert count
