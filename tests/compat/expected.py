"""What each test of a suite results in against real Kafka: the lists of the folder `expected`.

A line is a result, a test and, unless it passes, the reason after two spaces and ``#``. Every test
is there, so a list also tells which there are. `varies` is the result of a test that does not
always end in the same one against Kafka itself.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from tests.compat.suite import FAILED, PASSED, SKIPPED, Results

VARIES = "varies"

_FOLDER = Path(__file__).resolve().parent / "expected"


def expected(suite: str) -> Results:
    """The list of a suite, in its order."""
    return parse((_FOLDER / f"{suite}.txt").read_text())


def parse(text: str) -> Results:
    """Read a list. Raises: ValueError for a line that is none, without a reason, or twice."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        entry, _, reason = line.partition("  # ")
        result, _, test = entry.partition(" ")
        if result not in {PASSED, FAILED, SKIPPED, VARIES} or not test or test in found:
            raise ValueError(f"no result of another test: {line!r}")
        if bool(reason) == (result == PASSED):
            raise ValueError(f"a reason is for tests that do not pass, and only for them: {line!r}")
        found[test] = result
    return found


def differing(wanted: Results, found: Results, tests: Collection[str] = ()) -> dict[str, str]:
    """What is wrong with each test whose result is not the wanted one.

    With `tests` only they must have results; what else has run with them must be right too.
    """
    wrong = {test: f"{result}, not in the list" for test, result in found.items()}
    for test, result in wanted.items():
        if test in found:
            if result in (found[test], VARIES):
                del wrong[test]
            else:
                wrong[test] = f"{found[test]} instead of {result}"
        elif not tests or test in tests:
            wrong[test] = f"no result instead of {result}"
    return wrong
