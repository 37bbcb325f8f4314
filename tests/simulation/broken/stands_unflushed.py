"""A voter stands for election with a log that is not durable.

It gets votes for that log, loses its end with the power, comes back as the candidate that it was,
and is given the votes again, because the same candidate asks.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kraftwire.raft import core
from kraftwire.sim.plan import Plan, draw

FOUND_BY = {"S5", "S7", "S9"}
SEED = 31


def break_rule(patch: pytest.MonkeyPatch) -> None:
    """Look at the voter set alone."""

    def eager(state: Any) -> bool:
        return state.is_voter and not state.is_shutting_down

    patch.setattr(core, "_may_stand", eager)


def plan(seed: int) -> Plan:
    """Three voters with disks that sometimes take seconds."""
    drawn = draw(seed, 40_000)
    weather = replace(drawn.weather, flush_ms=30, flush_tail=0.3, flush_tail_ms=6000)
    return replace(
        drawn,
        weather=weather,
        voters=3,
        observers=0,
        appends_per_second=20,
        drift=(),
        with_bytes=False,
        old_peers={},
        crash_policies=("none",),
    )
