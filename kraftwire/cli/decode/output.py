"""Which kind of output is made by what: the table behind the options of `kraftwire decode`.

A kind's module is imported when it is asked for.
"""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from importlib import import_module
from io import TextIOWrapper
from typing import Any

from kraftwire.decode.body.records import Settings
from kraftwire.decode.body.weight import Shown
from kraftwire.decode.exchange.paired import Paired
from kraftwire.decode.jsonl import JsonLines
from kraftwire.decode.limits import SHOWN_BYTES_FREE, SHOWN_BYTES_RATIO
from kraftwire.decode.run.share import Turned
from kraftwire.decode.run.sinks import Sink

__all__ = ["SHOWN", "Output", "make_sink"]


class Output(StrEnum):
    """A kind of output; the value names the class that writes it, if it is one for people.

    Such a class is made with the stream to write to and the keywords `topics` (`TopicNames`),
    `is_coloured`, `is_full` (cut nothing off), `is_live` (somebody waits for each line) and
    `show_secrets`, of which it uses what it needs.
    """

    JSONL = "jsonl"
    LINE = "kraftwire.decode.render.line:LineWriter"
    COLUMNS = "kraftwire.decode.render.columns:ColumnWriter"
    TREE = "kraftwire.decode.render.tree:TreeWriter"
    BYTES = "kraftwire.decode.render.hexdump:BytesWriter"
    STATS = "kraftwire.decode.render.stats:StatsWriter"
    STATS_JSON = "kraftwire.decode.render.stats:StatsJsonWriter"
    DATA = "kraftwire.decode.render.payload.writer:DataWriter"
    DATA_JSON = "kraftwire.decode.render.payload.writer:DataJsonWriter"
    TEMPLATE = "kraftwire.decode.render.payload.writer:TemplateWriter"
    GROUPS = "kraftwire.decode.render.groups.writer:GroupsWriter"
    GROUPS_JSON = "kraftwire.decode.render.groups.writer:GroupsJsonWriter"
    TRANSACTIONS = "kraftwire.decode.render.transactions.writer:TransactionsWriter"
    TRANSACTIONS_JSON = "kraftwire.decode.render.transactions.writer:TransactionsJsonWriter"
    TOPICS = "kraftwire.decode.render.topics.writer:TopicsWriter"
    TOPICS_JSON = "kraftwire.decode.render.topics.writer:TopicsJsonWriter"
    RAFT = "kraftwire.decode.render.raft.writer:RaftWriter"
    RAFT_JSON = "kraftwire.decode.render.raft.writer:RaftJsonWriter"


# What one frame may take, by what is made of its structs and values.
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
    turned: Turned | None = None,
    **more: object,
) -> Sink:
    """The sink of a kind of output, writing to standard output, or to a stream that keeps the order
    of what several processes write.

    Shape: `is_full` cuts off nothing that is long; `more` is for kinds that want to know more.
    """
    out: Any = turned
    if output is Output.JSONL:
        return JsonLines(out or sys.stdout.buffer, is_live=is_live)
    module, _, name = output.value.partition(":")
    if isinstance(sys.stdout, TextIOWrapper):
        # Names are UTF-8 on the wire; a terminal of another kind must not end the run.
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    writer = getattr(import_module(module), name)
    sink: Sink = writer(
        out or sys.stdout,
        topics=settings.topics,
        is_coloured=_is_coloured(),
        is_full=is_full,
        is_live=is_live or turned is not None,
        show_secrets=settings.show_secrets,
        **more,
    )
    if turned is not None and isinstance(sink, Paired):
        turned.turns = sink
    return sink


def _is_coloured() -> bool:
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ
