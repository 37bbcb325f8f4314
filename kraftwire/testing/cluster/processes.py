"""Processes that outlive the one that started them, each known by its id and its start time.

An id alone could meanwhile be that of another process, which must not be ended.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_POLL_S = 0.05
_STAT = "/proc/{}/stat"
_START_FIELD, _STATE_FIELD = 19, 0


@dataclass(frozen=True, slots=True)
class Process:
    """A process by its id and the time at which it started, in a form of the system's own."""

    pid: int
    started: str

    @property
    def is_running(self) -> bool:
        """Whether this very process exists and has not ended."""
        return _started(self.pid) == self.started

    def send(self, number: signal.Signals) -> None:
        """Send a signal; no effect if the process has ended."""
        if self.is_running:
            os.kill(self.pid, number)

    def wait(self, timeout_s: float) -> bool:
        """Wait for its end; returns whether it came in time."""
        deadline = time.monotonic() + timeout_s
        while self.is_running:
            _reap(self.pid)
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_S)
        return True

    def stop(self, timeout_s: float) -> None:
        """End the process with SIGTERM, and with SIGKILL if that takes too long."""
        self.send(signal.SIGTERM)
        if not self.wait(timeout_s):
            self.kill()

    def kill(self) -> None:
        """End the process with SIGKILL."""
        self.send(signal.SIGKILL)
        self.wait(timeout_s=60)


def start(
    command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
) -> Process:
    """Start a process in a session of its own, which signals of this terminal do not reach.

    What it prints is appended to `log`. Raises: OSError if it cannot be started.
    """
    with log.open("ab") as output:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd=log.parent,
            env=None if environment is None else {**os.environ, **environment},
        )
    # It is no child to wait for: others end it.
    child.returncode = 0
    return Process(child.pid, _started(child.pid))


def _reap(pid: int) -> None:
    """Take note of the end of a child, so that it does not stay a zombie."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return


def _started(pid: int) -> str:
    """Return when a process started; empty if it does not exist or is a zombie."""
    path = Path(_STAT.format(pid))
    if not path.parent.parent.is_dir():
        return _started_by_ps(pid)
    try:
        # The name in the second field may contain anything, even brackets.
        fields = path.read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[_STATE_FIELD] in "ZX" else fields[_START_FIELD]


def _started_by_ps(pid: int) -> str:
    """Return when a process started, on systems without /proc."""
    command = ["ps", "-o", "stat=,lstart=", "-p", str(pid)]
    found = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
    return "" if not found or found[0].startswith("Z") else " ".join(found[1:])
