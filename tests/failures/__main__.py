"""Let brokers and controllers fail under producers: ``python -m tests.failures [--kills N]``.

The same script runs on three of Kafka's controllers and on three of ours; both are printed side by
side. The exit code is 1 if with ours something was lost, doubled or too slow.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.bench.report import console, print_table
from tests.failures.script import CONTROLLER_KILLED, Outcome, Step, run_script
from tests.support.kafka.mixed_quorum import JAVA, OURS

_KINDS = {"Kafka": JAVA, "kraftwire": OURS}


def main(arguments: list[str] | None = None) -> int:
    """Run the script on both kinds. Returns 1 for a problem with ours."""
    parser = argparse.ArgumentParser(prog="python -m tests.failures", description=__doc__)
    parser.add_argument("--kills", type=int, default=20, help="of the active controller (20)")
    options = parser.parse_args(arguments)
    outcomes = {}
    with tempfile.TemporaryDirectory(prefix="failures-") as folder:
        for name, kind in _KINDS.items():
            outcomes[name] = run_script(Path(folder, name), kind, kills=options.kills)
    _print(outcomes)
    for name, outcome in outcomes.items():
        for problem in outcome.problems():
            console.print(f"{name}: {problem}")
    return 1 if outcomes["kraftwire"].problems() else 0


def _print(outcomes: dict[str, Outcome]) -> None:
    every = list(outcomes.values())
    rows = []
    for steps in zip(*(_summed(one.steps) for one in every), strict=True):
        ends = (f"{one.seconds:.1f}" for one in steps)
        sends = (f"{one.worst_send:.2f}" for one in steps)
        rows.append((steps[0].name, *ends, *sends))
    columns = ("seconds", *outcomes, *(f"worst send, {name}" for name in outcomes))
    print_table("Failures under producers", columns, rows)
    totals = (
        ("acknowledged", [one.acknowledged for one in every]),
        ("lost", [len(one.lost) for one in every]),
        ("doubled", [len(one.doubled) for one in every]),
        ("given up", [len(one.failures) for one in every]),
        ("brokers registered while controllers failed", [one.registrations for one in every]),
        ("brokers changed while controllers failed", [one.fencings for one in every]),
    )
    print_table(
        "What came of it", ("", *outcomes), [(what, *map(str, each)) for what, each in totals]
    )


def _summed(steps: list[Step]) -> list[Step]:
    """Return the steps with all that killed a controller as two: the median and the worst."""
    kills = sorted(
        (step for step in steps if step.name == CONTROLLER_KILLED), key=lambda step: step.seconds
    )
    others = [step for step in steps if step.name != CONTROLLER_KILLED]
    if not kills:
        return others
    worst_send = max(step.worst_send for step in kills)
    sends = sorted(step.worst_send for step in kills)
    name = f"{CONTROLLER_KILLED}, {len(kills)} times: another leads"
    middle = len(kills) // 2
    return [
        *others,
        Step(f"{name}, median", kills[middle].seconds, sends[middle]),
        Step(f"{name}, worst", kills[-1].seconds, worst_send),
    ]


if __name__ == "__main__":
    sys.exit(main())
