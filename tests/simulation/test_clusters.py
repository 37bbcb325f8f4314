"""Clusters under trouble: no invariant is violated, and all recover."""

from __future__ import annotations

import json

import pytest

from kraftwire.cli.main import main
from kraftwire.sim.run import Totals, run_seeds

_BLOCK = 10
_BLOCKS = 8

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


@pytest.mark.parametrize("block", range(_BLOCKS))
def test_a_sample_of_clusters_keeps_all_invariants(block: int) -> None:
    """`make sim` runs more of them."""
    seeds = range(block * _BLOCK, (block + 1) * _BLOCK)
    print(f"kraftwire sim run --seeds {seeds[0]}-{seeds[-1]}")
    for outcome in run_seeds(seeds):
        assert not outcome.invariant, f"seed {outcome.seed}: {outcome.invariant}: {outcome.detail}"


def test_a_sample_of_clusters_reaches_what_matters() -> None:
    """A fault that no longer happens is no longer tested."""
    totals = Totals()
    for outcome in run_seeds(range(20)):
        totals.add(outcome)
    missing = [name for name in _REACHED if not totals.marks[name]]
    assert not missing
    assert totals.elections > totals.clusters
    assert totals.commits > 100 * totals.clusters


def test_the_command_prints_totals_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    """Its last line is what other programs read."""
    assert main(["sim", "run", "--seeds", "4-5", "--json"]) == 0
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
    ]
    assert totals["clusters"] == 2
    assert totals["virtualSeconds"] >= 240
    assert totals["violations"] == 0


def test_jobs_change_nothing() -> None:
    """Processes share nothing, so the order of their work cannot matter."""
    alone = [(o.seed, o.trace_hash) for o in run_seeds(range(4), jobs=1)]
    assert [(o.seed, o.trace_hash) for o in run_seeds(range(4), jobs=2)] == alone


@pytest.mark.parametrize("seeds", ["5", "5-4", "a-b", "-1-3", f"0-{2**63}"])
def test_wrong_seeds_are_refused(seeds: str, capsys: pytest.CaptureFixture[str]) -> None:
    """0 <= A <= B < 2^63."""
    assert main(["sim", "run", "--seeds", seeds]) == 2
    assert "A-B" in capsys.readouterr().err
