"""The story of transactions in print: for people and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, TextIO

from kraftwire.capture.recorded import Recordings
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
from kraftwire.inspect.attributes_json import attributes_to_json
from kraftwire.inspect.stories.writer import StoryWriter
from kraftwire.inspect.tables import Table
from kraftwire.story.transactions import APIS, Transaction, TransactionalId, TransactionStory

_SLOWEST_SHOWN = 10


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


def _id(each: TransactionalId) -> dict[str, Any]:
    return attributes_to_json(
        each,
        "transactionalId=id producerId producerEpoch=epoch clients ended refused longest records "
        "bytes=size",
        clients=sorted(each.clients),
    )


def _transaction(each: Transaction, end: float) -> dict[str, Any]:
    return attributes_to_json(
        each,
        "transactionalId=id producerId producerEpoch=epoch client? start end until seconds ending "
        "partitions groups records bytes=size",
        until=end if each.end is None and each.until is None else each.until,
        seconds=each.seconds(end),
        partitions=[
            {"topic": topic, "partition": partition} for topic, partition in sorted(each.partitions)
        ],
        groups=sorted(each.groups),
    )


class TransactionsWriter(StoryWriter):
    """Writes the story of transactions."""

    apis = APIS
    takes_files = False
    title = "Transactions"
    noun = "transactional id"
    styles: ClassVar = {"abort": YELLOW, "commit": GREEN, "error": RED, "open": RED}
    event_keys = (
        "time kind transactionalId=subject client=who? producerEpoch=number text details count last"
    )

    def __init__(self, stream: TextIO, *, topics: TopicNames, as_json: bool = False) -> None:
        """Write to a stream. `topics` are names from frames."""
        recordings = Recordings()
        self.story = TransactionStory(topics, recordings)
        super().__init__(stream, self.story, recordings, as_json=as_json)

    @property
    def count(self) -> int:
        """How many transactional ids there were."""
        return len(self.story.ids)

    @property
    def overflow_text(self) -> str:
        """The number of requests that were left out."""
        count = self.story.overflow
        kept = "There were more transactional ids than are kept"
        return f"{kept}: {count_text(count, 'request')}." if count else ""

    def tables(self) -> Sequence[Table]:
        """Return the transactional ids, and the longest transactions."""
        return _ids(self.story), _slowest(self.story, self.start, self.end)

    def rows_to_json(self) -> dict[str, Any]:
        """Return transactional ids and transactions."""
        return {
            "transactionalIds": [_id(each) for each in self.story.ids.values()],
            "transactions": [_transaction(each, self.end) for each in self.story.transactions],
        }
