"""A run that is interrupted names the tests that had not ended."""

from __future__ import annotations

import pytest

from tests.support.suite.running_tests import RunningTests


def test_only_what_has_not_ended_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """One of them may be what kept the run from ending."""
    running = RunningTests()
    for name in ("b", "a", "c"):
        running.pytest_runtest_logstart(name)
    running.pytest_runtest_logfinish("a")
    running.pytest_keyboard_interrupt()
    assert capsys.readouterr().out == "running when interrupted: b\nrunning when interrupted: c\n"
