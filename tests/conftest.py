"""The figures of a test run, as one line of JSON after everything else."""

from __future__ import annotations

import json
import time

import pytest

_BEGAN = pytest.StashKey[float]()

_COUNTED = ("passed", "failed", "error", "skipped")


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
