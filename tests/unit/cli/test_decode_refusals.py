"""Options of `kraftwire decode` that have no meaning: refused with exit code 2."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kraftwire.cli.main import main
from tests.support.captures.decoded import golden

ROOT = Path(__file__).resolve().parents[3]
LOGS = ROOT / "tests" / "golden" / "logs" / "broker" / "tombs-0"
CAPTURE = golden("sasl")
KEYS = CAPTURE.with_name("tls.keylog")
CLEAN, USAGE = 0, 2
Captured = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((LOGS, "--version", "0"), "--response and --version are for raw responses"),
        ((CAPTURE, "--response"), "--response and --version are for raw responses"),
        (("-", "--input", "hex", "--version", "3"), "--response and --version are for raw"),
        (("-", "--input", "hex", "--response"), "raw responses need --api and --version"),
        (("x", "--input", "frames", "--offset", "3"), "--offset: x is not a log file"),
        ((CAPTURE, "--input", "file"), "--input file:"),
        ((CAPTURE, "-v", "--format", "jsonl"), "--format jsonl and -v exclude each other"),
        ((CAPTURE, "-o", "time", "--bytes"), "-o and --bytes exclude each other"),
        ((CAPTURE, "-o", "size,tiem"), "there is no column 'tiem'; there are time"),
        ((LOGS, "--offset", "5-3"), "'5-3' ends before it begins"),
        ((CAPTURE, "--since", "+5", "--until", "+2"), "nothing is both since +5 and until +2"),
        ((CAPTURE, "--since", "2026-11-22", "--until", "2026-11-21"), "nothing is both since"),
        ((CAPTURE, "--min-latency", "-5"), "-5.0 is not a number of milliseconds"),
        ((CAPTURE, "--min-latency", "nan"), "nan is not a number of milliseconds"),
        ((CAPTURE, "-o", ","), "--columns names nothing"),
        ((CAPTURE, "--api", ""), "--api names nothing"),
    ],
)
def test_what_has_no_meaning_is_refused(
    arguments: tuple[str | Path, ...], words: str, capsys: Captured
) -> None:
    """A wrong answer must not look like the right one to another question."""
    assert main(["decode", *map(str, arguments)]) == USAGE
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert words in line


def test_an_option_may_be_for_one_of_several_inputs(capsys: Captured) -> None:
    """A capture is decoded together with the log of the same incident."""
    options = ("-o", "api", "--keylog", KEYS, "--family", "none", "-q")
    assert main(["decode", *map(str, (CAPTURE, LOGS, *options))]) == CLEAN
    assert "SaslHandshake" in capsys.readouterr().out


def test_what_comes_through_a_pipe_is_checked_too() -> None:
    """Its kind shows only while it is read."""
    command = [sys.executable, "-m", "kraftwire", "decode", "-", "--input", "file"]
    done = subprocess.run(
        command, input=CAPTURE.read_bytes(), capture_output=True, cwd=ROOT, check=False
    )
    assert done.returncode == USAGE
    assert b"--input file" in done.stderr


def test_a_wrong_time_lists_the_right_ones(capsys: Captured) -> None:
    """Each with an example that can be copied."""
    assert main(["decode", str(CAPTURE), "--since", "12:00"]) == USAGE
    text = capsys.readouterr().err
    for example in ("2026-11-21T04:49:02", "1795236542.5", "+12.5"):
        assert main(["decode", str(CAPTURE), "-q", "--since", example]) == CLEAN
        assert example in text
