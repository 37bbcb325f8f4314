"""What holds for all tests: what is left as found, what runs on both engines, figures."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kraftwire import engine
from kraftwire.wire.engines import use

_BEGAN = pytest.StashKey[float]()

_COUNTED = ("passed", "failed", "error", "skipped")


# Commands that run in the process of a test set these up as for a process of their own.
_LOGGERS = ("kraftwire", "kraftwire.node", "kraftwire.log")


# Tests of what the engine in C does as well, by the beginning of their file's path: they run once
# for each engine that is there.
_FOR_EACH_ENGINE = (
    "engine/test_choice",
    "unit/test_records_",
    "unit/test_vectors",
    "unit/test_wire_",
    "fuzz/test_damage",
    "fuzz/test_memory",
    "spark/logs/test_columns",
    "spark/logs/test_log_tables",
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Let the tests of what both engines do run for each of them."""
    path = metafunc.definition.path.relative_to(Path(__file__).parent).as_posix()
    if path.startswith(_FOR_EACH_ENGINE):
        metafunc.parametrize("each_engine", engine.available(), indirect=True, scope="module")


@pytest.fixture(scope="module", autouse=True)
def each_engine(request: pytest.FixtureRequest) -> Iterator[str]:
    """The engine that the tests of a file run on: the usual one unless they run for each."""
    before = engine.name()
    chosen = getattr(request, "param", before)
    if chosen != before:
        use(chosen)
    yield chosen
    if chosen != before:
        use(before)


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
