"""The pipeline on a standalone cluster gives the tables of local[2], also if an executor dies.

The executors have a Python without kraftwire: they get it from the archive of the recipe.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="needs the extra spark")

from kraftwire.spark.run import RunOptions, SparkRunner, run
from kraftwire.spark.stages import STAGES
from tests.spark.cluster.archive import bare_python, pack
from tests.spark.cluster.reads import found
from tests.spark.cluster.standalone import Cluster
from tests.spark.run.folders import captures, rows_of

ROOT = Path(__file__).resolve().parents[3]
LOGS = ROOT / "tests" / "golden" / "logs"
# What an executor has in its folder.
UNPACKED = "spark/worker-*/app-*/*/deps/kraftwire/__init__.py"
SECONDS_MAX = 600


def _properties(archive: Path) -> dict[str, str]:
    """Properties of a session on the cluster whose executors take the package from an archive."""
    return {
        "spark.archives": f"{archive}#deps",
        "spark.executorEnv.PYTHONPATH": "./deps",
        "spark.executor.memory": "600m",
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.shuffle.partitions": "2",
        # Both executors have work from the start: without the number of cores nothing waits.
        "spark.cores.max": "2",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": f"{SECONDS_MAX}s",
    }


class _Driver:
    """`kraftwire pipeline run` on a cluster, with the archive for its executors."""

    def __init__(self, tmp_path: Path, master: str, python: Path, inputs: list[str]) -> None:
        self.folder = tmp_path / "cluster"
        self._log = tmp_path / "driver.log"
        # Reports lost tasks.
        properties = _properties(pack(tmp_path)) | {"spark.log.level": "WARN"}
        command = [sys.executable, "-m", "kraftwire", "pipeline", "run", *inputs, "--quiet"]
        command += ["--out", str(self.folder), "--master", master]
        for key, value in properties.items():
            command += ["--conf", f"{key}={value}"]
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(
                command, cwd=ROOT, stdout=log, stderr=log, start_new_session=True,
                env=os.environ | {"PYSPARK_PYTHON": str(python)},
            )  # fmt: skip

    @property
    def said(self) -> str:
        """Its output so far."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def wait_for_first_unit(self) -> None:
        """Wait until a unit of many has been decoded."""
        marks = self.folder / "_tasks" / "done"
        deadline = time.monotonic() + SECONDS_MAX
        while not (marks.is_dir() and any(marks.iterdir())):
            assert self._process.poll() is None, self.said
            assert time.monotonic() < deadline, self.said
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(0.01)

    def wait(self) -> int:
        """Wait until it has ended; returns the exit code."""
        return self._process.wait(SECONDS_MAX)

    def close(self) -> None:
        """Make sure that it is gone, its JVM too."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(SECONDS_MAX)


def _tables(folder: Path) -> dict[str, list[str]]:
    """The rows of all tables, base and derived, sorted."""
    names = sorted(path.name for path in folder.iterdir() if any(path.glob("*.parquet")))
    return {name: sorted(map(repr, rows_of(folder, name))) for name in names}


def _imports_kraftwire(python: Path) -> bool:
    """Whether a Python finds kraftwire by itself."""
    command = [python, "-c", "import numpy, pyarrow, importlib.util as u\n"
               "raise SystemExit(0 if u.find_spec('kraftwire') else 3)"]  # fmt: skip
    done = subprocess.run(command, cwd="/", env={}, capture_output=True, text=True)
    assert done.returncode in {0, 3}, done.stderr
    return done.returncode == 0


def test_a_cluster_makes_the_same_tables_after_kill_9_of_an_executor(
    spark: Any, tmp_path: Path
) -> None:
    """Another executor repeats the work of the lost one, and it counts once."""
    source = captures(tmp_path / "in", "quorum", "clients")
    inputs = [str(source), str(LOGS / "controller"), str(LOGS / "broker")]
    python = bare_python(tmp_path / "python")
    assert not _imports_kraftwire(python)
    with Cluster(tmp_path / "spark") as cluster, contextlib.ExitStack() as stack:
        driver = _Driver(tmp_path, cluster.master, python, inputs)
        stack.callback(driver.close)
        driver.wait_for_first_unit()
        assert len(list(tmp_path.glob(UNPACKED))) == 2
        (executor,) = cluster.executors(cluster.workers[0])
        os.kill(executor, signal.SIGKILL)
        assert driver.wait() == 0, driver.said
        assert "ExecutorLostFailure" in driver.said
        cluster.workers[0].wait_for("exitStatus 137")
        cluster.workers[0].wait_for("Asked to launch executor app-[^/]*/2 ")

    run(inputs, RunOptions(tmp_path / "local"), SparkRunner(spark), warn=lambda _: None)
    expected = _tables(tmp_path / "local")
    assert expected["raft_timeline"]
    assert expected["metadata_records"]
    assert expected.keys() > set(STAGES)
    assert _tables(driver.folder) == expected


def test_data_sources_read_the_same_on_a_cluster(spark: Any, tmp_path: Path) -> None:
    """Planned on the driver, read by executors that only have the archive."""
    places = [str(captures(tmp_path / "in", "quorum", "clients")), str(LOGS)]
    python = bare_python(tmp_path / "python")
    result = tmp_path / "result.json"
    with Cluster(tmp_path / "spark") as cluster:
        command = [sys.executable, "-m", "tests.spark.cluster.reads", cluster.master, str(result)]
        settings = [f"{key}={value}" for key, value in _properties(pack(tmp_path)).items()]
        done = subprocess.run(
            [*command, *places, *settings], cwd=ROOT, timeout=SECONDS_MAX, capture_output=True,
            text=True, check=False,
            env=os.environ | {"PYSPARK_PYTHON": str(python), "PYTHONPATH": str(tmp_path / "deps")},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert len(list(tmp_path.glob(UNPACKED))) == 2
    expected = found(spark, *places)
    assert json.loads(result.read_text(encoding="utf-8")) == expected
    assert sum(1 for count, _, tasks in expected.values() if count and tasks > 1) >= 3
