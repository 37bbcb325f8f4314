"""How soon a lone controller of ours accepts changes, and a real broker on it has started.

At each pair of kraft.version and metadata.version. The broker is Kafka's newest, which prints that
it has started once its controller has unfenced it.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.bench.java_reader import has_java
from tests.bench.report import Bar, console, print_bars, print_table
from tests.support.kafka.mixed_quorum import JAVA, OURS, MixedQuorum

__all__ = ["RELEASES", "Seconds", "run", "start_pair"]

# Release -> its level of metadata.version.
RELEASES = {"3.3-IV3": 7, "3.7-IV1": 16, "4.0-IV3": 25, "4.3-IV0": 30}

_CONTROLLER_SECONDS_MAX, _BROKER_SECONDS_MAX = 1.0, 5.0
_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Seconds:
    """From the start of a process: until the controller leads and has committed a record, and until
    the broker has said that it has started."""

    controller: float
    broker: float


def run() -> list[Bar]:
    """Measure, print, and return the bars that were missed."""
    if not has_java("Kafka"):
        console.print("starts is skipped: there is no broker without Java")
        return []
    rows, bars = [], []
    for is_dynamic in (False, True):
        for release, level in RELEASES.items():
            found = [_measure(release, is_dynamic=is_dynamic) for _ in range(_ROUNDS)]
            best = Seconds(min(one.controller for one in found), min(one.broker for one in found))
            cells = (f"{best.controller:.2f} s", f"{best.broker:.2f} s")
            rows.append((str(int(is_dynamic)), str(level), *cells))
            name = f"kraft.version {int(is_dynamic)}, metadata.version {level}"
            for who, value, limit in (
                ("controller", best.controller, _CONTROLLER_SECONDS_MAX),
                ("broker", best.broker, _BROKER_SECONDS_MAX),
            ):
                bars.append(Bar(f"{who}, {name}", value, limit, unit="s", is_ceiling=True))
    columns = ("kraft.version", "metadata.version", "controller accepts", "broker has started")
    print_table(f"Starts: best of {_ROUNDS}", columns, rows)
    return print_bars("Starts: summary", bars)


def _measure(release: str, *, is_dynamic: bool) -> Seconds:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        return start_pair(Path(folder), release, is_dynamic=is_dynamic)


def start_pair(folder: Path, release: str, *, is_dynamic: bool) -> Seconds:
    """Format and start a controller and a broker.

    Raises: AssertionError if one of them does not start, or logs an error.
    """
    options = ("--release-version", release)
    with MixedQuorum(
        folder, {1: OURS}, is_dynamic=is_dynamic, brokers={101: JAVA}, format_options=options
    ) as quorum:
        began = time.monotonic()
        quorum.members[1].start()
        quorum.members[1].wait_ready()
        quorum.leader()
        accepted = time.monotonic()
        quorum.members[101].start()
        quorum.members[101].wait_ready()
        started = time.monotonic()
        quorum.check_health()
        found = quorum.members[1].image()
        assert (found.metadata_version, quorum.voters()) == (RELEASES[release], [1])
        return Seconds(accepted - began, started - accepted)
