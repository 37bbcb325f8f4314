"""Which tables a run writes if only some are requested."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="needs the extra spark")

from kraftwire.cli.main import main
from kraftwire.errors import UsageError
from kraftwire.spark.run import LocalRunner, RunOptions, SparkRunner, choose_tables, run
from kraftwire.spark.tables import find_table
from kraftwire.spark.tables.apis import TYPED_TABLES
from tests.spark.run.folders import captures, rows_of
from tests.support.captures.decoded import rotated

USAGE = 2
ALWAYS = {"bad_input", "files"}


def _quiet(_text: str) -> None:
    """Say nothing."""


def _folders(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.is_dir()} - {"_manifest"}


def _run(source: Path, folder: Path, *patterns: str, resume: bool = False) -> dict[str, int]:
    options = RunOptions(folder, tables=choose_tables(patterns))
    outcome = run([str(source)], options, LocalRunner(), resume=resume, warn=_quiet)
    assert outcome.unbalanced == []
    return outcome.rows


def test_only_what_is_asked_for_is_written(tmp_path: Path) -> None:
    """Besides the tables that prove that no byte was lost; a table without rows has its schema."""
    source = captures(tmp_path / "in", "quorum")
    rows = _run(source, tmp_path / "out", "vote_*", "share_fetch_request", "connections")
    wanted = {"vote_request", "vote_response", "share_fetch_request", "connections"} | ALWAYS
    assert _folders(tmp_path / "out") == set(rows) == wanted
    assert rows["vote_request"] == rows["vote_response"] > 0
    assert rows["share_fetch_request"] == 0
    import pyarrow.dataset as ds

    empty = ds.dataset(tmp_path / "out" / "share_fetch_request").schema
    assert empty.names == [*find_table("share_fetch_request").arrow.names, "tags"]


def test_typed_rows_are_where_exchanges_say(tmp_path: Path) -> None:
    """Requests and responses join by file and position, also across the files of a recording."""
    rotated(tmp_path / "in", 9)
    wanted = ("exchanges", "batches", "fetch_request", "fetch_response")
    _run(tmp_path / "in", tmp_path / "out", *wanted)
    rows = {name: rows_of(tmp_path / "out", name) for name in _folders(tmp_path / "out")}
    begun = {(each["file"], each["position"]) for each in rows["exchanges"]}
    ended = {(each["response_file"], each["response_position"]) for each in rows["exchanges"]}
    assert {(each["file"], each["position"]) for each in rows["fetch_request"]} <= begun
    assert {(each["file"], each["position"]) for each in rows["fetch_response"]} <= ended
    assert any(each["response_file"] > each["file"] for each in rows["exchanges"])
    batches = rows_of(tmp_path / "out", "batches")
    assert {(each["file"], each["position"]) for each in batches} <= ended


def test_a_derived_table_brings_its_inputs() -> None:
    """A table that stages derive from other such tables brings those too."""
    lag = RunOptions(Path("x"), tables=("replica_lag",))
    assert lag.derived == {"clusters", "replica_lag"}
    assert {"quorum_observations", "partition_traffic", "exchanges"} <= lag.base
    assert "group_exchanges" not in lag.base
    odd = RunOptions(Path("x"), tables=("anomalies",))
    assert odd.derived is not None
    assert {"anomalies", "raft_timeline", "groups"} <= odd.derived
    assert "raft_exchanges" in odd.base
    usual = RunOptions(Path("x"))
    assert usual.derived is None
    assert not usual.base & {"records", *TYPED_TABLES}
    assert "records" in RunOptions(Path("x"), tables=choose_tables(["all"])).base
    assert set(TYPED_TABLES) <= RunOptions(Path("x"), tables=choose_tables(["all"])).base


def test_other_tables_are_another_folder(tmp_path: Path) -> None:
    """Files that were read before would be missing from a table that comes later."""
    source = captures(tmp_path / "in", "quorum")
    first = _run(source, tmp_path / "out", "vote_request")
    assert _run(source, tmp_path / "out", "vote_request", resume=True) == first
    with pytest.raises(UsageError, match="other options"):
        _run(source, tmp_path / "out", "vote_response", resume=True)


def test_a_killed_run_leaves_no_part_of_a_typed_table(tmp_path: Path) -> None:
    """What the manifest does not name is removed from them as from all others."""
    source = captures(tmp_path / "in", "quorum")
    rows = _run(source, tmp_path / "out", "vote_request")
    part = next((tmp_path / "out" / "vote_request").glob("unit-*.parquet"))
    part.with_name("unit-lost-0000.parquet").write_bytes(part.read_bytes())
    assert _run(source, tmp_path / "out", "vote_request", resume=True) == rows


def test_stages_run_for_what_is_wanted(spark: Any, tmp_path: Path) -> None:
    """No other stages run."""
    source = captures(tmp_path / "in", "quorum")
    options = RunOptions(tmp_path / "out", tables=choose_tables(["replica_lag", "vote_request"]))
    outcome = run([str(source)], options, SparkRunner(spark), warn=_quiet)
    assert outcome.rows["replica_lag"] > 0
    assert outcome.rows["vote_request"] > 0
    assert not _folders(tmp_path / "out") & {"anomalies", "raft_timeline", "groups", "frames"}


def test_a_typed_table_is_read_by_spark(spark: Any, tmp_path: Path) -> None:
    """By the source of captures, as a run writes it."""
    source = captures(tmp_path / "in", "quorum")
    _run(source, tmp_path / "out", "vote_response")
    read = spark.read.format("kafka-capture").option("table", "vote_response").load(str(source))
    found = [row.asDict(recursive=True) for row in read.collect()]
    wanted = rows_of(tmp_path / "out", "vote_response")
    assert len(found) == len(wanted) > 0
    assert {repr(row["topics"]) for row in found} == {repr(row["topics"]) for row in wanted}
    assert {row["position"] for row in found} == {row["position"] for row in wanted}


@pytest.mark.parametrize("wrong", ["fetch_reponse", "nothing", "x*", "exchanges,,files"])
def test_a_wrong_name_is_one_line(
    wrong: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error comes before Spark starts, and lists the tables."""
    command = ["pipeline", "run", str(tmp_path), "--out", str(tmp_path / "o"), "--tables", wrong]
    assert main(command) == USAGE
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert "there is no table" in lines[0]
    assert "fetch_re" in lines[0]
    assert not (tmp_path / "o").exists()


def test_typed_tables_are_described_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    """When they are named; otherwise a line says that there are more."""
    assert main(["pipeline", "tables"]) == 0
    text = capsys.readouterr().out
    assert "190 typed" in text
    assert "vote_request" not in text
    assert main(["pipeline", "tables", "vote_*"]) == 0
    text = capsys.readouterr().out
    assert text.count("topics.partitions.error_code") == 1
    assert "topics.partitions.pre_vote" in text
