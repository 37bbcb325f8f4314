"""Statistics count no time, and blame no broker for an answer, that was not recorded."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

from kraftwire.inspect.stats.writer import StatsJsonWriter, StatsWriter
from tests.support.captures.cuts import DAY_S, part, read_into, save


def _json(*paths: Path) -> dict[str, Any]:
    stream = io.StringIO()
    read_into(StatsJsonWriter(stream), paths)
    found: dict[str, Any] = json.loads(stream.getvalue())
    return found


def _sums(*paths: Path) -> tuple[int, int]:
    rows = _json(*paths)["exchanges"]
    return sum(row["withoutResponse"] for row in rows), sum(row["notRecorded"] for row in rows)


def test_a_rate_counts_the_recorded_time_alone(tmp_path: Path) -> None:
    """Two captures of ten seconds each, two days apart, whose frames span 9.56 and 9.52 s."""
    paths = [
        save(tmp_path / "first.pcap", part(10, 20)),
        save(tmp_path / "second.pcap", part(30, 40, shift=2 * DAY_S)),
    ]
    stream = io.StringIO()
    read_into(StatsWriter(stream), paths)
    head = " ".join(stream.getvalue().split())[:200]
    assert "requests in 19.1 s from 2026-11-20" in head
    assert "nothing is recorded for 2 d 0 h from 2026-11-20T20:21:2" in head
    (hole,) = _json(*paths)["notRecorded"]
    assert 2 * DAY_S < hole["to"] - hole["from"] < 2 * DAY_S + 12


def test_what_is_under_way_when_a_recording_ends_is_not_unanswered(tmp_path: Path) -> None:
    """Each of three replicas waits for its Fetch then; those of a killed leader end."""
    assert _sums(save(tmp_path / "cut.pcap", part(10, 20))) == (0, 3)
    killed = part(355, 366)
    without, not_recorded = _sums(save(tmp_path / "killed.pcap", killed))
    assert without == 3
    assert not_recorded > 0
