"""The totals of the verdicts: as a line of JSON, and as a table of the rings."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from statistics import median

from tests.mutants.mutant import UNTIMED
from tests.mutants.running import Verdict


def _kind(ring: str) -> str:
    """The random walk, or the folder of the tests that are the ring."""
    return ring if ring == UNTIMED else "/".join(ring.split()[0].split("/")[:2])


def as_json(verdicts: Sequence[Verdict], total: int, seconds: float) -> str:
    """The figures, as one line of JSON. `total` is the number of mutants, tried or not."""
    killed: dict[str, int] = defaultdict(int)
    for one in verdicts:
        killed[_kind(one.ring)] += one.is_killed
    return json.dumps(
        {
            "mutants": total,
            "tried": len(verdicts),
            "killed": sum(killed.values()),
            "survived": [one.name for one in verdicts if not one.by and not one.problem],
            "proves_nothing": [one.name for one in verdicts if one.problem],
            "by": {ring: count for ring, count in sorted(killed.items()) if count},
            "seconds": round(seconds, 1),
        }
    )


def as_table(verdicts: Sequence[Verdict]) -> str:
    """How many mutants each ring kills, and how fast: rows of Markdown."""
    seconds: dict[str, list[float]] = defaultdict(list)
    for one in verdicts:
        if one.is_killed:
            seconds[_kind(one.ring)].append(one.cpu_s)
    rows = [
        "| ring | killed | median CPU s | worst CPU s | killed per CPU minute |",
        "|---|---:|---:|---:|---:|",
    ]
    for ring, took in sorted(seconds.items()):
        pace = 60 * len(took) / sum(took)
        rows.append(
            f"| `{ring}` | {len(took)} | {median(took):.1f} | {max(took):.1f} | {pace:.0f} |"
        )
    return "\n".join(rows)
