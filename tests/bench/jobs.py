"""Whole Spark jobs over captures, JVM and Python workers together.

Warm means a session that has run the same job before: exchanges of large and small frames against
tshark, in turns, since a shared machine changes from one minute to the next. Tiny is a command
with almost nothing to read. KRAFTWIRE_BENCH_JOBS=warm chooses parts.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sysconfig
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench import inputs
from tests.bench.capture import TSHARK_FIELDS
from tests.bench.measure import run_process
from tests.bench.report import Bar, console, print_bars, print_table
from tests.bench.tree import Tree, run_tree

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["run"]

_ROUNDS = 3
_WARM_ROUNDS = 2
_LARGE = 200_000_000
_SMALL = 75_000_000
_TINY = Path(__file__).parents[1] / "golden" / "captures" / "clients.pcap.xz"
_TINY_SECONDS = 20

# The first columns of the exchanges, as far as tshark can show them.
_FIELDS = [word for name in ("frame.number", *TSHARK_FIELDS) for word in ("-e", name)]


def run() -> list[Bar]:
    """Measure, print, and return the bars that were missed."""
    missing = [name for name in ("java", "tshark") if shutil.which(name) is None]
    if missing:
        console.print(f"jobs is skipped: there is no {' and no '.join(missing)}")
        return []
    parts = {"warm": _warm, "tiny": _tiny}
    wanted = os.environ.get("KRAFTWIRE_BENCH_JOBS", ",".join(parts)).split(",")
    bars = [bar for name in wanted for bar in parts[name]()]
    return print_bars("Spark jobs over captures: summary", bars)


def _warm() -> list[Bar]:
    """CPU seconds of the same query in one session, alternating with tshark."""
    from kraftwire.spark.session import local_session

    kinds = [(inputs.load(_LARGE), 3.0), (inputs.quorum(_SMALL), 2.0)]
    spark = local_session("local[2]", {"spark.ui.showConsoleProgress": "false"})
    rows, bars = [], []
    for traffic, floor in kinds:
        if traffic is None:
            continue
        for _ in range(_WARM_ROUNDS):
            _query(spark, traffic.path)
        command = traffic.tshark("-T", "fields", *_FIELDS)
        pairs = [
            (_query(spark, traffic.path), run_process(command).cpu_seconds) for _ in range(_ROUNDS)
        ]
        ratio = statistics.median(theirs / ours for ours, theirs in pairs)
        ours, theirs = map(min, zip(*pairs, strict=True))
        rows.append((traffic.name, f"{traffic.megabytes:.0f}", f"{ours:.1f}", f"{theirs:.1f}"))
        bars.append(Bar(f"warm exchanges of {traffic.name} / tshark -T fields", ratio, floor))
    spark.stop()
    columns = ("", "MB", "job, CPU s", "tshark, CPU s")
    print_table("Exchanges by a warm job, local[2]", columns, rows)
    return bars


def _query(spark: SparkSession, path: Path) -> float:
    """CPU seconds of a job that makes every cell of the exchanges and discards them."""
    with Tree() as tree:
        tree.look()
        before = tree.cpu_seconds()
        reader = spark.read.format("kafka-capture")
        reader.load(str(path)).write.format("noop").mode("overwrite").save()
        tree.look()
        return tree.cpu_seconds() - before


def _tiny() -> list[Bar]:
    """The cost of a run that has almost nothing to read."""
    program = str(Path(sysconfig.get_path("scripts")) / "kraftwire")
    rows, seconds = [], []
    for _ in range(_ROUNDS):
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            command = [program, "pipeline", "run", str(_TINY), "--out", str(Path(folder, "out"))]
            done = run_tree([*command, "--master", "local[2]", "-q"])
        if done.exit_code:
            raise RuntimeError(done.output)
        cpu = [done.tree.cpu_seconds(name) for name in (None, "java")]
        seconds.append(cpu[0])
        figures = (done.wall_seconds, cpu[0], cpu[1], cpu[0] - cpu[1], os.getloadavg()[0])
        rows.append(tuple(f"{figure:.1f}" for figure in figures))
    print_table("A capture of 11 kB", ("wall s", "CPU s", "JVM", "Python", "load"), rows)
    bar = Bar("CPU seconds of a tiny run", min(seconds), _TINY_SECONDS, unit="s", is_ceiling=True)
    return [bar]
