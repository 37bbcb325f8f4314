"""The demo: what a newcomer sees first must work, fit and be right."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from tools import demo_report
from tools.demo import CAPTURE, main, show_vote

ROOT = Path(__file__).resolve().parents[3]
_QUORUM = "tests/golden/captures/quorum.pcap.xz"


def test_the_demo_says_what_it_needs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Started elsewhere, it names the missing file instead of failing later."""
    monkeypatch.chdir(tmp_path)
    assert main() == 1
    assert CAPTURE in capsys.readouterr().err


def test_a_vote_that_was_granted_for_a_new_epoch_is_shown(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Pre-votes come first and are granted as well, but elect nobody."""
    capture = tmp_path / "quorum.pcap"
    capture.write_bytes(lzma.decompress((ROOT / _QUORUM).read_bytes()))
    assert show_vote(capture) == 0
    text = capfd.readouterr().out
    assert "Node 3 requested votes for epoch 2." in text
    assert "topics[0].partitions[0].leaderEpoch = 2" in text
    assert "topics[0].partitions[0].voteGranted = true" in text
    empty = tmp_path / "empty.pcap"
    empty.write_bytes(capture.read_bytes()[:24])
    assert show_vote(empty) == 1
    assert "no vote was granted" in capfd.readouterr().err


def test_the_demo_skips_spark_with_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the extra or Java is missing, it says so, and ends with what to try next."""
    monkeypatch.setattr(demo_report, "find_spec", lambda _name: None)
    assert demo_report.main() == 0
    first, *rest = capsys.readouterr().out.strip().splitlines()
    assert first == "Spark or Java 17 is missing here, so there are no tables and no report."
    assert "Try next, with `.venv/bin` on your path:" in rest


def test_the_demo_makes_tables_and_a_report_of_what_was_recorded(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Two commands, the second only if the first succeeded."""
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
        [
            "pipeline", "run", str(tmp_path / "quorum.pcap"), "--out", tables,
            "--tables", "exchanges,raft_timeline", "--quiet",
        ],
        ["pipeline", "report", tables],
    ]
    monkeypatch.setattr(demo_report, "kraftwire", lambda words: called.append(words) or 1)
    assert demo_report.main() == 1
    assert len(called) == 3
