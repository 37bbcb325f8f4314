"""What is told of a broken rule can be read: few lines, both sides, fields and not objects."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import pytest

from kraftwire.cli.main import main
from kraftwire.sim.headline import headline
from kraftwire.sim.invariants import MEANINGS
from kraftwire.sim.plan import draw
from kraftwire.sim.story import LINES_MAX, story
from kraftwire.sim.violation import Violation
from tests.simulation import elections_made, logs_made, snapshots_made
from tests.simulation.timeless import elections_made as timeless_elections
from tests.simulation.timeless import logs_made as timeless_logs
from tests.simulation.timeless import members_made

_LENGTH_MS = 60_000

# What Python shows of an object and nobody wants to read.
_RAW = re.compile(r"b'|b\"|<\w+[. ]|Request\(|Response\(|Data\(|\b[A-Z]\w+\(\w+=")

_TIMED = re.compile(r" *\d+\.\d{6}  ")


@dataclass(frozen=True)
class Broken:
    """A broken rule, the seed and invariant that find it, and what has to be told of both sides."""

    name: str
    seed: int
    invariant: str
    sides: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.invariant}, {self.name}"


_RULES = [
    Broken("vote_not_stored", 0, "S3", (r"voter 1 .*epoch 1, vote none", r"voter 3 .*candidate 3")),
    Broken("vote_forgotten_at_start", 1, "S3", ("stored before: .*vote 3", "stored now: ")),
    Broken("vote_for_older_log", 0, "S4", (r"its log ends with .*783", r"of the candidate .*740")),
    Broken("half_elects", 0, "S17", (r"voter 4 \(directory .*candidate 2 \(", "voter 1 .*none")),
    Broken("half_commits", 0, "S9", (r"last committed batch: 1-5 epoch 1 \(record", "voters: ")),
    Broken("older_epoch_counted", 0, "S8", (r"node 3 .*last batch \d+", "committed: up to")),
    Broken("cuts_committed", 0, "S11", (r"node 3 .*last batch \d+.* epoch 8", "committed: up to")),
    Broken("torn_end_kept", 1, "S13", (r"node 6.*last batch \d+.* epoch", "committed: up to")),
    Broken("isolated_leader_stays", 0, "L7", (r"node 4 .*last batch", "committed: up to")),
]


def _told(rule: Broken, patch: pytest.MonkeyPatch) -> list[str]:
    import_module(f"tests.simulation.broken.{rule.name}").break_rule(patch)
    lines = story(draw(rule.seed, _LENGTH_MS))
    print("\n".join(lines))
    return lines


@pytest.mark.parametrize("rule", _RULES, ids=str)
def test_a_violation_is_told_with_its_meaning_and_both_sides(
    rule: Broken, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most 60 lines of what happened; then the invariant, its sentence and what is at odds."""
    lines = _told(rule, monkeypatch)
    begin = next(place for place, line in enumerate(lines) if line.startswith("seed "))
    assert 0 < begin <= LINES_MAX
    head = lines[begin:]
    assert head[1].startswith(f"{rule.invariant}: ")
    assert head[2] == f"    must hold: {MEANINGS[rule.invariant]}"
    odds = head[head.index("    at odds:") + 1 : head.index(_STANDING)]
    for side in rule.sides:
        assert any(re.search(side, line) for line in odds), side
    assert [line for line in lines if _RAW.search(line)] == []


_STANDING = "    how the nodes stand, those at odds first:"


def test_the_last_step_is_told_and_what_changes_nothing_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The step that breaks the rule comes last; a minute of replication fits in few lines."""
    lines = _told(_RULES[6], monkeypatch)
    timed = [line for line in lines if _TIMED.match(line)]
    assert "truncates to 0" in timed[-1]
    assert "3 < 1: FetchResponse leader 1 epoch 10 high watermark -1 diverging" in timed[-1]
    assert any("earlier steps" in line or "more steps of" in line for line in lines)
    assert any("more fetches of" in line and "change nothing" in line for line in lines)
    assert any("Vote v2 pre-vote epoch 10 candidate 4/AABA last 537@6" in line for line in timed)


_MADE = [
    *elections_made.BAD,
    *logs_made.BAD,
    *snapshots_made.BAD,
    *timeless_elections.BAD,
    *timeless_logs.BAD,
    *members_made.BAD,
]


@pytest.mark.parametrize(("invariant", "history"), _MADE, ids=lambda v: getattr(v, "__name__", v))
def test_every_checker_objects_in_words(invariant: str, history: Callable[[], None]) -> None:
    """In both rings: a sentence, and values by their fields."""
    with pytest.raises(Violation) as error:
        history()
    lines = headline(invariant, error.value.detail, error.value.odds)
    print("\n".join(lines))
    assert lines[0].startswith(f"{invariant}: ")
    assert lines[1] == f"    must hold: {MEANINGS[invariant]}"
    assert [line for line in lines if _RAW.search(line)] == []


def test_a_replayed_plan_is_told_in_as_many_lines_as_wanted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also a plan that was shrunk: its story has the same parts."""
    rule = _RULES[5]
    import_module(f"tests.simulation.broken.{rule.name}").break_rule(monkeypatch)
    kept = tmp_path / "plan.json"
    assert main(["sim", "shrink", "0", "--tries", "8", "--out", str(kept)]) == 1
    shrunk = capsys.readouterr()
    assert main(["sim", "replay", str(kept), "--lines", "12"]) == 1
    replayed = capsys.readouterr().out.splitlines()
    begin = next(place for place, line in enumerate(replayed) if line.startswith("seed 0"))
    assert begin <= 12
    assert replayed[begin:] == shrunk.out.splitlines()[-1 - len(replayed[begin:]) : -1]
    assert [line for line in [*replayed, *shrunk.out.splitlines()[:-1]] if _RAW.search(line)] == []


def test_further_violations_are_told_without_their_timeline(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three stories are enough; the others say what broke and how to see it."""
    import_module("tests.simulation.broken.half_elects").break_rule(monkeypatch)
    assert main(["sim", "run", "--seeds", "0-11"]) == 1
    errors = capsys.readouterr().err.splitlines()
    assert sum(line == _STANDING for line in errors) == 3
    assert sum("must hold: " in line for line in errors) > 3
