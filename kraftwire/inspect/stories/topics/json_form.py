"""The story of topics as one JSON object, for programs.

Units: times are seconds since the epoch, sizes bytes.
"""

from __future__ import annotations

from typing import Any

from kraftwire.inspect.stories.json_form import events_to_json
from kraftwire.story.topics import Topic, TopicStory

__all__ = ["topics_to_json"]


def topics_to_json(story: TopicStory, start: float, end: float) -> dict[str, Any]:
    """Return the story as a JSON object."""
    return {
        "start": start,
        "end": end,
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
