"""The story of topics for people."""

from __future__ import annotations

from collections import Counter
from typing import TextIO

from kraftwire.decode.text import RED, YELLOW, count_text, listed, size_text
from kraftwire.inspect.stories.fitting import write_fitted
from kraftwire.inspect.stories.text import event_lines, head_line, width_of, write_lines
from kraftwire.inspect.tables import Table, wants_colour
from kraftwire.story.topics import Topic, TopicStory

__all__ = ["write_topics"]

_STYLES = {"deleteTopics": YELLOW, "error": RED, "leader": YELLOW}
_ROWS_MAX = 200
_CLIENTS_SHOWN = 3


def write_topics(story: TopicStory, start: float, end: float, stream: TextIO) -> None:
    """Write all sections of the story."""
    is_coloured, width = wants_colour(stream), width_of(stream)
    if not story.topics:
        write_lines(stream, ["Topics: none was seen"])
        return
    head = head_line("Topics", start, end, is_coloured=is_coloured)
    write_lines(stream, [f"{head}; {count_text(len(story.topics), 'topic')}", ""])
    events = event_lines(
        story.events.in_order(), start, width=width, overflow=story.events.overflow,
        styles=_STYLES if is_coloured else None,
    )
    if events:
        write_lines(stream, [*events, ""])
    topics = sorted(
        story.topics.values(),
        key=lambda each: (-(each.produced_size + each.fetched_size), each.name),
    )
    seconds = max(end - start, 0.0)
    for table in (_traffic(topics, seconds), _clients(topics), _partitions(topics)):
        if table.rows:
            write_fitted(table, stream, width, rows_max=_ROWS_MAX)
    if story.overflow:
        count = count_text(story.overflow, "time")
        write_lines(stream, [f"There were more topics than are kept: {count}."])


def _traffic(topics: list[Topic], seconds: float) -> Table:
    head = (
        "topic", "produced", "bytes", "a record", "per second", "fetched", "bytes", "errors"
    )
    table = Table("Records, most bytes first", head, right=range(1, 8), optional=(0,))
    for each in topics:
        errors = sum(each.errors.values())
        if not (each.produced_records or each.fetched_records or errors):
            continue
        mean = each.produced_size / each.produced_records if each.produced_records else 0
        rate = each.produced_records / seconds if seconds else 0
        table.rows.append(
            (
                each.name,
                f"{each.produced_records:,}" if each.produced_records else "",
                size_text(each.produced_size) if each.produced_size else "",
                size_text(round(mean)) if mean else "",
                f"{rate:,.3g}" if rate else "",
                f"{each.fetched_records:,}" if each.fetched_records else "",
                size_text(each.fetched_size) if each.fetched_size else "",
                f"{errors:,}" if errors else "",
            )
        )
    return table


def _clients(topics: list[Topic]) -> Table:
    head = ("topic", "produced by", "in batches", "fetched by")
    table = Table("Who writes and who reads", head, optional=(0, 1, 2, 3))
    for each in topics:
        if each.produced_by or each.fetched_by:
            codecs = [
                name if len(each.compression) == 1 else f"{name} {count:,}"
                for name, count in each.compression.most_common()
            ]
            batches = f"{each.batches:,} ({listed(codecs)})" if each.batches else ""
            written, read = _names(each.produced_by), _names(each.fetched_by)
            table.rows.append((each.name, written, batches, read))
    return table


def _names(clients: Counter[str]) -> str:
    shown = [name for name, _ in clients.most_common(_CLIENTS_SHOWN)]
    more = len(clients) - len(shown)
    return ", ".join([*shown, *([f"{more} more"] if more else [])])


def _partitions(topics: list[Topic]) -> Table:
    head = ("partition", "from offset", "to before", "leader", "epoch")
    table = Table("Partitions", head, right=(1, 2, 3, 4), optional=(0,))
    for topic in sorted(topics, key=lambda each: each.name):
        for index, part in sorted(topic.partitions.items()):
            table.rows.append(
                (
                    f"{topic.name}-{index}",
                    "" if part.start is None else str(part.start),
                    "" if part.end is None else str(part.end),
                    "" if part.leader < 0 else str(part.leader),
                    "" if part.epoch < 0 else str(part.epoch),
                )
            )
    return table
