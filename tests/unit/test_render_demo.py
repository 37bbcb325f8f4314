"""The demo: what a newcomer sees first must work, fit and be right."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import demo
from tools.demo import CAPTURE, SECTIONS, main

ROOT = Path(__file__).resolve().parents[2]


def test_the_demo_tells_the_story_in_three_sections(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs the program itself, without a terminal, and ends with what to try next."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(demo, "show_quorum", lambda: 0)
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
        "Try next",
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
