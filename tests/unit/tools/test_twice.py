"""A second try for tests that use other programs, and for nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tools.twice import FILES_MAX, main, may_run_again

pytestmark = pytest.mark.slow

# What runs files of tests by their names: returns the exit code and the files of a second try.
Run = Callable[[Mapping[str, str]], tuple[int, list[str]]]

# Fails when it runs for the first time.
ONCE = """
from pathlib import Path

def test_it():
    path = Path(__file__).with_suffix(".ran")
    ran = path.exists()
    path.touch()
    assert ran
"""
ALWAYS = "def test_it():\n    assert False\n"
UNREADABLE = "import no_such_module\n"
UNPREPARED = """
import pytest

@pytest.fixture(scope="module")
def broken():
    raise OSError("nobody answers")

def test_it(broken):
    pass
"""


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Run:
    """A folder of its own for the tests."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    def run(files: Mapping[str, str]) -> tuple[int, list[str]]:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        code = main(["-q", "--import-mode=importlib", "-p", "no:cacheprovider", "tests"])
        head = "a second try of what failed: "
        said = [line for line in capfd.readouterr().out.splitlines() if line.startswith(head)]
        return code, said[0].removeprefix(head).split() if said else []

    return run


def test_a_failure_next_to_java_is_tried_again(run: Run) -> None:
    """Only the file of the failure; what passes then passes."""
    files = {"tests/interop/test_a.py": ONCE, "tests/interop/test_b.py": "def test_it(): pass\n"}
    assert run(files) == (0, ["tests/interop/test_a.py"])


@pytest.mark.parametrize("text", [ALWAYS, UNPREPARED], ids=["fails", "cannot be set up"])
def test_what_fails_twice_fails(run: Run, text: str) -> None:
    """Also what cannot be set up."""
    assert run({"tests/spark/test_a.py": text}) == (1, ["tests/spark/test_a.py"])


def test_a_failure_of_our_own_code_is_final(run: Run) -> None:
    """Also next to one that would be tried again."""
    files = {"tests/unit/test_a.py": ONCE, "tests/interop/test_b.py": ONCE}
    assert run(files) == (1, [])


def test_a_file_that_cannot_be_read_is_final(run: Run) -> None:
    """Pytest does not say that tests have failed, but that it was interrupted."""
    code, again = run({"tests/interop/test_a.py": UNREADABLE})
    assert code != 0
    assert again == []


def test_many_failures_are_final() -> None:
    """Something else is wrong then."""
    files = [f"tests/interop/test_{number}.py" for number in range(FILES_MAX + 1)]
    assert may_run_again(files[:FILES_MAX])
    assert not may_run_again(files)
    assert not may_run_again([])
