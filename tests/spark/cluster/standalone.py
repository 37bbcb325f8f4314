"""A standalone cluster of Spark as processes on loopback: a master and workers of one core each.

Owns the lifetime of the processes: every process is ended by its id. Tests wait for lines of a
process's log.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import threading
from pathlib import Path
from typing import Self

import pyspark

__all__ = ["Cluster", "Daemon"]

_LOOPBACK = "127.0.0.1"
_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"
_EXECUTOR = b"CoarseGrainedExecutorBackend"
_WORKER_MEMORY = "1g"

# Generous, because many processes may share the machine.
_SECONDS_MAX = 120.0


class Daemon:
    """One process of the cluster. `lines` are those of its output so far."""

    def __init__(self, environment: dict[str, str], *arguments: str) -> None:
        self.lines: list[str] = []
        self._changed = threading.Condition()
        program = Path(environment["SPARK_HOME"]) / "bin" / "spark-class"
        # In a separate process group, which its executors stay in.
        self._process = subprocess.Popen(
            [program, *arguments], env=environment, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        self._reader = threading.Thread(target=self._read_lines, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    def wait_for(self, pattern: str) -> re.Match[str]:
        """The first place where a pattern is found in a line."""
        found: list[re.Match[str]] = []

        def is_there() -> bool:
            found[:] = [match for line in self.lines if (match := re.search(pattern, line))]
            return bool(found) or not self._reader.is_alive()

        with self._changed:
            self._changed.wait_for(is_there, _SECONDS_MAX)
        assert found, f"no line with {pattern!r} in\n" + "\n".join(self.lines)
        return found[0]

    def close(self) -> None:
        """End the process and the executors that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait(_SECONDS_MAX)
        self._reader.join(_SECONDS_MAX)
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _read_lines(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._changed:
                self.lines.append(line.rstrip("\n"))
                self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()


class Cluster:
    """A master and its workers; use it as a context manager."""

    def __init__(self, folder: Path, workers: int = 2) -> None:
        self._environment = _environment(folder)
        self._folder = folder
        self._stack = contextlib.ExitStack()
        self._count = workers
        self.workers: list[Daemon] = []
        self.master = ""

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            options = ["--host", _LOOPBACK, "--port", "0", "--webui-port", "0"]
            master = Daemon(self._environment, _MASTER, *options)
            stack.callback(master.close)
            self.master = master.wait_for(r"Starting Spark master at (spark://\S+)")[1]
            options += ["--cores", "1", "--memory", _WORKER_MEMORY]
            for number in range(self._count):
                place = ["--work-dir", str(self._folder / f"worker-{number}"), self.master]
                self.workers.append(Daemon(self._environment, _WORKER, *options, *place))
                stack.callback(self.workers[-1].close)
            for worker in self.workers:
                worker.wait_for("Successfully registered with master")
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def executors(self, worker: Daemon) -> list[int]:
        """The ids of the processes that a worker has started for applications."""
        return [
            pid
            for task in Path(f"/proc/{worker.pid}/task").iterdir()
            for pid in map(int, (task / "children").read_text().split())
            if _EXECUTOR in Path(f"/proc/{pid}/cmdline").read_bytes()
        ]


def _environment(folder: Path) -> dict[str, str]:
    """No reference to a checkout, and no listener for other machines."""
    kept = {name: os.environ[name] for name in ("PATH", "JAVA_HOME", "LANG") if name in os.environ}
    home = pyspark.__path__[0]
    return kept | {
        "HOME": str(folder),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": _LOOPBACK,
        "SPARK_LOCAL_DIRS": str(folder / "scratch"),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC "
        "-Dspark.master.rest.enabled=false",
    }
