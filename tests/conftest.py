"""What holds for all tests: state that is restored, tests that run on both engines, figures."""

from __future__ import annotations

import gc
import json
import logging
import os
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from kraftwire import engine
from tests.support.suite.engines import FOR_EACH_ENGINE, use
from tests.support.suite.marks import QUICK, has_only_slow, marks_of
from tests.support.suite.of_the_day import of_the_day, today
from tests.support.suite.running_tests import RunningTests

if TYPE_CHECKING:
    from tests.support.suite.shifts import Shifts

_TESTS = Path(__file__).parent
_BEGAN = pytest.StashKey[float]()

_COUNTED = ("passed", "failed", "error", "skipped")


# Commands that run in the process of a test set these up as in a separate process.
_LOGGERS = ("kraftwire", "kraftwire.node", "kraftwire.log")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the tests of what both engines do once for each."""
    path = metafunc.definition.path.relative_to(_TESTS).as_posix()
    if path.startswith(FOR_EACH_ENGINE):
        metafunc.parametrize("each_engine", engine.available(), indirect=True, scope="module")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Load no folder and no file in which everything is slow if nothing slow is wanted."""
    is_quick = config.option.markexpr == QUICK and _TESTS in collection_path.parents
    path = collection_path.relative_to(_TESTS).as_posix() if is_quick else ""
    return True if path and has_only_slow(path) else None


def pytest_itemcollected(item: pytest.Item) -> None:
    """Give each test the marks of its folder, before marks select tests."""
    for name in marks_of(item.nodeid.removeprefix("tests/")):
        item.add_marker(name)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let `make proof` try other tests every day."""
    parser.addoption(
        "--of-the-day",
        type=int,
        metavar="K",
        help="run K of the tests that are left, different ones every day",
    )


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave those of the day, after marks have selected."""
    count: int | None = config.option.of_the_day
    if count is not None:
        chosen = of_the_day(items, count, today())
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = chosen


@pytest.fixture(scope="module", autouse=True)
def each_engine(request: pytest.FixtureRequest) -> Iterator[str]:
    """The engine that the tests of a file run on: the default one unless they run on each."""
    before = engine.name()
    chosen = getattr(request, "param", before)
    if chosen != before:
        use(chosen)
    yield chosen
    if chosen != before:
        use(before)


@pytest.fixture(autouse=True)
def _logging_as_found() -> Iterator[None]:
    """Let no test change what the next one logs."""
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    found = [(one.level, one.propagate, one.handlers) for one in loggers]
    yield
    for logger, (level, propagate, handlers) in zip(loggers, found, strict=True):
        logger.setLevel(level)
        logger.propagate = propagate
        logger.handlers = handlers


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> Shifts | None:
    """Let files that wait run next to files that compute, where whole files are assigned."""
    if config.option.dist != "loadfile":
        return None
    from tests.support.suite.shifts import Shifts

    return Shifts(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Take ten thousand collected tests out of every later collection of garbage.

    They stay to the end. Many tests collect garbage, and each collection would go through them all.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


def pytest_configure(config: pytest.Config) -> None:
    """Record when the run began; let no property fail because a machine is slow or has luck."""
    config.stash[_BEGAN] = time.monotonic()
    # Commands wrap their output to it, and pytest-xdist sets it.
    os.environ.pop("COLUMNS", None)
    config.pluginmanager.register(RunningTests())
    # The same examples each time, without a deadline for each.
    settings.load_profile("ci")


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
