"""Rules and invariants that code and tests cite: each is in docs, with the right marks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path

import pytest

from kraftwire.sim.invariants import MEANINGS
from tests.tidy.sources import ROOT, project_files, show

RULES = ROOT / "docs" / "rules.md"
INVARIANTS = ROOT / "docs" / "invariants.md"
# Its examples are made up.
RECIPES = ROOT / "CONTRIBUTING.md"
_SUFFIXES = {".md", ".pyi", ".py", ".toml", ".txt", ".c", ".h"}
_RULE = re.compile(r"\bR-([A-Z]+)-(\d+)\b(?: to (?:R-([A-Z]+)-)?(\d+)\b)?")
_ROW = re.compile(r"^\| (R-[A-Z]+-\d+) \| (.+?) \| (.+?) \|$", re.MULTILINE)
_INVARIANT_ROW = re.compile(r"^\| ([SLMD]\d+) \|", re.MULTILINE)
_UNTESTED = "*untested*"


def _cited(text: str) -> Iterator[str]:
    """The rules that a text names, including those inside ranges."""
    for match in _RULE.finditer(text):
        group, first, other, last = match.groups()
        end = int(last) if last and other in (None, group) else int(first)
        yield from (f"R-{group}-{number}" for number in range(int(first), end + 1))
        if other not in (None, group):
            yield f"R-{other}-{last}"


@cache
def _texts() -> dict[Path, str]:
    return {
        path: path.read_text("utf-8")
        for path in project_files()
        if path.suffix in _SUFFIXES
        and path not in (RULES, INVARIANTS, RECIPES, Path(__file__))
        and "messages" not in path.relative_to(ROOT).parts[:2]
    }


def _rows() -> list[tuple[str, str, str]]:
    return _ROW.findall(RULES.read_text("utf-8"))


def test_every_rule_stands_once_with_its_source() -> None:
    """A citation leads to one sentence, and that sentence to its source."""
    rows = _rows()
    names = [name for name, _, _ in rows]
    assert len(names) == len(set(names)) == RULES.read_text("utf-8").count("\n| R-")
    assert [name for name, _, source in rows if not source.strip()] == []


def test_every_rule_that_is_cited_stands_in_the_list() -> None:
    """A reader who meets R-VOTE-6 in the code can look it up."""
    known = {name for name, _, _ in _rows()}
    unknown = [
        f"{show(path)}: {name}"
        for path, text in _texts().items()
        for name in sorted(set(_cited(text)) - known)
    ]
    assert unknown == []


def test_rules_are_cited_by_a_test_or_marked() -> None:
    """A rule that nothing checks should say so, and one that something checks should not."""
    tested = set(
        chain.from_iterable(
            _cited(text)
            for path, text in _texts().items()
            if path.relative_to(ROOT).parts[0] == "tests"
        )
    )
    unmarked = [n for n, rule, _ in _rows() if n not in tested and _UNTESTED not in rule]
    marked = [n for n, rule, _ in _rows() if n in tested and _UNTESTED in rule]
    assert (unmarked, marked) == ([], [])


def test_every_invariant_stands_in_the_list() -> None:
    """A violation names its invariant; the list says what it means and how it is checked."""
    listed = _INVARIANT_ROW.findall(INVARIANTS.read_text("utf-8"))
    counts = (("S", 22), ("L", 10), ("M", 13), ("D", 11))
    assert listed == [f"{letter}{n}" for letter, count in counts for n in range(1, count + 1)]
    numbered = [name for name in MEANINGS if name[-1].isdigit()]
    assert [name for name in numbered if name not in listed] == []


def test_every_violation_is_of_an_invariant_that_has_a_sentence() -> None:
    """A violation says what must hold."""
    raised = {
        match.group(1)
        for path, text in _texts().items()
        if path.relative_to(ROOT).parts[:2] == ("kraftwire", "sim")
        for match in re.finditer(r'Violation\(\s*"(\w+)"', text)
    }
    assert len(raised) > 25
    assert raised - MEANINGS.keys() == set()


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("R-HW-1", ["R-HW-1"]),
        ("R-HW-1 to R-HW-3.", ["R-HW-1", "R-HW-2", "R-HW-3"]),
        ("R-HW-1 to 2", ["R-HW-1", "R-HW-2"]),
        ("R-HW-1 to R-CQ-1", ["R-HW-1", "R-CQ-1"]),
    ],
)
def test_ranges_name_what_is_inside(text: str, names: list[str]) -> None:
    """Half of the citations are ranges."""
    assert list(_cited(text)) == names
