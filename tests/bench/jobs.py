"""Whole Spark jobs over captures, JVM and Python workers together, against tshark.

Contestants take turns for some rounds, since a shared machine changes from one minute to the next.
Warm means a session that has run the same job before; cold is a command or a program with all that
it starts, by the wall clock. KRAFTWIRE_BENCH_JOBS=warm chooses parts.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import sysconfig
import tempfile
from collections.abc import Callable
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
_BASE = 200_000_000
_COLD = 1_000_000_000
_KRAFT = 75_000_000
_TINY = Path(__file__).parents[1] / "golden" / "captures" / "clients.pcap.xz"
_TINY_SECONDS = 20

# A program that reads captures once.
_PROGRAM = """
import sys
from kraftwire.spark.session import local_session
spark = local_session("local[2]", {"spark.ui.showConsoleProgress": "false"}, is_short=True)
frame = spark.read.format("kafka-capture").load(sys.argv[1])
frame.write.format("noop").mode("overwrite").save()
"""

# The first columns of the exchanges, as far as tshark can show them.
_FIELDS = ("frame.number", *TSHARK_FIELDS)


def run() -> list[Bar]:
    """Measure, print, and return the bars that were missed."""
    if shutil.which("java") is None:
        console.print("jobs is skipped: there is no Java")
        return []
    parts = {"warm": _warm, "cold": _cold, "tiny": _tiny}
    wanted = os.environ.get("KRAFTWIRE_BENCH_JOBS", ",".join(parts)).split(",")
    bars = [bar for name in wanted for bar in parts[name]()]
    return print_bars("Spark jobs over captures: summary", bars)


def _warm() -> list[Bar]:
    """CPU seconds of the same query in one session, alternating with tshark."""
    from kraftwire.spark.session import local_session

    load, kraft = inputs.load(_BASE), inputs.kraft(_KRAFT)
    spark = local_session("local[2]", {"spark.ui.showConsoleProgress": "false"})
    turns: dict[str, Callable[[], float]] = {}
    if load is not None:
        turns["load, exchanges"] = lambda: _query(spark, load)
        if shutil.which("tshark"):
            turns["load, tshark -T fields"] = lambda: run_process(_tshark(load)).cpu_seconds
    turns["KRaft, exchanges"] = lambda: _query(spark, kraft)
    taken: dict[str, list[float]] = {name: [] for name in turns}
    loads = []
    for number in range(_WARM_ROUNDS + _ROUNDS):
        loads.append(os.getloadavg()[0])
        for name, turn in turns.items():
            if number >= _WARM_ROUNDS or "tshark" not in name:
                taken[name].append(turn())
    frames = 2 * spark.read.format("kafka-capture").load(str(kraft)).count()
    spark.stop()
    taken = {name: each[-_ROUNDS:] for name, each in taken.items()}
    rows = []
    for name, each in taken.items():
        size = (kraft if "KRaft" in name else load).stat().st_size / 1e6  # type: ignore[union-attr]
        best = min(each)
        rows.append((name, f"{size:.0f}", f"{best:.1f}", f"{size / best:.1f}"))
    said = f"load {min(loads):.1f} to {max(loads):.1f}"
    print_table(f"Exchanges by a warm job, local[2] ({said})", ("", "MB", "CPU s", "MB/s"), rows)
    rate = frames / min(taken["KRaft, exchanges"])
    bars = [Bar("frames/s and core, exchanges of KRaft traffic", rate, 43_000, 120_000, "")]
    if len(turns) == 3:
        pairs = zip(taken["load, exchanges"], taken["load, tshark -T fields"], strict=True)
        ratio = statistics.median(theirs / ours for ours, theirs in pairs)
        bars.append(Bar("warm exchanges of load / tshark -T fields, CPU", ratio, 2.5, 5))
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


def _tshark(path: Path) -> list[str]:
    fields = [word for name in _FIELDS for word in ("-e", name)]
    read = ["tshark", "-r", str(path), "-d", "tcp.port==9092,kafka", "-Y", "kafka"]
    return [*read, "-T", "fields", *fields]


def _pipeline(path: Path, out: Path, master: str = "local[2]") -> list[str]:
    program = str(Path(sysconfig.get_path("scripts")) / "kraftwire")
    return [program, "pipeline", "run", str(path), "--out", str(out), "--master", master, "-q"]


def _cold() -> list[Bar]:
    """Wall time of a gigabyte: exchanges on two cores with the start of Spark, and tshark.

    The command, which writes Parquet, and a program that reads the data source and discards
    the rows. The first round creates Java's class archive, if there is none.
    """
    load = inputs.load(_COLD)
    if load is None or shutil.which("tshark") is None:
        return []
    taken: dict[str, list[float]] = {"pipeline run": [], "kafka-capture": [], "tshark": []}
    rows = []
    for number in range(_ROUNDS):
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            command = [*_pipeline(load, Path(folder) / "out"), "--tables", "exchanges"]
            runs = [run_tree(command), run_tree([sys.executable, "-c", _PROGRAM, str(load)])]
        for run in runs:
            if run.exit_code:
                raise RuntimeError(run.output)
        peer = run_process(_tshark(load))
        figures = [(run.wall_seconds, run.tree.cpu_seconds()) for run in runs]
        figures.append((peer.wall_seconds, peer.cpu_seconds))
        for (name, each), (wall, cpu) in zip(taken.items(), figures, strict=True):
            each.append(wall)
            said = f"{os.getloadavg()[0]:.1f}"
            rows.append((str(number + 1), name, f"{wall:.1f}", f"{cpu:.1f}", said))
    columns = ("round", "", "wall s", "CPU s", "load")
    print_table("1 GB of load, cold, two cores: exchanges", columns, rows)
    theirs = taken.pop("tshark")
    bars = []
    for name, each in taken.items():
        ratio = statistics.median(b / a for a, b in zip(each, theirs, strict=True))
        bars.append(Bar(f"1 GB of load, cold, {name}, wall / tshark -T fields", ratio, 1.5, 3))
    return bars


def _tiny() -> list[Bar]:
    """The cost of a run that has almost nothing to read."""
    rows, seconds = [], []
    for _ in range(_ROUNDS):
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            done = run_tree(_pipeline(_TINY, Path(folder) / "out"))
        if done.exit_code:
            raise RuntimeError(done.output)
        cpu = [done.tree.cpu_seconds(name) for name in (None, "java")]
        seconds.append(cpu[0])
        figures = (done.wall_seconds, cpu[0], cpu[1], cpu[0] - cpu[1], os.getloadavg()[0])
        rows.append(tuple(f"{figure:.1f}" for figure in figures))
    print_table("A capture of 11 kB", ("wall s", "CPU s", "JVM", "Python", "load"), rows)
    bar = Bar("CPU seconds of a tiny run", min(seconds), _TINY_SECONDS, unit="s", is_ceiling=True)
    return [bar]
