"""What an active controller takes for large clusters: ours and Kafka's in turn.

First a lone controller of each kind, with 200 brokers: topics, heartbeats, and with 100,000
partitions a start from the log, memory, a start from a snapshot. Then three of each kind, whose
active one is killed. Kafka's run with the memory and collector of its start scripts.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack
from pathlib import Path

from tests.bench.controller.quorum import PARTITIONS_MAX, Controllers
from tests.bench.java_reader import has_java
from tests.bench.report import Bar, console, print_bars, print_table
from tests.support.kafka.mixed_quorum import JAVA, OURS

__all__ = ["run"]

PARTITIONS = 100_000
PARTITIONS_VARIABLE = "KRAFTWIRE_BENCH_PARTITIONS"

_SMALL, _LARGE = "createTopics of 1,000 partitions", f"createTopics of {PARTITIONS_MAX:,}"
_BEATS = "heartbeats of 200 brokers"
_BESIDE = "heartbeats beside createTopics"
_REPLAY, _LOAD = "start from the log", "start from a snapshot"
_FAILOVER = "failover of three"
_MEMORY = "resident memory"

_ROUNDS = 5
_WARM_ROUNDS = 2
_LONG_ROUNDS = 2
_BEAT_SECONDS = 10.0
# After a start, one more of the large topics is enough for a snapshot.
_KEEP_LOG = {"metadata.log.max.record.bytes.between.snapshots": 1 << 30}
_WRITE_SNAPSHOT = {"metadata.log.max.record.bytes.between.snapshots": 1 << 20}

# Ratios to Kafka's.
_CEILINGS = {_SMALL: 1.0, _LARGE: 2.0, f"{_BESIDE}, p99": 2.0}
_CEILINGS |= {_REPLAY: 3.0, _LOAD: 3.0, _FAILOVER: 3.0, _MEMORY: 1.0}

Figures = dict[str, dict[str, float]]


def run() -> list[Bar]:
    """Measure, print, and return the bars that were missed."""
    kinds = {"kraftwire": OURS}
    if has_java("Kafka"):
        kinds["Kafka"] = JAVA
    partitions = int(os.environ.get(PARTITIONS_VARIABLE, PARTITIONS))
    figures: Figures = {name: {} for name in kinds}
    _alone(kinds, partitions, figures)
    _three(kinds, partitions, figures)
    return _report(figures, partitions)


def _quorums(stack: ExitStack, kinds: dict[str, str], size: int) -> dict[str, Controllers]:
    place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
    return {
        name: stack.enter_context(Controllers(place / name, kind, size))
        for name, kind in kinds.items()
    }


def _alone(kinds: dict[str, str], partitions: int, figures: Figures) -> None:
    with ExitStack() as stack:
        quorums = _quorums(stack, kinds, 1)
        for what, count in ((_SMALL, 1_000), (_LARGE, PARTITIONS_MAX)):
            for turn in range(-_WARM_ROUNDS, _ROUNDS):
                for one in quorums.values():
                    seconds = one.create(count)
                    if turn >= 0:
                        one.note(what, seconds)
        for _ in range(_LONG_ROUNDS):
            for one in quorums.values():
                one.heartbeats(_BEATS, _BEAT_SECONDS)
                with one.creating(1_000):
                    one.heartbeats(_BESIDE, _BEAT_SECONDS)
        for one in quorums.values():
            one.fill(partitions)
            one.configure(_KEEP_LOG)
        _start_in_turn(quorums, _REPLAY)
        for name, one in quorums.items():
            one.configure(_WRITE_SNAPSHOT)
            one.restart()
            one.create(PARTITIONS_MAX)
            one.wait_snapshot()
            figures[name][_MEMORY] = one.resident_bytes() / 1e6
            one.configure(_KEEP_LOG)
        _start_in_turn(quorums, _LOAD)
        for name, one in quorums.items():
            for what in (_BEATS, _BESIDE):
                beats = one.times.pop(what)
                for share in (0.5, 0.99):
                    figures[name][f"{what}, p{share * 100:.0f}"] = _quantile(beats, share)
            figures[name] |= {what: min(times) for what, times in one.times.items()}


def _start_in_turn(quorums: dict[str, Controllers], what: str) -> None:
    for _ in range(_LONG_ROUNDS):
        for one in quorums.values():
            one.note(what, one.restart())


def _three(kinds: dict[str, str], partitions: int, figures: Figures) -> None:
    with ExitStack() as stack:
        quorums = _quorums(stack, kinds, 3)
        for one in quorums.values():
            one.fill(partitions)
        for _ in range(_LONG_ROUNDS):
            for one in quorums.values():
                one.note(_FAILOVER, one.fail_over())
        for name, one in quorums.items():
            figures[name][_FAILOVER] = min(one.times[_FAILOVER])


def _quantile(values: list[float], share: float) -> float:
    return sorted(values)[int(share * len(values))]


def _report(figures: Figures, partitions: int) -> list[Bar]:
    ours, theirs = figures["kraftwire"], figures.get("Kafka")
    rows = []
    for what, value in ours.items():
        unit = "MB" if what == _MEMORY else "ms"
        shown = [value] if theirs is None else [value, theirs[what]]
        cells = [f"{one if unit == 'MB' else one * 1000:,.1f} {unit}" for one in shown]
        rows.append((what, *cells, *(() if theirs is None else (f"{value / theirs[what]:.2f}",))))
    columns = ("", *figures, *(() if theirs is None else ("kraftwire / Kafka",)))
    print_table(f"Controllers of {partitions:,} partitions and 200 brokers", columns, rows)
    if theirs is None:
        console.print("without Kafka's there is nothing to compare")
        return []
    bars = [
        Bar(f"{what} / Kafka's", ours[what] / theirs[what], ceiling, is_ceiling=True)
        for what, ceiling in _CEILINGS.items()
    ]
    return print_bars("Controller: summary", bars)
