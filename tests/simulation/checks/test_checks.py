"""Every check, on histories that break its invariant and on near misses that do not, and with
mistakes planted in the checks themselves.

A check that sees nothing lets every simulation pass; one that cries wolf stops them all.
"""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

from kraftwire.sim import checks
from kraftwire.sim.checks.liveness import LostError
from kraftwire.sim.failure_report import summary_lines
from kraftwire.sim.invariants import MEANINGS, Violation
from tests.history.putting_back import put_back
from tests.simulation.checks import broken_checks, broken_liveness
from tests.simulation.checks.broken_checks import BrokenCheck
from tests.simulation.checks.examples import BAD, NEAR, History

for _name in ("elections", "liveness", "logs", "members"):
    import_module(f"tests.simulation.checks.examples_of_{_name}")

# Parts of a `repr` that no reader needs.
_RAW = re.compile(r"b'|b\"|<\w+[. ]|Request\(|Response\(|Data\(|\b[A-Z]\w+\(\w+=")


def _violated(history: History) -> Violation:
    with pytest.raises(Violation) as error:
        history()
    return error.value


@pytest.mark.parametrize(("invariant", "history"), BAD, ids=lambda v: getattr(v, "__name__", v))
def test_a_history_that_breaks_an_invariant_is_seen(invariant: str, history: History) -> None:
    """The check objects to the last event, in words: a sentence, and values by their fields."""
    violation = _violated(history)
    assert violation.invariant == invariant
    lines = summary_lines(violation)
    print("\n".join(lines))
    assert lines[1] == f"    must hold: {MEANINGS[invariant]}"
    assert [line for line in lines if _RAW.search(line)] == []


@pytest.mark.parametrize("history", NEAR, ids=lambda history: history.__name__)
def test_a_near_miss_is_let_through(history: History) -> None:
    """A false alarm costs as much time to understand as a bug."""
    history()


def test_every_invariant_has_a_history() -> None:
    """S22 is the trace hash, which has a separate test."""
    seen = {invariant for invariant, _ in BAD}
    safety, liveness = range(1, 22), range(1, 11)
    assert seen == {f"S{number}" for number in safety} | {f"L{number}" for number in liveness}


def test_every_objection_has_a_history() -> None:
    """A check that no history makes object may never object."""
    raised = set()
    for _, history in BAD:
        trace = _violated(history).__traceback__
        while trace is not None:
            raised.add((trace.tb_frame.f_code.co_filename, trace.tb_lineno))
            trace = trace.tb_next
    for path in sorted(Path(checks.__path__[0]).glob("*.py")):
        every = [one for one in ast.walk(ast.parse(path.read_text())) if isinstance(one, ast.Raise)]
        found = [one for one in every if "LostError" not in ast.unparse(one)]
        silent = [one.lineno for one in found if (str(path), one.lineno) not in raised]
        assert not silent or path.name == "updates.py", f"{path.name}: {silent}"


@pytest.mark.parametrize(
    "broken", broken_checks.BROKEN + broken_liveness.BROKEN, ids=lambda broken: broken.name
)
def test_a_mistake_in_a_check_is_noticed(
    broken: BrokenCheck, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a history that it no longer sees, or by a near miss that it no longer lets through."""
    put_back((broken.edit,), monkeypatch)
    assert _noticed()


def _noticed() -> str:
    """The first history that goes another way than it should."""
    for invariant, history in BAD:
        try:
            history()
        except Violation as violation:
            if violation.invariant == invariant:
                continue
        except (LostError, AttributeError, LookupError, TypeError, ValueError):
            pass
        return history.__name__
    for history in NEAR:
        try:
            history()
        except Exception:  # noqa: BLE001
            return history.__name__
    return ""
