"""The end of a command by a signal: what is raised, and what becomes of Java."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="needs the extra spark")

from kraftwire.cli.pipeline.ending import Ending
from kraftwire.cli.pipeline.tail import Stop
from kraftwire.spark import class_archive
from kraftwire.spark.class_archive import ClassArchive

LOGGER = logging.getLogger("py4j")


@pytest.fixture(autouse=True)
def _logging() -> Iterator[None]:
    """Have messages of other tests logged again."""
    yield
    logging.disable(logging.NOTSET)


def _send(number: int) -> None:
    os.kill(os.getpid(), number)


def _interrupted_call(number: int) -> None:
    """Break a call to Java, so that cleaning up fails as well."""
    try:
        _send(number)
    finally:
        LOGGER.error("KeyboardInterrupt while sending command.")
        raise ConnectionError("Answer from Java side is empty")


def test_a_signal_counts_more_than_what_it_breaks(caplog: pytest.LogCaptureFixture) -> None:
    """The bridge to Java fails after an interrupted call, and logs tracebacks."""
    before = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    with pytest.raises(KeyboardInterrupt), Ending():
        _interrupted_call(signal.SIGINT)
    with pytest.raises(SystemExit) as raised, Ending():
        _interrupted_call(signal.SIGTERM)
    assert raised.value.code == 143
    assert caplog.messages == []
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == before
    with pytest.raises(ConnectionError), Ending():
        raise ConnectionError


def test_a_second_interrupt_stops_a_tail_in_a_line(caplog: pytest.LogCaptureFixture) -> None:
    """The first one lets the round end."""
    told: list[str] = []
    with suppress(KeyboardInterrupt), Stop(told.append) as stop:
        _send(signal.SIGINT)
        assert not stop.wait(0)
        _interrupted_call(signal.SIGINT)
    assert told == [
        "stopping after this round; Ctrl-C again stops at once",
        "stopped; the next start does this round again",
    ]
    assert caplog.messages == []


@pytest.mark.parametrize("command", ["exec tail -f /dev/null", "cat"])
def test_an_early_end_ends_java_without_an_archive(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would write for minutes on a busy machine, with the classes of half a run."""
    archive = ClassArchive(tmp_path / "a.jsa", tmp_path / "a.new")
    jvm = subprocess.Popen(["sh", "-c", command], stdin=subprocess.PIPE)
    monkeypatch.setattr(class_archive, "_running", lambda: jvm)
    # One that ends by itself has time to.
    monkeypatch.setattr(class_archive, "_GRACE_S", 60 if command == "cat" else 0.01)
    (tmp_path / "a.new").write_bytes(b"half")
    with suppress(KeyboardInterrupt), Ending(archive):
        _send(signal.SIGINT)
    assert jvm.wait(60) == (0 if command == "cat" else -signal.SIGKILL)
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_ends_keeps_its_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An archive that is only used stays in any case."""
    archive = ClassArchive(tmp_path / "a.jsa", tmp_path / "a.new")
    (tmp_path / "a.new").write_bytes(b"classes")
    with Ending(archive):
        pass
    assert (tmp_path / "a.new").exists()
    (tmp_path / "a.new").rename(tmp_path / "a.jsa")
    used = ClassArchive(tmp_path / "a.jsa", None)
    monkeypatch.setattr(class_archive, "_running", lambda: None)
    with pytest.raises(ValueError, match="early"), Ending(used):
        raise ValueError("early")
    assert (tmp_path / "a.jsa").exists()
