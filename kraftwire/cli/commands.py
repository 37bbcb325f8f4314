"""The table of commands: where each is defined, and what it is for."""

from __future__ import annotations

from kraftwire import __version__
from kraftwire.errors import UsageError

HELP_OPTIONS = ["-h", "--help"]

# Name -> where it is defined and what it is for. The attribute is a click command, or a function
# that takes the arguments after the command's name and returns the exit code.
COMMANDS: dict[str, tuple[str, str]] = {
    "decode": (
        "kraftwire.cli.decode:decode",
        "Show what is in captures, log segments, snapshots, state files.",
    ),
    "stats": (
        "kraftwire.cli.stats:stats",
        "Latency, size and error statistics per client and API.",
    ),
    "story": (
        "kraftwire.cli.story:story",
        "Reconstruct what happened to quorums, groups, topics and clients.",
    ),
    "metadata": (
        "kraftwire.cli.metadata:metadata",
        "Show the state of a cluster from its metadata log, now or then.",
    ),
    "records": (
        "kraftwire.cli.records:records",
        "Show keys, values and headers of records as text.",
    ),
    "diff": (
        "kraftwire.cli.diff:diff",
        "Show where two log directories, or two captures, diverge.",
    ),
    "message": (
        "kraftwire.cli.message:message",
        "Translate messages between bytes and JSON, one per line.",
    ),
    "schema": (
        "kraftwire.cli.schema.command:schema",
        "Show messages, their layout, and what changed between versions.",
    ),
    "cluster": (
        "kraftwire.cli.cluster:cluster",
        "Run brokers of Kafka on kraftwire controllers, on this machine.",
    ),
    "proxy": (
        "kraftwire.cli.proxy:proxy",
        "Let requests fail on their way to a cluster, by rules.",
    ),
    "node": (
        "kraftwire.cli.node:node",
        "Run a node of a quorum.",
    ),
    "storage": (
        "kraftwire.cli.storage:storage",
        "Format log directories, show what is in them, recover a lost quorum.",
    ),
    "quorum": (
        "kraftwire.cli.quorum.command:quorum",
        "Describe and watch the metadata quorum, change its controllers.",
    ),
    "perf": (
        "kraftwire.cli.perf:perf",
        "Measure a quorum under load: the raft test server.",
    ),
    "sim": (
        "kraftwire.cli.sim.command:sim",
        "Simulate whole clusters on virtual time, and check invariants.",
    ),
    "pipeline": (
        "kraftwire.cli.pipeline.command:pipeline",
        "Turn captures and log directories into tables, on Spark.",
    ),
}


# Commands in distributions of their own, which an installation may lack.
_DISTRIBUTIONS = {"sim": "kraftwire-sim"}


def load(name: str) -> object:
    """Import and return the command of a name in the table.

    Raises: UsageError if its distribution is not installed.
    """
    from importlib import import_module

    module, _, attribute = COMMANDS[name][0].partition(":")
    try:
        return getattr(import_module(module), attribute)
    except ModuleNotFoundError as error:
        package = module.rpartition(".")[0]
        if name not in _DISTRIBUTIONS or error.name != package:
            raise
        distribution = _DISTRIBUTIONS[name]
        text = f"{name} is not installed: pip install {distribution}=={__version__}"
        raise UsageError(text) from error
