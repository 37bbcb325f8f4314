"""Tags of a run: a column of every table, so that several runs can be read as one."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="needs the extra spark")

import pyarrow as pa

from kraftwire.spark.run import LocalRunner, RunOptions, SparkRunner, run
from kraftwire.spark.run.options import shared_tags, tag_array
from kraftwire.spark.run.parts import export
from tests.spark.run.folders import captures, rows_of

NAMES = ("exchanges", "clusters", "vote_request", "share_fetch_request")


def _quiet(_text: str) -> None:
    """Say nothing."""


def _tagged(folder: Path, table: str) -> set[tuple[tuple[str, str], ...] | None]:
    """The different tags in a table."""
    cells = (row["tags"] for row in rows_of(folder, table))
    return {None if each is None else tuple(each) for each in cells}


def test_several_runs_are_read_as_one(spark: Any, tmp_path: Path) -> None:
    """Base, derived and typed tables distinguish the runs, even without file names."""
    source = captures(tmp_path / "in", "quorum")
    for tags in ((("incident", "1"), ("site", "north")), ()):
        folder = tmp_path / "runs" / str(len(tags))
        options = RunOptions(folder, tags=tags, tables=NAMES)
        run([str(source)], options, SparkRunner(spark), warn=_quiet)
    for table in NAMES[:-1]:
        several = spark.read.parquet(str(tmp_path / "runs" / "*" / table))
        named = several.selectExpr("tags['incident'] as incident", "tags['site'] as site")
        counts = named.groupBy("incident", "site").count().collect()
        rows = {(row[0], row[1]): row[2] for row in counts}
        assert set(rows) == {("1", "north"), (None, None)}
        assert len(set(rows.values())) == 1, table
    assert spark.read.parquet(str(tmp_path / "runs" / "*" / NAMES[-1])).columns[-1] == "tags"


def test_files_that_come_later_have_their_own_tags(tmp_path: Path) -> None:
    """A run that is resumed without tags keeps those it had."""
    one = captures(tmp_path / "one", "quorum")
    two = captures(tmp_path / "two", "sasl")
    three = captures(tmp_path / "three", "clients")
    folder = tmp_path / "out"
    for source, tags in ((one, (("day", "1"),)), (two, ()), (three, (("day", "2"), ("more", "x")))):
        options = RunOptions(folder, tags=tags)
        run([str(source)], options, LocalRunner(), resume=source != one, warn=_quiet)
    days = {Path(row["file"]).stem: dict(row["tags"]) for row in rows_of(folder, "files")}
    assert days == {
        "quorum": {"day": "1"}, "sasl": {"day": "1"}, "clients": {"day": "2", "more": "x"},
    }  # fmt: skip
    assert _tagged(folder, "exchanges") == {
        (("day", "1"),), (("day", "2"), ("more", "x")),
    }  # fmt: skip


def test_what_is_made_of_all_inputs_has_the_tags_of_all() -> None:
    """A row that comes from two incidents belongs to neither."""
    assert shared_tags([{"a": "1", "b": "2"}, {"a": "1", "b": "3", "c": "4"}]) == {"a": "1"}
    assert shared_tags([{"a": "1"}]) == {"a": "1"}
    assert shared_tags([{"a": "1"}, {}]) == shared_tags([]) == {}


def test_a_constant_column_is_small(tmp_path: Path) -> None:
    """A hundred thousand rows cost less than a tenth of a byte each."""
    import pyarrow.parquet as pq

    sizes = []
    for count in (10, 100_000):
        path = tmp_path / f"{count}.parquet"
        array = tag_array({"incident": "INC-2026-1120", "site": "north"}, count)
        assert array.to_pylist()[-1] == [("incident", "INC-2026-1120"), ("site", "north")]
        pq.write_table(pa.table([array], ["tags"]), path, compression="zstd")
        sizes.append(path.stat().st_size)
    assert sizes[1] < sizes[0] + 10_000


def test_exports_have_tags_as_objects(tmp_path: Path) -> None:
    """In JSON lines and in the cells of CSV."""
    source = captures(tmp_path / "in", "quorum")
    options = RunOptions(tmp_path / "out", tags=(("day", "1"),), tables=("connections",))
    run([str(source)], options, LocalRunner(), warn=_quiet)
    for form in ("csv", "jsonl"):
        export(tmp_path / "out", form)
    with open(tmp_path / "out/csv/connections.csv", newline="", encoding="utf-8") as file:
        assert {row["tags"] for row in csv.DictReader(file)} == {'{"day": "1"}'}
    lines = (tmp_path / "out/jsonl/connections.jsonl").read_text(encoding="utf-8").splitlines()
    assert all(json.loads(line)["tags"] == {"day": "1"} for line in lines)


def test_folders_are_tags_of_their_files(tmp_path: Path) -> None:
    """As a column in Spark's own sources; a tag of the run is closer than one of a folder."""
    for day, name in (("20", "quorum"), ("21", "sasl")):
        captures(tmp_path / "in" / f"day={day}" / f"incident={day}", name)
    folder = tmp_path / "out"
    options = RunOptions(folder, tags=(("incident", "7"),))
    run([str(tmp_path / "in" / "day={20,21}"), str(tmp_path / "in")], options, LocalRunner())
    for table in ("files", "exchanges"):
        days = {Path(row["file"]).stem: dict(row["tags"]) for row in rows_of(folder, table)}
        assert days == {
            "quorum": {"day": "20", "incident": "7"}, "sasl": {"day": "21", "incident": "7"},
        }  # fmt: skip
