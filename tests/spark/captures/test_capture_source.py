"""`format("kafka-capture")`: planning and filters without a session, and queries with one."""

from __future__ import annotations

import json
import pickle
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

from pyspark.sql.datasource import EqualTo, GreaterThan, In, LessThanOrEqual
from pyspark.sql.types import StructType

from kraftwire.errors import UsageError
from kraftwire.spark.captures import CAPTURE_TABLES, decode_tables, index_capture, recording
from kraftwire.spark.sources.capture import CaptureDataSource
from tests.spark.run.folders import busy, captures
from tests.support.captures.decoded import golden

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Rows = list[dict[str, Any]]


def read(path: Path | str, *filters: Any, schema: StructType | None = None, **options: str) -> Rows:
    """Rows of a read without a session, before Spark evaluates the filters."""
    source = CaptureDataSource({"path": str(path), "filterPushdown": "true", **options})
    reader = source.reader(schema or source.schema())
    assert list(reader.pushFilters(list(filters))) == list(filters)
    rows: Rows = []
    for partition in reader.partitions():
        for batch in reader.read(pickle.loads(pickle.dumps(partition))):
            rows += batch.to_pylist()
    return rows


def _same(one: Rows, other: Rows) -> bool:
    return sorted(map(repr, one)) == sorted(map(repr, other))


@pytest.mark.parametrize("table", CAPTURE_TABLES)
def test_tables_do_not_depend_on_the_split(table: str, tmp_path: Path) -> None:
    """With one task for a file, and with many for one of them."""
    path = captures(tmp_path, "quorum") / "quorum.pcap"
    wanted = decode_tables(path, tables=(table,))[table].to_pylist()
    assert _same(read(path, table=table), wanted)
    assert _same(read(path, table=table, splitBytes="9000"), wanted)
    packed = read(golden("quorum"), table=table, splitBytes="9000")
    for row in packed:
        for column in row.keys() & {"file", "response_file", "recording"}:
            row[column] = row[column] and str(path)
    assert _same(packed, wanted)


@pytest.mark.parametrize("table", CAPTURE_TABLES)
def test_long_connections_are_cut(
    table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One connection in several tasks."""
    from kraftwire.spark.captures.packet_index import PacketIndexer

    monkeypatch.setattr(PacketIndexer, "run_bytes_max", 1)
    path = busy(tmp_path) / "busy.pcap"
    wanted = decode_tables(path, tables=(table,))[table].to_pylist()
    source = CaptureDataSource({"path": str(path), "table": table, "splitBytes": "20000"})
    if table != "files":
        assert len(source.reader(source.schema()).partitions()) > 3
    assert _same(read(path, table=table, splitBytes="20000"), wanted)
    if "api_key" in source.schema().names:
        some = read(path, EqualTo(("api_key",), 1), table=table, splitBytes="20000")
        assert _same(
            [row for row in some if row["api_key"] == 1],
            [row for row in wanted if row["api_key"] == 1],
        )


@pytest.mark.parametrize("split", ["9000", "100000000"])
def test_filters_lose_nothing_that_passes(split: str, tmp_path: Path) -> None:
    """Spark filters again, so too many rows are slow and too few are wrong."""
    path = captures(tmp_path, "quorum") / "quorum.pcap"
    rows = read(path)
    times = sorted(row["time"] for row in rows)
    early, late = times[len(times) // 4], times[len(times) // 2]
    name = rows[5]["connection"]
    found = read(path, EqualTo(("connection",), name), splitBytes=split)
    assert _same(found, [row for row in rows if row["connection"] == name])
    found = read(path, In(("api_key",), (52, 18)), splitBytes=split)
    assert _same(found, [row for row in rows if row["api_key"] in (52, 18)])
    found = read(
        path, GreaterThan(("time",), early), LessThanOrEqual(("time",), late), splitBytes=split
    )
    passing = [row for row in rows if early < row["time"] <= late]
    assert {repr(row) for row in passing} <= {repr(row) for row in found}
    assert read(path, GreaterThan(("time",), times[-1] + timedelta(days=1)), splitBytes=split) == []
    assert read(path, EqualTo(("connection",), "nobody"), splitBytes=split) == []


def test_connections_outside_a_filter_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A question about one connection of a large capture must not decode all of it."""

    path = captures(tmp_path, "quorum") / "quorum.pcap"
    wanted: list[int] = []
    original = recording.Recording.read

    def noting(self: recording.Recording, numbers: Any) -> Any:
        wanted.extend(numbers)
        return original(self, numbers)

    monkeypatch.setattr(recording.Recording, "read", noting)
    name = decode_tables(path)["connections"].to_pylist()[0]["connection"]
    assert len(wanted) == len(index_capture(path).connections) > 1
    wanted.clear()
    read(path, EqualTo(("connection",), name))
    assert len(wanted) == 1


def test_a_schema_of_some_columns_prunes(tmp_path: Path) -> None:
    """Spark prunes no columns of a Python source by itself."""
    path = captures(tmp_path, "sasl") / "sasl.pcap"
    full = CaptureDataSource({"path": str(path)}).schema()
    some = StructType([full["api_name"], full["latency_ns"]])
    rows = read(path, schema=some)
    assert rows
    assert all(list(row) == ["api_name", "latency_ns"] for row in rows)


def test_wrong_options_are_refused(tmp_path: Path) -> None:
    """Before anything is read."""
    path = {"path": str(tmp_path)}
    for options in (
        {}, {**path, "table": "nonsense"}, {**path, "splitBytes": "many"},
        {**path, "splitBytes": "0"}, {**path, "filterPushdown": "perhaps"},
    ):  # fmt: skip
        source = CaptureDataSource(options)
        with pytest.raises(UsageError):
            source.reader(source.schema())
    source = CaptureDataSource({"path": str(tmp_path / "nothing")})
    with pytest.raises(UsageError, match="no such file"):
        source.reader(source.schema()).partitions()
    # A folder without captures has no rows, and still one partition.
    assert read(tmp_path) == []


def test_a_missing_path_among_several_is_refused(tmp_path: Path) -> None:
    """A query over half of the named paths would look like one over all of them."""
    captures(tmp_path, "sasl")
    with pytest.raises(UsageError, match="nothing: no such file"):
        read(f"{tmp_path}/sasl.pcap,{tmp_path}/nothing")


@pytest.fixture
def days(tmp_path: Path) -> Path:
    """A capture in the folder of each of two days."""
    for day, name in (("2026-11-20", "sasl"), ("2026-11-21", "clients")):
        captures(tmp_path / "x" / f"day={day}" / "node=2", name)
    return tmp_path / "x"


def test_paths_are_those_of_every_source_of_files(days: Path) -> None:
    """Lists, braces and a pattern for names; several with commas, and names with commas."""
    sasl, clients = f"{days}/day=2026-11-20/node=2", f"{days}/day=2026-11-21/node=2"
    both = len(read(sasl)) + len(read(clients))
    assert len(read("", paths=json.dumps([sasl, clients]))) == both
    assert len(read(f"{days}/day=2026-11-{{20,21}}/*/*.pcap,{sasl}")) == both
    assert read(days, pathGlobFilter="s*.pcap") == read(days, pathGlobFilter="{sasl,x}.pcap")
    assert len(read(days, pathGlobFilter="s*.pcap")) == len(read(sasl))
    assert read(f"{sasl}/sasl.pcap", pathGlobFilter="c*") == []
    Path(sasl).rename(days / "a,b")
    assert len(read(days / "a,b")) == both - len(read(clients))


def test_folders_have_columns(days: Path) -> None:
    """With types, after those of the table, where the path does not name the folder itself."""
    source = CaptureDataSource({"path": str(days)})
    assert source.schema()[-2:].simpleString() == "struct<day:date,node:int>"
    rows = read(days)
    assert {(row["day"].day, row["node"]) for row in rows} == {(20, 2), (21, 2)}
    assert {row["day"].day for row in rows if "sasl" in row["file"]} == {20}
    inside = f"{days}/day=2026-11-20"
    assert {row["node"] for row in read(inside)} == {2}
    assert "day" not in read(inside)[0]
    assert {row["day"].day for row in read(inside, basePath=str(days))} == {20}
    assert {repr(row["day"]) for row in read(days, schema=StructType().add("day", "string"))} == {
        "'2026-11-20'", "'2026-11-21'",
    }  # fmt: skip
    captures(days, "quorum")
    (days / "day=2026-11-20").rename(days / "day=first")
    assert {row["day"] for row in read(days, table="files")} == {None, "first", "2026-11-21"}


def test_a_folder_replaces_no_column(tmp_path: Path) -> None:
    """The file is closer to the truth."""
    source = captures(tmp_path / "x" / "api_name=Vote", "sasl")
    assert read(tmp_path / "x") == read(source)


@pytest.mark.parametrize(
    ("name", "value"),
    [("modifiedBefore", "2026-11-20T00:00:00"), ("modifiedAfter", ""),
     ("recursiveFileLookup", "false")],
)  # fmt: skip
def test_an_option_that_would_select_other_files_is_refused(
    name: str, value: str, days: Path
) -> None:
    """If it were ignored, there would be more rows than requested."""
    with pytest.raises(UsageError, match=f"option {name}"):
        read(days, **{name: value})
    assert read(days, recursiveFileLookup="TRUE") == read(days)


def test_a_file_that_is_no_capture_is_refused_with_what_it_is(tmp_path: Path) -> None:
    """Without rows it would look like a capture without Kafka. In a folder it may lie."""
    captures(tmp_path, "sasl")
    (tmp_path / "list.csv").write_text('"No.","Time","Source"\n"1","0.0","10.0.0.1"\n')
    (tmp_path / f"{0:020}.log").write_bytes(b"")
    with pytest.raises(UsageError, match=r"no capture: what Wireshark exports, .* tshark -w FILE"):
        read(f"{tmp_path}/sasl.pcap,{tmp_path}/list.csv")
    with pytest.raises(UsageError, match=r"no capture: a file of a log directory \(log\)"):
        read(tmp_path / f"{0:020}.log")
    assert read(tmp_path) == read(tmp_path / "sasl.pcap") == read(tmp_path / "s*.pcap")


def test_spark_reads_and_filters(spark: SparkSession, tmp_path: Path) -> None:
    """The whole path: registered, planned, pushed down, read in workers."""
    folder = captures(tmp_path)
    frame = spark.read.format("kafka-capture").load(str(folder))
    wanted = sum(
        decode_tables(path)["exchanges"].num_rows for path in sorted(folder.glob("*.pcap"))
    )
    votes = frame.where("api_key = 52").select("api_name", "errors").distinct().collect()
    assert {row["api_name"] for row in votes} == {"Vote"}
    # After a query with a filter, which Spark would otherwise keep for this one.
    assert frame.count() == wanted
    pushed = spark.read.format("kafka-capture").option("filterPushdown", True).load(str(folder))
    assert {row["api_name"] for row in pushed.where("api_key = 52").collect()} == {"Vote"}
    frame = spark.read.format("kafka-capture").option("pathGlobFilter", "{sasl,quorum}.pcap")
    several = frame.load([str(folder), f"{folder}/sasl.pcap"]).select("file").distinct()
    assert {Path(row["file"]).stem for row in several.collect()} == {"sasl", "quorum"}
    files = spark.read.format("kafka-capture").option("table", "files").load(str(folder))
    assert files.where("size = kafka_bytes + header_bytes").count() == 3
