"""The tests of franz-go's client, from its Go module."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from tests.compat.suite import FAILED, PASSED, SKIPPED, Results, run_tests
from tests.interop.clients.builds import go_folder, go_missing, go_tests
from tests.support.kafka.maven import unavailable

_PACKAGE = "github.com/twmb/franz-go/pkg/kgo"
# About half of that on two busy processors.
_SECONDS_MAX = 600

# A record in each of many chained groups; 500,000 if nothing is said.
_RECORDS = 50_000

# With `test2json` a mark stands before each line of the tests' own, wherever output had ended.
_RESULT = re.compile(r"\x16 *--- (PASS|FAIL|SKIP): (\S+) \(")
_BEGUN = re.compile(r"\x16=== RUN +(\S+)$", re.MULTILINE)
_WORDS = {"PASS": PASSED, "FAIL": FAILED, "SKIP": SKIPPED}


class Kgo:
    """franz-go's package kgo; its subtests are tests too."""

    name = "kgo"
    brokers = 1

    def prepare(self) -> None:
        """Fetch the modules and compile the tests."""
        if missing := go_missing():
            unavailable(f"the tests of franz-go need {missing}")
        go_tests(_PACKAGE)

    def run(self, bootstrap: str, tests: Sequence[str], folder: Path) -> Results:
        """Run them in one process, in parallel where they say so."""
        names = sorted({re.escape(name.partition("/")[0]) for name in tests})
        chosen = f"^({'|'.join(names)})$" if names else "."
        output = run_tests(
            [
                *(go_tests(_PACKAGE), "-test.v=test2json", "-test.run", chosen),
                f"-test.timeout={_SECONDS_MAX}s",
            ],
            go_folder(_PACKAGE),
            folder / "suite.log",
            seconds=_SECONDS_MAX + 30,
            KGO_SEEDS=bootstrap,
            KGO_TEST_RF="1",
            KGO_TEST_RECORDS=str(_RECORDS),
            KGO_LOG_LEVEL="none",
        )
        return results(output)


def results(output: str) -> Results:
    """What Go's tests resulted in; one that has begun and not ended has failed."""
    found = dict.fromkeys(_BEGUN.findall(output), FAILED)
    return found | {name: _WORDS[word] for word, name in _RESULT.findall(output)}
