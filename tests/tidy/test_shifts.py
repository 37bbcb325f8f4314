"""Every test file goes to one process, and nobody waits while there is work."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import OrderedDict
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support.suite.shifts import BEGINS_WITH, LEFT_FOR_LAST, Shifts, chosen
from tests.tidy.sources import ROOT

FILES = ("tests/crash/a", "tests/interop/b", "tests/interop/c", "tests/spark/d", "tests/unit/e")


def test_the_folders_are_there() -> None:
    """None was renamed, and each can be taken up by a process that began with another."""
    assert all((ROOT / name).is_dir() for name in BEGINS_WITH)
    assert set(LEFT_FOR_LAST) == set(BEGINS_WITH)


@pytest.mark.parametrize(
    ("process", "order"),
    [(0, "bcaed"), (1, "daebc"), (2, "bcaed"), (3, "aebcd"), (4, "bcaed")],
)
def test_a_process_takes_its_own_kind_first(process: int, order: str) -> None:
    """Then all others, in the order of the folders, those with Spark last."""
    waiting = list(FILES)
    taken = []
    while waiting:
        taken.append(chosen(waiting, process))
        waiting.remove(taken[-1])
    assert "".join(file[-1] for file in taken) == order


# The second test ends its process.
ENDING = """
import os

def test_before():
    pass

def test_ending():
    os._exit(3)

def test_after():
    pass
"""
# Two tests never end.
HANGING = """
import threading

import pytest
import trio

def test_hanging():
    threading.Event().wait()

@pytest.mark.trio
async def test_hanging_in_trio():
    await trio.sleep_forever()

@pytest.mark.trio
async def test_after():
    await trio.sleep(0)
"""
SCHEDULED = """
from tests.support.suite.shifts import Shifts

def pytest_xdist_make_scheduler(config, log):
    return Shifts(config, log)
"""


def _run(folder: Path, tests: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run a file of tests and another one of a single test, in one process after the other."""
    (folder / "conftest.py").write_text(SCHEDULED)
    (folder / "test_done.py").write_text("def test_done():\n    pass\n")
    (folder / "test_it.py").write_text(tests)
    command = [sys.executable, "-m", "pytest", "-q", "--numprocesses", "1", "--dist", "loadfile"]
    return subprocess.run(
        [*command, *options],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.slow
def test_a_test_that_ends_its_process_runs_once(tmp_path: Path) -> None:
    """It has failed, and the others of its file run in another process."""
    result = _run(tmp_path, ENDING)
    assert "1 failed, 3 passed" in result.stdout, result.stdout + result.stderr


@pytest.mark.slow
def test_a_test_that_never_ends_is_named_with_its_stack(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """It would keep the run from ending, and nobody would know which one it was."""
    assert float(pytestconfig.getini("faulthandler_timeout")) == 600
    ends = pytestconfig.getini("faulthandler_exit_on_timeout")
    options = ("faulthandler_timeout=1", f"faulthandler_exit_on_timeout={ends}")
    result = _run(tmp_path, HANGING, *(f"--override-ini={option}" for option in options))
    assert "2 failed, 2 passed" in result.stdout, result.stdout + result.stderr
    for name in ("test_hanging", "test_hanging_in_trio"):
        assert f"FAILED test_it.py::{name} - " in result.stdout
    assert 'test_it.py", line 8 in test_hanging' in result.stderr
    assert result.stderr.count("Timeout (0:00:01)!") == 2


class _EndedProcess:
    """A process that has ended, which pytest-xdist does not know yet."""

    def __init__(self) -> None:
        self.gateway = SimpleNamespace(id="gw0")

    def send_runtest_some(self, _: object) -> None:
        """Fail as a closed connection does."""
        raise OSError("cannot send (already closed?)")


def test_files_for_a_process_that_has_just_ended_stay_assigned() -> None:
    """They go to others once its end is known; until then nothing else ends."""
    shifts, node = object.__new__(Shifts), _EndedProcess()
    file = "tests/unit/test_a.py"
    shifts.workqueue = OrderedDict({file: {f"{file}::test_a": False}})
    shifts.assigned_work = {}
    shifts.registered_collections = {node: [f"{file}::test_a"]}
    shifts._assign_work_unit(node)  # type: ignore[arg-type]
    assert shifts.assigned_work == {node: {file: {f"{file}::test_a": False}}}
