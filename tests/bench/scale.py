"""How a run of the pipeline grows with its input: time and memory, on one core, two, and a cluster.

One run of each: the aim is to find a bend, not a percent. CPU seconds are those of the JVM, of
Python's workers and of the program itself together, and on a cluster of its processes too.
KRAFTWIRE_BENCH_GB=0.25 chooses sizes, KRAFTWIRE_BENCH_MASTERS=local[2],cluster where to run.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from tests.bench import inputs
from tests.bench.report import Bar, console, print_bars, print_table
from tests.bench.tree import JVM, PYTHON, TreeRun, run_tree

__all__ = ["run"]

_GIGABYTES = "0.25,1,4"
_MASTERS = "local[1],local[2],cluster"
_BASE = 200_000_000
# A run may take this much more than in proportion to its input; beyond, it is a bend.
_GROWTH_MAX = 1.15
_WORKER_MB_MAX = 500
# Larger files are made for one run and removed.
_KEPT_BYTES = 2_000_000_000
_ROOT = Path(__file__).parents[2]


def run() -> list[Bar]:
    """Measure, print, and return the bars that were missed."""
    if shutil.which("java") is None or inputs.load(_BASE) is None:
        console.print("scale is skipped: it needs Java and large frames")
        return []
    sizes = [float(each) for each in os.environ.get("KRAFTWIRE_BENCH_GB", _GIGABYTES).split(",")]
    masters = os.environ.get("KRAFTWIRE_BENCH_MASTERS", _MASTERS).split(",")
    rows, done = [], {}
    for size in sizes:
        traffic = inputs.load(int(size * 1e9) if size > 0.25 else _BASE)
        assert traffic is not None
        path = traffic.path
        for master in masters:
            began = os.getloadavg()[0]
            done[size, master] = each = _run(path, master)
            rows.append(_row(path.stat().st_size, master, each, began))
            console.print(" ".join(rows[-1]))
        if path.stat().st_size > _KEPT_BYTES:
            path.unlink()
    columns = ("GB", "on", "wall s", "CPU s", "MB/s and core", "worker MB", "JVM MB", "load")
    print_table("All tables of load, by size of the input", columns, rows)
    return print_bars("Scale: summary", _bars(done, sizes, masters))


def _row(size: int, master: str, done: TreeRun, began: float) -> tuple[str, ...]:
    cpu = done.tree.cpu_seconds()
    return (
        f"{size / 1e9:.2f}",
        master,
        f"{done.wall_seconds:.0f}",
        f"{cpu:.0f}",
        f"{size / 1e6 / cpu:.1f}",
        f"{done.tree.peak_bytes(PYTHON) / 1e6:.0f}",
        f"{done.tree.peak_bytes(JVM) / 1e6:.0f}",
        f"{began:.1f} to {os.getloadavg()[0]:.1f}",
    )


def _bars(
    done: dict[tuple[float, str], TreeRun], sizes: list[float], masters: list[str]
) -> list[Bar]:
    """The memory of the largest worker, and how CPU time per gigabyte grows between two sizes."""
    worker = max(each.tree.peak_bytes(PYTHON) for each in done.values()) / 1e6
    bars = [Bar("largest worker", worker, _WORKER_MB_MAX, unit="MB", is_ceiling=True)]
    for master in masters:
        for small, large in pairwise(sizes):
            first, second = (done[size, master].tree.cpu_seconds() for size in (small, large))
            growth = second / first / (large / small)
            name = f"{master}: CPU from {small:g} to {large:g} GB, by the input's growth"
            bars.append(Bar(name, growth, _GROWTH_MAX, is_ceiling=True))
    return bars


def _run(path: Path, master: str) -> TreeRun:
    with (
        tempfile.TemporaryDirectory(prefix="bench-", dir=path.parent) as folder,
        _masters(Path(folder), master) as (url, flags, besides),
    ):
        program = str(Path(sysconfig.get_path("scripts")) / "kraftwire")
        words = [program, "pipeline", "run", str(path), "--out", f"{folder}/out", "-q"]
        done = run_tree([*words, "--master", url, *flags], besides=besides)
    if done.exit_code:
        raise RuntimeError(done.output)
    return done


@contextlib.contextmanager
def _masters(folder: Path, master: str) -> Iterator[tuple[str, list[str], list[int]]]:
    """The URL of a master, more arguments of the command line, and further processes to watch."""
    if master != "cluster":
        yield master, [], []
        return
    from tests.spark.cluster.standalone import Cluster

    with Cluster(folder / "cluster") as cluster:
        settings = (
            f"spark.executorEnv.PYTHONPATH={_ROOT}",
            f"spark.pyspark.python={sys.executable}",
            "spark.executor.memory=600m",
            "spark.cores.max=2",
            "spark.scheduler.minRegisteredResourcesRatio=1.0",
        )
        flags = [word for each in settings for word in ("--conf", each)]
        yield cluster.master, flags, [worker.pid for worker in cluster.workers]
