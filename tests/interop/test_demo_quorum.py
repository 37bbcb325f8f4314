"""The demo without Spark, as a newcomer sees it: live, short, and with the whole story."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools import demo

ROOT = Path(__file__).resolve().parents[2]


def test_the_demo_shows_a_quorum_that_loses_its_leader(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It shows the killed leader, the time without a leader and the vote that ended it."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(demo, "KEPT", tmp_path / "kept" / "quorum.pcap")
    assert demo.main() == 0
    text = capfd.readouterr().out
    told = r"Leader (\d) is killed \(SIGKILL\); [\d.]+ s later the leader is (\d)"
    killed = re.search(told, text)
    assert killed is not None
    leader, successor = killed.groups()
    for pattern in (
        r"voter 3 has the log up to",
        rf"node {leader} +leader falls silent for at least",
        rf"node {successor} +asks for votes: granted by",
        rf"node {successor} +is (elected|the) leader(?s:.*?)no\s+leader\s+for(\s+up\s+to)?\s",
        r"Who led when",
        r"topics\[0\].partitions\[0\].voteGranted = true",
        r"(?m)^Fetch +v\d+ +\d+",
    ):
        assert re.search(pattern, text), pattern
    assert text.index("A quorum loses its leader") < 10
    assert "Traceback" not in text
    # With the report and what to try next, all of it fits into 120 lines.
    assert len(text.splitlines()) < 95
