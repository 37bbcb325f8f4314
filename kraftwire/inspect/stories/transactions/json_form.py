"""The story of transactions as one JSON object, for programs.

Units: times are seconds since the epoch, durations seconds, sizes bytes.
"""

from __future__ import annotations

from typing import Any

from kraftwire.inspect.stories.json_form import events_to_json
from kraftwire.story.transactions import Transaction, TransactionalId, TransactionStory

__all__ = ["transactions_to_json"]


def transactions_to_json(story: TransactionStory, start: float, end: float) -> dict[str, Any]:
    """Return the story as a JSON object."""
    return {
        "start": start,
        "end": end,
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
        "seconds": each.seconds(end),
        "ending": each.ending,
        "partitions": [
            {"topic": topic, "partition": partition} for topic, partition in sorted(each.partitions)
        ],
        "groups": sorted(each.groups),
        "records": each.records,
        "bytes": each.size,
    }
