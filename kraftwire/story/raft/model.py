"""The input and the result of a timeline: frames; events, leaders by epoch, replicas."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kraftwire.messages import API_NAMES
from kraftwire.wire.message import Message

_NAMES = frozenset(
    {
        "AddRaftVoter",
        "BeginQuorumEpoch",
        "BrokerHeartbeat",
        "BrokerRegistration",
        "ControllerRegistration",
        "DescribeQuorum",
        "EndQuorumEpoch",
        "Envelope",
        "Fetch",
        "FetchSnapshot",
        "RemoveRaftVoter",
        "UpdateFeatures",
        "UpdateRaftVoter",
        "Vote",
    }
)

# The bodies that the timeline reads. Of all other frames it needs only time and connection.
QUORUM_APIS = frozenset(key for key, name in API_NAMES.items() if name in _NAMES)

# A node's id, or its host and port where no frame has shown the id.
NodeId = int | str


@dataclass(slots=True)
class ObservedFrame:
    """A request or response as input of the timeline.

    `time` is in seconds since the epoch, `connection` "client:port-server:port". `body` is None
    where it was not decoded. A response has the body of its `request`, if known, and the time of
    that request in `request_time`. For an envelope, the bodies are those inside, and
    `is_forwarded` is set.
    """

    time: float
    connection: str
    api_key: int
    is_request: bool
    body: Message | None = None
    correlation_id: int = 0
    request: Message | None = None
    request_time: float | None = None
    is_forwarded: bool = False

    @property
    def server(self) -> str:
        """Host and port of the server."""
        return self.connection.rpartition("-")[2]

    @property
    def client(self) -> str:
        """Host and port of the client."""
        return self.connection.rpartition("-")[0]


@dataclass(frozen=True, slots=True)
class Event:
    """An event: a line of the timeline.

    `kind` is a stable word for programs; `text` describes the event for people, without time, epoch
    and node; `details` are the values that `text` was made from.
    """

    time: float
    kind: str
    text: str
    epoch: int | None = None
    node: NodeId | None = None
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Answer:
    """The answer of one node; `time` is None until it is seen.

    `is_granted` is None unless the request is a Vote; `epoch` and `leader` are those in the answer.
    """

    request_time: float
    time: float | None = None
    is_granted: bool | None = None
    error: int = 0
    epoch: int = -1
    leader: int = -1


@dataclass(slots=True)
class Round:
    """A round of votes or pre-votes: a candidate's requests to the voters, and their answers.

    In a pre-vote, `epoch` is the candidate's current epoch; in a vote, the epoch that it wants to
    lead. `end_offset` and `last_epoch` are the end of its log. `reason` says why the round began.
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
        """The nodes that granted the vote, without the candidate."""
        return [voter for voter, answer in self.answers.items() if answer.is_granted]


@dataclass(slots=True)
class LeaderOfEpoch:
    """The leader of one epoch.

    `time` is the first evidence of its leadership and `seen_in` the kind of that evidence.
    `start_offset` is the offset of its LeaderChange record, which also names `voters` and those
    `granting`. `preferred` are the successors that it named when it resigned. Offsets are None
    where the capture lacks them.
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
    """A time in which a node sent nothing while others did; `end` is None if it never ended.

    `unanswered` counts the requests to the node that never got an answer; `waits_for` is the node
    that had not yet answered this node's own last request.
    """

    node: NodeId
    start: float
    end: float | None
    unanswered: int = 0
    waits_for: NodeId | None = None


# Marks a span of time in which the replica was the leader, in place of a lag.
LEADS = -1


@dataclass(slots=True)
class Replica:
    """The progress of one replica of the metadata log.

    A lag is the number of records between a fetch offset and the largest end of the log seen until
    then. `lags` are the largest lags of equal spans of time, None where the replica did not fetch
    and `LEADS` where it led; `gap_max` is the longest pause between two fetches.
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
    """The voters from an offset of the log on; `offset` is None for those of DescribeQuorum.

    `voters` maps to first addresses, `directories` to the ids of log directories; both are empty
    where unknown. `committed` is when the high watermark passed the offset, if that was seen. A set
    is undone when the log is truncated below it.
    """

    time: float
    offset: int | None
    voters: dict[int, str]
    directories: dict[int, str] = field(default_factory=dict)
    committed: float | None = None
    is_undone: bool = False


@dataclass(frozen=True, slots=True)
class Highlight:
    """A metadata record described in a few words.

    `kind` says what the record is about; `subject` says whose configuration it is, and is empty for
    other kinds.
    """

    offset: int
    time: float
    kind: str
    subject: str
    text: str


@dataclass(slots=True)
class LogSummary:
    """A summary of the metadata log.

    `counts` maps types of records to their numbers. The number of `highlights` is limited, and
    `hidden` counts the others. The offsets reach from `first_offset` up to, but not including,
    `end_offset`.
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
    """The finished story of a quorum, in order of time.

    `labels` describes each node; `cluster` is the cluster id, None where it is unknown.
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
        """Whether the story has no sign of a quorum."""
        return not self.events and self.log.first_offset is None
