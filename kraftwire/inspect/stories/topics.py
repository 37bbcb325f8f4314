"""The story of topics in print: for people and as JSON."""

from __future__ import annotations

from collections import Counter
from typing import Any, TextIO

from kraftwire.decode.body.context import TopicNames
from kraftwire.decode.text import RED, YELLOW, count_text, listed, size_text
from kraftwire.inspect.stories.text import (
    event_lines,
    events_to_json,
    head_line,
    spans_to_json,
    write_lines,
)
from kraftwire.inspect.stories.writer import StoryWriter, write_json
from kraftwire.inspect.tables import Table, wants_colour, width_of, write_table
from kraftwire.story.observed_exchange import ObservedExchange
from kraftwire.story.topics import APIS, FORWARDED, Topic, TopicStory, TopicTest, any_topic

_STYLES = {"deleteTopics": YELLOW, "error": RED, "leader": YELLOW}
_ROWS_MAX = 200
_CLIENTS_SHOWN = 3


def write_topics(story: TopicStory, start: float, end: float, stream: TextIO) -> None:
    """Write all sections of the story."""
    is_coloured, width = wants_colour(stream), width_of(stream)
    if not story.topics:
        write_lines(stream, ["Topics: none was seen"])
        return
    head = head_line("Topics", start, end, story.events, is_coloured=is_coloured)
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
    seconds = story.events.seconds(start, end)
    for table in (_traffic(topics, seconds), _clients(topics), _partitions(topics)):
        if table.rows:
            write_table(table, stream, width, rows_max=_ROWS_MAX)
    if story.overflow:
        count = count_text(story.overflow, "time")
        write_lines(stream, [f"There were more topics than are kept: {count}."])


def _traffic(topics: list[Topic], seconds: float) -> Table:
    head = (
        "topic", "produced", "bytes", "a record", "per second", "fetched", "bytes", "errors"
    )
    table = Table("Records, most bytes first", head, right=range(1, 8), names=(0,))
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
    table = Table("Who writes and who reads", head, names=(0,), lists=(1, 2, 3))
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
    table = Table("Partitions", head, right=(1, 2, 3, 4), names=(0,))
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


def topics_to_json(story: TopicStory, start: float, end: float) -> dict[str, Any]:
    """Return the story as a JSON object."""
    return {
        "start": start,
        "end": end,
        "notRecorded": spans_to_json(story.events.not_recorded),
        "events": events_to_json(story.events, subject="topic", who="member", number="epoch"),
        "eventOverflow": story.events.overflow,
        "topics": [_topic(each) for each in story.topics.values()],
    }


def _topic(each: Topic) -> dict[str, Any]:
    return {
        "topic": each.name,
        "producedRecords": each.produced_records,
        "producedBytes": each.produced_size,
        "producedBatches": each.batches,
        "compression": dict(each.compression),
        "fetchedRecords": each.fetched_records,
        "fetchedBytes": each.fetched_size,
        "producedBy": dict(each.produced_by),
        "fetchedBy": dict(each.fetched_by),
        "errors": dict(each.errors),
        "partitions": [
            {
                "partition": index,
                "start": part.start,
                "end": part.end,
                "leader": part.leader if part.leader >= 0 else None,
                "leaderEpoch": part.epoch if part.epoch >= 0 else None,
            }
            for index, part in sorted(each.partitions.items())
        ],
    }


class TopicsWriter(StoryWriter):
    """Writes the story of topics as text."""

    apis = APIS
    forwarded = FORWARDED
    takes_files = False

    def __init__(
        self,
        stream: TextIO,
        *,
        topics: TopicNames,
        show_secrets: bool = False,
        is_wanted_topic: TopicTest = any_topic,
    ) -> None:
        """Write to a stream. Other arguments: as for `StoryWriter`."""
        super().__init__(stream, topics=topics)
        self.story = TopicStory(topics, show_secrets=show_secrets, is_wanted=is_wanted_topic)

    def on_request(self, exchange: ObservedExchange) -> None:
        """Ignore a request: it is used only with its response."""

    def on_response(self, exchange: ObservedExchange) -> None:
        """Pass a response to the story."""
        self.story.on_response(exchange)

    def write(self, stream: TextIO) -> None:
        """Write the story as text."""
        self.story.events.note_holes(self.holes)
        write_topics(self.story, self.start or self.end, self.end, stream)


class TopicsJsonWriter(TopicsWriter):
    """Writes the story of topics as one JSON object."""

    def write(self, stream: TextIO) -> None:
        """Write the story as JSON."""
        self.story.events.note_holes(self.holes)
        start = self.start or self.end
        write_json(stream, lambda: topics_to_json(self.story, start, self.end))
