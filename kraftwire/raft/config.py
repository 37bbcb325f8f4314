"""The configuration of a Raft core.

Source: Kafka's `QuorumConfig`; the defaults are Kafka's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from kraftwire.protocol.endpoint import Endpoint
from kraftwire.protocol.topic_names import METADATA_TOPIC, METADATA_TOPIC_ID
from kraftwire.raft.voters import ReplicaKey, VoterSet

# The highest kraft.version whose records this core understands as a follower.
KRAFT_VERSION_MAX = 1

# Kafka allows 0 for all three, and then spins: elections too short for any answer, announcements
# without a pause, requests repeated as fast as the CPU allows. Lower values are raised to these.
ELECTION_TIMEOUT_MIN_MS = 10
FETCH_TIMEOUT_MIN_MS = 10
RETRY_BACKOFF_MIN_MS = 5


# A larger snapshot is not fetched unless this node has seen one of half its size: metadata of ten
# million partitions takes less.
SNAPSHOT_BYTES_MAX = 1024 * 1024 * 1024


class Handover(StrEnum):
    """Whether a leader hands over to another voter as soon as its epoch is established.

    A leader that never hands over is the active controller among Java voters, too.
    """

    AUTO = "auto"  # to a responsive voter of another implementation
    ALWAYS = "always"  # to any voter that has everything committed
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class TopicPartition:
    """The name of the replicated log in requests; the partition is always 0."""

    name: str = METADATA_TOPIC
    topic_id: bytes = METADATA_TOPIC_ID


@dataclass(frozen=True, slots=True, kw_only=True)
class RaftTimers:
    """The `controller.quorum.*` timers. Units: milliseconds.

    An election timeout, fetch timeout or retry back-off below the least useful value is raised to
    it.
    """

    election_timeout_ms: int = 1000
    fetch_timeout_ms: int = 2000
    election_backoff_max_ms: int = 1000
    append_linger_ms: int = 25
    request_timeout_ms: int = 2000
    retry_backoff_ms: int = 20
    retry_backoff_max_ms: int = 20
    fetch_max_wait_ms: int = 500
    shutdown_timeout_ms: int = 5000
    observer_session_timeout_ms: int = 300_000
    caught_up_within_ms: int = 3_600_000

    def __post_init__(self) -> None:
        for name, least in (
            ("election_timeout_ms", ELECTION_TIMEOUT_MIN_MS),
            ("fetch_timeout_ms", FETCH_TIMEOUT_MIN_MS),
            ("retry_backoff_ms", RETRY_BACKOFF_MIN_MS),
        ):
            object.__setattr__(self, name, max(getattr(self, name), least))


@dataclass(frozen=True, slots=True, kw_only=True)
class RaftConfig:
    """Identity, peers and choices of a replica.

    `key.id` is -1 for a replica that only reads. `cluster_id` is None until one is known (requests
    then have null, and any cluster id is accepted). `voters` is the static configuration, which
    counts until the log has voters. `listener` is the first controller listener's name in upper
    case, under which peers are addressed; `endpoints` are this node's own controller listeners.
    `bootstrap_servers` are asked for the leader while none is known; if empty, the voters are.
    `features` are those that this implementation alone announces, as texts `name lowest-highest`: a
    voter whose ApiVersions answer lacks one is another implementation. `snapshot_max_bytes` is the
    size up to which a leader's snapshot is believed, see `downloading`. `auto_join` makes an
    observer ask to become a voter. `describe_leader_last_fetch` is `now` (Kafka) or `-1` (as
    KIP-836 specifies).
    """

    key: ReplicaKey
    cluster_id: str | None
    voters: VoterSet
    topic: TopicPartition = TopicPartition()
    listener: str = "CONTROLLER"
    endpoints: tuple[Endpoint, ...] = ()
    bootstrap_servers: tuple[Endpoint, ...] = ()
    timers: RaftTimers = field(default_factory=RaftTimers)
    fetch_max_bytes: int = 1024 * 1024
    batch_max_bytes: int = 8 * 1024 * 1024
    fetch_snapshot_max_bytes: int = 1024 * 1024
    snapshot_max_bytes: int = SNAPSHOT_BYTES_MAX
    can_be_voter: bool = True
    auto_join: bool = False
    handover: Handover = Handover.NEVER
    features: frozenset[str] = frozenset({"kraftwire.version 1-1"})
    describe_leader_last_fetch: str = "now"
