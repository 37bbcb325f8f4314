"""Starts of a cluster that are interrupted or fail, with real processes and without Java."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kraftwire.cli import main as cli
from kraftwire.testing.cluster import processes
from kraftwire.testing.cluster.cluster import StoredCluster
from kraftwire.testing.cluster.nodes import ClusterError, ClusterFiles, Node, reason_of

_PROGRAM = [sys.executable, "-m", "kraftwire", "cluster"]
_INTERRUPTED = 130

# Moments of a start, each known by what is in the folder.
MOMENTS: dict[str, Callable[[Path], bool]] = {
    "state": lambda folder: (folder / "cluster.json").exists(),
    "format": lambda folder: (folder / "node-1/server.properties").exists(),
    "process": lambda folder: (folder / "node-2/node.log").exists(),
    "pid": lambda folder: '"pid": null' not in _text(folder / "cluster.json", '"pid": null'),
    "election": lambda folder: "ready node=" in _text(folder / "node-1/node.log"),
}


def _text(path: Path, missing: str = "") -> str:
    try:
        return path.read_text() or missing
    except FileNotFoundError:
        return missing


def _running(folder: Path) -> list[str]:
    """The commands of processes that name a file in a folder."""
    lines = subprocess.run(
        ["ps", "-eww", "-o", "command="], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return [line for line in lines if str(folder / "node-") in line]


def _up(folder: Path, **options: int) -> subprocess.Popen[str]:
    """Begin to start controllers alone."""
    return subprocess.Popen(
        [*_PROGRAM, "up", "--controllers", "2", "--brokers", "0", "--dir", str(folder)],
        stdout=options.get("stdout", subprocess.PIPE), stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("moment", "number"),
    [(moment, signal.SIGINT) for moment in MOMENTS] + [("process", signal.SIGTERM)],
    ids=lambda each: str(getattr(each, "name", each)),
)
def test_an_interrupted_start_leaves_nothing(
    moment: str, number: signal.Signals, tmp_path: Path
) -> None:
    """No process and no file, whenever it was, so that the next one starts."""
    folder = tmp_path / "c"
    program = _up(folder)
    while not MOMENTS[moment](folder) and program.poll() is None:
        time.sleep(0.001)
    program.send_signal(number)
    _, errors = program.communicate()
    # It may serve by then; it is ended by Ctrl-C all the same.
    assert (program.returncode, "Traceback" in errors) in ((_INTERRUPTED, False), (0, False))
    assert _running(folder) == []
    assert not folder.exists()


def test_a_cluster_whose_output_nobody_reads_is_ended(tmp_path: Path) -> None:
    """Its address was lost, and nothing would end it."""
    reader, writer = os.pipe()
    os.close(reader)
    program = _up(tmp_path / "c", stdout=writer)
    os.close(writer)
    program.communicate()
    assert program.returncode == 141
    assert _running(tmp_path) == []
    assert not (tmp_path / "c").exists()


def test_a_process_is_known_even_if_its_start_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise nobody would end it."""
    started: list[int] = []
    command = processes._command

    def interrupted(pid: int) -> bytes:
        if not started:
            started.append(pid)
            os.kill(os.getpid(), signal.SIGINT)
        return command(pid)

    monkeypatch.setattr(processes, "_command", interrupted)
    stored = StoredCluster(tmp_path / "c")
    with pytest.raises(KeyboardInterrupt):
        stored.up(None, 1, 0)
    assert len(started) == 1
    assert _running(tmp_path) == []
    stored.undo()
    assert not (tmp_path / "c").exists()


def _failing(lines: str) -> Callable[[ClusterFiles, Node], list[str]]:
    """Make the command of a node that prints lines and ends."""
    script = f"printf %s '{lines}'; exit 1"
    return lambda files, node: ["sh", "-c", script, str(files.config(node.id))]


def test_a_failed_start_leaves_logs_and_does_not_block_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The reason is in one short line, which names the log."""
    folder = tmp_path / "c"
    arguments = ["cluster", "up", "--brokers", "0", "--dir", str(folder)]
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    monkeypatch.setattr(ClusterFiles, "_command", _failing("one\nkraftwire: two\n"))
    for _ in range(2):
        assert cli.main(arguments) == 1
        (line,) = capsys.readouterr().err.splitlines()
        log = folder / "node-1/node.log"
        assert line.startswith("kraftwire: node 1 ended during its start: kraftwire: two (its log")
        assert line.endswith(f"{log})")
        assert log.read_text() == "one\nkraftwire: two\n"
    assert cli.main(["cluster", "down", "--dir", str(folder)]) == 0
    assert not folder.exists()
    for number, handler in before.items():
        signal.signal(number, handler)


def test_the_end_of_the_log_is_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed test shows it."""
    files = ClusterFiles.create(tmp_path, None, (1, 0))
    monkeypatch.setattr(ClusterFiles, "_command", _failing("a\nb\n"))
    files.start(1)
    with pytest.raises(ClusterError) as failed:
        files.wait_ready(1, time.monotonic() + 60)
    assert failed.value.__notes__ == [f"the end of {files.log(1)}:\na\nb"]


_KAFKA = """\
2026-11-29 03:14:35,263 INFO Registered the MBean (Log4j)
2026-11-29 03:14:35,300 WARN odd (Other)
java.lang.IllegalStateException: not it
\tat kafka.Kafka.main(Kafka.scala)
2026-11-29 03:14:36,518 ERROR Exiting Kafka due to fatal exception (Kafka$)
java.lang.RuntimeException: cannot start
\tat kafka.Kafka.main(Kafka.scala)
Caused by: org.apache.kafka.common.KafkaException: the disk is full
\t... 5 more
2026-11-29 03:14:36,519 INFO shut down (Kafka$)
"""


@pytest.mark.parametrize(
    ("printed", "reason"),
    [
        (_KAFKA, "KafkaException: the disk is full"),
        ("2026-11-29 03:14:36,518 ERROR no exception (Kafka$)\nused\n", "no exception (Kafka$)"),
        ("ready soon\nkraftwire: a: no such key\n\n", "kraftwire: a: no such key"),
        ("x" * 4000, "x" * 300),
        ("", ""),
    ],
    ids=("exception", "error", "last line", "long", "nothing"),
)
def test_the_reason_is_the_innermost_error(printed: str, reason: str) -> None:
    """Not the stack trace below it, nor what was printed while it stopped."""
    assert reason_of(printed.splitlines()) == reason
