"""`kraftwire storage recover`: a way out of a lost majority of controllers."""

from __future__ import annotations

import os
import time
from pathlib import Path

import click

from kraftwire.cli.contradictions import contradictions
from kraftwire.cli.output import put, say
from kraftwire.errors import KraftwireError, UsageError
from kraftwire.log.files import LocalFiles
from kraftwire.log.names import parent
from kraftwire.node.config import load
from kraftwire.node.directories import directories_of
from kraftwire.replica.lost_majority.plan import Recovery, plan_recovery
from kraftwire.replica.lost_majority.survivors import ControllerNode, locked, read_survivor
from kraftwire.replica.lost_majority.text import next_lines, plan_lines, voters_line
from kraftwire.replica.lost_majority.writing import carry_out

_PLANNED = 3


@click.command()
@click.option(
    "--config",
    "-c",
    "configs",
    required=True,
    multiple=True,
    metavar="FILE",
    help="The properties file of a controller that survived; once for each.",
)
@click.option("--yes", is_flag=True, help="Write what the plan says.")
@click.pass_context
def recover(context: click.Context, configs: tuple[str, ...], yes: bool) -> None:
    """Recover a quorum that lost its majority for good.

    This takes the logs that survived. All controllers are stopped. Shows which surviving log is the
    furthest, what may be missing, and what will be written; exit code 3. With --yes it is written;
    exit code 0. Exit code 1 if a directory is in use, damaged, or of another cluster; then nothing
    is changed.

    \b
      kraftwire storage recover -c node1.properties -c node2.properties
      kraftwire storage recover -c node1.properties -c node2.properties --yes
    """
    try:
        nodes = [_node(path) for path in configs]
        _check_distinct(nodes)
        with locked(nodes, LocalFiles(), make=yes):
            recovery = plan_recovery([read_survivor(node, LocalFiles()) for node in nodes])
            put(*plan_lines(recovery))
            if not recovery.is_done:
                _go_on(context, recovery, yes)
    except KraftwireError as error:
        raise click.ClickException(str(error)) from error


def _check_distinct(nodes: list[ControllerNode]) -> None:
    """Raises: UsageError if a directory would be recovered twice."""
    seen: dict[str, str | None] = {}
    for node in nodes:
        directory = os.path.realpath(node.directories.metadata)
        if directory in seen:
            raise UsageError(
                f"{seen[directory]} and {node.directories.source} name the same directory, "
                f"{directory}: give each survivor's file once"
            )
        seen[directory] = node.directories.source


def _go_on(context: click.Context, recovery: Recovery, yes: bool) -> None:
    _check_places(recovery)
    _check_records(recovery)
    if not yes:
        say("kraftwire storage: nothing was changed; add --yes to write this")
        context.exit(_PLANNED)
    if recovery.unset:
        files = ", ".join(one.node.directories.source for one in recovery.unset)
        line = voters_line(recovery.voters)
        raise UsageError(f"set {line} in {files} first; nothing was changed")
    put("")
    for line in carry_out(recovery, LocalFiles(), int(time.time() * 1000)):
        put(line)
    put("", *next_lines(recovery))


def _node(path: str) -> ControllerNode:
    """Return what a properties file says. Raises: UsageError if it is not a controller's."""
    config = load(path)
    if not config.is_controller:
        raise UsageError(f"{path}: expected a controller in process.roles, found a broker alone")
    endpoints = tuple(filter(None, map(config.endpoint, config.controller_listeners)))
    for endpoint in endpoints:
        if not endpoint.is_usable:
            found = f"{endpoint.host}:{endpoint.port} for {endpoint.listener}"
            raise UsageError(f"{path}: expected an address that others can reach, found {found}")
    return ControllerNode(
        directories=directories_of(config),
        endpoints=endpoints,
        static_voters=config.voters,
    )


def _check_records(recovery: Recovery) -> None:
    """Refuse a log that nobody would lead. Raises: UsageError."""
    found = contradictions(Path(recovery.furthest.node.partition))
    if found:
        raise UsageError("\n".join([*found, "nothing was changed"]))


def _check_places(recovery: Recovery) -> None:
    """Refuse directories beside which nothing can be kept. Raises: UsageError."""
    kept = list(recovery.set_aside)
    if not recovery.is_written:
        kept.append(recovery.furthest)
    for one in kept:
        directory = one.node.directories.metadata
        beside = parent(directory)
        owner = os.stat(directory).st_uid
        if os.geteuid() == 0 and owner != 0:
            raise UsageError(
                f"{directory} belongs to user {owner}, and files that root writes are not that "
                f"user's: run the command as the node's user, such as with sudo -u '#{owner}'"
            )
        if os.stat(directory).st_dev != os.stat(beside).st_dev or os.path.islink(directory):
            raise UsageError(
                f"{directory} is a mount point or a link, and its log is kept beside it: name the "
                "directory itself, or move what is in it into a directory below, and set log.dirs "
                "and metadata.log.dir to that"
            )
        if not os.access(beside, os.W_OK):
            raise UsageError(f"{beside} cannot be written to: what is in {directory} is kept there")
