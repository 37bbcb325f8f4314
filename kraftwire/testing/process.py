"""One node as a process, with a log file: start, pause, stop, kill.

It knows nothing of Kafka's protocol.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections import deque
from pathlib import Path

from kraftwire.errors import KraftwireError


class QuorumError(KraftwireError):
    """A node ended or timed out; the text has the end of its log."""


_POLL_S = 0.01
_STOP_S = 10.0
_TAIL_LINES = 25
# A node prints a line with this prefix for each listener that accepts connections.
_READY = "ready "


class NodeProcess:
    """A node, running or not.

    It is ready after `listener_count` lines. Its log grows over all starts.
    """

    def __init__(self, node_id: int, config: Path, log: Path, listener_count: int) -> None:
        self.node_id = node_id
        self.config = config
        self.log = log
        self.is_paused = False
        self._listener_count = listener_count
        self._process: subprocess.Popen[bytes] | None = None
        self._log_start = 0

    @property
    def pid(self) -> int | None:
        """The process id; None if it is not running."""
        return self._process.pid if self.is_running and self._process else None

    @property
    def is_running(self) -> bool:
        """Whether the process exists, paused or not."""
        return self._process is not None and self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """The exit code of the last process; None if it is running or never ran."""
        return self._process.poll() if self._process else None

    def start(self) -> None:
        """Start the process without waiting for it. Raises: QuorumError if it is already
        running."""
        if self.is_running:
            state = "is paused: resume it instead" if self.is_paused else "is already running"
            raise QuorumError(f"node {self.node_id} {state}")
        self._log_start = self.log.stat().st_size if self.log.exists() else 0
        self.is_paused = False
        command = [sys.executable, "-m", "kraftwire", "node", "start"]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "--config", str(self.config)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def wait_ready(self, deadline: float) -> None:
        """Return once all listeners accept connections.

        Units: `deadline` is a time of `time.monotonic`. Raises: QuorumError if the process ends
        first, or the deadline passes.
        """
        while self.new_lines().count(f"\n{_READY}") < self._listener_count:
            if not self.is_running:
                raise self.error(f"ended with exit code {self.exit_code} during startup")
            if time.monotonic() > deadline:
                raise self.error("was not ready in time")
            time.sleep(_POLL_S)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal. Raises: QuorumError if the process is not running."""
        if self._process is None or not self.is_running:
            raise QuorumError(f"node {self.node_id} is not running")
        self._process.send_signal(number)

    def pause(self) -> None:
        """Suspend the process; its connections stay open."""
        self.signal(signal.SIGSTOP)
        self.is_paused = True

    def resume(self) -> None:
        """Resume a paused process."""
        self.signal(signal.SIGCONT)
        self.is_paused = False

    def stop(self) -> None:
        """Shut the process down cleanly. Raises: QuorumError if it does not end in time, or
        fails."""
        self.signal(signal.SIGTERM)
        if self.is_paused:
            self.resume()
        assert self._process is not None
        try:
            code = self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise self.error(f"did not stop within {_STOP_S:g} s and was killed") from None
        if code != 0:
            raise self.error(f"ended with exit code {code} when it was stopped")

    def kill(self) -> None:
        """Kill the process; no effect if it is not running."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self.is_paused = False

    def new_lines(self) -> str:
        """Return the complete lines that the process has logged since its last start."""
        with self.log.open("rb") as log:
            log.seek(self._log_start)
            return "\n" + log.read().decode(errors="replace")

    def error(self, problem: str) -> QuorumError:
        """Return an error about this node, with the end of its log."""
        with self.log.open(errors="replace") as log:
            tail = "".join(deque(log, _TAIL_LINES)).rstrip()
        return QuorumError(f"node {self.node_id} {problem}; the end of {self.log}:\n{tail}")
