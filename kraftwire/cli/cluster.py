"""`kraftwire cluster`: real brokers of Kafka on kraftwire controllers, on this machine.

Owns the arguments and the output; `kraftwire.testing.cluster` does the work.
"""

from __future__ import annotations

import json
import shlex
import signal
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kraftwire.cli.background import StatusLine
from kraftwire.cli.output import put, say
from kraftwire.errors import KraftwireError

if TYPE_CHECKING:
    from rich.progress import ProgressColumn

    from kraftwire.testing.cluster.cluster import StoredCluster

_WATCH_S = 0.5

_dir_option = click.option(
    "--dir", "folder", type=click.Path(path_type=Path), metavar="DIR",
    help="The cluster's folder; by default kraftwire/cluster in the user's cache.",
)  # fmt: skip
_node_argument = click.argument("node", type=int, metavar="NODE")


class _Fetching(StatusLine):
    """A context that shows how many files Maven has fetched."""

    def __init__(self) -> None:
        self._count = 0
        super().__init__(quiet_s=0.5, interval_s=0.1)

    def at(self, count: int) -> None:
        """Note how many files there are."""
        self._count = count

    def text(self) -> str:
        """Return how many there are."""
        return f"Kafka, by Maven: {self._count} files"

    def columns(self) -> tuple[ProgressColumn, ...]:
        """Return a bar, which moves as nobody knows how many there will be."""
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn

        return TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()


@click.group()
def cluster() -> None:
    """Run Kafka's brokers on kraftwire controllers, on this machine, for development.

    \b
      kraftwire cluster up --detach
      kraftwire cluster status
      kraftwire cluster kill 1
      kraftwire cluster restart 1
      kraftwire cluster down

    Brokers need Java 17 or later; Kafka is fetched by Maven at first use, unless
    --kafka names an installation.
    """


@cluster.command()
@click.option("--controllers", type=click.IntRange(1, 9), default=3, show_default=True)
@click.option("--brokers", type=click.IntRange(0, 50), default=3, show_default=True)
@click.option("--kafka", type=click.Path(path_type=Path), metavar="DIR",
              help="An installation of Kafka 3.9 or later, or a folder with its jars.")
@_dir_option
@click.option("--detach", is_flag=True, help="Return once the cluster serves.")
def up(
    controllers: int, brokers: int, kafka: Path | None, folder: Path | None, detach: bool
) -> None:
    """Start a new cluster on free ports of this machine.

    Prints its addresses once every broker serves. It runs until Ctrl-C, or with
    --detach until kraftwire cluster down; both end all nodes and remove their data,
    as Ctrl-C during the start does.
    KAFKA_HEAP_OPTS and KAFKA_OPTS are options of the brokers' Java, as for Kafka's
    scripts.
    """
    stored = _stored(folder)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    jars = _jars(kafka) if brokers else None
    given = f" --dir {shlex.quote(str(stored.folder))}" if folder is not None else ""
    try:
        files = stored.up(jars, controllers, brokers)
        if brokers:
            put(f"bootstrap {files.addresses('broker')}")
        put(f"controllers {files.addresses('controller')}")
        if detach:
            say(f"kraftwire: stop it with kraftwire cluster down{given}")
            return
        say(f"kraftwire: stop it with Ctrl-C, look with kraftwire cluster status{given}")
        _watch(stored)
    except KraftwireError:
        raise  # its logs say more
    except BaseException:
        stored.undo()
        raise


def _watch(stored: StoredCluster) -> None:
    """Wait until a cluster is ended, by Ctrl-C or from elsewhere."""
    try:
        while stored.exists:
            time.sleep(_WATCH_S)
    except KeyboardInterrupt:
        stored.down()


@cluster.command()
@_dir_option
@click.option("--json", "as_json", is_flag=True, help="A JSON object per node.")
def status(folder: Path | None, as_json: bool) -> None:
    """Show every node: its address, its process, and what it does."""
    from kraftwire.inspect.tables import Table, width_of, write_table

    stored = _stored(folder)
    nodes = stored.status()
    if as_json:
        put(*(json.dumps(asdict(node)) for node in nodes))
        return
    table = Table(str(stored.folder), ("node", "role", "address", "pid", "state"), right=(0, 3))
    table.rows = [
        (str(node.id), node.role, node.address, str(node.pid or ""), node.state) for node in nodes
    ]
    write_table(table, sys.stdout, width_of(sys.stdout))


@cluster.command()
@_node_argument
@_dir_option
def kill(node: int, folder: Path | None) -> None:
    """End a node as a power cut does."""
    _stored(folder).kill(node)


@cluster.command()
@_node_argument
@_dir_option
def restart(node: int, folder: Path | None) -> None:
    """Stop a node cleanly if it runs, and start it again.

    It has the same port and data.
    """
    _stored(folder).restart(node)


@cluster.command()
@_dir_option
def down(folder: Path | None) -> None:
    """End all nodes and remove their data.

    Nothing else is ended or removed.
    """
    _stored(folder).down(lambda id: say(f"kraftwire: node {id} has ended"))


def _stored(folder: Path | None) -> StoredCluster:
    from kraftwire.testing.cluster.cluster import StoredCluster
    from kraftwire.testing.cluster.kafka import cache_folder

    return StoredCluster(cache_folder() / "cluster" if folder is None else folder)


def _jars(kafka: Path | None) -> Path:
    """Return the folder with Kafka's jars."""
    from kraftwire.testing.cluster.kafka import kafka_jars

    with _Fetching() as progress:
        return kafka_jars(kafka, progress.at)
