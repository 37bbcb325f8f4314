"""The figures, in one run: the programs take turns, and so does a client with nothing between.

Produce 9 passes as it comes. From version 10 on a response has a place for addresses of nodes, so
it is decoded.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from statistics import median

from tests.bench.proxy.load import (
    BATCH_BYTES,
    RECORD_BYTES,
    batches_per_second,
    idle_clients,
    latencies,
    produce,
)
from tests.bench.proxy.peers import DIRECT, OURS, Peer, peers
from tests.bench.report import Bar, microseconds, print_bars, print_table

SECONDS_VARIABLE = "KRAFTWIRE_BENCH_SECONDS"

_ROUNDS = 5
_SECONDS = 3.0
_RATE = 2000
_PASSED = 9
_DECODED = 13

# After that what a program does for new clients is done.
_SETTLED_S = 1.0


@dataclass(slots=True)
class Figures:
    """What a program did in each round. Units: seconds by version, bytes a second, bytes."""

    p50: dict[int, list[float]] = field(default_factory=lambda: {_PASSED: [], _DECODED: []})
    p99: dict[int, list[float]] = field(default_factory=lambda: {_PASSED: [], _DECODED: []})
    throughput: list[float] = field(default_factory=list)
    client_memory: float = 0.0


def run() -> list[Bar]:
    """Measure, print, and return the bars that were missed."""
    seconds = float(os.environ.get(SECONDS_VARIABLE, _SECONDS))
    with peers() as programs:
        figures = {name: Figures() for name in programs}
        for _ in range(_ROUNDS):
            for name, peer in programs.items():
                _round(peer, figures[name], seconds)
        for name, peer in programs.items():
            figures[name].client_memory = _client_memory(peer)
    direct = figures.pop(DIRECT)
    _print(direct, figures)
    added = _added(figures[OURS].p99[_PASSED], direct.p99[_PASSED])
    bars = [
        Bar("p99 of one record, added", added * 1e3, 1.0, "ms", is_ceiling=True),
        Bar("16 KiB batches", median(figures[OURS].throughput) / 1e6, 200, "MB/s"),
    ]
    return print_bars("Proxy: summary", bars)


def _round(peer: Peer, figures: Figures, seconds: float) -> None:
    for version in (_PASSED, _DECODED):
        found = latencies(peer.port, produce(version, RECORD_BYTES), _RATE, seconds)
        figures.p50[version].append(found[len(found) // 2])
        figures.p99[version].append(found[len(found) * 99 // 100])
    batch = produce(_PASSED, BATCH_BYTES)
    figures.throughput.append(batches_per_second(peer.port, batch, seconds) * BATCH_BYTES)


def _client_memory(peer: Peer) -> float:
    before = peer.memory
    with idle_clients(peer.port) as count:
        time.sleep(_SETTLED_S)
        return (peer.memory - before) / count


def _added(through: list[float], direct: list[float]) -> float:
    """What a program adds: the median of the differences in each round."""
    return median(one - other for one, other in zip(through, direct, strict=True))


def _print(direct: Figures, figures: dict[str, Figures]) -> None:
    rows = []
    for name, one in figures.items():
        added = [
            microseconds(_added(found[version], alone[version]))
            for version in (_PASSED, _DECODED)
            for found, alone in ((one.p50, direct.p50), (one.p99, direct.p99))
        ]
        rates = (f"{median(one.throughput) / 1e6:.0f}", f"{one.client_memory / 1024:.0f}")
        rows.append((name, *added, *rates))
    times = [f"{q} {v}, us" for v in ("passed", "decoded") for q in ("p50", "p99")]
    alone = median(direct.throughput) / 1e6
    print_table(
        f"Proxy: added to one-record requests at {_RATE:,} a second; 16 KiB batches ({alone:.0f} "
        "MB/s with nothing between); an idle client",
        ("", *times, "MB/s", "KiB a client"),
        rows,
    )
