"""The story of a quorum as one JSON object, for programs.

Units: times are seconds since the epoch as in the JSON lines of frames, durations say their unit.
"""

from __future__ import annotations

from typing import Any

from kraftwire.story.raft.model import (
    LEADS,
    Event,
    LeaderOfEpoch,
    LogSummary,
    Replica,
    Story,
    VoterSet,
)
from kraftwire.story.raft.repetitions import folded

__all__ = ["story_to_json"]


def story_to_json(story: Story) -> dict[str, Any]:
    """Return the story as a JSON object."""
    return {
        "cluster": story.cluster,
        "start": story.start,
        "end": story.end,
        "nodes": [{"node": node, "kind": kind} for node, kind in story.labels.items()],
        "events": [_event(each) for each in folded(story.events)],
        "leaders": [_leader(each) for each in story.leaders],
        "replicas": [_replica(each) for each in story.replicas],
        "voterSets": [_voter_set(each) for each in story.voters],
        "log": _log(story.log),
    }


def _voter_set(each: VoterSet) -> dict[str, Any]:
    return {
        "time": each.time,
        "offset": each.offset,
        "voters": sorted(each.voters),
        "directories": {str(node): id or None for node, id in sorted(each.directories.items())},
        "committed": each.committed,
        "isUndone": each.is_undone,
    }


def _event(event: Event) -> dict[str, Any]:
    return {
        "time": event.time,
        "event": event.kind,
        "epoch": event.epoch,
        "node": event.node,
        "text": event.text,
        **event.details,
    }


def _leader(each: LeaderOfEpoch) -> dict[str, Any]:
    return {
        "epoch": each.epoch,
        "leader": each.leader,
        "from": each.time,
        "to": each.end,
        "seenIn": each.seen_in,
        "startOffset": each.start_offset,
        "voters": each.voters,
        "grantingVoters": each.granting,
        "resigned": each.resigned,
        "preferredSuccessors": each.preferred,
        "ending": each.ending or None,
        "firstHighWatermark": each.first_high_watermark,
        "highWatermark": each.high_watermark,
    }


def _replica(each: Replica) -> dict[str, Any]:
    return {
        "replica": each.node,
        "firstFetch": each.first_fetch,
        "lastFetch": each.last_fetch,
        "fetches": each.fetch_count,
        "offset": each.offset,
        "largestLag": each.lag_max,
        "longestPauseMs": each.gap_max * 1000,
        "lags": ["leads" if lag == LEADS else lag for lag in each.lags],
    }


def _log(log: LogSummary) -> dict[str, Any]:
    return {
        "firstOffset": log.first_offset,
        "endOffset": log.end_offset,
        "batches": log.batches,
        "records": log.counts,
        "highlights": [
            {
                "offset": each.offset,
                "time": each.time,
                "kind": each.kind,
                "subject": each.subject or None,
                "text": each.text,
            }
            for each in log.highlights
        ],
        "hidden": log.hidden,
        "problems": log.problems,
    }
