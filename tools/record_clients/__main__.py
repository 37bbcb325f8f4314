"""``python -m tools.record_clients FILE``: record ten client libraries on one real Kafka."""

from __future__ import annotations

import lzma
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click

from tests.interop.clients import brokers, matrix
from tools.capture.kafka import recorded_kafka

# Clients that overlap as in a real cluster, but do not time out on a machine with two processors.
_AT_ONCE = 4


# The tools start a JVM that says nothing of everyday traffic.
CLIENTS = {client.name: client for client in matrix.CLIENTS if client.name != "Kafka's tools"}


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("path", type=click.Path(path_type=Path), metavar="FILE")
@click.argument("names", nargs=-1)
def main(path: Path, names: tuple[str, ...]) -> None:
    """Record the clients, all by default, into FILE: a pcapng file packed with xz."""
    if unknown := set(names) - CLIENTS.keys():
        raise click.UsageError(f"no client {', '.join(unknown)}; there are {', '.join(CLIENTS)}")
    # Built before the recording, as compilers would take the time of the node.
    commands = {name: CLIENTS[name].traffic() for name in names or CLIENTS}
    with tempfile.TemporaryDirectory(prefix="kraftwire-clients-") as folder:
        capture = Path(folder, "clients.pcapng")
        with (
            recorded_kafka(capture, Path(folder), {}) as server,
            ThreadPoolExecutor(_AT_ONCE) as pool,
        ):
            problems = list(pool.map(lambda name: _run(name, commands[name], server), commands))
        if any(problems):
            raise click.ClickException("\n".join(filter(None, problems)))
        path.write_bytes(lzma.compress(capture.read_bytes(), preset=9))
    click.echo(f"{path}: {path.stat().st_size:,} bytes")


def _run(name: str, command: Sequence[str], server: str) -> str:
    """Run a client to its end; returns what went wrong."""
    outcome = matrix.run_client(command, server, brokers.STEPS)
    click.echo(f"{name}: {'ok' if outcome.is_ok else 'failed'}", err=True)
    failed = {step: each.detail for step, each in outcome.steps.items() if not each.is_ok}
    return f"{name}: {failed}" if failed else ""


if __name__ == "__main__":
    main()
