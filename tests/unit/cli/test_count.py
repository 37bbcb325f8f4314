"""`-c N`: a run ends once so many lines, frames, batches or records were shown."""

from __future__ import annotations

import json
import lzma
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kraftwire.cli.main import main
from tests.support.captures.decoded import ROOT, golden

Captured = pytest.CaptureFixture[str]
GROUPS = str(ROOT / "tests" / "golden" / "captures" / "groups.pcapng.xz")
LOG = str(ROOT / "tests" / "golden" / "logs" / "controller" / "__cluster_metadata-0")
QUORUM = str(golden("quorum"))


def shown(capsys: Captured, *arguments: str) -> list[str]:
    """The lines of a run that ends well, without headings."""
    assert main(list(arguments)) == 0
    lines = capsys.readouterr().out.splitlines()
    return [line for line in lines if not line.startswith("#")]


@pytest.mark.parametrize(
    "arguments",
    [
        ("decode", QUORUM),
        ("decode", QUORUM, "--json"),
        ("decode", QUORUM, "--json", "--error", "any"),
        ("decode", QUORUM, "--api", "Vote"),
        ("decode", QUORUM, "-o", "time,api"),
        ("decode", QUORUM, GROUPS),
        ("decode", LOG),
        ("decode", LOG, "--json"),
        ("records", GROUPS),
        ("records", GROUPS, "--json"),
        ("records", GROUPS, "--template", "%k"),
        ("records", LOG),
    ],
    ids=" ".join,
)
def test_the_first_lines_are_those_of_the_whole_run(
    arguments: tuple[str, ...], capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It shows the beginning of what is shown without it, and no request as unanswered."""
    every = shown(capsys, *arguments, "-q", "-c", "999999")
    assert shown(capsys, *arguments, "-q", "-c", "1") == every[:1]
    monkeypatch.setattr("kraftwire.engine.core", None)
    assert shown(capsys, *arguments, "-q", "-c", "5") == every[:5]


@pytest.mark.parametrize("option", ["-v", "--bytes"])
def test_blocks_are_counted_by_exchange(option: str, capsys: Captured) -> None:
    """A tree or a dump has many lines."""
    main(["decode", QUORUM, option, "-q"])
    every = capsys.readouterr().out
    main(["decode", QUORUM, option, "-q", "-c", "2"])
    first = capsys.readouterr().out
    assert every.startswith(first)
    assert first.count("\n\n") == 2


def test_files_after_the_last_line_are_not_opened(capsys: Captured) -> None:
    """They may be large, or missing."""
    assert main(["decode", QUORUM, "/nowhere", "--no-merge", "-c", "2"]) == 0
    captured = capsys.readouterr()
    assert "/nowhere" not in captured.err
    assert "4 frames, each a request or a response; no findings\n" in captured.err
    assert captured.err.endswith("kraftwire: reading ended there, by -c\n")
    assert "packets" not in captured.err


def test_the_exit_code_is_that_of_what_was_read(tmp_path: Path, capsys: Captured) -> None:
    """Damage after the last line was not seen; damage before it was."""
    whole = lzma.decompress(Path(QUORUM).read_bytes())
    damaged = tmp_path / "damaged.pcap"
    damaged.write_bytes(whole[:40_000] + bytes(50) + whole[40_000:])
    assert main(["decode", str(damaged), "-q"]) == 3
    assert main(["decode", str(damaged), "-q", "-c", "1"]) == 0
    assert main(["decode", "/nowhere", QUORUM, "-q", "-c", "1"]) == 3
    capsys.readouterr()


def test_several_processes_are_not_used(capsys: Captured) -> None:
    """They would read ahead of what is shown."""
    captures = (QUORUM, GROUPS)
    every = shown(capsys, "decode", "--json", "-q", *captures)
    assert main(["decode", "--json", "-q", "--jobs", "2", "-c", "3", *captures]) == 0
    captured = capsys.readouterr()
    assert captured.out.splitlines() == every[:3]
    assert "--jobs has no effect with -c" in captured.err


def test_a_pipe_that_stays_open_is_left() -> None:
    """As with a live capture, whose next packet may never come."""
    whole = lzma.decompress(Path(QUORUM).read_bytes())
    for options in ([], ["--json"], ["-v"]):
        reader, writer = os.pipe()
        with os.fdopen(writer, "wb") as pipe, os.fdopen(reader, "rb") as source:
            pipe.write(whole[:20_000])
            pipe.flush()
            done = subprocess.run(
                [sys.executable, "-m", "kraftwire", "decode", *options, "-q", "-c", "2", "-"],
                stdin=source, capture_output=True, text=True, check=False, cwd=ROOT,
            )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout
        if options == ["--json"]:
            assert [json.loads(line)["frame"] for line in done.stdout.splitlines()] == [0, 1]


def test_a_followed_segment_is_left(capsys: Captured) -> None:
    """It would go on for ever."""
    assert len(shown(capsys, "records", "-f", LOG, "-q", "-c", "2")) == 2


@pytest.mark.parametrize("count", ["0", "-1", "x"])
def test_a_count_is_a_number_above_zero(count: str, capsys: Captured) -> None:
    """Nothing at all is never wanted."""
    assert main(["decode", "-c", count, QUORUM]) == 2
    assert "'-c' / '--count'" in capsys.readouterr().err
