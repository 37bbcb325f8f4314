"""The timeline of a quorum as a JSON object."""

from __future__ import annotations

from typing import Any

from kraftwire.inspect.stories.text import spans_to_json
from kraftwire.story.raft.model import (
    LEADS,
    NOT_RECORDED,
    Event,
    LeaderOfEpoch,
    LogSummary,
    Replica,
    ReplicaFiles,
    Story,
    VoterSet,
)
from kraftwire.story.raft.repetitions import fold_repetitions

_LAGS: dict[int, str] = {LEADS: "leads", NOT_RECORDED: "not recorded"}


def story_to_json(story: Story) -> dict[str, Any]:
    """Return the story as a JSON object."""
    return {
        "cluster": story.cluster,
        "start": story.start,
        "end": story.end,
        "nodes": [{"node": node, "kind": kind} for node, kind in story.labels.items()],
        "events": [_event(each) for each in fold_repetitions(story.events)],
        "leaders": [_leader(each) for each in story.leaders],
        "replicas": [_replica(each) for each in story.replicas],
        "voterSets": [_voter_set(each) for each in story.voters],
        "log": _log(story.log),
        "directories": [_directory(each) for each in story.files],
        "contradictions": story.contradictions,
        "majority": None if story.majority is None else {
            "voters": story.majority.voters,
            "kept": story.majority.kept,
            "needed": story.majority.needed,
        },
        "unownedDirectories": story.unowned,
        "notRecorded": spans_to_json(story.not_recorded),
    }


def _directory(each: ReplicaFiles) -> dict[str, Any]:
    end = each.end
    return {
        "folder": each.folder,
        "node": each.node,
        "directoryId": each.directory_id,
        "startOffset": each.start,
        "endOffset": None if end is None else end.offset,
        "lastEpoch": None if end is None else end.epoch,
        "missing": [{"first": first, "last": last - 1} for first, last in each.missing],
        "snapshots": [{"endOffset": id.offset, "epoch": id.epoch} for id in each.snapshots],
        "flushedOffset": each.flushed,
        "leaderEpochs": None if each.checkpoint is None else [
            {"epoch": epoch, "startOffset": start} for epoch, start in each.checkpoint
        ],
        "quorumState": each.election,
        "isVoter": each.is_voter,
        "unread": [
            {
                "finding": unread.id,
                "file": unread.file,
                "position": unread.position,
                "size": unread.size,
                "endOffset": unread.offset,
            }
            for unread in each.unread
        ],
        "damagedAt": each.damaged_at,
        "refusal": each.refusal,
        "verdict": each.verdict,
        "divergesAt": each.diverges_at,
        "advice": each.advice,
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
        "seenIn": each.seen_in or None,
        "startOffset": each.start_offset,
        "endOffset": each.end_offset,
        "sources": each.sources,
        "begins": each.begins or None,
        "notBefore": each.not_before,
        "leaderless": next(iter(spans_to_json(filter(None, [each.leaderless]))), None),
        "voters": each.voters,
        "grantingVoters": each.granting,
        "resigned": each.resigned,
        "preferredSuccessors": each.preferred,
        "votes": {str(voter): voted for voter, voted in sorted(each.votes.items())},
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
        "lags": [lag if lag is None else _LAGS.get(lag, lag) for lag in each.lags],
    }


def _log(log: LogSummary) -> dict[str, Any]:
    return {
        "snapshot": log.snapshot or None,
        "firstOffset": log.first_offset,
        "endOffset": log.end_offset,
        "missing": [{"first": first, "last": end - 1} for first, end in log.missing],
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
