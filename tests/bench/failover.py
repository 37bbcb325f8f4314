"""How long a quorum is without a leader after kill -9 of the one it had: ours and Kafka's
alternately.

Both quorums of three run side by side with the default timers. One leader after the other is
killed, and restarted once a survivor reports that it leads and a record of its epoch is committed.
The next one is killed only after all three have everything.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from pathlib import Path
from statistics import median

from kraftwire.protocol.error_codes import ErrorCode
from tests.bench.report import Bar, console, print_bars, print_table
from tests.support.kafka.maven import CACHE, KAFKA, directory_of
from tests.support.kafka.mixed_quorum import JAVA, OURS, MixedQuorum, wait_until

__all__ = ["run"]

KILLS = 50
KILLS_VARIABLE = "KRAFTWIRE_BENCH_KILLS"

_NODES = (1, 2, 3)
_LOOK_SECONDS = 0.005
_ANSWER_SECONDS_MAX = 1.0
_FAILOVER_SECONDS_MAX = 60.0


def run() -> list[Bar]:
    """Measure, print, and return the bars that were missed."""
    kills = int(os.environ.get(KILLS_VARIABLE, KILLS))
    kinds = {"Kafka": JAVA, "kraftwire": OURS}
    if shutil.which("java") is None or not directory_of(KAFKA).is_dir():
        console.print("Kafka is skipped: no java, or the tests have not fetched its jars")
        del kinds["Kafka"]
    times = _measure(kinds, kills)
    rows = [
        (name, str(len(found)), *(f"{_quantile(found, q):.2f}" for q in (0.0, 0.5, 0.99, 1.0)))
        for name, found in times.items()
    ]
    columns = ("", "kills", "fastest s", "p50 s", "p99 s", "slowest s")
    print_table("Failover: seconds without a leader after kill -9", columns, rows)
    if len(times) < len(("ours", "theirs")):
        return []
    ours, theirs = times["kraftwire"], times["Kafka"]
    p50 = median(ours) / median(theirs)
    p99 = _quantile(ours, 0.99) / _quantile(theirs, 0.99)
    # Two runs of one program differ by as much: a failover depends on random time-outs.
    bars = [
        Bar("p50 / Kafka's", p50, 1.1, is_ceiling=True),
        Bar("p99 / Kafka's", p99, 1.3, is_ceiling=True),
    ]
    return print_bars("Failover: summary", bars)


def _quantile(values: list[float], share: float) -> float:
    """The smallest value that this share does not exceed: failures cannot be interpolated."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _measure(kinds: dict[str, str], kills: int) -> dict[str, list[float]]:
    folder = CACHE / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    times: dict[str, list[float]] = {name: [] for name in kinds}
    with contextlib.ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=folder)))
        quorums = {
            name: stack.enter_context(MixedQuorum(place / name, dict.fromkeys(_NODES, kind)))
            for name, kind in kinds.items()
        }
        for quorum in quorums.values():
            quorum.start()
        for _ in range(kills):
            for name, quorum in quorums.items():
                times[name].append(_fail_over(quorum))
    return times


def _fail_over(quorum: MixedQuorum) -> float:
    """Kill the leader; returns the seconds until the next one has committed a record."""
    leader = _settled(quorum)
    epoch = quorum.status().leader_epoch
    survivors = [member for member in quorum.controllers if member.node_id != leader]
    quorum.members[leader].kill()
    start = time.monotonic()
    while time.monotonic() < start + _FAILOVER_SECONDS_MAX:
        for member in survivors:
            told = member.describe(_ANSWER_SECONDS_MAX)
            if told is not None and told.error_code == ErrorCode.NONE:
                is_new = told.leader_id == member.node_id and told.leader_epoch > epoch
                if is_new and told.high_watermark >= 0:
                    taken = time.monotonic() - start
                    quorum.start(leader)
                    return taken
        time.sleep(_LOOK_SECONDS)
    raise AssertionError(f"no leader after {_FAILOVER_SECONDS_MAX:g} s\n{quorum.last_lines()}")


def _settled(quorum: MixedQuorum) -> int:
    """The leader, once all nodes have what it had when it was asked."""

    def look() -> int:
        told = quorum.status()
        mark = told.high_watermark
        ends = [voter.log_end_offset for voter in told.current_voters]
        return told.leader_id if len(ends) == len(_NODES) and min(ends) >= mark - 1 else 0

    return wait_until(look, "three voters that have everything", quorum.last_lines)
