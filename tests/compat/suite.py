"""What the suites have in common: how one is fetched and run, and what its tests result in."""

from __future__ import annotations

import os
import shutil
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from tests.support.kafka.maven import CACHE, exclusive, unavailable

PASSED = "passed"
FAILED = "failed"
SKIPPED = "skipped"

Results = Mapping[str, str]

# Suites that are fetched and built are kept here.
FOLDER = CACHE / "compat"

# Fetching and building takes long only on the first run.
_BUILD_SECONDS_MAX = 900


class Suite(Protocol):
    """The tests that the authors of a client wrote for it. Order: `prepare` before `run`.

    `brokers` is how many of them the tests expect.
    """

    name: str
    brokers: int

    def prepare(self) -> None:
        """Fetch and build the suite on first use. Raises: as `unavailable`."""

    def run(self, bootstrap: str, tests: Sequence[str], folder: Path, /) -> Results:
        """Run these tests, all of them if there are none, against a server.

        Files go into the folder, what the suite prints into `suite.log` there.
        """


def make_once(folder: Path, make: Callable[[Path], Path]) -> None:
    """Make the folder of a suite, unless it is there.

    `make` gets an empty folder and returns the part of it to keep: what breaks off in the middle
    never looks complete. Raises: as `unavailable`.
    """
    with exclusive(f"compat-{folder.name}"):
        if folder.exists():
            return
        partial = folder.with_name(f"{folder.name}-partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        make(partial).rename(folder)
        shutil.rmtree(partial)


def build(command: Sequence[object], folder: Path, **more: str) -> str:
    """Run a step of a build; returns what it prints. Raises: as `unavailable` if it fails."""
    try:
        done = subprocess.run(
            [str(word) for word in command],
            cwd=folder,
            env={**os.environ, **more},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_BUILD_SECONDS_MAX,
            check=False,
        )
    except FileNotFoundError:
        unavailable(f"there is no program {command[0]}")
    if done.returncode:
        unavailable(f"{command[0]}: {done.stderr.strip()[-600:]}")
    return done.stdout


def run_tests(
    command: Sequence[object], folder: Path, log: Path, *, seconds: float, **more: str
) -> str:
    """Run tests in a folder to their end, or end them after so many seconds.

    Returns what they print, which goes to the end of the log too. Their exit code says nothing that
    their results do not say.
    """
    with log.open("ab") as output:
        begin = output.tell()
        process = subprocess.Popen(
            [str(word) for word in command],
            cwd=folder,
            env={**os.environ, **more},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            print(f"ended: it was to take less than {seconds:.0f} s", flush=True)
        finally:
            process.kill()
            process.wait()
    return log.read_bytes()[begin:].decode(errors="replace")


def junit_results(report: Path) -> dict[tuple[str, str], str]:
    """Results by class and test in a report of JUnit's form; none if there is no report."""
    if not report.exists():
        return {}
    found = {}
    for case in ET.parse(report).getroot().iter("testcase"):
        outcome = {child.tag for child in case}
        result = FAILED if outcome & {"failure", "error"} else PASSED
        if "skipped" in outcome:
            result = SKIPPED
        found[case.attrib["classname"], case.attrib["name"]] = result
    return found
