"""The table of the README names every historic bug that has a scenario, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from tests.history.putting_back import Known, known_bugs

_HERE = Path(__file__).parent
_IN_SCOPE = set(range(1, 72))


def _row(bug: Known) -> str:
    file = bug.module.rpartition(".")[2]
    sentence = bug.test.removeprefix("test_").replace("_", " ")
    return f"| {bug.number} | {bug.ticket} | [{sentence}]({file}.py) | {bug.rules} |"


def test_the_table_is_that_of_the_scenarios() -> None:
    """A table that is kept by hand would soon promise more than the tests check."""
    text = (_HERE / "README.md").read_text()
    rows = [line for line in text.split("## Not here")[0].splitlines() if line[:3] != "| n"]
    found = [line for line in rows if re.match(r"\| \d", line)]
    assert found == [_row(bug) for bug in known_bugs()]


def test_every_number_has_a_scenario_or_a_reason() -> None:
    """None is left out silently."""
    text = (_HERE / "README.md").read_text()
    excused = {int(number) for number in re.findall(r"(?m)^\| (\d+) ", text.split("## Not")[1])}
    assert {bug.number for bug in known_bugs()} | excused == _IN_SCOPE
