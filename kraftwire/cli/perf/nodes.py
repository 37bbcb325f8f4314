"""All nodes of a test quorum: their files, their processes, and their shutdown.

Owns the temporary folder, free ports and the children. Child processes are shut down cleanly and do
not outlive this process: each ends when its standard input is closed.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import FrameType

from kraftwire.testing.ports import free_ports

_HOST = "127.0.0.1"
_POLL_SECONDS = 0.05
# The last leader has no voter to hand over to, and need not wait.
_HANDOVER_SECONDS = 1.0
_STOP_SECONDS = 10.0

# A node at the very end of its shutdown no longer catches the signal.
_FINE = (0, -signal.SIGTERM)

_CONFIG = """\
node.id={node_id}
listeners=CONTROLLER://{host}:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT
controller.quorum.voters={voters}
log.dirs={log_dir}
"""


def run_nodes(count: int, options: Sequence[str]) -> int:
    """Run a quorum until SIGTERM or SIGINT, or until its first node ends; returns the exit code.

    `options` are those of each node. Returns 1 if a node failed. The output of all nodes is
    printed.
    """
    stopping = _Stopping()
    with tempfile.TemporaryDirectory(prefix="kraftwire-perf-") as name:
        configs = _write_configs(Path(name), count)
        with ExitStack() as stack:
            nodes = [stack.enter_context(_start(config, options)) for config in configs]
            stack.callback(_stop, nodes)
            while not (stopping.is_asked or any(node.poll() is not None for node in nodes)):
                time.sleep(_POLL_SECONDS)
            _stop(nodes)
        return int(any(node.returncode not in _FINE for node in nodes))


class _Stopping:
    """Catches SIGTERM and SIGINT from its construction on, and tells whether one has arrived."""

    def __init__(self) -> None:
        self.is_asked = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._ask)

    def _ask(self, _number: int, _frame: FrameType | None) -> None:
        self.is_asked = True


def _write_configs(folder: Path, count: int) -> list[Path]:
    ports = free_ports(count)
    voters = ",".join(f"{node_id}@{_HOST}:{port}" for node_id, port in enumerate(ports, 1))
    paths = []
    for node_id, port in enumerate(ports, 1):
        path = folder / f"node-{node_id}.properties"
        log_dir = folder / f"log-{node_id}"
        path.write_text(
            _CONFIG.format(node_id=node_id, host=_HOST, port=port, voters=voters, log_dir=log_dir)
        )
        paths.append(path)
    return paths


def _start(config: Path, options: Sequence[str]) -> subprocess.Popen[bytes]:
    # In a separate process group, so that Ctrl-C reaches only this process, which stops the nodes.
    command = [sys.executable, "-m", "kraftwire", "perf", f"--config={config}", *options]
    command.append("--obeys-input")
    return subprocess.Popen(command, stdin=subprocess.PIPE, process_group=0)


def _stop(nodes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Stop all nodes together: cleanly, else at once, else by force."""
    for seconds in (_HANDOVER_SECONDS, _STOP_SECONDS):
        running = [node for node in nodes if node.poll() is None]
        for node in running:
            node.terminate()
        _wait(running, seconds)
    for node in nodes:
        node.kill()
        node.wait()


def _wait(nodes: Sequence[subprocess.Popen[bytes]], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    for node in nodes:
        with suppress(subprocess.TimeoutExpired):
            node.wait(max(0.0, deadline - time.monotonic()))
