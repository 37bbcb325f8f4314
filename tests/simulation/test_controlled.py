"""Brokers under the active controller: no invariant is violated, and much happens."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from kraftwire.cli.main import main
from kraftwire.controller import isr, partition_changes, producer_ids
from kraftwire.controller.batches import Batch
from kraftwire.controller.image.topics import NO_LEADER
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.sim.controlled.world import draw
from kraftwire.sim.failure_lines import LINES_MAX
from kraftwire.sim.untimed.run import WalkOutcome, describe_path, explore, play, run_seeds, shrink

_CLUSTERS = 60


@pytest.fixture(scope="module")
def outcomes() -> list[WalkOutcome]:
    """The results of the sample; `make proof` runs these and many more."""
    print(f"kraftwire sim controller --seeds 0-{_CLUSTERS - 1}")
    return list(run_seeds(range(_CLUSTERS), draw_plan=draw))


def test_a_sample_of_clusters_keeps_all_invariants(outcomes: list[WalkOutcome]) -> None:
    """After every batch of records, and at every failover."""
    assert [f"{o.seed}: {o.violation}" for o in outcomes if o.violation] == []


def test_a_sample_of_clusters_reaches_what_matters(outcomes: list[WalkOutcome]) -> None:
    """What no longer happens is no longer tested."""
    coverage = sum((outcome.coverage for outcome in outcomes), Counter[str]())
    assert min(coverage.values()) > _CLUSTERS
    assert sum(outcome.elections for outcome in outcomes) > 2 * _CLUSTERS
    assert sum(outcome.commits for outcome in outcomes) > 25 * _CLUSTERS


def test_a_seed_determines_everything() -> None:
    """A failing seed fails again, and so does its path, without the choices of the seed."""
    found = explore(draw(3))
    assert len(found.path) == draw(3).steps
    assert explore(draw(3)) == found
    assert play(draw(3), list(found.path)) == found


def test_the_command_prints_totals_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    """Its last line is what other programs read."""
    assert main(["sim", "controller", "--seeds", "8-9", "--json"]) == 0
    totals = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (totals["clusters"], totals["steps"], totals["violations"]) == (2, 400, 0)


@pytest.mark.parametrize(
    ("place", "name", "value", "invariant"),
    [
        (producer_ids, "BLOCK", 0, "M10"),
        (isr, "_update_error", lambda *_: ErrorCode.NONE, "M6"),
        (partition_changes._PartitionChange, "_elected", lambda _: (NO_LEADER, False), "M13"),
    ],
)
def test_a_broken_rule_is_reported_with_its_seed(
    place: object,
    name: str,
    value: object,
    invariant: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The command names the invariant, what happened before, and how to run it again."""
    monkeypatch.setattr(place, name, value)
    assert main(["sim", "controller", "--seeds", "0-9", "--json"]) == 1
    out, err = capsys.readouterr()
    first = json.loads(out.splitlines()[0])
    assert first["invariant"] == invariant
    assert first["meaning"]
    assert f"kraftwire sim controller --seeds {first['seed']}-{first['seed']}" in err


@pytest.mark.parametrize(("seed", "invariant"), [(9, "M5"), (14, "M1"), (135, "M5")])
def test_changes_that_see_each_other_in_one_batch_are_found(
    seed: int, invariant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Heartbeats come together; all are decided on the state before their batch."""
    plan = draw(seed)
    assert not explore(plan).invariant
    monkeypatch.setattr(Batch, "_conflicts", lambda *_: False)
    found = explore(plan)
    assert found.invariant == invariant
    least = shrink(plan, found.path, invariant)
    lines = describe_path(*least)
    print("\n".join(lines))
    assert len(least[1]) < 15
    assert any(line.startswith(f"{invariant}: ") for line in lines)
    assert sum(" after " in line for line in lines) - 1 == len(least[1]) <= LINES_MAX
