"""Runs pytest, and runs files of tests that use other programs a second time if they fail.

A Java controller or a Spark worker shares the machine with all other tests and keeps its own time,
which no test can set. If such a test fails, its whole file runs once more when the others have
ended. Every failure is printed when it happens, and the files are named again at the end. Tests of
our own code alone are deterministic: their first failure is final. So are failures in many files.

Used by ``make test`` and ``make proof``: ``python -m tools.twice ARGUMENTS OF PYTEST``.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

# Where the tests are that start other programs.
WITH_PROGRAMS = ("tests/interop/", "tests/spark/")

# If more than this many fail at once, something else is wrong.
FILES_MAX = 3

_TESTS_FAILED = 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run pytest with these arguments; returns its exit code, or that of the second try."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        code = _pytest(*given, f"--junitxml={report}")
        files = failed_files(report) if code == _TESTS_FAILED else []
    if not may_run_again(files):
        return code
    print(f"a second try of what failed: {' '.join(files)}", flush=True)
    code = _pytest(*files)
    outcome = "passed" if code == 0 else "failed again"
    print(f"the second try {outcome}: {' '.join(files)}", flush=True)
    return code


def failed_files(report: Path) -> list[str]:
    """The files with tests that failed, or could not be set up, by pytest's report in XML.

    Order: sorted. A file that could not be read at all counts as well.
    """
    found = set()
    for case in ElementTree.parse(report).iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            found.add(_file_of(case.get("classname") or case.get("name") or "?"))
    return sorted(found)


def may_run_again(files: Sequence[str]) -> bool:
    """Whether these files are few, and all of them have tests that use other programs."""
    return 0 < len(files) <= FILES_MAX and all(file.startswith(WITH_PROGRAMS) for file in files)


def _file_of(name: str) -> str:
    """The file of a dotted name, which may go on with a class in that file."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        path = Path(*parts[:count]).with_suffix(".py")
        if path.is_file():
            return path.as_posix()
    return name


def _pytest(*arguments: str) -> int:
    return subprocess.run([sys.executable, "-m", "pytest", *arguments], check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main())
