"""How wide output is: in a pipe nothing is shortened, on a terminal and with COLUMNS it fits."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from kraftwire.cli.main import main
from tests.support.captures.decoded import ROOT, golden

Captured = pytest.CaptureFixture[str]
LOGS = ROOT / "tests" / "golden" / "logs"
GROUPS = str(ROOT / "tests" / "golden" / "captures" / "groups.pcapng.xz")

COMMANDS = [
    ["stats", GROUPS, "-q"],
    ["story", "raft", str(golden("quorum")), "-q"],
    ["story", "raft", str(LOGS / "controller"), str(LOGS / "observer"), "-q"],
    ["story", "groups", GROUPS, "-q"],
    ["story", "transactions", str(golden("clients")), "-q"],
    ["story", "topics", GROUPS, "-q"],
    ["story", "clients", GROUPS, "-q"],
    ["metadata", "show", "controller"],
]
# In these columns values are cut in the middle where they do not fit.
_CUT = "…"


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda each: " ".join(each[:2]))
def test_in_a_pipe_nothing_is_shortened(
    arguments: list[str], capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever searches or cuts lines needs whole ones; COLUMNS says that somebody looks."""
    monkeypatch.chdir(LOGS)
    main(arguments)
    whole = capsys.readouterr().out
    monkeypatch.setenv("COLUMNS", "100")
    main(arguments)
    narrow = capsys.readouterr().out
    monkeypatch.setenv("COLUMNS", "9999")
    main(arguments)
    assert capsys.readouterr().out == whole
    # A terminal wraps the sentence at the top by itself.
    assert max(map(len, narrow.splitlines()[1:])) <= 100
    assert max(map(len, whole.splitlines())) > 100 or whole == narrow
    assert "not shown in" not in whole
    assert _CUT not in whole
    assert len(whole.splitlines()) <= len(narrow.splitlines())


@pytest.mark.parametrize("value", ["", "0", "-5", "wide", "²"])
def test_a_width_that_is_none_is_ignored(
    value: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As every program does that looks at COLUMNS."""
    main(COMMANDS[0])
    whole = capsys.readouterr().out
    monkeypatch.setenv("COLUMNS", value)
    main(COMMANDS[0])
    assert capsys.readouterr().out == whole


@pytest.mark.parametrize("arguments", COMMANDS[:2], ids=lambda each: " ".join(each[:2]))
def test_on_a_terminal_lines_fit(arguments: list[str]) -> None:
    """Its width is known without COLUMNS."""
    leader, follower = pty.openpty()
    environment = os.environ | {"TERM": "dumb", "NO_COLOR": "1"}
    with open(leader, "rb", buffering=0) as screen:
        subprocess.run(["stty", "cols", "90"], stdin=follower, check=True)
        program = subprocess.Popen(
            [sys.executable, "-m", "kraftwire", *arguments],
            stdout=follower, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
            env=environment, cwd=Path(ROOT),
        )  # fmt: skip
        os.close(follower)
        shown = b""
        try:
            while some := screen.read(65536):
                shown += some
        except OSError:
            pass  # the last one that wrote has closed it
        assert program.wait() == 0
    lines = shown.decode().splitlines()
    assert 80 < max(map(len, lines)) <= 90
