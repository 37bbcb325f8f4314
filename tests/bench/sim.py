"""How many events simulated clusters handle, with all invariants checked after each.

The figure is for one core, by CPU time, with the collection after each cluster, once all modules
are loaded. The header prints the time of an empty loop: it shows how fast that core is just then.
"""

from __future__ import annotations

import gc
import logging
import time

from kraftwire.sim.plan import draw
from kraftwire.sim.run import run_plan
from tests.bench.report import Bar, print_bars, print_table

__all__ = ["run"]

SEEDS = range(24)
LENGTH_MS = 30_000
WARM_UP = 4

EVENTS_PER_SECOND = 45_000


def run() -> list[Bar]:
    """Measure, print, and return the bars that were missed."""
    logging.getLogger("kraftwire").setLevel(logging.ERROR)
    rates = {"objects": _Rate(), "bytes": _Rate()}
    for seed in SEEDS[:WARM_UP]:
        run_plan(draw(seed, LENGTH_MS))
    gc.collect()
    # As a search does.
    gc.freeze()
    try:
        _measure(rates)
    finally:
        gc.unfreeze()
    rows = [(name, f"{r.events:,}", f"{r.per_second:,.0f}") for name, r in rates.items()]
    print_table("Simulation: messages pass as", ("", "events", "events per second"), rows)
    total = _Rate()
    for rate in rates.values():
        total.add(rate.events, rate.seconds)
    bar = Bar("Events per second and core", total.per_second, EVENTS_PER_SECOND, unit="/s")
    return print_bars("Simulation: summary (CPU time)", [bar])


def _measure(rates: dict[str, _Rate]) -> None:
    for seed in SEEDS:
        plan = draw(seed, LENGTH_MS)
        begin = time.process_time()
        outcome = run_plan(plan)
        gc.collect()
        kind = "bytes" if plan.with_bytes else "objects"
        rates[kind].add(outcome.events, time.process_time() - begin)


class _Rate:
    """Events and the CPU seconds they took."""

    def __init__(self) -> None:
        self.events = 0
        self.seconds = 0.0

    def add(self, events: int, seconds: float) -> None:
        """Count a run."""
        self.events += events
        self.seconds += seconds

    @property
    def per_second(self) -> float:
        """Events in a second of CPU time."""
        return self.events / max(self.seconds, 1e-9)
