"""The report of a chosen interval: what is in it, what spans it, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("bokeh", reason="needs the extra spark")

from kraftwire.cli.main import main
from kraftwire.spark.report import Interval, write
from tests.spark.report.folders import SECOND, START, quorum
from tests.spark.report.reading import csv_rows, words_of

# Node 1 is elected after 1 s and falls silent after 10; node 2 leads from 13 s on.
FIRST, GAP, SECOND_ONE, NEITHER = (2, 9), (8, 15), (20, 25), (40, 50)


def _report(folder: Path, seconds: tuple[int, int]) -> Path:
    quorum(folder)
    return write(folder, Interval(*(START + each * SECOND for each in seconds)))


def test_an_interval_leaves_out_the_rest(tmp_path: Path) -> None:
    """Exchanges, events, lags and findings outside of it do not count."""
    quorum(tmp_path)
    words = words_of(write(tmp_path, Interval(START + 20 * SECOND, START + 25 * SECOND)))
    assert "(a chosen interval)" in words
    assert "exchanges 50" in words
    assert "No rule found anything." in words
    assert len(csv_rows(tmp_path, "replica_lag")) == 5


def test_who_led_in_it_may_have_been_elected_before(tmp_path: Path) -> None:
    """An hour with one leader is not an hour without a quorum."""
    words = words_of(_report(tmp_path, SECOND_ONE))
    assert "leaders 1 at no time without one" in words
    (led,) = csv_rows(tmp_path, "leaders")
    assert (led["epoch"], led["node"], led["ending"]) == ("2", "2", "leads to the end")
    # The first and the last exchange of the interval.
    assert int(led["start"]) == START + 20 * SECOND
    assert int(led["end"]) == START + 25 * SECOND - SECOND // 10


def test_a_leader_that_falls_silent_later_leads_to_its_end(tmp_path: Path) -> None:
    """No other leader is shown: epoch 2 began after it."""
    words = words_of(_report(tmp_path, FIRST))
    # What could not be decoded has no time, so it may be of any interval.
    assert "Not everything was understood: 2 pieces of input could not be decoded" in words
    assert [(row["epoch"], row["ending"]) for row in csv_rows(tmp_path, "leaders")] == [
        ("1", "leads to the end")
    ]


def test_gaps_and_findings_count_where_they_touch_it(tmp_path: Path) -> None:
    """The gap begins in it, the finding and the rebalance began before it or end after it."""
    words = words_of(_report(tmp_path, GAP))
    assert "silent-leader" in words
    assert "Nobody led for 3 s in all." in words
    assert [row["node"] for row in csv_rows(tmp_path, "leaders")] == ["1", "", "2"]
    words = words_of(write(tmp_path, Interval(START + 12 * SECOND, START + 13 * SECOND)))
    assert "silent-leader" in words
    assert "client classic 1 2 2 s" in words_of(
        write(tmp_path, Interval(START + 4 * SECOND, START + 5 * SECOND))
    )


def test_connections_outside_of_it_are_left_out(tmp_path: Path) -> None:
    """The only one lasts for 30 seconds."""
    assert "1 connection: 1 kafka." in words_of(_report(tmp_path, FIRST))
    words = words_of(write(tmp_path, Interval(START + 31 * SECOND, None)))
    assert "There are no connections." in words


def test_files_of_an_earlier_report_are_gone(tmp_path: Path) -> None:
    """A CSV of another interval next to a page that does not name it would mislead."""
    _report(tmp_path, GAP)
    assert (tmp_path / "report" / "anomalies.csv").exists()
    write(tmp_path, Interval(START + 20 * SECOND, None))
    assert not (tmp_path / "report" / "anomalies.csv").exists()


def test_an_interval_without_anything_is_not_a_quiet_one(tmp_path: Path) -> None:
    """A mistyped hour must not give a report in which nothing stands out."""
    words = words_of(_report(tmp_path, NEITHER))
    assert (
        "Neither requests nor events of a quorum are in the chosen interval of 2 files." in words
    )
    assert "stands out" not in words


def test_an_interval_that_ends_before_it_begins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An empty report would look like a quiet cluster."""
    times = ["--since", "2026-11-20T20:28", "--until", "2026-11-20T20:27"]
    assert main(["pipeline", "report", str(tmp_path), *times]) == 2
    assert "is not before --until" in capsys.readouterr().err
