"""The finished story of a quorum: events in order, who led when, how the replicas kept up.

Owns plain values only; the modules next to it gather them, `text` and `json_form` show them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kraftwire.decode.render.raft.sighting import NodeId

__all__ = [
    "LEADS",
    "Answer",
    "Event",
    "Highlight",
    "LeaderOfEpoch",
    "LogSummary",
    "Replica",
    "Round",
    "Silence",
    "Story",
    "VoterSet",
]


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened: a line of the timeline.

    Shape: `kind` is a stable word for programs, `text` the same for people without time, epoch
    and node; `details` are what `text` was made of.
    """

    time: float
    kind: str
    text: str
    epoch: int | None = None
    node: NodeId | None = None
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Answer:
    """What a node that was asked said; `time` is None while it has not.

    Shape: `is_granted` is None where the request is no Vote; `epoch` and `leader` are those that
    the answer names.
    """

    asked: float
    time: float | None = None
    is_granted: bool | None = None
    error: int = 0
    epoch: int = -1
    leader: int = -1


@dataclass(slots=True)
class Round:
    """A candidate asks the voters for votes, or before that for pre-votes.

    Shape: a pre-vote names the epoch that the candidate is in, a vote the one that it wants to
    lead. `end_offset` and `last_epoch` are the end of its log. `reason` says what set it off.
    """

    time: float
    candidate: NodeId
    epoch: int
    is_pre_vote: bool
    end_offset: int
    last_epoch: int
    reason: str = ""
    answers: dict[NodeId, Answer] = field(default_factory=dict)

    @property
    def granted(self) -> list[NodeId]:
        """Who granted the vote, without the candidate."""
        return [voter for voter, answer in self.answers.items() if answer.is_granted]


@dataclass(slots=True)
class LeaderOfEpoch:
    """The leader of one epoch.

    Shape: `time` is the first sign of it and `seen_in` what that was. `start_offset` is the
    offset of its LeaderChange record, which also names `voters` and those `granting`. `preferred`
    are the successors it named when it resigned. Offsets are None where the capture lacks them.
    """

    epoch: int
    leader: NodeId
    time: float
    seen_in: str
    announced: dict[NodeId, Answer] = field(default_factory=dict)
    start_offset: int | None = None
    voters: list[int] = field(default_factory=list)
    granting: list[int] = field(default_factory=list)
    resigned: float | None = None
    preferred: list[int] = field(default_factory=list)
    end: float | None = None
    ending: str = ""
    first_high_watermark: int | None = None
    high_watermark: int | None = None


@dataclass(slots=True)
class Silence:
    """A node sent nothing while others did; `end` is None if that lasted to the end.

    Shape: `unanswered` counts the requests to it that never got an answer; `waits_for` is the
    node that had to answer its own last request.
    """

    node: NodeId
    start: float
    end: float | None
    unanswered: int = 0
    waits_for: NodeId | None = None


# Stands for a lag where the replica is the leader.
LEADS = -1


@dataclass(slots=True)
class Replica:
    """How one replica of the metadata log kept up.

    Shape: a lag counts the records between a fetch offset and the largest end of the log seen
    until then; `lags` are the largest lags of equal spans of time, None where it did not fetch and
    `LEADS` where it led; `gap_max` is the longest pause between two fetches.
    """

    node: NodeId
    first_fetch: float
    first_offset: int
    last_fetch: float
    fetch_count: int = 0
    offset: int = 0
    lag_max: int = 0
    gap_max: float = 0.0
    lags: list[int | None] = field(default_factory=list)


@dataclass(slots=True)
class VoterSet:
    """The voters from an offset of the log on; the offset is None where a DescribeQuorum told.

    `voters` have their first address, `directories` the ids of their log directories, both empty
    where nobody told. `committed` is when the high watermark passed the offset, as far as that
    was seen; a set that is undone was taken back with the end of the log.
    """

    time: float
    offset: int | None
    voters: dict[int, str]
    directories: dict[int, str] = field(default_factory=dict)
    committed: float | None = None
    is_undone: bool = False


@dataclass(frozen=True, slots=True)
class Highlight:
    """A record of the metadata log in a few words.

    Shape: `kind` says what it is about, `subject` whose configuration it is, else empty.
    """

    offset: int
    time: float
    kind: str
    subject: str
    text: str


@dataclass(slots=True)
class LogSummary:
    """What the metadata log said.

    Shape: `counts` by type of record; of the `highlights` a limited number is kept, `hidden`
    counts the rest; offsets are from `first_offset` to before `end_offset`.
    """

    counts: dict[str, int] = field(default_factory=dict)
    highlights: list[Highlight] = field(default_factory=list)
    hidden: int = 0
    batches: int = 0
    first_offset: int | None = None
    end_offset: int | None = None
    problems: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Story:
    """All of it, in order of time.

    Shape: `labels` says what each node is; `cluster` is the id, None where nobody told it.
    """

    start: float
    end: float
    events: list[Event]
    leaders: list[LeaderOfEpoch]
    rounds: list[Round]
    silences: list[Silence]
    replicas: list[Replica]
    voters: list[VoterSet]
    log: LogSummary
    labels: dict[NodeId, str]
    event_overflow: int = 0
    cluster: str | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing of a quorum was seen."""
        return not self.events and self.log.first_offset is None
