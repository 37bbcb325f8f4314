"""The end of a command by a signal: what is raised, and what is logged."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator
from contextlib import suppress

import pytest

pytest.importorskip("pyspark", reason="needs the extra spark")

from kraftwire.cli.pipeline.signals import Ending, Stop, ended_at_once

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


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_process_after_a_report(
    number: int, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads that start Spark would be waited for; an error of the run is raised as it is."""
    told: list[object] = []
    monkeypatch.setattr(os, "_exit", told.append)
    with suppress(ConnectionError), ended_at_once(lambda: told.append("left")), Ending():
        _interrupted_call(number)
    assert told == ["left", code]
    with pytest.raises(ConnectionError), ended_at_once(lambda: told.append("left")):
        raise ConnectionError
    assert told == ["left", code]
