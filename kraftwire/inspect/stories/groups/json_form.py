"""The story of groups as one JSON object, for programs.

Units: times are seconds since the epoch, durations seconds.
"""

from __future__ import annotations

from typing import Any

from kraftwire.inspect.stories.json_form import events_to_json
from kraftwire.story.groups.model import Generation, Group, Member
from kraftwire.story.groups.story import GroupStory

__all__ = ["groups_to_json"]


def groups_to_json(story: GroupStory, start: float, end: float) -> dict[str, Any]:
    """Return the story as a JSON object."""
    return {
        "start": start,
        "end": end,
        "events": events_to_json(story.events, subject="group", who="member", number="generation"),
        "eventOverflow": story.events.overflow,
        "groups": [
            _group(story, each)
            for each in story.groups.by_id.values()
            if each.kind or each.offsets
        ],
    }


def _group(story: GroupStory, group: Group) -> dict[str, Any]:
    return {
        "group": group.id,
        "kind": group.kind,
        "members": [_member(each) for each in group.members.values()],
        "generations": [_generation(each) for each in group.generations],
        "offsets": [_offsets(story, group, place) for place in sorted(group.offsets)],
    }


def _member(each: Member) -> dict[str, Any]:
    return {
        "memberId": each.id,
        "member": each.label,
        "clientId": each.client_id,
        "host": each.host,
        "instanceId": each.instance_id,
        "joined": each.joined,
        "lastSeen": each.last_seen,
        "ended": each.ended,
        "ending": each.ending or None,
        "assignment": each.assignment,
        "acquired": each.acquired,
        "redelivered": each.redelivered,
        "acknowledged": each.acknowledged,
    }


def _generation(each: Generation) -> dict[str, Any]:
    return {
        "number": each.number,
        "start": each.start,
        "end": each.end,
        "seconds": each.seconds,
        "reasons": each.reasons,
        "members": each.size,
        "leader": each.leader or None,
        "protocol": each.protocol or None,
    }


def _offsets(story: GroupStory, group: Group, place: tuple[str, int]) -> dict[str, Any]:
    offsets = group.offsets[place]
    end = story.lag.ends.get(place)
    return {
        "topic": place[0],
        "partition": place[1],
        "committed": offsets.committed,
        "end": end,
        "done": offsets.done,
        "lag": offsets.lag(end),
        "lagMax": offsets.lag_max,
        "lagMaxTime": offsets.lag_max_time or None,
        "commits": offsets.commits,
        "lastBy": offsets.client or None,
    }
