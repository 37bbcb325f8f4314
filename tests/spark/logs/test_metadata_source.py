"""`format("kraft-metadata")` against a quorum of ours: every committed record, each once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

from pyspark.sql.datasource import EqualTo, GreaterThan, GreaterThanOrEqual, LessThan
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from kraftwire.client.metadata_log import Position, QuorumReader, SnapshotId
from kraftwire.client.sync import Admin
from kraftwire.errors import ApiError, LogMovedError, UsageError
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.spark.logs import decode_tables
from kraftwire.spark.sources.metadata import MetadataDataSource
from kraftwire.testing import Quorum, quorum

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A record at short intervals, without any client.
LIVELY = {"metadata.max.idle.interval.ms": 100}
# Snapshots after a few records, and small segments.
FORGETFUL = {
    "metadata.max.idle.interval.ms": 150,
    "metadata.log.max.record.bytes.between.snapshots": 400,
    "internal.metadata.log.segment.bytes": 600,
}
PATIENCE_S = 30


@pytest.fixture(scope="module")
def lively() -> Iterator[Quorum]:
    """A quorum of one whose log grows and stays whole."""
    with quorum(nodes=1, properties=LIVELY) as nodes:
        yield nodes


@pytest.fixture(scope="module")
def forgetful() -> Iterator[Quorum]:
    """A quorum of one whose log no longer begins at 0."""
    with quorum(nodes=1, properties=FORGETFUL) as nodes:
        deadline = time.monotonic() + PATIENCE_S
        while not covered(nodes.data_folder(1)):
            assert time.monotonic() < deadline, "no snapshot covers a segment in time"
            time.sleep(0.1)
        nodes.stop(1)
        # As retention would, which checks once a minute.
        for segment in covered(nodes.data_folder(1)):
            segment.unlink()
        nodes.start(1)
        yield nodes


def covered(folder: Path) -> list[Path]:
    """Segments that a snapshot stands for, all but the last."""
    (log,) = folder.rglob("__cluster_metadata-0")
    segments = sorted(log.glob("*.log"))
    ends = [int(path.name[:20]) for path in log.glob("*.checkpoint")]
    pairs = pairwise(segments)
    return [one for one, following in pairs if int(following.stem) <= max(ends, default=0)]


def source(nodes: Quorum, **options: str) -> MetadataDataSource:
    """The source with its options."""
    return MetadataDataSource({"bootstrapControllers": nodes.bootstrap_controllers, **options})


def rows(reader: Any, partitions: Any) -> list[dict[str, Any]]:
    """What tasks read."""
    found = []
    for partition in partitions:
        for batch in reader.read(partition):
            found += batch.to_pylist()
    return found


def grown(nodes: Quorum, end: int) -> int:
    """Wait until the high watermark is at an offset or after it."""
    deadline = time.monotonic() + PATIENCE_S
    with QuorumReader(nodes.bootstrap_controllers) as reader:
        while (now := reader.high_watermark(reader.begin()[0])) < end:
            assert time.monotonic() < deadline, "the log does not grow"
            time.sleep(0.05)
    return now


def test_a_batch_read_is_what_the_node_has_on_its_disk(lively: Quorum) -> None:
    """Offsets, epochs, types and data."""
    one = source(lively)
    reader = one.reader(one.schema())
    found = rows(reader, reader.partitions())
    assert [row["offset"] for row in found] == list(range(len(found)))
    (path,) = lively.data_folder(1).rglob("__cluster_metadata-0/*.log")
    stored = decode_tables(path)["metadata_records"].to_pylist()[: len(found)]
    for names in ("offset", "epoch", "time", "type", "version", "data", "topic_id"):
        assert [row[names] for row in found] == [row[names] for row in stored]


def test_filters_on_offsets_save_reading(lively: Quorum, forgetful: Quorum) -> None:
    """Only batches with such offsets are fetched, and none that a filter would keep is left out."""
    end = grown(lively, 12)
    one = source(lively, filterPushdown="true")
    cases: list[tuple[list[Any], list[int]]] = [
        ([GreaterThanOrEqual(("offset",), 5), LessThan(("offset",), 9)], [5, 6, 7, 8]),
        ([EqualTo(("offset",), 7)], [7]),
        ([LessThan(("offset",), 3)], [0, 1, 2]),
        ([LessThan(("offset",), 0)], []),
        ([GreaterThan(("offset",), end + 1_000_000)], []),
    ]
    for filters, offsets in cases:
        reader = one.reader(one.schema())
        assert list(reader.pushFilters(filters)) == filters
        assert [row["offset"] for row in rows(reader, reader.partitions())] == offsets
    reader = source(lively).reader(one.schema())
    assert list(reader.pushFilters(cases[1][0])) == cases[1][0]
    assert len(rows(reader, reader.partitions())) >= end
    other = source(forgetful, filterPushdown="true")
    reader = other.reader(other.schema())
    reader.pushFilters([GreaterThan(("offset",), 1_000_000)])
    assert {row["type"] for row in rows(reader, reader.partitions())} >= {"SnapshotFooterRecord"}


@pytest.mark.parametrize("rows_max", [1, 3, 1000])
def test_triggers_make_a_chain_without_gaps(lively: Quorum, rows_max: int) -> None:
    """No more than the limit at a time, whatever batches the log has."""
    end = grown(lively, 12)
    one = source(lively, maxOffsetsPerTrigger=str(rows_max))
    reader = one.streamReader(one.schema())
    limit = reader.getDefaultReadLimit()
    assert isinstance(limit, ReadMaxRows)
    start, found = reader.initialOffset(), []
    while start["nextOffset"] < min(end, 12):
        reached = reader.latestOffset(start, limit)
        assert reached["nextOffset"] - start["nextOffset"] <= rows_max
        found += rows(reader, reader.partitions(start, reached))
        assert found[-1]["epoch"] == reached["epoch"]
        start = reached
    assert [row["offset"] for row in found] == list(range(start["nextOffset"]))


def test_available_now_ends_where_the_log_ended(lively: Quorum) -> None:
    """Whatever is appended afterwards."""
    one = source(lively)
    reader = one.streamReader(one.schema())
    assert isinstance(reader.getDefaultReadLimit(), ReadAllAvailable)
    reader.prepareForTriggerAvailableNow()
    start = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    grown(lively, start["nextOffset"] + 2)
    assert reader.latestOffset(start, ReadAllAvailable()) == start
    late = source(lively, startingOffsets="latest")
    offset = late.streamReader(late.schema()).initialOffset()
    assert offset["nextOffset"] >= start["nextOffset"] + 2


def test_a_log_other_than_the_one_that_was_read_is_refused(lively: Quorum) -> None:
    """Truncated, replaced, or without the record that was read as the last one."""
    with QuorumReader(lively.bootstrap_controllers, patience_s=1) as reader:
        end = reader.high_watermark(Position(0, 0))
        epoch = reader.epoch_before(end)
        with pytest.raises(LogMovedError, match="it was truncated before offset"):
            reader.high_watermark(Position(epoch, end + 100_000))
        with pytest.raises(LogMovedError, match="another quorum, or one that lost its log"):
            reader.high_watermark(Position(epoch + 5, end))
        with pytest.raises(LogMovedError, match="lost committed records"):
            list(reader.batches(Position(0, 0), Position(epoch + 1, end)))


def test_a_controller_that_has_just_started_is_asked_again(
    lively: Quorum, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kafka's refuses all requests until it has read its metadata.version."""
    refusals = [ApiError(ErrorCode.UNSUPPORTED_VERSION, "not with the current MetadataVersion")]
    describe = Admin.describe_quorum

    def describe_later(admin: Admin) -> Any:
        if refusals:
            raise refusals.pop()
        return describe(admin)

    monkeypatch.setattr(Admin, "describe_quorum", describe_later)
    with QuorumReader(lively.bootstrap_controllers, patience_s=10) as reader:
        assert reader.high_watermark(Position(0, 0)) > 0
    assert not refusals


def test_a_snapshot_comes_before_a_log_that_lacks_its_beginning(forgetful: Quorum) -> None:
    """In a batch read, and in the first trigger of a stream, which can be made again."""
    one = source(forgetful)
    batch_reader = one.reader(one.schema())
    found = rows(batch_reader, batch_reader.partitions())
    types = [row["type"] for row in found if row["file"].endswith(".checkpoint")]
    assert (types[0], types[-1]) == ("SnapshotHeaderRecord", "SnapshotFooterRecord")
    reader = one.streamReader(one.schema())
    start = reader.initialOffset()
    assert start == {"epoch": 0, "nextOffset": 0}
    reached = reader.latestOffset(start, ReadMaxRows(2))
    first = rows(reader, reader.partitions(start, reached))
    assert rows(reader, reader.partitions(start, dict(reached))) == first
    logged = [row["offset"] for row in first if row["file"] == "__cluster_metadata-0"]
    end = reached["snapshotEndOffset"]
    assert logged == list(range(end, reached["nextOffset"]))
    assert any(row["type"] == "SnapshotFooterRecord" for row in first)
    grown(forgetful, reached["nextOffset"] + 1)
    following = reader.latestOffset(reached, ReadMaxRows(1))
    assert set(following) == {"epoch", "nextOffset"}


def test_a_log_start_that_moved_past_us_is_refused(forgetful: Quorum) -> None:
    """There is no gap; nor is a missing snapshot replaced by another one."""
    one = source(forgetful)
    reader = one.streamReader(one.schema())
    with pytest.raises(LogMovedError, match=r"the log now begins at \d+"):
        reader.latestOffset({"epoch": 1, "nextOffset": 1}, ReadAllAvailable())
    with (
        QuorumReader(forgetful.bootstrap_controllers) as quorum_reader,
        pytest.raises(LogMovedError, match="no longer has this snapshot"),
    ):
        quorum_reader.snapshot(SnapshotId(1, 1))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "needs the option bootstrapControllers"),
        ({"startingOffsets": "7"}, "startingOffsets: expected one of earliest, latest, found '7'"),
        ({"maxOffsetsPerTrigger": "x"}, "maxOffsetsPerTrigger: expected 1 or more, found 'x'"),
    ],
)
def test_wrong_options_are_refused_at_load(options: dict[str, str], words: str) -> None:
    """Later, Spark would hide the error of a stream among its own."""
    address = {"bootstrapControllers": "127.0.0.1:1"} if options else {}
    with pytest.raises(UsageError, match=words):
        MetadataDataSource({**address, **options}).schema()


def test_a_quorum_that_cannot_be_reached_is_an_error_in_time() -> None:
    """The error names the address."""
    with pytest.raises(ApiError, match=r"took more than 0\.3 s"):
        QuorumReader("127.0.0.1:1", patience_s=0.3).begin()
    with pytest.raises(UsageError, match="needs the option bootstrapControllers"):
        MetadataDataSource({}).reader(MetadataDataSource({}).schema())


def test_a_new_leader_is_found() -> None:
    """The stream continues after the leader was killed, with no record lost or duplicated."""
    with quorum(nodes=3) as nodes:
        one = source(nodes)
        reader = one.streamReader(one.schema())
        start = reader.initialOffset()
        first = reader.latestOffset(start, ReadAllAvailable())
        nodes.kill(nodes.leader())
        after = first
        deadline = time.monotonic() + PATIENCE_S
        while after["epoch"] == first["epoch"]:
            assert time.monotonic() < deadline
            after = reader.latestOffset(first, ReadAllAvailable())
        found = rows(reader, reader.partitions(start, first))
        found += rows(reader, reader.partitions(first, after))
        assert [row["offset"] for row in found] == list(range(after["nextOffset"]))


def test_a_stream_is_exactly_once_over_restarts(
    spark: SparkSession, lively: Quorum, tmp_path: Path
) -> None:
    """Small triggers into files; stopped, started again with the same checkpoint."""
    frame = spark.readStream.format("kraft-metadata").options(
        bootstrapControllers=lively.bootstrap_controllers, maxOffsetsPerTrigger="50"
    )
    counts = []
    for _ in range(2):
        target = grown(lively, counts[-1] + 5 if counts else 55)
        query = (
            frame.load()
            .writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "rows"), format="parquet")
        )
        assert query.awaitTermination(60)
        stored = spark.read.parquet(str(tmp_path / "rows")).select("offset").collect()
        found = sorted(row.offset for row in stored)
        assert found == list(range(len(found)))
        assert len(found) >= target
        counts.append(len(found))
        assert max(one["numInputRows"] for one in query.recentProgress) <= 50
    assert counts[1] > counts[0]
