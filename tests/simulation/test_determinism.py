"""S22: what happens in a cluster follows from its seed and from nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from kraftwire.sim.plan import Plan, draw
from kraftwire.sim.run import run_plan

ROOT = Path(__file__).parents[2]

_PRINT_HASHES = """
import sys
from dataclasses import replace
from kraftwire.sim.plan import draw
from kraftwire.sim.run import run_plan
for seed in map(int, sys.argv[1:]):
    print(seed, run_plan(draw(seed, 20_000)).trace_hash)
"""


def _hashes(hash_seed: str, seeds: list[int]) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-c", _PRINT_HASHES, *map(str, seeds)]
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    ).stdout


def test_a_seed_gives_the_same_trace_under_every_hash_seed() -> None:
    """Iterating over a set or comparing addresses would show here."""
    seeds = list(range(4))
    assert _hashes("1", seeds) == _hashes("2", seeds)


def test_two_seeds_give_two_traces() -> None:
    """A hash that never differs proves nothing."""
    assert run_plan(draw(1, 5_000)).trace_hash != run_plan(draw(2, 5_000)).trace_hash


@pytest.mark.parametrize("seed", [3, 17, 2**63 - 1])
def test_a_plan_survives_json(seed: int) -> None:
    """What `shrink` writes is what `replay` runs."""
    import json

    plan = replace(draw(seed, 5_000), old_peers={1: {52: 0}})
    assert Plan.from_json(json.loads(json.dumps(plan.to_json()))) == plan
