"""`format("kafka-log")`: planning, filters and options without a session, and a query with one."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

from pyspark.sql import functions as sql
from pyspark.sql.datasource import EqualTo, GreaterThan, GreaterThanOrEqual, In, LessThan
from pyspark.sql.types import StructType

from kraftwire.errors import UsageError
from kraftwire.records import Record, build_batch
from kraftwire.spark.logs import LogOptions, decode_tables
from kraftwire.spark.sources.log import LogDataSource
from tests.spark.logs.log_files import FILES, GOLDEN

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TIME = 1_760_000_000_000


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Two topics, three segments each, a batch a second, ten records a batch."""
    for topic in ("orders-0", "orders-1", "other-0"):
        folder = tmp_path / topic
        folder.mkdir()
        for base in (0, 100, 200):
            batches = [
                build_batch(
                    [Record(base + 10 * n + i, TIME + 1000 * n, None, b"v") for i in range(10)]
                )
                for n in range(10)
            ]
            (folder / f"{base:020}.log").write_bytes(b"".join(batches))
        (folder / f"{300:020}.log.deleted").write_bytes(build_batch([Record(300, 0, None, b"")]))
    return tmp_path


def read(path: Path | str, *filters: Any, schema: StructType | None = None, **options: str) -> Any:
    """Rows of a read without a session, before Spark evaluates the filters."""
    source = LogDataSource({"path": str(path), "filterPushdown": "true", **options})
    reader = source.reader(schema or source.schema())
    assert list(reader.pushFilters(list(filters))) == list(filters)
    rows = []
    for partition in reader.partitions():
        for batch in reader.read(partition):
            rows += batch.to_pylist()
    return rows


def test_filters_leave_files_and_batches_out(logs: Path) -> None:
    """Nothing that a filter would keep is lost, and most of the rest is not read."""
    assert len(read(logs)) == 900
    topic = EqualTo(("topic",), "orders")
    assert len(read(logs, topic)) == 600
    assert len(read(logs, topic, In(("partition",), (1, 5)))) == 300
    found = read(logs, GreaterThan(("offset",), 145), LessThan(("offset",), 160))
    assert {row["offset"] for row in found} == set(range(140, 160))
    late = datetime.fromtimestamp(TIME / 1000 + 8, UTC)
    found = read(logs, GreaterThanOrEqual(("timestamp",), late))
    assert {row["timestamp"].timestamp() * 1000 - TIME for row in found} == {8000, 9000}
    assert read(logs, EqualTo(("topic",), "nothing")) == []
    # A struct's field is not one of our columns.
    assert len(read(logs, EqualTo(("topic", "name"), "orders"))) == 900


def test_only_segments_that_overlap_are_opened(logs: Path) -> None:
    """By their names."""
    source = LogDataSource({"path": str(logs / "orders-0"), "filterPushdown": "true"})
    reader = source.reader(source.schema())
    reader.pushFilters([EqualTo(("offset",), 150)])
    (task,) = reader.partitions()
    assert [Path(one.file).name for one in task.value] == [f"{100:020}.log"]


def test_paths_are_files_folders_and_patterns(logs: Path) -> None:
    """Each file once; files being deleted only if they are named."""
    assert len(read(f"{logs}/orders-*")) == 600
    assert len(read(f"{logs}/orders-0,{logs}/other-0,{logs}/orders-0")) == 600
    assert len(read(f"{logs}/orders-0/*.log")) == 300
    assert len(read(logs / "orders-0" / f"{300:020}.log.deleted")) == 1
    with pytest.raises(UsageError, match="nowhere: no such file or folder"):
        read(logs / "nowhere")


def test_folders_around_those_of_partitions_have_columns(logs: Path) -> None:
    """Also if nothing else is read."""
    (logs / "site=north").mkdir()
    (logs / "orders-0").rename(logs / "site=north" / "orders-0")
    sites = [row["site"] for row in read(logs, schema=StructType().add("site", "string"))]
    assert (sites.count("north"), sites.count(None)) == (300, 600)
    found = read(logs, pathGlobFilter=f"{100:020}.*")
    assert {row["offset"] for row in found} == set(range(100, 200))
    assert {row["site"] for row in found} == {"north", None}


def test_options_are_checked() -> None:
    """The error is clear, and comes before anything is read."""
    with pytest.raises(UsageError, match="needs a path"):
        LogDataSource({}).reader(StructType())
    with pytest.raises(UsageError, match="option isolation: expected one of raw, committed"):
        read(GOLDEN, isolation="uncommitted")
    with pytest.raises(UsageError, match="option table"):
        read(GOLDEN, table="frames")
    for name in ("splitBytes", "batchRows", "maxOffsetsPerTrigger"):
        for wrong in ("many", "0", "-1", "²"):
            with pytest.raises(UsageError, match=f"option {name}: expected 1 or more, found"):
                LogDataSource({"path": "x", name: wrong}).schema()


def test_a_schema_prunes_columns(logs: Path) -> None:
    """In the requested order."""
    whole = LogDataSource({"path": "x"}).schema()
    schema = StructType([whole["offset"], whole["topic"]])
    assert read(logs / "other-0", schema=schema)[0] == {"offset": 0, "topic": "other"}


@pytest.mark.parametrize("table", ["records", "batches", "metadata_records", "files"])
def test_a_session_reads_what_the_decoder_says(spark: SparkSession, table: str) -> None:
    """Every row of every real file, in several tasks."""
    wanted = []
    for path in FILES:
        wanted += decode_tables(path, options=LogOptions(frozenset({table})))[table].to_pylist()
    frame = spark.read.format("kafka-log").options(table=table, splitBytes="5000").load(str(GOLDEN))
    assert frame.rdd.getNumPartitions() > 5
    found = [row.asDict(recursive=True) for row in frame.collect()]
    assert len(found) == len(wanted)

    def order(row: dict[str, Any]) -> tuple[Any, ...]:
        return row["file"], row.get("position", 0), row.get("offset", 0)

    names = [name for name in frame.columns if name not in ("timestamp", "max_timestamp", "time")]
    for one, other in zip(sorted(found, key=order), sorted(wanted, key=order), strict=True):
        assert {name: one[name] for name in names} == {name: other[name] for name in names}


def test_a_session_pushes_filters_down(spark: SparkSession, logs: Path) -> None:
    """Times arrive with a zone, and the result is that of the filter."""
    frame = spark.read.format("kafka-log").option("filterPushdown", True).load(str(logs))
    late = datetime.fromtimestamp(TIME / 1000 + 8, UTC)
    chosen = frame.where((sql.col("timestamp") >= late) & (sql.col("topic") == "orders"))
    assert chosen.count() == 120
    assert chosen.agg(sql.min("offset"), sql.max("offset")).first()[:] == (80, 299)  # type: ignore[index]


def test_queries_of_one_frame_do_not_interfere(spark: SparkSession, logs: Path) -> None:
    """Spark keeps what it planned for the first one, so that must not depend on its filters."""
    frame = spark.read.format("kafka-log").load(str(logs))
    orders, other = (frame.where(f"topic = '{name}'") for name in ("orders", "other"))
    assert orders.count() == 600
    assert frame.count() == 900
    assert orders.union(other).count() == 900
    assert frame.where("topic = 'other' or offset < 10").count() == 320


def test_filters_save_reading_only_where_that_is_asked_for(logs: Path) -> None:
    """No query of the same DataFrame would get what the reader leaves out."""
    topic = EqualTo(("topic",), "orders")
    assert len(read(logs, topic, filterPushdown="false")) == 900
