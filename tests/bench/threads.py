"""How much more than one thread two do in the same time, each with messages of its own.

With the interpreter's lock it is as much, so only free-threaded interpreters have a floor. Times
are those of a clock on the wall: on a machine that is busy elsewhere they say little.
"""

from __future__ import annotations

import sysconfig
import threading
import time
from collections.abc import Callable
from dataclasses import replace

from tests.bench.corpus import Item, load
from tests.bench.measure import geometric_mean
from tests.bench.peers import ours
from tests.bench.report import Bar, print_bars, print_table, ratio

__all__ = ["run"]

# Of many short rounds the best one is taken, which meets a quiet moment.
ROUND_SECONDS = 0.005
ROUNDS = 25
FLOOR = 1.8


def run() -> list[Bar]:
    """Measure, print, and return the bars that were missed."""
    items = [item for item in load() if item.kind == "message"]
    decoded = [_gain(item, "decode") for item in items]
    encoded = [_gain(item, "encode") for item in items]
    rows = zip(items, decoded, encoded, strict=True)
    print_table(
        "Two threads / one",
        ("item", "decode", "encode"),
        [(item.name, ratio(decoding), ratio(encoding)) for item, decoding, encoding in rows],
    )
    floor = FLOOR if sysconfig.get_config_var("Py_GIL_DISABLED") else 0
    means = {"decode, mean": geometric_mean(decoded), "encode, mean": geometric_mean(encoded)}
    return print_bars("Two threads / one", [Bar(*each, floor) for each in means.items()])


def _gain(item: Item, operation: str) -> float:
    # Bytes that threads share count their references in common.
    own = [replace(item, data=bytes(bytearray(item.data))) for _ in range(2)]
    calls: list[Callable[[], object]] = [getattr(ours(each), operation) for each in own]
    calls[0]()
    start = time.perf_counter()
    calls[0]()
    count = max(1, int(ROUND_SECONDS / (time.perf_counter() - start)))
    rounds = [(_seconds(calls[:1], count), _seconds(calls, count)) for _ in range(ROUNDS)]
    return 2 * min(one for one, _ in rounds) / min(two for _, two in rounds)


def _seconds(calls: list[Callable[[], object]], count: int) -> float:
    """How long threads take, one for each call: from the first start to the last end."""
    barrier = threading.Barrier(len(calls))
    times: list[float] = []

    def repeat(call: Callable[[], object]) -> None:
        call()
        barrier.wait()
        times.append(time.perf_counter())
        for _ in range(count):
            call()
        times.append(time.perf_counter())

    threads = [threading.Thread(target=repeat, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return max(times) - min(times)
