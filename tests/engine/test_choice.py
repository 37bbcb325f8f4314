"""Which engine is in use, and how to choose."""

from __future__ import annotations

import os
import subprocess
import sys
from types import FunctionType

import pytest

from kraftwire import engine
from kraftwire.errors import UsageError
from kraftwire.messages.vote_request import VoteRequest
from tests.support.suite.engines import FOR_EACH_ENGINE, use
from tests.tidy.sources import ROOT


def _version(**variables: str) -> list[str]:
    command = [sys.executable, "-m", "kraftwire", "--version"]
    environment = {**os.environ, **variables}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def test_the_version_names_the_engine() -> None:
    """A user who reports that something is slow should be able to name the engine."""
    assert _version(KRAFTWIRE_PURE="")[1] == f"engine: {engine.available()[0]}"


def test_the_environment_forces_python() -> None:
    """The first thing to try when the engine is suspected of a mistake."""
    assert _version(KRAFTWIRE_PURE="1")[1] == "engine: Python"


def test_a_module_built_from_other_sources_is_not_used() -> None:
    """After an update of a checkout, the module built before may still be there."""
    code = (
        "import sys, types\n"
        "old = types.ModuleType('kraftwire.engine._core')\n"
        "old.INTERFACE = 0\n"
        "sys.modules['kraftwire.engine._core'] = old\n"
        "from kraftwire.cli.main import main\n"
        "main(['--version'])"
    )
    command = [sys.executable, "-c", code]
    environment = {**os.environ, "KRAFTWIRE_PURE": ""}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    outdated = "the one in C was built from other sources: install kraftwire again"
    assert done.stdout.endswith(f"engine: Python ({outdated})\n")


def test_the_tests_run_with_an_engine_of_these_sources() -> None:
    """With an older one, all tests of the engine would be skipped."""
    assert not engine.is_outdated


def test_an_unknown_engine_is_refused() -> None:
    """A misspelt name would measure the wrong thing."""
    with pytest.raises(UsageError, match="the engine Rust is not available"):
        use("Rust")


@pytest.mark.parametrize("name", engine.available())
def test_switching_reaches_classes_that_were_used_before(name: str) -> None:
    """A class keeps the functions of the versions that it has met."""
    before = engine.name()
    VoteRequest().encode(2)
    try:
        use(name)
        VoteRequest.decode(VoteRequest().encode(2), 2)
        is_python = isinstance(VoteRequest._DECODE[2], FunctionType)
        assert is_python == (name == engine.PYTHON)
    finally:
        use(before)


def test_a_test_for_each_engine_runs_on_it(each_engine: str) -> None:
    """Tests that ran on one engine twice would say nothing about the other."""
    VoteRequest().encode(2)
    is_python = isinstance(VoteRequest._ENCODE[2], FunctionType)
    assert engine.name() == each_engine
    assert is_python == (each_engine == engine.PYTHON)


def test_the_tests_for_each_engine_are_where_the_list_says() -> None:
    """Files that move would silently run on one engine alone."""
    gone = [each for each in FOR_EACH_ENGINE if not [*(ROOT / "tests").glob(f"{each}*")]]
    assert not gone
