"""Runs test suites of other people's clients: against a real Kafka, and through `kraftwire proxy`.

A test that does not end in the result that the suite's list has for it runs once more by itself.
The exit code is 1 if one differs then too. Ends with all figures as one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from tests.compat.expected import expected
from tests.compat.kafka_clients import KafkaClients
from tests.compat.kafka_python import KafkaPython
from tests.compat.kgo import Kgo
from tests.compat.librdkafka import Librdkafka
from tests.compat.runs import Run, Runner
from tests.compat.servers import NONE, PROXY, server
from tests.compat.suite import FOLDER, Suite
from tests.support.suite.of_the_day import of_the_day, today

SUITES: dict[str, Suite] = {
    suite.name: suite for suite in (Kgo(), KafkaPython(), Librdkafka(), KafkaClients())
}

def main(arguments: Sequence[str] | None = None) -> int:
    """Run suites; returns 1 if a test differs from its list."""
    options = _options(arguments)
    names = options.suites or list(SUITES)
    if options.of_the_day:
        names = of_the_day(names, 1, today())
    figures: dict[str, Any] = {}
    wrong = 0
    for name in names:
        try:
            SUITES[name].prepare()
            for through in options.through or (NONE, PROXY):
                run = _run(SUITES[name], through, options)
                wrong += len(run.wrong)
                figures[f"{name}, {through}"] = _report(name, through, run)
        except pytest.skip.Exception as reason:
            figures[name] = {"left out": str(reason)}
    print(json.dumps({"compat": figures}))
    return 1 if wrong else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.compat", description=__doc__)
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"of {', '.join(SUITES)} (all)")
    parser.add_argument(
        "--through", action="append", choices=(NONE, PROXY),
        help="what is before the server (first nothing, then the proxy)",
    )  # fmt: skip
    parser.add_argument("--only", metavar="GLOB", help="only tests of such names")
    parser.add_argument("--bootstrap", metavar="HOST:PORT", help="a server (a Kafka of its own)")
    parser.add_argument(
        "--of-the-day", action="store_true", help="one suite, another every day, and test by test"
    )
    parser.add_argument("--within", type=float, help="test by test; begin none after seconds")
    options = parser.parse_args(arguments)
    if unknown := set(options.suites) - set(SUITES):
        parser.error(f"no such suite: {', '.join(sorted(unknown))}")
    return options


def _run(suite: Suite, through: str, options: argparse.Namespace) -> Run:
    print(f"{suite.name}, before the server: {through}", flush=True)
    folder = FOLDER / "logs" / f"{suite.name}-{through}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with (
        tempfile.TemporaryDirectory(prefix="compat-") as place,
        server(options.bootstrap, through, suite.brokers, Path(place)) as address,
    ):
        wanted = expected(suite.name)
        runner = Runner(suite, address, wanted, folder)
        tests = [test for test in wanted if fnmatchcase(test, options.only or "*")]
        if not tests:
            sys.exit(f"no test of {suite.name} is called {options.only}")
        if options.within is not None:
            return runner.run_within(of_the_day(tests, len(tests), today()), options.within)
        return runner.run(tests if options.only else ())


def _report(name: str, through: str, run: Run) -> dict[str, Any]:
    counts = Counter(run.results.values())
    shown = ", ".join(f"{count} {result}" for result, count in sorted(counts.items()))
    print(f"{name}, before the server: {through}: {shown}; {run.seconds:.0f} s")
    for test in run.unsteady:
        print(f"  {test}: right when it ran alone")
    for test, what in run.wrong.items():
        print(f"  {test}: {what}")
    return {
        "seconds": round(run.seconds),
        **counts,
        "unsteady": run.unsteady,
        "wrong": list(run.wrong),
    }


if __name__ == "__main__":
    sys.exit(main())
