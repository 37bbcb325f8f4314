"""`kraftwire pipeline tail` as a process: killed in the middle, started again, ended by Ctrl-C."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

from kraftwire.cli.main import main
from kraftwire.spark.run import LocalRunner, RunOptions, run
from kraftwire.testing import quorum
from tests.spark.run.folders import captures, rows_of, tables_of
from tests.spark.tail.growing import Partition, batch

ROOT = Path(__file__).resolve().parents[3]
PATIENCE_S = 240
USAGE = 2


@contextlib.contextmanager
def following(arguments: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The command as a separate process group."""
    command = [sys.executable, "-m", "kraftwire", "pipeline", "tail", *arguments]
    with log.open("wb") as said:
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=said, stderr=said, start_new_session=True
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def wait_until(is_so: Callable[[], bool], process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait for something that the process does."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.02)


def batches_of(folder: Path, topic: str) -> int:
    """Batches of a topic, according to the manifest of a folder."""
    with contextlib.suppress(OSError, ValueError):
        data = json.loads((folder / "_manifest" / "manifest.json").read_text(encoding="utf-8"))
        return sum(
            part["rows"]
            for source in data["sources"]
            if any(f"/{topic}-" in path for path, _, _ in source["files"])
            for part in source["parts"]
            if part["table"] == "batches"
        )
    return 0


def test_a_tail_continues_after_kill_9_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    """What is written meanwhile is in the tables once, as if one run had read everything."""
    source, out = tmp_path / "in", tmp_path / "out"
    captures(source / "captures", "sasl")
    log = Partition(source)
    log.append()
    with quorum(nodes=1) as nodes:
        arguments = [str(source), "--out", str(out), "--interval", "0.5", "--master", "local[1]"]
        arguments += ["--bootstrap-controller", nodes.bootstrap_controllers]
        with following(arguments, tmp_path / "first") as process:
            wait_until(lambda: batches_of(out, "orders") == 1, process, tmp_path / "first")
            half = batch(log.next_offset)
            log.write(half[:40])
            captures(source / "captures", "clients")
            wait_until((out / "_tasks").exists, process, tmp_path / "first")
        assert process.returncode == -signal.SIGKILL
        log.write(half[40:])
        log.next_offset += 10
        with following(arguments, tmp_path / "second") as process:
            wait_until(lambda: batches_of(out, "orders") == 2, process, tmp_path / "second")
            log.append()
            wait_until(lambda: batches_of(out, "orders") == 3, process, tmp_path / "second")
            os.killpg(process.pid, signal.SIGINT)
            said = process.wait(PATIENCE_S)
        text = (tmp_path / "second").read_text()
        assert said == 0, text
        assert "Look at first" in text
        assert "Traceback" not in text
    live = [row for row in rows_of(out, "metadata_records") if row["position"] is None]
    assert sorted(row["offset"] for row in live) == list(range(len(live)))
    assert len(live) > 5
    run([str(source)], RunOptions(tmp_path / "whole"), LocalRunner(), warn=print)
    found, wanted = tables_of(out), tables_of(tmp_path / "whole")
    found["metadata_records"] = [
        row for row in found["metadata_records"] if "'position': None" not in row
    ]
    assert {**found, "metadata_records": found["metadata_records"] or None} == {
        **wanted,
        "metadata_records": wanted.get("metadata_records"),
    }
    assert rows_of(out, "partitions")


def test_nothing_to_follow_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    """Before Spark starts."""
    assert main(["pipeline", "tail", "--out", "tables"]) == USAGE
    assert "--bootstrap-controller" in capsys.readouterr().err
