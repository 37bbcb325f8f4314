"""The timeline of a quorum as a JSON object."""

from __future__ import annotations

from typing import Any

from kraftwire.inspect.attributes_json import attributes_to_json
from kraftwire.inspect.stories.text import spans_to_json
from kraftwire.story.raft.model import (
    LEADS,
    NOT_RECORDED,
    LeaderOfEpoch,
    LogSummary,
    RaftEvent,
    Replica,
    ReplicaFiles,
    Story,
    VoterSet,
)
from kraftwire.story.raft.repetitions import fold_repetitions

_LAGS: dict[int, str] = {LEADS: "leads", NOT_RECORDED: "not recorded"}


def story_to_json(story: Story) -> dict[str, Any]:
    """Return the story as a JSON object."""
    return attributes_to_json(
        story,
        "cluster start end nodes events leaders replicas voterSets log directories contradictions "
        "majority unownedDirectories=unowned notRecorded",
        nodes=[{"node": node, "kind": kind} for node, kind in story.labels.items()],
        events=[_event(each) for each in fold_repetitions(story.events)],
        leaders=[_leader(each) for each in story.leaders],
        replicas=[_replica(each) for each in story.replicas],
        voterSets=[_voter_set(each) for each in story.voters],
        log=_log(story.log),
        directories=[_directory(each) for each in story.files],
        majority=story.majority and attributes_to_json(story.majority, "voters kept needed"),
        notRecorded=spans_to_json(story.not_recorded),
    )


def _directory(each: ReplicaFiles) -> dict[str, Any]:
    return attributes_to_json(
        each,
        "folder node directoryId startOffset=start endOffset lastEpoch missing snapshots "
        "flushedOffset=flushed leaderEpochs quorumState=election isVoter unread damagedAt refusal "
        "verdict divergesAt advice",
        endOffset=each.end and each.end.offset,
        lastEpoch=each.end and each.end.epoch,
        missing=_ranges(each.missing),
        snapshots=[attributes_to_json(id, "endOffset=offset epoch") for id in each.snapshots],
        leaderEpochs=None if each.checkpoint is None else [
            {"epoch": epoch, "startOffset": start} for epoch, start in each.checkpoint
        ],
        unread=[
            attributes_to_json(unread, "finding=id file position size endOffset=offset")
            for unread in each.unread
        ],
    )


def _voter_set(each: VoterSet) -> dict[str, Any]:
    return attributes_to_json(
        each,
        "time offset voters directories committed isUndone",
        voters=sorted(each.voters),
        directories={str(node): id or None for node, id in sorted(each.directories.items())},
    )


def _event(event: RaftEvent) -> dict[str, Any]:
    return attributes_to_json(event, "time event=kind epoch node text") | event.details


def _leader(each: LeaderOfEpoch) -> dict[str, Any]:
    return attributes_to_json(
        each,
        "epoch leader from=time to=end seenIn? startOffset endOffset sources begins? notBefore "
        "leaderless voters grantingVoters=granting resigned preferredSuccessors=preferred votes "
        "ending? firstHighWatermark highWatermark",
        leaderless=next(iter(spans_to_json(filter(None, [each.leaderless]))), None),
        votes={str(voter): voted for voter, voted in sorted(each.votes.items())},
    )


def _replica(each: Replica) -> dict[str, Any]:
    return attributes_to_json(
        each,
        "replica=node firstFetch lastFetch fetches=fetch_count offset largestLag=lag_max "
        "longestPauseMs lags",
        longestPauseMs=each.gap_max * 1000,
        lags=[lag if lag is None else _LAGS.get(lag, lag) for lag in each.lags],
    )


def _log(log: LogSummary) -> dict[str, Any]:
    return attributes_to_json(
        log,
        "snapshot? firstOffset endOffset missing batches records=counts highlights hidden problems",
        missing=_ranges(log.missing),
        highlights=[
            attributes_to_json(each, "offset time kind subject? text") for each in log.highlights
        ],
    )


def _ranges(ranges: list[tuple[int, int]]) -> list[dict[str, int]]:
    return [{"first": first, "last": end - 1} for first, end in ranges]
