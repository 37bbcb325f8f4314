"""`python -m tests.mutants`: tries mutants and says which ring killed which."""

from __future__ import annotations

import argparse
import os
import sys
import time
from math import inf

from tests.mutants.catalogue import ALL
from tests.mutants.choosing import matching
from tests.mutants.figures import as_json, as_table
from tests.mutants.mutant import Mutant
from tests.mutants.running import checked, run
from tests.support.suite.of_the_day import of_the_day, today

_FAILED = 1



def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--all", action="store_true", help="try every mutant (the default)")
    choice.add_argument(
        "--rotate", type=int, metavar="K", help="try K of them, different ones every day"
    )
    parser.add_argument(
        "--only",
        metavar="TEXT",
        action="append",
        default=[],
        help="only those whose name or ring has this text; may be given more than once",
    )
    parser.add_argument("--day", type=int, help="the day that --rotate takes, instead of today")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes to use")
    parser.add_argument(
        "--within", type=float, default=inf, metavar="SECONDS", help="start none after that time"
    )
    parser.add_argument("--table", action="store_true", help="end with a table of the rings")
    return parser.parse_args()


def _chosen(options: argparse.Namespace) -> list[Mutant]:
    found = matching(ALL, options.only)
    if options.rotate is None:
        return found
    day = options.day if options.day is not None else today()
    return of_the_day(found, options.rotate, day)


def main() -> int:
    """Try the chosen mutants; exit code 1 unless each is killed."""
    options, begin = _options(), time.monotonic()
    mutants = _chosen(options)
    verdicts = []
    for verdict in run(mutants, options.jobs, begin + options.within):
        verdicts.append(verdict)
        by = verdict.problem or verdict.by or "SURVIVED"
        print(f"{verdict.cpu_s:6.1f} s  {verdict.name}: {by}", flush=True)
    verdicts = checked(verdicts)
    for verdict in verdicts:
        if verdict.problem and verdict.by:
            print(f"{verdict.name}: {verdict.by} {verdict.problem}", file=sys.stderr)
    if options.table:
        print(as_table(verdicts))
    print(as_json(verdicts, len(ALL), time.monotonic() - begin))
    return 0 if all(one.is_killed for one in verdicts) else _FAILED


if __name__ == "__main__":
    sys.exit(main())
