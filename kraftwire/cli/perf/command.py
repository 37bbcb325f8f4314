"""`kraftwire perf`: the raft test server, as one process of a quorum or as all of them.

Owns the command's options and output; what runs is in `kraftwire.node.perf`, and several processes
in `nodes`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from kraftwire.cli.output import put
from kraftwire.errors import UsageError, WireError

if TYPE_CHECKING:
    from kraftwire.node.perf import Figures

_SHARES = {"p50": 0.5, "p75": 0.75, "p99": 0.99, "p999": 0.999}
_INT_MAX = 2**31 - 1
_NODES_MAX = 7


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


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
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
@click.option("--obeys-input", is_flag=True, hidden=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines for programs.")
def perf(
    config: str | None,
    nodes: int | None,
    throughput: int,
    record_size: int,
    replica_directory_id: bytes | None,
    duration: float | None,
    obeys_input: bool,
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
        from kraftwire.cli.perf.nodes import run_nodes

        options = [f"--throughput={throughput}", f"--record-size={record_size}"]
        options += [] if duration is None else [f"--duration={duration}"]
        return run_nodes(nodes, [*options, "--json"] if as_json else options)
    assert config is not None
    from kraftwire.node.perf import Load, run

    load = Load(
        throughput=throughput,
        record_size=record_size,
        duration=duration,
        obeys_input=obeys_input,
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
