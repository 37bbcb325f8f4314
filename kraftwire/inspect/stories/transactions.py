"""The story of transactions in print: for people and as JSON."""

from __future__ import annotations

from typing import Any, TextIO

from kraftwire.decode.body.context import TopicNames
from kraftwire.decode.text import (
    GREEN,
    RED,
    YELLOW,
    count_text,
    duration_text,
    listed,
    size_text,
)
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
from kraftwire.story.transactions import APIS, Transaction, TransactionalId, TransactionStory

_STYLES = {"abort": YELLOW, "commit": GREEN, "error": RED, "open": RED}
_SLOWEST_SHOWN = 10


def write_transactions(story: TransactionStory, start: float, end: float, stream: TextIO) -> None:
    """Write all sections of the story."""
    is_coloured, width = wants_colour(stream), width_of(stream)
    if not story.ids:
        write_lines(stream, ["Transactions: none was seen"])
        return
    head = head_line("Transactions", start, end, story.events, is_coloured=is_coloured)
    write_lines(stream, [f"{head}; {count_text(len(story.ids), 'transactional id')}", ""])
    events = event_lines(
        story.events.in_order(), start, width=width, overflow=story.events.overflow,
        styles=_STYLES if is_coloured else None,
    )
    if events:
        write_lines(stream, [*events, ""])
    for table in (_ids(story), _slowest(story, start, end)):
        if table.rows:
            write_table(table, stream, width)
    if story.overflow:
        count = count_text(story.overflow, "request")
        write_lines(stream, [f"There were more transactional ids than are kept: {count}."])


def _ids(story: TransactionStory) -> Table:
    head = (
        "id", "committed", "aborted", "open", "refused", "mean", "longest",
        "records", "bytes", "clients",
    )
    table = Table("By transactional id", head, right=range(1, 9), names=(0,), lists=(9,))
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
    table = Table("Longest transactions", head, right=(1, 2, 4, 5, 6), names=(0,), lists=(3,))
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


def transactions_to_json(story: TransactionStory, start: float, end: float) -> dict[str, Any]:
    """Return the story as a JSON object."""
    return {
        "start": start,
        "end": end,
        "notRecorded": spans_to_json(story.events.not_recorded),
        "events": events_to_json(
            story.events, subject="transactionalId", who="client", number="producerEpoch"
        ),
        "eventOverflow": story.events.overflow,
        "transactionalIds": [_id(each) for each in story.ids.values()],
        "transactions": [_transaction(each, end) for each in story.transactions],
    }


def _id(each: TransactionalId) -> dict[str, Any]:
    return {
        "transactionalId": each.id,
        "producerId": each.producer_id,
        "producerEpoch": each.epoch,
        "clients": sorted(each.clients),
        "ended": dict(each.ended),
        "refused": each.refused,
        "longest": each.longest,
        "records": each.records,
        "bytes": each.size,
    }


def _transaction(each: Transaction, end: float) -> dict[str, Any]:
    return {
        "transactionalId": each.id,
        "producerId": each.producer_id,
        "producerEpoch": each.epoch,
        "client": each.client or None,
        "start": each.start,
        "end": each.end,
        "until": end if each.end is None and each.until is None else each.until,
        "seconds": each.seconds(end),
        "ending": each.ending,
        "partitions": [
            {"topic": topic, "partition": partition} for topic, partition in sorted(each.partitions)
        ],
        "groups": sorted(each.groups),
        "records": each.records,
        "bytes": each.size,
    }


class TransactionsWriter(StoryWriter):
    """Writes the story of transactions as text."""

    apis = APIS
    takes_files = False

    def __init__(self, stream: TextIO, *, topics: TopicNames) -> None:
        """Write to a stream. Arguments: as for `StoryWriter`."""
        super().__init__(stream, topics=topics)
        self.story = TransactionStory(topics, self.recordings)

    def on_request(self, exchange: ObservedExchange) -> None:
        """Pass a request to the story."""
        self.story.on_request(exchange)

    def on_response(self, exchange: ObservedExchange) -> None:
        """Pass a response to the story."""
        self.story.on_response(exchange)

    def write(self, stream: TextIO) -> None:
        """Write the story as text."""
        self.story.events.note_holes(self.holes)
        self.story.finish()
        write_transactions(self.story, self.start or self.end, self.end, stream)


class TransactionsJsonWriter(TransactionsWriter):
    """Writes the story of transactions as one JSON object."""

    def write(self, stream: TextIO) -> None:
        """Write the story as JSON."""
        self.story.events.note_holes(self.holes)
        self.story.finish()
        start = self.start or self.end
        write_json(stream, lambda: transactions_to_json(self.story, start, self.end))
