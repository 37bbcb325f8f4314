"""Clusters under trouble: no invariant is violated, and all recover."""

from __future__ import annotations

import json
import os

import pytest

from kraftwire.cli.main import main
from kraftwire.sim.run import TimedOutcome, TimedTotals, run_seeds

_CLUSTERS = 24

# Situations without which the sample would prove little.
_REACHED = (
    "candidate to leader",
    "leader to resigned",
    "prospective to follower",
    "truncated",
    "request timed out",
    "killed",
    "hunted: fetch",
    "shut down",
    "stopped by its disk",
)


@pytest.fixture(scope="module")
def outcomes() -> list[TimedOutcome]:
    """The results of the sample; `make proof` and `make sim` run these and many more."""
    print(f"kraftwire sim run --seeds 0-{_CLUSTERS - 1}")
    return list(run_seeds(range(_CLUSTERS), jobs=os.cpu_count() or 1))


def test_a_sample_of_clusters_keeps_all_invariants(outcomes: list[TimedOutcome]) -> None:
    """After every event, and when the trouble is over."""
    assert [f"{o.seed}: {o.violation}" for o in outcomes if o.violation] == []


def test_a_sample_of_clusters_reaches_what_matters(outcomes: list[TimedOutcome]) -> None:
    """A fault that no longer happens is no longer tested."""
    totals = TimedTotals()
    for outcome in outcomes:
        totals.add(outcome)
    assert [name for name in _REACHED if not totals.coverage[name]] == []
    assert totals.elections > totals.clusters
    assert totals.commits > 62 * totals.clusters


def test_the_command_prints_totals_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    """Its last line is what other programs read."""
    assert main(["sim", "run", "--seeds", "8-9", "--json"]) == 0
    totals = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert list(totals) == [
        "clusters",
        "virtualSeconds",
        "events",
        "elections",
        "commits",
        "crashes",
        "faults",
        "violations",
        "coverage",
    ]
    assert totals["clusters"] == 2
    assert totals["virtualSeconds"] >= 50
    assert totals["violations"] == 0


def test_a_run_ends_when_its_time_is_up(capsys: pytest.CaptureFixture[str]) -> None:
    """It also prints how far it came: a slow machine runs fewer clusters, not longer."""
    assert main(["sim", "run", "--seeds", "8-1000000", "--within", "0.001"]) == 0
    assert "1 of 999,993 clusters fitted into" in capsys.readouterr().err


def test_jobs_change_nothing() -> None:
    """Processes share nothing, so the order of their work cannot matter."""
    alone = [(o.seed, o.trace_hash) for o in run_seeds(range(8, 10), jobs=1)]
    assert [(o.seed, o.trace_hash) for o in run_seeds(range(8, 10), jobs=2)] == alone


@pytest.mark.parametrize("seeds", ["5", "5-4", "a-b", "-1-3", f"0-{2**63}"])
def test_wrong_seeds_are_refused(seeds: str, capsys: pytest.CaptureFixture[str]) -> None:
    """0 <= A <= B < 2^63."""
    assert main(["sim", "run", "--seeds", seeds]) == 2
    assert "A-B" in capsys.readouterr().err
