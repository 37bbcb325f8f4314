"""Measures the codecs of all languages on the same bytes, alternately, and prints how they compare.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import median

from tests.bench.corpus import Item, load
from tests.bench.engines import OURS, enter
from tests.bench.languages.drivers import Times, drivers, write_list
from tests.bench.measure import contest, geometric_mean
from tests.bench.peers import ours
from tests.bench.report import Bar, microseconds, print_bars, print_table, ratio

__all__ = ["run"]

_OPERATIONS = ("decode", "encode")


def run() -> list[Bar]:
    """Measure, print, and return the bars that were missed: none, this is a report."""
    items = [item for item in load() if item.kind == "message"]
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        listed = write_list(items, folder)
        others = {each.name: each.run(listed) for each in drivers(folder)}
    measured = {name: _ours(name, items) for name in OURS}
    _print(items, measured | others, list(others))
    bars = [
        Bar(f"{name}: {operation} / {other}, mean", value, 0.0)
        for name in OURS
        for operation in _OPERATIONS
        for other in others
        if (value := _mean(measured[name], others[other], operation)) is not None
    ]
    return print_bars("Other languages: summary (means are geometric)", bars)


def _ours(name: str, items: list[Item]) -> Times:
    """The median of our rounds, as drivers report theirs."""
    enter(name)
    times: Times = {}
    for item in items:
        codec = ours(item)
        rounds = contest({"decode": codec.decode, "encode": codec.encode}).rounds
        times |= {(item.name, operation): median(rounds[operation]) for operation in _OPERATIONS}
    return times


def _print(items: list[Item], measured: dict[str, Times], others: list[str]) -> None:
    rows = []
    for item in items:
        for operation in _OPERATIONS:
            key = (item.name, operation)
            times = [microseconds(each.get(key)) for each in measured.values()]
            ratios = [
                ratio(
                    theirs / measured[name][key] if (theirs := measured[other].get(key)) else None
                )
                for name in OURS
                for other in others
            ]
            rows.append((item.name, f"{len(item.data):,}", operation, *times, *ratios))
    compared = [f"{name[0].upper()} x {other}" for name in OURS for other in others]
    columns = ("item", "bytes", "op", *measured, *compared)
    print_table("Messages: CPU microseconds per call, then how many times faster", columns, rows)


def _mean(mine: Times, theirs: Times, operation: str) -> float | None:
    """How many times as fast ours is on average; None if nothing can be compared."""
    shared = [key for key in theirs if key[1] == operation]
    return geometric_mean(theirs[key] / mine[key] for key in shared) if shared else None
