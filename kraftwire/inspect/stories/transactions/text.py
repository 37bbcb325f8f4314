"""The story of transactions for people."""

from __future__ import annotations

from typing import TextIO

from kraftwire.decode.text import (
    GREEN,
    RED,
    YELLOW,
    count_text,
    duration_text,
    listed,
    size_text,
)
from kraftwire.inspect.stories.fitting import write_fitted
from kraftwire.inspect.stories.text import event_lines, head_line, width_of, write_lines
from kraftwire.inspect.tables import Table, wants_colour
from kraftwire.story.transactions import TransactionStory

__all__ = ["write_transactions"]

_STYLES = {"abort": YELLOW, "commit": GREEN, "error": RED, "open": RED}
_SLOWEST_SHOWN = 10


def write_transactions(story: TransactionStory, start: float, end: float, stream: TextIO) -> None:
    """Write all sections of the story."""
    is_coloured, width = wants_colour(stream), width_of(stream)
    if not story.ids:
        write_lines(stream, ["Transactions: none was seen"])
        return
    head = head_line("Transactions", start, end, is_coloured=is_coloured)
    write_lines(stream, [f"{head}; {count_text(len(story.ids), 'transactional id')}", ""])
    events = event_lines(
        story.events.in_order(), start, width=width, overflow=story.events.overflow,
        styles=_STYLES if is_coloured else None,
    )
    if events:
        write_lines(stream, [*events, ""])
    for table in (_ids(story), _slowest(story, start, end)):
        if table.rows:
            write_fitted(table, stream, width)
    if story.overflow:
        count = count_text(story.overflow, "request")
        write_lines(stream, [f"There were more transactional ids than are kept: {count}."])


def _ids(story: TransactionStory) -> Table:
    head = (
        "id", "committed", "aborted", "open", "refused", "mean", "longest",
        "records", "bytes", "clients",
    )
    table = Table("By transactional id", head, right=range(1, 9), optional=(0, 9))
    for each in sorted(story.ids.values(), key=lambda known: known.id):
        ended = each.ended
        aborted = ended["aborted"] + ended["aborted by the coordinator"]
        count = ended["committed"] + aborted
        table.rows.append(
            (
                each.id,
                *(f"{n:,}" if n else "" for n in (ended["committed"], aborted, ended["open"])),
                f"{each.refused:,}" if each.refused else "",
                duration_text(each.total / count) if count else "",
                duration_text(each.longest) if count else "",
                f"{each.records:,}" if each.records else "",
                size_text(each.size) if each.size else "",
                listed(sorted(each.clients)) if each.clients else "",
            )
        )
    return table


def _slowest(story: TransactionStory, start: float, end: float) -> Table:
    head = ("id", "from", "took", "ended", "epoch", "partitions", "records")
    table = Table("Longest transactions", head, right=(1, 2, 4, 5, 6), optional=(0, 3))
    longest = sorted(story.transactions, key=lambda each: -each.seconds(end))
    for each in longest[:_SLOWEST_SHOWN]:
        table.rows.append(
            (
                each.id,
                f"{each.start - start:+.3f}",
                duration_text(each.seconds(end)),
                each.ending,
                str(each.epoch),
                f"{len(each.partitions):,}",
                f"{each.records:,}",
            )
        )
    return table
