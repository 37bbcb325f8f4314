"""Processes that outlive the one that started them: each is known by its id, its start time, and
the end of its command.

An id alone could meanwhile be that of another process, which must not be ended; and id and start
time of any process are known to everybody who can write to where they are kept.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kraftwire.errors import UsageError

_POLL_S, _EXEC_POLL_S = 0.05, 0.001
_PROC = Path("/proc")
_START_FIELD, _STATE_FIELD = 19, 0


@dataclass(frozen=True, slots=True)
class Process:
    """A process by its id, the time at which it started, in a form of the system's own, and the
    last argument of its command."""

    pid: int
    started: str
    argument: str

    @property
    def is_running(self) -> bool:
        """Whether this very process exists and has not ended."""
        # Ids below name groups of processes, all of the user's, or the system's first one.
        if self.pid <= 1 or not self.started or _started(self.pid) != self.started:
            return False
        return _has_argument(self.pid, self.argument)

    def send(self, number: signal.Signals) -> None:
        """Send a signal; no effect if the process has ended. Raises: UsageError if another user
        runs it."""
        if not self.is_running:
            return
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return
        except PermissionError:
            raise UsageError(f"process {self.pid} ({self.argument}) is another user's") from None

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


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold SIGINT and SIGTERM back until the end: a process that is started is not forgotten.

    Order: in the main thread.
    """
    held: list[int] = []
    before = {
        number: signal.signal(number, lambda number, _: held.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for each in held:
            signal.raise_signal(each)


def start(
    command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
) -> Process:
    """Start a process in a session of its own, which signals of this terminal do not reach.

    Returns once the process can be recognised. What it prints is appended to `log`. Raises: OSError
    if it cannot be started.
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(log, flags, 0o600), "ab") as output:
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
    process = Process(child.pid, _started(child.pid), command[-1])
    # The kernel starts a program before it shows its arguments, by which the process is known.
    while process.started and _started(child.pid) == process.started and not _command(child.pid):
        time.sleep(_EXEC_POLL_S)
    return process


def _reap(pid: int) -> None:
    """Take note of the end of a child, so that it does not stay a zombie."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return


def _started(pid: int) -> str:
    """Return when a process started; empty if it does not exist or is a zombie."""
    if not _PROC.is_dir():
        state, *started = _by_ps(pid, "stat=,lstart=").split() or ["Z"]
        return "" if state.startswith("Z") else " ".join(started)
    try:
        # The name in the second field may contain anything, even brackets.
        text = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return ""
    fields = text.rpartition(")")[2].split()
    return "" if fields[_STATE_FIELD] in "ZX" else fields[_START_FIELD]


def _has_argument(pid: int, argument: str) -> bool:
    """Return whether the command of a process ends with an argument."""
    space, end = (b"\0", b"\0") if _PROC.is_dir() else (b" ", b"\n")
    return _command(pid).endswith(space + os.fsencode(argument) + end)


def _command(pid: int) -> bytes:
    """Return the command of a process with its arguments; empty if there is none, or none yet."""
    if not _PROC.is_dir():
        return os.fsencode(_by_ps(pid, "command="))
    try:
        return (_PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return b""


def _by_ps(pid: int, columns: str) -> str:
    """Return what ps shows of a process, on systems without /proc."""
    command = ["ps", "-ww", "-o", columns, "-p", str(pid)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout
