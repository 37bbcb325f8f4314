"""`kraftwire story`: what happened to a quorum, to groups, transactions, topics and clients."""

from __future__ import annotations

from typing import Any

import click

from kraftwire.cli.decoding import (
    GroupedCommand,
    input_options,
    log_file_options,
    quiet_option,
    reading,
    secrets_option,
    show,
)
from kraftwire.decode.filters.frames import topic_test

_json_option = click.option("--json", "as_json", is_flag=True, help="JSON instead of text.")


@click.group()
def story() -> None:
    """Reconstruct timelines from captures or log directories.

    \b
      kraftwire story raft trace.pcapng
      kraftwire story raft node-1/ node-2/ node-3/
      kraftwire story groups trace.pcapng --group orders --json
      kraftwire story transactions trace.pcapng
      kraftwire story topics trace.pcapng --topic orders
      kraftwire story clients trace.pcapng --client-id 'app-*'

    The exit code is that of decode.
    """


@story.command(cls=GroupedCommand)
@_json_option
@input_options
@log_file_options
@secrets_option
@quiet_option
def raft(as_json: bool, **options: Any) -> int:
    """Epochs, leaders, votes and voters of a KRaft quorum.

    FILE is a capture of the traffic between nodes, a metadata log or snapshot,
    or a folder of these: several log directories tell the story together.
    """
    from kraftwire.inspect.stories.raft import RaftWriter

    hidden = {"show_secrets": options["show_secrets"]}
    return show(
        reading(options), lambda _, stream: RaftWriter(stream, as_json=as_json, **hidden)
    )


@story.command(cls=GroupedCommand)
@_json_option
@input_options
@log_file_options
@quiet_option
def groups(as_json: bool, **options: Any) -> int:
    """Members, generations, assignments and lag of groups.

    FILE is a capture, a log directory with __consumer_offsets, or a folder of
    these.
    """
    from kraftwire.inspect.stories.groups import GroupsWriter

    return show(
        reading(options),
        lambda settings, stream: GroupsWriter(stream, topics=settings.topics, as_json=as_json),
    )


@story.command(cls=GroupedCommand)
@_json_option
@input_options
@quiet_option
def transactions(as_json: bool, **options: Any) -> int:
    """How long transactions took, and how they ended.

    FILE is a capture.
    """
    from kraftwire.inspect.stories.transactions import TransactionsWriter

    return show(
        reading(options),
        lambda settings, stream: TransactionsWriter(
            stream, topics=settings.topics, as_json=as_json
        ),
    )


@story.command(cls=GroupedCommand)
@_json_option
@input_options
@secrets_option
@quiet_option
def topics(as_json: bool, **options: Any) -> int:
    """Changes of topics, traffic by client, partitions, offsets.

    FILE is a capture.
    """
    from kraftwire.inspect.stories.topics import TopicsWriter

    what = reading(options)
    is_wanted_topic = topic_test(what.options.filters)
    return show(
        what,
        lambda settings, stream: TopicsWriter(
            stream,
            topics=settings.topics,
            as_json=as_json,
            show_secrets=settings.show_secrets,
            is_wanted_topic=is_wanted_topic,
        ),
    )


@story.command(cls=GroupedCommand)
@_json_option
@input_options
@quiet_option
def clients(as_json: bool, **options: Any) -> int:
    """Requests that failed, what was sent again, and how it ended.

    FILE is a capture, such as kraftwire proxy writes.
    """
    from kraftwire.inspect.stories.clients import ClientsWriter

    return show(
        reading(options),
        lambda settings, stream: ClientsWriter(stream, topics=settings.topics, as_json=as_json),
    )
