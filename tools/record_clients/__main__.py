"""``python -m tools.record_clients FILE``: record ten client libraries on one real Kafka."""

from __future__ import annotations

import lzma
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click

from tests.interop.clients.builds import go_command, node_command
from tests.interop.clients.matrix import java_command
from tools.capture.kafka import recorded_kafka

_CLIENT_SECONDS_MAX = 300
# Clients that overlap as in a real cluster, but do not time out on a machine with two processors.
_AT_ONCE = 4


def _python(module: str) -> Callable[[], Sequence[str]]:
    return lambda: (sys.executable, "-m", f"tests.interop.clients.traffic.{module}")


CLIENTS: dict[str, Callable[[], Sequence[str]]] = {
    "java": java_command("kraftwire.ClientTraffic", folder="clients"),
    "franz-go": go_command("traffic/franzgo"),
    "sarama": go_command("traffic/sarama"),
    "kafka-go": go_command("traffic/kafkago"),
    "kafkajs": node_command("traffic_kafkajs"),
    "platformatic": node_command("traffic_platformatic"),
    "librdkafka": _python("confluent"),
    "kafka-python": _python("kafka_python"),
    "aiokafka": _python("aiokafka_"),
    "kcat": _python("kcat"),
}


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("path", type=click.Path(path_type=Path), metavar="FILE")
@click.argument("names", nargs=-1)
def main(path: Path, names: tuple[str, ...]) -> None:
    """Record the clients, all by default, into FILE: a pcapng file packed with xz."""
    if unknown := set(names) - CLIENTS.keys():
        raise click.UsageError(f"no client {', '.join(unknown)}; there are {', '.join(CLIENTS)}")
    # Built before the recording, as compilers would take the time of the node.
    commands = {name: CLIENTS[name]() for name in names or CLIENTS}
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
    try:
        done = subprocess.run(
            [*command, server],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_CLIENT_SECONDS_MAX,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"{name}: no end after {_CLIENT_SECONDS_MAX} s"
    click.echo(f"{name}: exit code {done.returncode}", err=True)
    return f"{name}: {done.stderr[-2000:]}" if done.returncode else ""


if __name__ == "__main__":
    main()
