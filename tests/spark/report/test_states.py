"""Reports of folders that a run has not finished, or that another version has made."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("bokeh", reason="needs the extra spark")

from kraftwire.cli.main import main
from kraftwire.spark.report import write
from kraftwire.spark.run.derive import highlights
from kraftwire.spark.run.manifest import DECODER_VERSION, Manifest
from tests.spark.report.folders import SECOND, START, quorum, two_days, written
from tests.spark.report.reading import csv_rows, words_of

# Without these a row has no place on the axis of time.
TIMES = [
    ("raft_timeline", "time_ns"), ("replica_lag", "bucket"), ("group_lag", "bucket"),
    ("groups", "start"), ("groups", "end"), ("exchanges", "time_ns"), ("connections", "first_time"),
]  # fmt: skip


def _change(folder: Path, **keys: Any) -> None:
    path = folder / "_manifest" / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | keys))


def test_a_run_that_has_not_ended(tmp_path: Path) -> None:
    """Killed or still running: the first sentence must not look like that of all inputs."""
    quorum(tmp_path)
    made = Manifest(is_derived=True)
    made.save(tmp_path)
    assert "The run has not finished" not in words_of(write(tmp_path))
    made.is_derived = False
    made.save(tmp_path)
    words = words_of(write(tmp_path))
    assert "Nobody led for 3 s in all. The run has not finished: these tables do" in words


def test_tables_of_another_version(tmp_path: Path) -> None:
    """They are read as far as possible, and the page names their version."""
    quorum(tmp_path)
    Manifest(is_derived=True).save(tmp_path)
    assert "The tables are of version" not in words_of(write(tmp_path))
    _change(tmp_path, decoder="0.0.1/<1>")
    words = words_of(write(tmp_path))
    assert f"The tables are of version 0.0.1/<1>, the report of {DECODER_VERSION}" in words


@pytest.mark.parametrize("text", ["{", "[]"])
def test_a_damaged_manifest_is_named(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In one line."""
    quorum(tmp_path)
    Manifest().save(tmp_path)
    (tmp_path / "_manifest" / "manifest.json").write_text(text)
    assert main(["pipeline", "report", str(tmp_path)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "manifest.json: not a manifest: " in line


@pytest.mark.parametrize(("table", "column"), TIMES)
def test_rows_without_a_time_are_left_out(table: str, column: str, tmp_path: Path) -> None:
    """Like those of a version without the column."""
    quorum(tmp_path)
    for folder in tmp_path.iterdir():
        if folder.name not in (table, "exchanges"):
            shutil.rmtree(folder)
    for path in (tmp_path / table).iterdir():
        pq.write_table(pq.read_table(path).drop_columns([column]), path)
    assert "What was read" in words_of(write(tmp_path))


def test_unknown_columns_are_ignored(tmp_path: Path) -> None:
    """Those of a later version, and the tags of a run."""
    quorum(tmp_path)
    for path in tmp_path.glob("*/*.parquet"):
        table = pq.read_table(path)
        pq.write_table(table.append_column("later", pa.nulls(len(table), pa.int32())), path)
    assert "1 anomaly in 29.9 s with 300 exchanges" in words_of(write(tmp_path))


def test_files_without_kafka_are_not_a_quiet_cluster(tmp_path: Path) -> None:
    """Nothing can stand out where nothing was read."""
    folder = written(tmp_path, files=[{"file": "notes.txt", "size": 3, "kind": "unknown"}])
    words = words_of(write(folder))
    assert "Neither requests nor events of a quorum are in 1 file." in words
    assert "stands out" not in words


def test_logs_alone_show_no_gaps(tmp_path: Path) -> None:
    """A record says when a leader began, but not when the previous one fell silent."""
    leader = {"kind": "leader", "node": "1", "cluster": "c"}
    events = [{**leader, "time_ns": START + at * SECOND, "epoch": at} for at in (1, 5)]
    words = words_of(write(written(tmp_path, raft_timeline=events)))
    assert "leaders 2 logs show no gaps" in words


def test_a_directory_without_a_leader_is_shown(tmp_path: Path) -> None:
    """A snapshot alone names none, and is not nothing."""
    details = json.dumps({"folder": "/a", "end": {"offset": 700, "epoch": 4}})
    event = {"kind": "replica-files", "cluster": "c", "node": "1", "time_ns": START, "epoch": 4}
    event |= {"text": "furthest: keep it", "details": details}
    words = words_of(write(written(tmp_path, raft_timeline=[event])))
    assert "No leader is known." in words
    assert "furthest: keep it" in words
    assert "none is known" in words
    assert "Nothing of a KRaft quorum" not in words


def test_logs_show_a_leader_that_was_silent(tmp_path: Path) -> None:
    """It went on in its epoch, after two hours in which nobody led."""
    common = {"node": "1", "cluster": "c", "epoch": 1, "time_ns": START}
    details = json.dumps({"seconds": 7200, "wasLeader": True, "seenIn": "log"})
    events = [{**common, "kind": "leader"}, {**common, "kind": "silence", "details": details}]
    words = words_of(write(written(tmp_path, raft_timeline=events)))
    assert "leaders 1 2 h 0 min of silence" in words


def test_a_time_that_was_not_recorded_is_no_time_without_a_leader(tmp_path: Path) -> None:
    """Captures of two days: neither the headline nor a rate or a plot counts the days between."""
    folder = two_days(tmp_path)
    words = words_of(write(folder))
    assert "20 s that were recorded, of 48 h 0 min, with 42 exchanges" in words
    assert "obody led" not in words
    assert "leaders 2 at no time without one that was recorded" in words
    assert "2.1 a second" in words
    assert [(row["node"], row["ending"]) for row in csv_rows(folder, "leaders")] == [
        ("1", "leads to the end of the recording"),
        ("not recorded", "not recorded"),
        ("2", "leads to the end"),
    ]
    assert "Grey: not recorded." in words


def test_a_leader_leads_to_the_end_of_the_recording_that_shows_it(tmp_path: Path) -> None:
    """The capture of two days later says nothing of its cluster."""
    folder = two_days(tmp_path)
    for path in (folder / "raft_timeline").iterdir():
        path.unlink()
    one = {"cluster": "c", "kind": "leader", "time_ns": START, "node": "1", "epoch": 1}
    (folder / "raft_timeline").rmdir()
    written(folder, raft_timeline=[{**one, "details": "{}"}])
    write(folder)
    [row] = csv_rows(folder, "leaders")
    assert int(row["end"]) == START + 10 * SECOND


def test_lag_of_groups_has_its_heading_without_rebalances(tmp_path: Path) -> None:
    """A capture that begins after the last rebalance has only commits."""
    quorum(tmp_path)
    for path in (tmp_path / "groups").iterdir():
        path.unlink()
    assert "No group rebalanced. Lag of groups client on client max" in words_of(write(tmp_path))


def test_a_line_of_zeros_can_be_told_from_none(tmp_path: Path) -> None:
    """It is drawn above the axis."""
    from kraftwire.spark.report.folder import TableFolder
    from kraftwire.spark.report.page import _context
    from kraftwire.spark.report.parts.lag import lag_part

    quorum(tmp_path)
    plots = lag_part(_context(TableFolder(tmp_path))).plots
    assert plots
    assert all(plot.y_range.start < 0 < plot.y_range.end for plot in plots.values())


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ({"bad_input": [{"id": "gap", "stage": "stream"}]}, "1 piece of input"),
        ({"connections": [{"protocol": "kafka", "gap_bytes": 7}]}, "1 connection with bytes"),
        ({"connections": [{"protocol": "tls", "gap_bytes": 0}]}, "1 encrypted connection"),
        ({"files": [{"kind": "unknown", "size": 5}]}, "1 file of no kind"),
        ({"connections": [{"protocol": "other", "gap_bytes": 7}]}, ""),
    ],
)
def test_nothing_stands_out_only_if_everything_was_understood(
    tmp_path: Path, rows: dict[str, Any], said: str
) -> None:
    """What was not decoded may be what matters."""
    folder = written(
        tmp_path, exchanges=[{"time_ns": START + at, "api_name": "Fetch"} for at in (0, SECOND)],
        anomalies=[], **rows,
    )
    words = words_of(write(folder))
    lines = highlights(folder)
    if said:
        assert f"Not everything was understood: {said}" in words
        assert "stands out" not in words
        assert lines
    else:
        assert "Nothing stands out" in words
        assert not lines
