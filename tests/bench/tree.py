"""CPU time and memory of a process and all its descendants, observed from outside.

The end of a JVM's Python workers goes unnoticed: their parent does not wait for them, so the system
adds their time to no process. Therefore every process's usage is read many times while it runs.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

__all__ = ["JVM", "PYTHON", "Tree", "TreeRun", "Usage", "run_tree"]

JVM, PYTHON = "java", "python"

_TICKS = os.sysconf("SC_CLK_TCK")
# Workers live for seconds, and a look takes a millisecond.
_INTERVAL_S = 0.5


@dataclass(slots=True)
class Usage:
    """What one process has used so far.

    Units: CPU seconds of its own, the peak of its resident memory in bytes. `is_root` marks
    the named processes, whose Python is a driver rather than a worker.
    """

    name: str
    is_root: bool
    cpu_seconds: float = 0.0
    peak_bytes: int = 0


@dataclass(slots=True)
class Tree:
    """Watches processes and their descendants while it is entered.

    `processes` are all processes seen so far, by id.
    """

    roots: Sequence[int] = ()
    processes: dict[int, Usage] = field(default_factory=dict)
    _own_seconds: float = 0.0
    _over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if not self.roots:
            self.roots = (os.getpid(),)
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        assert self._thread is not None
        self._thread.join()
        self.look()

    def _watch(self) -> None:
        while not self._over.wait(_INTERVAL_S):
            self.look()
            # The observer's own time is not measured.
            self._own_seconds = time.thread_time()

    def look(self) -> None:
        """Read what every process has used by now."""
        parents, ticks, names = _processes()
        found = {pid for pid in self.roots if pid in parents}
        while found:
            for pid in found:
                usage = self.processes.get(pid)
                if usage is None or usage.name != _kind(names[pid]):
                    usage = self.processes[pid] = Usage(_kind(names[pid]), pid in self.roots)
                usage.cpu_seconds = max(usage.cpu_seconds, ticks[pid] / _TICKS)
                usage.peak_bytes = max(usage.peak_bytes, _peak(pid))
            found = {pid for pid, parent in parents.items() if parent in found}

    def cpu_seconds(self, name: str | None = None) -> float:
        """CPU time of all processes, or of those with this name."""
        total = sum(u.cpu_seconds for u in self.processes.values() if name in (None, u.name))
        return total - (self._own_seconds if os.getpid() in self.roots else 0.0)

    def peak_bytes(self, name: str) -> int:
        """The largest peak of a process with this name, except our own drivers."""
        peaks = (u.peak_bytes for u in self.processes.values() if u.name == name and not u.is_root)
        return max(peaks, default=0)


def _kind(name: str) -> str:
    return PYTHON if name.startswith(PYTHON) else name


def _processes() -> tuple[dict[int, int], dict[int, int], dict[int, str]]:
    """Parent, CPU time in ticks and name of every process."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    names: dict[int, str] = {}
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        try:
            head, _, tail = Path(entry.path, "stat").read_text().rpartition(")")
        except OSError:
            continue
        pid, fields = int(entry.name), tail.split()
        parents[pid], ticks[pid] = int(fields[1]), int(fields[11]) + int(fields[12])
        names[pid] = head.partition("(")[2]
    return parents, ticks, names


def _peak(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    _, found, rest = status.partition("VmHWM:")
    return int(rest.split(maxsplit=1)[0]) * 1024 if found else 0


@dataclass(frozen=True, slots=True)
class TreeRun:
    """The time of a command. Units: seconds."""

    wall_seconds: float
    tree: Tree
    exit_code: int
    output: str


def run_tree(
    command: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    besides: Iterable[int] = (),
) -> TreeRun:
    """Run a command to its end and watch it, and other processes `besides`.

    `output` is what it has printed on both streams.
    """
    began = time.perf_counter()
    process = subprocess.Popen(
        command, env=None if environment is None else dict(environment), text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    with Tree((process.pid, *besides)) as tree:
        output, _ = process.communicate()
        wall = time.perf_counter() - began
    return TreeRun(wall, tree, process.returncode, output)
