"""The kinds of output and the classes that write them, for the options of `kraftwire decode`.

A kind's module is imported when it is asked for.
"""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from importlib import import_module
from io import TextIOWrapper
from typing import IO, Any

from kraftwire.capture.limits import SHOWN_BYTES_FREE, SHOWN_BYTES_RATIO
from kraftwire.decode.body.records import Settings
from kraftwire.decode.body.size_limits import Shown
from kraftwire.decode.jsonl import JsonLines
from kraftwire.decode.sinks import Sink

__all__ = ["SHOWN", "Output", "is_coloured", "make_sink", "standard_output"]


class Output(StrEnum):
    """A kind of output; the value names the class that writes it, if it is one for people.

    Such a class is made with the stream to write to and the keywords `topics` (`TopicNames`),
    `is_coloured`, `is_full` (cut nothing off), `is_live` (each line is written at once) and
    `show_secrets`, of which it uses what it needs.
    """

    JSONL = "jsonl"
    LINE = "kraftwire.inspect.lines.line:LineWriter"
    COLUMNS = "kraftwire.inspect.lines.columns:ColumnWriter"
    TREE = "kraftwire.inspect.trees.tree:TreeWriter"
    BYTES = "kraftwire.inspect.bytes.hexdump:BytesWriter"
    STATS = "kraftwire.inspect.stats:StatsWriter"
    STATS_JSON = "kraftwire.inspect.stats:StatsJsonWriter"
    DATA = "kraftwire.inspect.payload.writer:DataWriter"
    DATA_JSON = "kraftwire.inspect.payload.writer:DataJsonWriter"
    TEMPLATE = "kraftwire.inspect.payload.writer:TemplateWriter"
    GROUPS = "kraftwire.inspect.stories.groups.writer:GroupsWriter"
    GROUPS_JSON = "kraftwire.inspect.stories.groups.writer:GroupsJsonWriter"
    TRANSACTIONS = "kraftwire.inspect.stories.transactions.writer:TransactionsWriter"
    TRANSACTIONS_JSON = "kraftwire.inspect.stories.transactions.writer:TransactionsJsonWriter"
    TOPICS = "kraftwire.inspect.stories.topics.writer:TopicsWriter"
    TOPICS_JSON = "kraftwire.inspect.stories.topics.writer:TopicsJsonWriter"
    RAFT = "kraftwire.inspect.stories.raft.writer:RaftWriter"
    RAFT_JSON = "kraftwire.inspect.stories.raft.writer:RaftJsonWriter"


# The memory that one frame may need, by the form that its structs and values take.
SHOWN = {
    Output.JSONL: Shown(250, 60, SHOWN_BYTES_FREE, SHOWN_BYTES_RATIO),
    Output.TREE: Shown(250, 60, SHOWN_BYTES_FREE, SHOWN_BYTES_RATIO),
    Output.BYTES: Shown(700, 700, SHOWN_BYTES_FREE, SHOWN_BYTES_RATIO),
}


def make_sink(
    output: Output,
    settings: Settings,
    *,
    is_live: bool,
    is_full: bool = False,
    out: Any = None,
    **more: object,
) -> Sink:
    """Return the sink of a kind of output, which writes to standard output.

    It writes through `out` if there is one, such as a stream of several processes. With `is_full`
    nothing long is cut off; `more` are the arguments of kinds that need more.
    """
    stream: Any = out or standard_output(output)
    if output is Output.JSONL:
        return JsonLines(stream, is_live=is_live, settings=settings)
    module, _, name = output.value.partition(":")
    writer = getattr(import_module(module), name)
    sink: Sink = writer(
        stream,
        topics=settings.topics,
        is_coloured=is_coloured(),
        is_full=is_full,
        is_live=is_live,
        show_secrets=settings.show_secrets,
        records=settings.records,
        **more,
    )
    return sink


def standard_output(output: Output) -> IO[Any]:
    """Return standard output as a kind of output needs it."""
    if output is Output.JSONL:
        return sys.stdout.buffer
    if isinstance(sys.stdout, TextIOWrapper):
        # Names are UTF-8 on the wire; a terminal of another kind must not end the run.
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    return sys.stdout


def is_coloured() -> bool:
    """Whether the output has colours."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ
