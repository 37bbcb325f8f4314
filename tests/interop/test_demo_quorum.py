"""The live half of the demo, as a newcomer sees it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.demo_quorum import show_quorum


def test_the_demo_starts_describes_and_decodes_a_quorum(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Clients of three makes agree on a quorum that loses its leader, and so does the decoder."""
    assert show_quorum(tmp_path / "kept" / "quorum.pcap") == 0
    text = capfd.readouterr().out
    for part in (
        "voter 3 has the log up to",
        "LeaderEpoch:            1",
        "is killed (SIGKILL)",
        "LeaderEpoch:            2",
        "LastCaughtUpTimestamp",
        "asks for votes: granted by",
        "Who led when",
        "RegisterController",
    ):
        assert part in text
    assert "Traceback" not in text
