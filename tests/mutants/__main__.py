"""`python -m tests.mutants`: tries mutants and says which ring killed which."""

from __future__ import annotations

import argparse
import os
import sys
import time

from tests.mutants.catalogue import ALL
from tests.mutants.mutant import Mutant
from tests.mutants.running import baseline, run, summary

_FAILED = 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--all", action="store_true", help="try every mutant (the default)")
    choice.add_argument(
        "--rotate", type=int, metavar="K", help="try K of them, other ones every day"
    )
    parser.add_argument("--only", metavar="TEXT", help="try those whose name or ring has this text")
    parser.add_argument("--day", type=int, help="the day that --rotate takes, instead of today")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes to use")
    parser.add_argument("--within", type=float, help="begin no further one after so many seconds")
    return parser.parse_args()


def _chosen(options: argparse.Namespace) -> list[Mutant]:
    found = [m for m in ALL if not options.only or options.only in f"{m.name} {m.ring}"]
    if options.rotate is None:
        return found
    day = options.day if options.day is not None else int(time.time() // 86_400)
    start = day * options.rotate % len(found)
    return (found[start:] + found[:start])[: options.rotate]


def main() -> int:
    """Try the chosen mutants; exit code 1 if one survives, or a ring fails without any."""
    options, begin = _options(), time.monotonic()
    mutants = _chosen(options)
    broken = baseline(mutants, options.jobs)
    for ring, by in broken.items():
        print(f"{ring} fails without a mutant: {by}", file=sys.stderr)
    if broken:
        return _FAILED
    verdicts = []
    for verdict in run(mutants, options.jobs):
        verdicts.append(verdict)
        by = verdict.by or "SURVIVED"
        print(f"{verdict.cpu_s:6.1f} s  {verdict.name}: {by}", flush=True)
        if options.within is not None and time.monotonic() - begin > options.within:
            break
    print(summary(verdicts, len(ALL), time.monotonic() - begin))
    return _FAILED if any(not one.by for one in verdicts) else 0


if __name__ == "__main__":
    sys.exit(main())
