"""`kraftwire perf`: the raft test server, as one process of a quorum or as all of them.

Owns the command's options and output, and for all nodes of a quorum their temporary folder, ports
and processes. These are shut down cleanly and do not outlive this process: each ends when its
standard input is closed. What runs in a node is in `kraftwire.node.perf`.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from kraftwire.cli.output import put
from kraftwire.errors import UsageError, WireError
from kraftwire.testing.ports import free_ports

if TYPE_CHECKING:
    from kraftwire.node.perf import Figures

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

_SHARES = {"p50": 0.5, "p75": 0.75, "p99": 0.99, "p999": 0.999}
_INT_MAX = 2**31 - 1
_NODES_MAX = 7


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
    command.append("--follows-input")
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


def _directory_id(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> bytes | None:
    from kraftwire.wire.json_form import uuid_from_text

    if value is None:
        return None
    try:
        uuid = uuid_from_text(value)
    except WireError:
        uuid = b""
    if not any(uuid):
        problem = f"{value!r} is not a uuid as kraftwire storage random-uuid prints it"
        raise click.BadParameter(problem, context, parameter)
    return uuid


@click.command()
@click.option("--config", metavar="FILE", help="Run one node, with this properties file.")
@click.option(
    "--nodes",
    type=click.IntRange(1, _NODES_MAX),
    help="Start this many nodes on free loopback ports, with logs in a temporary folder.",
)
@click.option(
    "--throughput",
    type=click.IntRange(1, _INT_MAX),
    default=5000,
    show_default=True,
    help="Records per second that the leader appends.",
)
@click.option(
    "--record-size",
    type=click.IntRange(1, _INT_MAX),
    default=256,
    show_default=True,
    help="Bytes of each record's value, all zero.",
)
@click.option(
    "--replica-directory-id",
    callback=_directory_id,
    metavar="UUID",
    help="The node's directory id; without it, the directory's own or a random one.",
)
@click.option(
    "--duration", type=click.FloatRange(0, min_open=True), help="Stop after this many seconds."
)
@click.option("--follows-input", is_flag=True, hidden=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines for programs.")
def perf(
    config: str | None,
    nodes: int | None,
    throughput: int,
    record_size: int,
    replica_directory_id: bytes | None,
    duration: float | None,
    follows_input: bool,
    as_json: bool,
) -> int:
    """Measure a quorum under load.

    The leader appends records at a given rate and prints a line every five seconds: the rate of
    commits, and the time from append to commit. With --config this process is one node of a quorum,
    whose other nodes may run Kafka's kafka.tools.TestRaftServer; with --nodes it starts all of
    them.

    \b
      kraftwire perf --nodes 3
      kraftwire perf --config node-1.properties --throughput 20000
    """
    if (config is None) == (nodes is None):
        raise UsageError("expected either --config FILE or --nodes N")
    if nodes is not None:
        if replica_directory_id is not None:
            raise UsageError("--replica-directory-id applies to one node: use it with --config")
        from kraftwire.cli.perf import run_nodes

        options = [f"--throughput={throughput}", f"--record-size={record_size}"]
        options += [] if duration is None else [f"--duration={duration}"]
        return run_nodes(nodes, [*options, "--json"] if as_json else options)
    assert config is not None
    from kraftwire.node.perf import Load, run

    load = Load(
        throughput=throughput,
        record_size=record_size,
        duration=duration,
        follows_input=follows_input,
    )
    return run(config, load, _print_json if as_json else _print_text, replica_directory_id)


def _print_text(figures: Figures) -> None:
    latencies = " ".join(f"{name} {figures.latency_ms(q)}" for name, q in _SHARES.items())
    put(
        f"epoch {figures.epoch}: {figures.records_per_second:,.0f} records/s, "
        f"{figures.megabytes_per_second:.2f} MB/s, latency (ms): {latencies}"
    )


def _print_json(figures: Figures) -> None:
    answer = {
        "epoch": figures.epoch,
        "seconds": round(figures.seconds, 3),
        "records": figures.records,
        "recordSize": figures.record_size,
        "latencyMs": {name: figures.latency_ms(share) for name, share in _SHARES.items()},
        "histogramMs": {str(ms): count for ms, count in sorted(figures.latencies.items())},
    }
    put(json.dumps(answer))
