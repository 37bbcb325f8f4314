"""A run of the pipeline that is killed together with everything it started."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="needs the extra spark")

from kraftwire.spark.run import LocalRunner, RunOptions, SparkRunner, run
from tests.spark.run.folders import captures, tables_of

ROOT = Path(__file__).resolve().parents[3]
PATIENCE_S = 120


def _silent(_text: str) -> None:
    """Say nothing."""


def _command(source: Path, folder: Path, *more: str) -> list[str]:
    program = [sys.executable, "-m", "kraftwire.cli.main", "pipeline", "run", str(source)]
    return [*program, "--out", str(folder), "--quiet", *more]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_run_continues_after_its_end(number: signal.Signals, spark: Any, tmp_path: Path) -> None:
    """The driver, the JVM and the workers get the signal at once, in the middle of their work."""
    source = captures(tmp_path / "in")
    with open(tmp_path / "log", "wb") as log:
        process = subprocess.Popen(
            _command(source, tmp_path / "out", "--master", "local[1]"),
            cwd=ROOT, start_new_session=True, stdout=log, stderr=log,
        )  # fmt: skip
        marks = tmp_path / "out" / "_tasks" / "done"
        deadline = time.monotonic() + PATIENCE_S
        try:
            while process.poll() is None and not (marks.is_dir() and any(marks.iterdir())):
                assert time.monotonic() < deadline, (tmp_path / "log").read_text()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(0.02)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, number)
            process.wait()
    log_text = (tmp_path / "log").read_text()
    if number == signal.SIGKILL:
        assert process.returncode == -number, log_text
    else:
        assert process.returncode == 128 + number, log_text
        (line,) = [each for each in log_text.splitlines() if "incubator" not in each]
        assert line.startswith(f"kraftwire: stopped; {tmp_path / 'out'} has ")
        assert line.endswith("; the same command with --resume continues")
    assert (tmp_path / "out" / "_tasks").exists()
    options = RunOptions(tmp_path / "out")
    run([str(source)], options, SparkRunner(spark), resume=True, warn=_silent)
    run([str(source)], RunOptions(tmp_path / "whole"), LocalRunner(), warn=_silent)
    assert tables_of(tmp_path / "out") == tables_of(tmp_path / "whole")
