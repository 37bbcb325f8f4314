"""The demo: what a newcomer sees first must work, fit and be right."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import demo, demo_report
from tools.demo import CAPTURE, SECTIONS, main

ROOT = Path(__file__).resolve().parents[2]


def test_the_demo_tells_the_story_in_three_sections(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs the program itself, without a terminal."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(demo, "show_quorum", lambda _kept: 0)
    assert main() == 0
    text = capsys.readouterr().out
    assert "\x1b" not in text
    for part in (
        "node 3   is elected leader (votes of 1, 3",
        "Who led when",
        "What the metadata log said",
        "By API",
        "topics[0].partitions[0].replicaEpoch = 2",
        "topics[0].partitions[0].voteGranted = true",
    ):
        assert part in text
    blocks = text.split("\n\n\n")
    assert len(text.splitlines()) < 260
    assert all(len(block.splitlines()) < 130 for block in blocks)


def test_the_demo_says_what_it_needs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Started elsewhere it names the file that is missing instead of failing later."""
    monkeypatch.chdir(tmp_path)
    assert main() == 1
    assert CAPTURE in capsys.readouterr().err
    assert all(section.arguments[1] == CAPTURE for section in SECTIONS)


def test_the_demo_goes_without_spark_in_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the extra or Java is missing it says so, and ends with what to try next."""
    monkeypatch.setattr(demo_report, "find_spec", lambda _name: None)
    assert demo_report.main() == 0
    first, *rest = capsys.readouterr().out.strip().splitlines()
    assert first == "Spark or Java 17 is missing here, so there are no tables and no report."
    assert "Try next, with `.venv/bin` on your path:" in rest


def test_the_demo_makes_tables_and_a_report_of_what_was_recorded(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Two commands, the second only if the first went well."""
    called: list[list[str]] = []
    monkeypatch.setattr(demo_report, "find_spec", lambda name: name)
    monkeypatch.setattr(demo_report.shutil, "which", lambda name: name)
    monkeypatch.setattr(demo_report, "KEPT", tmp_path / "quorum.pcap")
    assert demo_report.main() == 1
    assert "make demo" in capsys.readouterr().err
    (tmp_path / "quorum.pcap").touch()
    monkeypatch.setattr(demo_report, "kraftwire", lambda words: called.append(words) or 0)
    assert demo_report.main() == 0
    tables = str(tmp_path / "quorum.tables")
    assert called == [
        ["pipeline", "run", str(tmp_path / "quorum.pcap"), "--out", tables],
        ["pipeline", "report", tables],
    ]
    monkeypatch.setattr(demo_report, "kraftwire", lambda words: called.append(words) or 1)
    assert demo_report.main() == 1
    assert len(called) == 3
