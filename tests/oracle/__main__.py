"""Compares the active controller with Kafka's on seeded scripts; ends with its figures as JSON.

A difference is printed with both answers and record streams, then shrunk to the shortest script,
with the command that runs it again.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import Counter
from math import inf
from pathlib import Path
from typing import Any

import pytest

from tests.oracle.java_controllers import JavaControllers
from tests.oracle.running import KINDS, Outcome, Runner, numbers_of, ranges
from tests.oracle.shared_scripts import Tools
from tests.support.suite.of_the_day import of_the_day, today

# About as many scripts as the proof has time for.
_A_DAY = 20


def main() -> int:
    """Run the scripts that fit; returns 1 if something differs."""
    options = _options()
    try:
        return _run(options)
    except pytest.skip.Exception as reason:
        print(json.dumps({"oracle": {"left out": str(reason)}}))
        return 0


def _run(options: argparse.Namespace) -> int:
    end = time.monotonic() + options.within
    figures: Counter[str] = Counter()
    failed: list[str] = []
    with tempfile.TemporaryDirectory(prefix="oracle-") as name:
        tools = Tools(Path(name))
        with JavaControllers(tools, Path(name, "java")) as java:
            runner = Runner(tools, java)
            for kind, seed in _cases(options):
                if time.monotonic() >= end:
                    break
                outcome = _tried(runner, kind, seed, options)
                _count(figures, outcome)
                if outcome.is_failed:
                    failed.append(f"{kind} {seed}")
    print(json.dumps({"oracle": {**figures, "failed": failed}}))
    return 1 if failed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.oracle", description=__doc__)
    parser.add_argument("--seeds", default="0-499", help="of scripts, such as 7 or 0-99,200")
    parser.add_argument("--operations", type=int, default=400, help="in a script (400)")
    parser.add_argument("--kind", choices=KINDS, help="only scripts of this kind")
    parser.add_argument("--within", type=float, default=inf, help="start no script after seconds")
    parser.add_argument(
        "--of-the-day", action="store_true", help="begin with other seeds every day"
    )
    parser.add_argument("--only", help="only these operations, such as 0-3,17")
    parser.add_argument(
        "--shrink", type=float, default=120.0, help="seconds for the shortest script (120)"
    )
    return parser.parse_args()


def _cases(options: argparse.Namespace) -> list[tuple[str, int]]:
    kinds = [options.kind] if options.kind else list(KINDS)
    found = [(kind, seed) for seed in numbers_of(options.seeds) for kind in kinds]
    if not options.of_the_day:
        return found
    first = of_the_day(found, _A_DAY, today())[0]
    start = found.index(first)
    return [*found[start:], *found[:start]]


def _tried(runner: Runner, kind: str, seed: int, options: argparse.Namespace) -> Outcome:
    script = runner.script(kind, seed, options.operations)
    numbers = numbers_of(options.only) if options.only else list(range(len(script)))
    began = time.monotonic()
    outcome = runner.run(kind, seed, [script[number] for number in numbers])
    done = outcome.comparison
    print(
        f"{kind} {seed}: {done.operations} of {len(numbers)} operations, {done.records} records, "
        f"{time.monotonic() - began:.1f} s",
        flush=True,
    )
    if outcome.is_failed:
        print(outcome.text, flush=True)
    if done.difference:
        _shrink(runner, outcome, script, numbers, options)
    return outcome


def _shrink(
    runner: Runner,
    outcome: Outcome,
    script: list[Any],
    numbers: list[int],
    options: argparse.Namespace,
) -> None:
    chosen = [script[number] for number in numbers]
    left = runner.shortest(outcome, chosen, options.shrink)
    print(f"the shortest script has {len(left)} operations:")
    for number in left:
        print(f"  {chosen[number]}")
    only = ranges([numbers[number] for number in left])
    print(
        f"python -m tests.oracle --kind {outcome.kind} --seeds {outcome.seed} "
        f"--operations {options.operations} --only {only}",
        flush=True,
    )


def _count(figures: Counter[str], outcome: Outcome) -> None:
    done = outcome.comparison
    figures.update(
        scripts=1, operations=done.operations, requests=done.requests, records=done.records
    )
    figures["known differences"] += done.known.total()
    figures["faults of a standby"] += len(outcome.faults)


if __name__ == "__main__":
    raise SystemExit(main())
