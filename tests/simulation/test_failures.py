"""What is shown of a cluster that fails, and how it is made smaller."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from kraftwire.cli.main import main
from kraftwire.sim.plan import Plan, draw
from kraftwire.sim.run import run_plan
from kraftwire.sim.shrink import shrink
from tests.simulation.broken_rules import half_commits

# A cluster of four voters, in which a commit is wrong when half of them commit.
_SEED = 80

# The timeline has 60 lines; then follow what broke, the evidence, the state of the nodes and how to
# repeat it.
_LINES_MAX = 84


@pytest.fixture(autouse=True)
def _broken(monkeypatch: pytest.MonkeyPatch) -> None:
    half_commits(monkeypatch)


def test_a_failing_seed_is_reported_with_the_command_to_repeat_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The timeline is for people, the last line for their shell."""
    assert main(["sim", "run", "--seeds", f"{_SEED}-{_SEED}", "--json"]) == 1
    shown = capsys.readouterr()
    assert json.loads(shown.out.splitlines()[-1])["violations"] == 1
    assert json.loads(shown.out.splitlines()[0])["invariant"] == "S9"
    lines = shown.err.splitlines()
    assert len(lines) <= _LINES_MAX
    assert any(re.search(r"> high watermark \d+", line) for line in lines)
    assert any("must hold: what is committed is durable on a majority" in line for line in lines)
    assert shown.err.splitlines()[-1] == f"kraftwire sim run --seeds {_SEED}-{_SEED}"


def test_a_smaller_plan_fails_in_the_same_way() -> None:
    """What has nothing to do with the failure goes: here everything but the voters."""
    plan = draw(_SEED)
    small = shrink(plan, tries=60)
    assert run_plan(small).invariant == run_plan(plan).invariant == "S9"
    assert small.faults == ()
    assert small.length_ms < plan.length_ms / 4
    assert small.observers == 0


def test_a_plan_that_does_not_fail_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no failure to keep."""
    monkeypatch.undo()
    plan = draw(8, 2_000)
    assert shrink(plan, tries=1) == plan


def test_a_shrunk_plan_is_kept_and_replayed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A plan is plain data, so that it can be passed on and edited."""
    kept = tmp_path / "plan.json"
    assert main(["sim", "shrink", str(_SEED), "--tries", "3", "--out", str(kept)]) == 1
    assert Plan.from_json(json.loads(kept.read_text())).seed == _SEED
    capsys.readouterr()
    assert main(["sim", "replay", str(kept)]) == 1
    assert any(line.startswith("S9: ") for line in capsys.readouterr().out.splitlines())


def test_only_a_failing_seed_is_shrunk(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2: there is nothing to do."""
    monkeypatch.undo()
    assert main(["sim", "shrink", "8"]) == 2
    assert "violates nothing" in capsys.readouterr().err


def test_a_file_that_is_not_a_plan_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In one line, like every other error."""
    (tmp_path / "x.json").write_text('{"seed": 1}')
    assert main(["sim", "replay", str(tmp_path / "x.json")]) == 2
    assert "is not a plan" in capsys.readouterr().err
