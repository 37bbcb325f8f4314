"""The report of a broken rule is readable: few lines, both sides, fields rather than objects."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from kraftwire.cli.main import main
from kraftwire.sim.failure_lines import LINES_MAX
from kraftwire.sim.invariants import MEANINGS
from kraftwire.sim.plan import draw
from kraftwire.sim.run import describe_plan
from tests.simulation.broken_rules import RULES, half_elects

_LENGTH_MS = 60_000

# Parts of a `repr` that no reader needs.
_RAW = re.compile(r"b'|b\"|<\w+[. ]|Request\(|Response\(|Data\(|\b[A-Z]\w+\(\w+=")

_TIMED = re.compile(r" *\d+\.\d{6}  ")


@dataclass(frozen=True)
class Broken:
    """A broken rule, the seed and invariant that find it, what the report says of both sides."""

    name: str
    seed: int
    invariant: str
    sides: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.invariant}, {self.name}"


# Sides as they are reported: votes, batches, ends of logs.
_VOTE = r"voter \d+ \(directory \S{22}\), epoch \d+, vote for candidate \d+ \(directory \S{22}\)"
_NO_VOTE = r"voter \d+ \(directory \S{22}\), epoch \d+, vote none"
_LAST = r"node \d+ \(directory \S{22}\): last batch \d+.* epoch \d+ \(\w+"
_COMMITTED = r"committed: up to \d+, last batch \d+.* epoch \d+ \(\w+"

_REPORTED = [
    Broken("vote_not_stored", 0, "S3", (_VOTE, _NO_VOTE)),
    Broken("vote_forgotten_at_start", 1, "S3", ("stored before: .*vote .", "stored now: ", _VOTE)),
    Broken("vote_for_older_log", 2, "S4", (r"log of node \d+: ends", "log of candidate ", _VOTE)),
    Broken("half_elects", 0, "S17", (_VOTE, _NO_VOTE)),
    Broken("half_commits", 0, "S9", ("voters in force at ", "of these have it durably")),
    Broken("older_epoch_counted", 2, "S8", (_LAST, _COMMITTED)),
    Broken("cuts_committed", 21, "S11", (_LAST, _COMMITTED)),
    Broken("torn_end_kept", 2, "S13", (r"found: \d+", r"written: \w+")),
    Broken("pre_vote_skipped", 19, "L8", (_LAST, _COMMITTED)),
]


def _told(rule: Broken, patch: pytest.MonkeyPatch) -> list[str]:
    RULES[rule.name].break_rule(patch)
    lines = describe_plan(draw(rule.seed, _LENGTH_MS))
    print("\n".join(lines))
    return lines


@pytest.mark.parametrize("rule", _REPORTED, ids=str)
def test_a_violation_is_reported_with_its_meaning_and_both_sides(
    rule: Broken, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most 60 lines of what happened; then the invariant, its sentence and the evidence."""
    lines = _told(rule, monkeypatch)
    begin = next(place for place, line in enumerate(lines) if line.startswith("seed "))
    assert 0 < begin <= LINES_MAX
    head = lines[begin:]
    assert head[1].startswith(f"{rule.invariant}: ")
    assert head[2] == f"    must hold: {MEANINGS[rule.invariant]}"
    evidence = head[head.index("    evidence:") + 1 : head.index(_STANDING)]
    for side in rule.sides:
        assert any(re.search(side, line) for line in evidence), side
    assert [line for line in lines if _RAW.search(line)] == []


_STANDING = "    state of the nodes, those involved first:"


def test_the_last_step_is_shown_and_idle_ones_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The step that breaks the rule comes last; seconds of replication fit in few lines."""
    lines = _told(_REPORTED[6], monkeypatch)
    timed = [line for line in lines if _TIMED.match(line)]
    assert re.search(r"< \d: FetchResponse leader \d epoch \d.* diverging \d+@\d", timed[-1])
    assert "> truncates to 0; asks" in timed[-1]
    assert any("earlier steps" in line or "more steps of" in line for line in lines)
    vote = r"< Vote v2 (pre-vote )?epoch \d+ candidate \d/\w{4} last \d+@\d+ >"
    assert any(re.search(vote, line) for line in timed)


def test_fetches_that_change_nothing_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one line, with the nodes that talked."""
    lines = _told(_REPORTED[4], monkeypatch)
    folded = r"    \.\.\. \d+ more fetches of [\d, and]+ that change nothing \.\.\."
    assert any(re.fullmatch(folded, line) for line in lines)


def test_a_replayed_plan_is_printed_in_the_requested_number_of_lines(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """This holds for a plan that was shrunk: its report has the same parts."""
    rule = _REPORTED[5]
    RULES[rule.name].break_rule(monkeypatch)
    kept = tmp_path / "plan.json"
    assert main(["sim", "shrink", "1", "--tries", "8", "--out", str(kept)]) == 1
    shrunk = capsys.readouterr()
    assert main(["sim", "replay", str(kept), "--lines", "12"]) == 1
    replayed = capsys.readouterr().out.splitlines()
    begin = next(place for place, line in enumerate(replayed) if line.startswith("seed 1"))
    assert begin <= 12
    assert replayed[begin:] == shrunk.out.splitlines()[-1 - len(replayed[begin:]) : -1]
    assert [line for line in [*replayed, *shrunk.out.splitlines()[:-1]] if _RAW.search(line)] == []


def test_further_violations_are_reported_without_their_timeline(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three full reports are enough; the others say what broke and how to see it."""
    half_elects(monkeypatch)
    assert main(["sim", "run", "--seeds", "0-11"]) == 1
    errors = capsys.readouterr().err.splitlines()
    assert sum(line == _STANDING for line in errors) == 3
    assert sum("must hold: " in line for line in errors) > 3
