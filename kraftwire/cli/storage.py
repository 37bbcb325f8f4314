"""`kraftwire storage`: format a node's log directories, show what is in them, recover them.

Owns the arguments, which are kafka-storage's; the work is done in `kraftwire.log`.
"""

from __future__ import annotations

import secrets
import time
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from kraftwire.cli.contradictions import contradictions
from kraftwire.cli.output import put, say
from kraftwire.cli.recover import recover
from kraftwire.errors import UsageError
from kraftwire.log.files import LocalFiles
from kraftwire.log.format import FormatNode, FormatRequest, VotersFlag, format_directories
from kraftwire.log.info import storage_info
from kraftwire.log.uuids import random_uuid
from kraftwire.node.config import NodeConfig, load
from kraftwire.protocol.topic_names import METADATA_TOPIC
from kraftwire.wire.json_form import uuid_to_text

if TYPE_CHECKING:
    from kraftwire.messages.user_scram_credential_record import UserScramCredentialRecord


_CONFIG = click.option(
    "--config", "-c", required=True, metavar="FILE", help="The node's properties file."
)


class _Options(TypedDict):
    config: str
    cluster_id: str
    standalone: bool
    no_initial_controllers: bool
    initial_controllers: str | None
    ignore_formatted: bool
    release_version: str | None
    feature: tuple[str, ...]
    add_scram: tuple[str, ...]


@click.group()
def storage() -> None:
    """Format a node's log directories, show what is in them, recover from a lost majority.

    \b
      kraftwire storage random-uuid
      kraftwire storage format --cluster-id ID --config server.properties
      kraftwire storage info --config server.properties
      kraftwire storage recover -c node1.properties -c node2.properties
    """


storage.add_command(recover)


@storage.command()
@_CONFIG
@click.option("--cluster-id", "-t", required=True, metavar="ID", help="The cluster's id.")
@click.option("--standalone", "-s", is_flag=True, help="This controller is the only voter.")
@click.option("--no-initial-controllers", "-N", is_flag=True, help="The quorum exists already.")
@click.option(
    "--initial-controllers",
    "-I",
    metavar="VOTERS",
    help="The voters, the same text on every node: id@host:port:directory,...",
)
@click.option("--ignore-formatted", "-g", is_flag=True, help="Skip formatted directories.")
@click.option("--release-version", "-r", metavar="V", help="Features of this release of Kafka.")
@click.option("--feature", "-f", multiple=True, metavar="NAME=LEVEL", help="Set a feature.")
@click.option(
    "--add-scram",
    "-S",
    multiple=True,
    metavar="USER",
    help="A user who can log in by SCRAM; repeatable.",
)
def format(**options: Unpack[_Options]) -> None:
    """Format the log directories of a node.

    With controller.quorum.voters no further option is needed. Without it, a controller needs one
    of -s, -I, -N.

    Users for SCRAM are the same on every node; the first leader writes them into the log. A shell
    remembers passwords, but saltedpassword and salt, both in base64, can stand for one:

    \b
      --add-scram 'SCRAM-SHA-512=[name=alice,password=alice-secret]'
      --add-scram 'SCRAM-SHA-512=[name=bob,saltedpassword=...,salt=...]'
    """
    try:
        request = _request(options)
        node = _node(load(options["config"]))
        for line in format_directories(LocalFiles(), node, request, _warn):
            put(line)
    except UsageError as error:
        # Nothing is wrong with the command line as such: kafka-storage's code is 1 as well.
        raise click.ClickException(str(error)) from error


def _warn(problem: str) -> None:
    say(f"kraftwire storage: {problem}")


@storage.command()
@_CONFIG
@click.pass_context
def info(context: click.Context, config: str) -> None:
    """Show and check what the log directories of a node hold.

    Exit code 1 if something is wrong.

    A controller's log is opened as `kraftwire node start` does, without a change on disk, and its
    records are checked against those before them.
    """
    try:
        properties = load(config)
        node = _node(properties)
    except UsageError as error:
        raise click.ClickException(str(error)) from error
    lines, is_fine = storage_info(LocalFiles(), node, lambda: _log_problems(properties))
    put(*lines)
    if not is_fine:
        context.exit(1)


def _log_problems(config: NodeConfig) -> list[str]:
    """Return why a controller would not start, or not lead; tell what it would repair."""
    from kraftwire.node.directories import directories_of
    from kraftwire.replica.start_check import check_start, is_in_use

    if not config.is_controller:
        return []
    directories, files = directories_of(config), LocalFiles()
    if is_in_use(directories, files):
        _warn("a process uses the directories, so the log is not checked")
        return []
    check = check_start(directories, files)
    for repair in check.repairs:
        _warn(f"at a start: {repair}")
    if check.refusal is not None:
        return [check.refusal]
    return contradictions(Path(directories.metadata, f"{METADATA_TOPIC}-0"))


@storage.command("random-uuid")
def random_uuid_command() -> None:
    """Print a random uuid, for a cluster or a directory."""
    put(uuid_to_text(random_uuid()))


def _node(config: NodeConfig) -> FormatNode:
    endpoint = config.endpoint(config.listener_name) if config.is_controller else None
    return FormatNode(
        node_id=config.node_id,
        directories=config.log_dirs,
        metadata_directory=config.metadata_log_dir,
        is_controller=config.is_controller,
        has_static_voters=len(config.voters) > 0,
        listener=config.listener_name,
        endpoint=(endpoint.host, endpoint.port) if endpoint else None,
    )


def _users(arguments: tuple[str, ...]) -> tuple[UserScramCredentialRecord, ...]:
    if not arguments:
        return ()
    from kraftwire.security.scram_argument import parse_scram_arguments

    try:
        return parse_scram_arguments(arguments, secrets.token_bytes)
    except UsageError as error:
        # kafka-storage's code is 1, but here the command line alone is wrong.
        raise click.UsageError(f"{error}.") from error


def _request(options: _Options) -> FormatRequest:
    flags = {
        VotersFlag.STANDALONE: options["standalone"],
        VotersFlag.NO_INITIAL_CONTROLLERS: options["no_initial_controllers"],
        VotersFlag.INITIAL_CONTROLLERS: options["initial_controllers"] is not None,
    }
    chosen = [quorum for quorum, is_given in flags.items() if is_given]
    if len(chosen) > 1:
        first, second = chosen[:2]
        problem = f"argument {second.value}: not allowed with argument {first.value}"
        raise click.ClickException(problem)
    voters = options["initial_controllers"]
    return FormatRequest(
        cluster_id=options["cluster_id"],
        voters_flag=chosen[0] if chosen else VotersFlag.UNSAID,
        voters=() if voters is None else voters,
        ignore_formatted=options["ignore_formatted"],
        release=options["release_version"],
        features=options["feature"],
        users=_users(options["add_scram"]),
        now_ms=int(time.time() * 1000),
        # As Java prints a date.
        date=time.strftime("%a %b %d %H:%M:%S UTC %Y", time.gmtime()),
    )
