"""`kraftwire quorum`: describe and watch the metadata quorum, add and remove voters.

Owns the subcommands; flags, output and exit codes are those of kafka-metadata-quorum.
"""

from __future__ import annotations

import json
import time
from typing import Any

import click

from kraftwire.cli.output import put, put_columns
from kraftwire.cli.quorum.controller import read_controller
from kraftwire.cli.quorum.options import (
    QuorumConnection,
    TerseError,
    connection_options,
    join_options,
    read_config,
)
from kraftwire.cli.quorum.output import (
    endpoint_text,
    quorum_json,
    replication_lines,
    status_lines,
)
from kraftwire.client import Admin, QuorumInfo
from kraftwire.errors import ApiError, WireError
from kraftwire.protocol.error_codes import ErrorCode, error_name
from kraftwire.wire.json_form import uuid_from_text

_LOOK_S = 0.1
# A quorum whose voters do not change, or one without this voter.
_NO_VOTER = (ErrorCode.UNSUPPORTED_VERSION, ErrorCode.VOTER_NOT_FOUND)


@click.group()
@connection_options
@click.pass_context
def quorum(context: click.Context, /, **options: Any) -> None:
    """Describe and watch the metadata quorum, add and remove controllers.

    Connection options may stand before or after the subcommand.

    \b
      kraftwire quorum describe --status --bootstrap-server localhost:9092
      kraftwire quorum --bootstrap-server localhost:9092 describe --replication
      kraftwire quorum watch --bootstrap-controller localhost:9093,localhost:9094
    """
    context.obj = options


@quorum.command()
@click.option("--status", "is_status", is_flag=True, help="A summary in eight lines.")
@click.option("--replication", "is_replication", is_flag=True, help="A line for each replica.")
@click.option("--describe", "view", type=click.Choice(["status", "replication"]),
              help="The same two, as KIP-595 spells them.")
@click.option("--human-readable", is_flag=True, help="Show times relative to now.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as one JSON object.")
@connection_options
@click.pass_context
def describe(
    context: click.Context,
    /,
    is_status: bool,
    is_replication: bool,
    view: str | None,
    human_readable: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Show the leader, the log, and the lag of each replica.

    Waits for a leader up to --timeout; the exit code is 0 only if there is one.
    """
    is_status = is_status or view == "status"
    is_replication = is_replication or view == "replication"
    if is_status and is_replication:
        raise TerseError(
            "Only one of --status or --replication should be specified with describe sub-command"
        )
    if not (is_status or is_replication or as_json):
        raise TerseError(
            "One of --status or --replication must be specified with describe sub-command"
        )
    if is_status and human_readable:
        raise TerseError(
            "The option --human-readable is only supported along with --replication"
        )
    connection = join_options(context.obj, options)
    if is_replication and not as_json:
        info = connection.admin().describe_quorum()
        now_ms = time.time_ns() // 1_000_000 if human_readable else None
        put_columns(*replication_lines(info, now_ms))
    else:
        put(*_described(connection, as_json=as_json))


def _cluster_id(connection: QuorumConnection) -> str:
    """Return the cluster's id, which the first leader of a new quorum writes after its election."""
    while not (found := connection.admin().describe_cluster().cluster_id) and connection.left_s:
        time.sleep(_LOOK_S)
    return found


def _described(connection: QuorumConnection, *, as_json: bool) -> list[str]:
    info = connection.admin().describe_quorum()
    cluster_id = _cluster_id(connection)
    if as_json:
        return [json.dumps(quorum_json(info, cluster_id))]
    return status_lines(info, cluster_id)


@quorum.command()
@click.option("--interval", type=click.FloatRange(min=0.1), default=1.0, show_default=True,
              metavar="SECONDS", help="Time between two samples.")
@click.option("--count", type=click.IntRange(min=1), metavar="N",
              help="Stop after this many samples.")
@connection_options
@click.pass_context
def watch(
    context: click.Context, /, interval: float, count: int | None, **options: Any
) -> None:
    """Show the quorum live.

    That is leader, epoch, high watermark, and the lag of each replica. Stop it with Ctrl-C. If the
    output is not a terminal, each sample is one line.
    """
    from kraftwire.cli.quorum.watch import watch_quorum

    watch_quorum(join_options(context.obj, options), interval, count)


@quorum.command("add-controller")
@click.option("--config", "-c", "config_path", metavar="FILE",
              help="The controller's properties, if --command-config has only the client's.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@connection_options
@click.pass_context
def add_controller(
    context: click.Context, /, config_path: str | None, dry_run: bool, **options: Any
) -> None:
    """Add a controller as a voter.

    --command-config is the controller's properties file. The controller must be
    running, on a formatted log directory of this machine, and must have caught up
    with the leader.
    """
    connection = join_options(context.obj, options)
    admin = connection.admin()
    if connection.config_path is None and config_path is None:
        raise TerseError(
            "You must supply the configuration file of the controller you are adding when using "
            "add-controller."
        )
    added = read_controller(read_config(config_path) if config_path else connection.config)
    if not dry_run:
        admin.add_raft_voter(added.id, added.directory_id, added.endpoints)
    done = "DRY RUN of adding" if dry_run else "Added"
    endpoints = ", ".join(map(endpoint_text, added.endpoints))
    put(
        f"{done} controller {added.id} with directory id {added.directory_id} "
        f"and endpoints: {endpoints}"
    )


@quorum.command("remove-controller")
@click.option("-i", "--controller-id", type=int, required=True, help="Its node id.")
@click.option("-d", "--controller-directory-id",
              help="Its directory id; needed only if several voters have its node id.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@click.option("--unregister", is_flag=True,
              help="Then remove its registration too, from metadata.version 33 (4.4-IV2) on.")
@connection_options
@click.pass_context
def remove_controller(
    context: click.Context,
    /,
    controller_id: int,
    controller_directory_id: str | None,
    dry_run: bool,
    unregister: bool,
    **options: Any,
) -> None:
    """Remove a controller from the voters.

    It may then be shut down. One that still runs registers again, so shut it down before
    --unregister.
    """
    connection = join_options(context.obj, options)
    if controller_id < 0:
        raise TerseError(f"Invalid negative --controller-id: {controller_id}")
    directory_id = controller_directory_id
    if directory_id is None:
        directory_id = _only_directory(connection.admin().describe_quorum(), controller_id)
    try:
        uuid_from_text(directory_id)
    except WireError as error:
        raise TerseError(
            f"Failed to parse --controller-directory-id: {directory_id} is not a uuid: "
            "expected 22 characters"
        ) from error
    if not dry_run:
        _remove_voter(connection.admin(), controller_id, directory_id, unregister)
    done = "DRY RUN of removing" if dry_run else "Removed"
    put(f"{done} KRaft controller {controller_id} with directory id {directory_id}")
    if unregister:
        if not dry_run:
            _unregister(connection.admin(), controller_id)
        done = "DRY RUN of unregistering" if dry_run else "Unregistered"
        put(f"{done} KRaft controller {controller_id}")


def _remove_voter(admin: Admin, controller_id: int, directory_id: str, unregister: bool) -> None:
    """Remove a voter. With `unregister`, say what to do where there is no such voter to remove."""
    try:
        admin.remove_raft_voter(controller_id, directory_id)
    except ApiError as error:
        if not unregister or error.code not in _NO_VOTER:
            raise
        what = f"remove KRaft voter {controller_id}"
        raise _unregistration_left(what, error, controller_id) from error


def _unregister(admin: Admin, controller_id: int) -> None:
    try:
        admin.unregister_controller(controller_id)
    except ApiError as error:
        what = f"unregister controller {controller_id}"
        raise _unregistration_left(what, error, controller_id) from error


def _unregistration_left(what: str, error: ApiError, controller_id: int) -> TerseError:
    """Return the error of Kafka's tool, which names its own command for what is left to do."""
    reason = error.detail.removeprefix(f"{error_name(error.code)}: ")
    return TerseError(
        f"Failed to {what}: {reason}. To unregister the controller from the cluster, "
        f"run `kafka-cluster.sh unregister-controller --id {controller_id}`."
    )


def _only_directory(quorum: QuorumInfo, controller_id: int) -> str:
    """Return the directory id of the only voter with a node id."""
    found = [voter.directory_id for voter in quorum.voters if voter.id == controller_id]
    if len(found) == 1:
        return found[0]
    if found:
        listed = ", ".join(found)
        raise TerseError(
            f"{len(found)} voters have the node id {controller_id}: choose one with "
            f"--controller-directory-id: {listed}"
        )
    voters = ", ".join(str(voter.id) for voter in quorum.voters)
    raise TerseError(f"controller {controller_id} is not among the voters: {voters}")
