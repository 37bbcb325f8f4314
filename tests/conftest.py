"""What holds for all tests: logging is left as it was found, and the run ends with its figures."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator

import pytest

_BEGAN = pytest.StashKey[float]()

_COUNTED = ("passed", "failed", "error", "skipped")


# Commands that run in the process of a test set these up as for a process of their own.
_LOGGERS = ("kraftwire", "kraftwire.node", "kraftwire.log")


@pytest.fixture(autouse=True)
def _logging_as_found() -> Iterator[None]:
    """Let no test change what the next one hears."""
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    found = [(one.level, one.propagate, one.handlers) for one in loggers]
    yield
    for logger, (level, propagate, handlers) in zip(loggers, found, strict=True):
        logger.setLevel(level)
        logger.propagate = propagate
        logger.handlers = handlers


def pytest_configure(config: pytest.Config) -> None:
    """Note when the run began."""
    config.stash[_BEGAN] = time.monotonic()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Print the figures. Processes of pytest-xdist leave that to the one that started them."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or hasattr(config, "workerinput") or config.option.collectonly:
        return
    figures: dict[str, float] = {
        outcome: len(reporter.stats.get(outcome, ())) for outcome in _COUNTED
    }
    figures["seconds"] = round(time.monotonic() - config.stash[_BEGAN], 1)
    reporter.write_line(json.dumps({"tests": figures}))
