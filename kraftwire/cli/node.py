"""`kraftwire node start`: run a node in the foreground."""

from __future__ import annotations

import click

from kraftwire.errors import UsageError


@click.group()
def node() -> None:
    """Run a node of a quorum."""


@node.command()
@click.argument("file", required=False, metavar="FILE")
@click.option("--config", metavar="FILE", help="The same, as an option.")
@click.option(
    "--override",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Override a property of the file; repeatable.",
)
def start(file: str | None, config: str | None, overrides: tuple[str, ...]) -> int:
    """Start a node and run it until SIGTERM or SIGINT.

    FILE has the node's properties: a server.properties, or one for Kafka's raft module.
    A line on standard error for each listener says that it accepts connections; the node's log
    follows there. With process.roles in the file the log directory has to be formatted first, with
    kraftwire storage format; without it the node formats the directory itself.
    SIGUSR1 makes a leader hand over, and go on as a follower.

    Who may connect and do what is set by Kafka's own properties: listener.security.protocol.map,
    ssl., sasl., authorizer.class.name. What a node cannot do of these ends the start.
    """
    if (file is None) == (config is None):
        found = "nothing" if file is None else f"{file} and --config {config}"
        raise UsageError(f"expected the properties file of one node, found {found}")
    from kraftwire.node.config import load

    settings = load(file or config or "", overrides)
    from kraftwire.node.app import run

    return run(settings)
