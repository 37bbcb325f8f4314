"""The input and the result of a timeline: frames; events, leaders by epoch, replicas."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from kraftwire.capture.recorded import HostPair, TimeSpan
from kraftwire.decode.text import listed
from kraftwire.messages import API_NAMES
from kraftwire.records.offsets import OffsetAndEpoch

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


def partitions(body: Any) -> list[Any]:
    """Return the partitions of all topics in the body of a request or response."""
    return [partition for topic in body.topics for partition in topic.partitions]


@dataclass(frozen=True, slots=True)
class RaftEvent:
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

    Without one, `is_missing` is whether it would have been recorded. `is_granted` is None unless
    the request is a Vote; `epoch` and `leader` are those in the answer.
    """

    request_time: float
    time: float | None = None
    is_granted: bool | None = None
    error: int = 0
    epoch: int = -1
    leader: int = -1
    pair: HostPair | None = None
    is_missing: bool = True

    def complete(self, time: float, error: int, partitions: Iterable[Any]) -> None:
        """Add the answer: its error, and the epoch and leader that its partitions name."""
        self.time, self.error = time, error
        for partition in partitions:
            self.error = error or partition.error_code
            self.epoch, self.leader = partition.leader_epoch, partition.leader_id


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
    """One epoch, and the leader in it: None if nothing names it.

    `time` is the first evidence of the epoch, None if that has no time, and `seen_in` the kind of
    the evidence that names the leader, or else of the first one. `sources` are all kinds of
    evidence. `start_offset` and `end_offset` (exclusive) are the offsets of its records, None where
    they are not known; its LeaderChange record also names `voters` and those `granting`. `begins`
    says where its first record is if the log does not have it, or that the epoch began while
    nothing was recorded: "before the log", "in missing offsets", "not recorded"; then `time` is
    only when the epoch is first seen, and `not_before` the end of what was recorded before, where
    known. `last_seen` is when a frame named its leader last. In the time `leaderless` after it
    nobody led, as is recorded; None without one. `preferred` are the successors that it named when
    it resigned. `votes` maps nodes to whom they voted for, as their quorum-state files say.
    """

    epoch: int
    leader: NodeId | None
    time: float | None
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
    sources: list[str] = field(default_factory=list)
    end_offset: int | None = None
    begins: str = ""
    votes: dict[int, int] = field(default_factory=dict)
    last_seen: float | None = None
    not_before: float | None = None
    leaderless: TimeSpan | None = None


@dataclass(slots=True)
class Silence:
    """A time in which a node sent nothing while others did, and while it was recorded.

    `end` is None if it did not end while it was recorded, which is `until` then. For
    `without_packets` seconds of it no packet of anyone was recorded. `unanswered` counts the
    requests to the node that got no answer; `waits_for` is the node that had not yet answered this
    node's own last request, and `asked` when the first request came that waited for this node, None
    if none did.
    """

    node: NodeId
    start: float
    end: float | None
    unanswered: int = 0
    waits_for: NodeId | None = None
    asked: float | None = None
    until: float = 0.0
    without_packets: float = 0.0


# In place of a lag: the replica was the leader in a span of time, or the span was not recorded.
LEADS = -1
NOT_RECORDED = -2


@dataclass(slots=True)
class Replica:
    """The progress of one replica of the metadata log.

    A lag is the number of records between a fetch offset and the largest end of the log seen until
    then. `lags` are the largest lags of equal spans of time, None where the replica did not fetch,
    `LEADS` where it led and `NOT_RECORDED`; `gap_max` is the longest pause between two fetches, as
    far as it was recorded.
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
    `end_offset`; those `missing` in between are (first, end) as well. Without any record of the
    log it is the summary of the newest `snapshot`, which is empty otherwise; then the offsets are
    places in the snapshot. It `is_of_files` if a log file has any of them; a capture need not show
    every offset.
    """

    counts: dict[str, int] = field(default_factory=dict)
    highlights: list[Highlight] = field(default_factory=list)
    hidden: int = 0
    batches: int = 0
    first_offset: int | None = None
    end_offset: int | None = None
    missing: list[tuple[int, int]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    snapshot: str = ""
    is_of_files: bool = False


# Id of a finding about bytes that a start truncates if nothing follows -> what the bytes are.
_TORN_TEXTS = {
    "batch-crc": "hold a batch with a wrong checksum",
    "batch-cut": "are the beginning of a batch, with which the file ends",
    "garbage": "hold no batch",
    "hole": "are mostly zeros",
    "wrong-length": "give a batch a wrong length",
    "zero-tail": "are zeros, with which the file ends",
}
# The same for bytes whose checksum is right.
_UNDECODED_TEXTS = {
    "batch-bomb": "hold a batch that would take too much memory",
    "batch-damaged": "hold a batch whose records cannot be read",
    "record-undecoded": "hold a record that fits no schema",
}
UNREAD_TEXTS = _TORN_TEXTS | _UNDECODED_TEXTS


@dataclass(frozen=True, slots=True, order=True)
class UnreadBytes:
    """Bytes of a segment that were not understood: a finding `id` of `decode.files` about them.

    The batches before them in the segment end before `offset`. Order: by their place.
    """

    file: str
    position: int
    id: str
    size: int
    offset: int

    @property
    def is_torn(self) -> bool:
        """Whether the bytes are no whole batch."""
        return self.id in _TORN_TEXTS

    @property
    def text(self) -> str:
        """What the bytes are and where, in a sentence."""
        after = f", after offset {self.offset - 1}," if self.offset else ""
        place = f"{self.file}: {self.size:,} bytes from position {self.position:,} on{after}"
        return f"{place} {UNREAD_TEXTS[self.id]}"


@dataclass(slots=True)
class ReplicaFiles:
    """The state of one replica's metadata log, by its files.

    `folder` is that of the partition. `start` is the log start offset and `end` the end of the log
    with the epoch of the record before it, or the newest snapshot's if that reaches further; both
    None without any. `missing` are offsets as (first, end). `checkpoint` are the (epoch, start
    offset) of leader-epoch-checkpoint, `election` the data of quorum-state; None without
    the file, empty if it cannot be read. `flushed` is the offset of kraftwire's flush mark.
    `unread` are the first bytes in segments that were not understood.
    `damaged_at` is the offset of the first batch with a wrong checksum, `disordered_at` that of the
    first batch of an earlier epoch than one before it, `last_base` that of the last batch,
    `refusal` why a node does not start on the directory; None without. `contradiction` is where the
    first record of those that a start reads contradicts those before it, empty without one.
    `is_voter` is whether the newest voters include the replica, None where that is unknown.

    `verdict` is "furthest", "behind", "diverges", "damaged", "refused", "copy", "older copy",
    "unowned" or "empty", and `advice` says in a sentence whether the directory may be kept.
    """

    folder: str
    node: int | None = None
    directory_id: str | None = None
    start: int | None = None
    end: OffsetAndEpoch | None = None
    missing: list[tuple[int, int]] = field(default_factory=list)
    checkpoint: list[tuple[int, int]] | None = None
    election: dict[str, Any] | None = None
    snapshots: list[OffsetAndEpoch] = field(default_factory=list)
    flushed: int | None = None
    unread: list[UnreadBytes] = field(default_factory=list)
    damaged_at: int | None = None
    disordered_at: int | None = None
    last_base: int | None = None
    refusal: str | None = None
    contradiction: str = ""
    is_voter: bool | None = None
    verdict: str = ""
    advice: str = ""
    diverges_at: int | None = None

    @property
    def name(self) -> str:
        """The node, or the folder of a directory whose node is not known."""
        return self.folder if self.node is None else f"node {self.node}"

    @property
    def may_be_kept(self) -> bool:
        """Whether a node may go on with the directory."""
        return self.verdict in ("furthest", "behind", "diverges")


def ranges_text(ranges: Sequence[tuple[int, int]]) -> str:
    """Return ranges of offsets, whose ends are exclusive, as text: "5, 7 to 9"."""
    return listed(
        str(start) if end == start + 1 else f"{start} to {end - 1}" for start, end in ranges
    )


def offsets_text(ranges: Sequence[tuple[int, int]]) -> str:
    """Return ranges of offsets as text with their noun: "offset 5", "offsets 5, 7 to 9"."""
    text = ranges_text(ranges)
    return f"offset{'' if text.isdigit() else 's'} {text}"


@dataclass(frozen=True, slots=True)
class Majority:
    """The newest voters, and those among them whose directories are here and may be kept."""

    voters: tuple[int, ...]
    kept: tuple[int, ...]

    @property
    def needed(self) -> int:
        """The number of voters that elect a leader."""
        return len(self.voters) // 2 + 1

    @property
    def is_reached(self) -> bool:
        """Whether the directories that may be kept are enough."""
        return len(self.kept) >= self.needed


@dataclass(slots=True)
class Story:
    """The finished story of a quorum, in order of time.

    `labels` describes each node; `cluster` is the cluster id, None where it is unknown. `files` are
    the replicas among the files, the furthest first; `majority` is None where the voters are not
    known. `contradictions` are what their files say of each other that cannot both be true.
    `unowned` are log directories that name no cluster, while others do. `not_recorded` are the
    times of which neither a capture nor the log says anything.
    """

    start: float
    end: float
    events: list[RaftEvent]
    leaders: list[LeaderOfEpoch]
    rounds: list[Round]
    silences: list[Silence]
    replicas: list[Replica]
    voters: list[VoterSet]
    log: LogSummary
    labels: dict[NodeId, str]
    event_overflow: int = 0
    cluster: str | None = None
    files: list[ReplicaFiles] = field(default_factory=list)
    contradictions: list[str] = field(default_factory=list)
    majority: Majority | None = None
    unowned: list[str] = field(default_factory=list)
    not_recorded: list[TimeSpan] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether the story has no sign of a quorum."""
        return not self.events and not self.leaders and self.log.first_offset is None
