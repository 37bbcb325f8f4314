"""The situations that clusters get into: named in one place, counted, and required."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

import kraftwire.sim
from kraftwire.cli.main import main
from kraftwire.sim.coverage import RARE, SITUATIONS, Coverage, missing

_SOURCES = sorted(Path(kraftwire.sim.__file__).parent.glob("*.py"))
_LEAST = 60


def _names(node: ast.AST) -> set[str]:
    """The texts in an expression, except those that are assembled from parts."""
    if isinstance(node, ast.JoinedStr):
        return set()
    own = {node.value} if isinstance(node, ast.Constant) and isinstance(node.value, str) else set()
    return own.union(*map(_names, ast.iter_child_nodes(node)))


def _written() -> set[str]:
    """The names that are hit as they stand in the sources."""
    found: set[str] = set()
    for path in _SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("hit"):
                found = found.union(*map(_names, node.args))
    return found


def test_there_are_enough_situations() -> None:
    """With a shorter table a run would require less."""
    assert len(SITUATIONS) >= _LEAST
    assert not set(SITUATIONS) & set(RARE)


def test_a_misspelt_situation_fails() -> None:
    """A name that is never checked would be useless."""
    coverage = Coverage()
    coverage.hit("truncated")
    assert coverage.counts == {"truncated": 1}
    with pytest.raises(KeyError):
        coverage.hit("truncatd")


def test_every_name_in_the_sources_is_in_the_table() -> None:
    """This includes those that are too rare for a test to reach."""
    names = _written()
    assert {"truncated", "change unanswered", "told to lead"} <= names
    assert names <= {*SITUATIONS, *RARE}


def test_what_was_reached_too_seldom_is_missing() -> None:
    """Rare situations are not required."""
    counts = dict.fromkeys(SITUATIONS, 3)
    assert missing(counts, 3) == []
    assert missing({**counts, "truncated": 2, "wiped: a voter": 0}, 3) == [
        "truncated",
        "wiped: a voter",
    ]


def test_a_run_fails_without_a_situation_that_it_requires(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Exit code 1, with the names; the totals are still printed."""
    assert main(["sim", "run", "--seeds", "9-9", "--json", "--require-coverage", "1000000"]) == 1
    shown = capsys.readouterr()
    totals = json.loads(shown.out.splitlines()[-1])
    assert totals["violations"] == 0
    assert totals["coverage"]["vote granted"] > 0
    said = [line for line in shown.err.splitlines() if "not 1,000,000: vote granted (" in line]
    assert len(said) == 1


def test_a_run_that_requires_nothing_prints_what_it_reached(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It also says what each situation means."""
    assert main(["sim", "run", "--seeds", "9-9", "--coverage"]) == 0
    assert "candidate to leader: most voted for it" in capsys.readouterr().out
