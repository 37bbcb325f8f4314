"""The story of topics in print: for people and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar, TextIO

from kraftwire.capture.recorded import Recordings
from kraftwire.decode.body.context import TopicNames
from kraftwire.decode.text import RED, YELLOW, count_text, listed, size_text
from kraftwire.inspect.attributes_json import attributes_to_json
from kraftwire.inspect.stories.writer import StoryWriter
from kraftwire.inspect.tables import Table
from kraftwire.story.topics import APIS, FORWARDED, Topic, TopicStory, TopicTest, any_topic

_CLIENTS_SHOWN = 3


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


def _topic(each: Topic) -> dict[str, Any]:
    return attributes_to_json(
        each,
        "topic=name producedRecords producedBytes=produced_size producedBatches=batches "
        "compression fetchedRecords fetchedBytes=fetched_size producedBy fetchedBy errors "
        "partitions",
        partitions=[
            {
                "partition": index,
                "start": part.start,
                "end": part.end,
                "leader": part.leader if part.leader >= 0 else None,
                "leaderEpoch": part.epoch if part.epoch >= 0 else None,
            }
            for index, part in sorted(each.partitions.items())
        ],
    )


class TopicsWriter(StoryWriter):
    """Writes the story of topics."""

    apis = APIS
    forwarded = FORWARDED
    takes_files = False
    title = "Topics"
    noun = "topic"
    styles: ClassVar = {"deleteTopics": YELLOW, "error": RED, "leader": YELLOW}
    event_keys = "time kind topic=subject member=who? epoch=number text details count last"
    rows_max = 200

    def __init__(
        self,
        stream: TextIO,
        *,
        topics: TopicNames,
        show_secrets: bool = False,
        is_wanted_topic: TopicTest = any_topic,
        as_json: bool = False,
    ) -> None:
        """Write to a stream. `topics` are names from frames."""
        self.story = TopicStory(topics, show_secrets=show_secrets, is_wanted=is_wanted_topic)
        super().__init__(stream, self.story, Recordings(), as_json=as_json)

    @property
    def count(self) -> int:
        """How many topics there were."""
        return len(self.story.topics)

    @property
    def overflow_text(self) -> str:
        """The number of topics that were left out."""
        count = self.story.overflow
        kept = "There were more topics than are kept"
        return f"{kept}: {count_text(count, 'time')}." if count else ""

    def tables(self) -> Sequence[Table]:
        """Return the traffic, the clients, and the partitions of topics."""
        topics = sorted(
            self.story.topics.values(),
            key=lambda each: (-(each.produced_size + each.fetched_size), each.name),
        )
        seconds = self.story.events.seconds(self.start, self.end)
        return _traffic(topics, seconds), _clients(topics), _partitions(topics)

    def rows_to_json(self) -> dict[str, Any]:
        """Return the topics."""
        return {"topics": [_topic(each) for each in self.story.topics.values()]}
