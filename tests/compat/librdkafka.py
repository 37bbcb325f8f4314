"""librdkafka's tests, from the Rust package that brings its sources."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from kraftwire.testing.cluster.kafka import KAFKA
from tests.compat.suite import FAILED, FOLDER, PASSED, SKIPPED, Results, build, make_once, run_tests

_VERSION = "4.10.0"
_CARGO = f"""
[package]
name = "suite"
version = "0.0.0"
edition = "2021"

[lib]
path = "none.rs"

[dependencies]
rdkafka-sys = {{ version = "={_VERSION}", default-features = false }}
"""
# What a machine may have or not; without, the tests are the same everywhere.
_LEFT_OUT = ("sasl", "lz4-ext", "zstd", "curl")

# These disturb connections inside their process, and so also those of tests beside them.
_DISTURBING = ("0049", "0068", "0075", "0076", "0088", "0094")

# Without the tests that need no broker; fewer rounds; without those that disturb.
_OPTIONS = ("-L", "-Q")
_OTHERS = "-E"
_SECONDS_MAX = 600
_SECONDS_ALONE_MAX = 150

# The summary at the end is incomplete if a test has failed: the program aborts then.
_BEGUN = re.compile(r"=== Running test (\w+) ===")
_RESULT = re.compile(r"=== Test (\w+) (PASSED|SKIPPED) ===")
_COLOUR = re.compile(r"\x1b\[\d*m")
_WORDS = {"PASSED": PASSED, "SKIPPED": SKIPPED}


class Librdkafka:
    """librdkafka, built without optional libraries."""

    name = "librdkafka"
    brokers = 3

    def __init__(self) -> None:
        self._folder = FOLDER / f"librdkafka-{_VERSION}"

    def prepare(self) -> None:
        """Fetch the sources, and compile library and tests: about four minutes."""
        make_once(self._folder, _build)

    def run(self, bootstrap: str, tests: Sequence[str], folder: Path) -> Results:
        """Run them in one process, five at a time; each that disturbs others afterwards, alone."""
        numbers = {test.partition("_")[0] for test in tests}
        found: dict[str, str] = {}
        others = sorted(numbers.difference(_DISTURBING))
        if others or not tests:
            found |= self._run(bootstrap, folder, others, (_OTHERS,), _SECONDS_MAX)
        for number in _DISTURBING:
            if number in numbers or not tests:
                found |= self._run(bootstrap, folder, [number], (), _SECONDS_ALONE_MAX)
        return found

    def _run(
        self,
        bootstrap: str,
        folder: Path,
        numbers: Sequence[str],
        options: Sequence[str],
        seconds: float,
    ) -> Results:
        config = folder / "test.conf"
        config.write_text(f"metadata.broker.list={bootstrap}\ntest.topic.random=true\n")
        chosen = {"TESTS": ",".join(numbers)} if numbers else {}
        output = run_tests(
            [self._folder / "tests" / "test-runner", *_OPTIONS, *options],
            folder,
            folder / "suite.log",
            seconds=seconds,
            LD_LIBRARY_PATH=f"{self._folder / 'src'}:{self._folder / 'src-cpp'}",
            RDKAFKA_TEST_CONF=str(config),
            TEST_KAFKA_VERSION=KAFKA.version,
            **chosen,
        )
        return results(output)


def _build(partial: Path) -> Path:
    """Fetch and compile; returns where the sources are."""
    (partial / "Cargo.toml").write_text(_CARGO)
    (partial / "none.rs").touch()
    build(["cargo", "vendor", "--quiet", "crates"], partial)
    sources = partial / "crates" / "rdkafka-sys" / "librdkafka"
    build(["bash", "configure", *(f"--disable-{name}" for name in _LEFT_OUT)], sources)
    jobs = f"-j{os.cpu_count() or 1}"
    build(["make", jobs, "libs"], sources)
    build(["make", jobs, "-C", "tests", "test-runner"], sources)
    return sources


def results(output: str) -> Results:
    """What librdkafka's tests resulted in; one that has begun and said no more has failed."""
    text = _COLOUR.sub("", output)
    found = dict.fromkeys(_BEGUN.findall(text), FAILED)
    return found | {name: _WORDS[word] for name, word in _RESULT.findall(text)}
