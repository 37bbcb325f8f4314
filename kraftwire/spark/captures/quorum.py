"""What exchanges report about replicas of the metadata log, and which ones the stages read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from kraftwire.capture.framing.frames import RawFrame
from kraftwire.messages.describe_quorum_response import DescribeQuorumResponse
from kraftwire.protocol.api_keys import ApiKey
from kraftwire.protocol.topic_names import METADATA_TOPIC, METADATA_TOPIC_ID
from kraftwire.protocol.versions import fetching_replica
from kraftwire.spark.captures.bodies import TableFrame
from kraftwire.spark.captures.exchange import TableExchange
from kraftwire.spark.tables.columns import known

RAFT_APIS = frozenset(
    {
        ApiKey.VOTE,
        ApiKey.BEGIN_QUORUM_EPOCH,
        ApiKey.END_QUORUM_EPOCH,
        ApiKey.DESCRIBE_QUORUM,
        ApiKey.UPDATE_FEATURES,
        ApiKey.BROKER_REGISTRATION,
        ApiKey.BROKER_HEARTBEAT,
        ApiKey.CONTROLLER_REGISTRATION,
        ApiKey.ADD_RAFT_VOTER,
        ApiKey.REMOVE_RAFT_VOTER,
        ApiKey.UPDATE_RAFT_VOTER,
    }
)

GROUP_APIS = frozenset(
    {
        ApiKey.OFFSET_COMMIT,
        ApiKey.FIND_COORDINATOR,
        ApiKey.JOIN_GROUP,
        ApiKey.HEARTBEAT,
        ApiKey.LEAVE_GROUP,
        ApiKey.SYNC_GROUP,
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        ApiKey.SHARE_GROUP_HEARTBEAT,
        ApiKey.STREAMS_GROUP_HEARTBEAT,
    }
)


class ReplicaObservation(NamedTuple):
    """What one Fetch or DescribeQuorum reports about a replica: a row of quorum_observations.

    `frame` is the request. Units: nanoseconds since the epoch.
    """

    frame: RawFrame
    time_ns: int
    cluster: str | None
    replica_id: int
    leader_id: int | None
    leader_epoch: int | None
    fetch_offset: int | None
    log_end_offset: int | None
    high_watermark: int | None
    last_fetch_ns: int | None
    last_caught_up_ns: int | None
    source: str


def is_of_metadata(topic: Any) -> bool:
    """Whether a topic of a Fetch is the metadata log."""
    return bool(topic.topic == METADATA_TOPIC or topic.topic_id == METADATA_TOPIC_ID)


class ReplicaObserver:
    """Makes rows of `quorum_observations`; remembers the last Fetch of each replica.

    A replica was caught up at a Fetch whose response has no records, or at the previous Fetch, if
    the present one begins after all records of that response.

    Source: KIP-836.
    """

    def __init__(self) -> None:
        # Replica -> time of the last Fetch, end of the records received, last caught up.
        self._seen: dict[int, tuple[int, int | None, int | None]] = {}

    def rows(self, exchange: TableExchange, cluster: str | None) -> Iterator[ReplicaObservation]:
        """Return the rows of an exchange, in order."""
        request, response = exchange.request, exchange.response
        if request is None or response is None or request.body is None or response.body is None:
            return
        if request.api_key == ApiKey.FETCH:
            yield from self._fetched(request, response, cluster)
        elif request.api_key == ApiKey.DESCRIBE_QUORUM:
            yield from _described(request, response, cluster)

    def _fetched(
        self, request: TableFrame, response: TableFrame, cluster: str | None
    ) -> Iterator[ReplicaObservation]:
        asked: Any = request.body
        answer: Any = response.body
        replica = fetching_replica(asked)
        requested = next((t.partitions for t in asked.topics if is_of_metadata(t)), None)
        found = next((t.partitions for t in answer.responses if is_of_metadata(t)), None)
        if not requested or not found or replica < 0:
            return
        fetch_offset, partition = requested[0].fetch_offset, found[0]
        last = next((f.batches[-1].last_offset for f in response.fields if f.batches), None)
        end = None if last is None else last + 1
        caught_up = self._caught_up(replica, request.time_ns, fetch_offset, end, partition)
        leader = partition.current_leader
        if end is None and not partition.error_code:
            end = fetch_offset
        yield ReplicaObservation(
            request, request.time_ns, cluster, replica, known(leader and leader.leader_id),
            known(leader and leader.leader_epoch), fetch_offset, end,
            known(partition.high_watermark), request.time_ns, caught_up, "fetch",
        )  # fmt: skip

    def _caught_up(
        self, replica: int, time_ns: int, fetch_offset: int, end: int | None, partition: Any
    ) -> int | None:
        """Add a Fetch of a replica; return when it was last caught up.

        `end` is the offset after the records that it received, None if it received none, and
        `partition` that of the response. Units: nanoseconds.
        """
        is_refused = (
            partition.error_code or partition.diverging_epoch or partition.snapshot_id
        )
        before, before_end, caught_up = self._seen.get(replica, (-1, None, None))
        if not is_refused and end is None:
            caught_up = time_ns
        elif before_end is not None and fetch_offset >= before_end:
            caught_up = before
        self._seen[replica] = time_ns, end, caught_up
        return caught_up


def _described(
    request: TableFrame, response: TableFrame, cluster: str | None
) -> Iterator[ReplicaObservation]:
    time_ns, body = response.time_ns, response.body
    assert isinstance(body, DescribeQuorumResponse)
    for topic in body.topics:
        for part in topic.partitions if topic.topic_name == METADATA_TOPIC else ():
            if part.error_code:
                continue
            for replica in (*part.current_voters, *part.observers):
                yield ReplicaObservation(
                    request, time_ns, cluster, replica.replica_id, known(part.leader_id),
                    part.leader_epoch, None, known(replica.log_end_offset),
                    known(part.high_watermark), _nanoseconds(replica.last_fetch_timestamp),
                    _nanoseconds(replica.last_caught_up_timestamp), "describe-quorum",
                )  # fmt: skip


def _nanoseconds(time_ms: int) -> int | None:
    return None if time_ms < 0 else time_ms * 1_000_000


class QuorumExchanges:
    """Determines which exchanges of a connection belong to a quorum, and to which cluster.

    ApiVersions comes before it is clear what a connection is for, so the first exchanges are kept
    until it speaks Raft.
    """

    def __init__(self) -> None:
        self._cluster: str | None = None
        # None once it speaks Raft.
        self._early: list[TableExchange] | None = []

    def cluster(self, exchange: TableExchange) -> str | None:
        """Return the cluster of an exchange: the last one that requests have named."""
        request = exchange.request
        named = getattr(request.body, "cluster_id", None) if request is not None else None
        self._cluster = named or self._cluster
        return self._cluster

    def add(self, exchange: TableExchange) -> Iterator[TableExchange]:
        """Return the exchanges that are now known to belong to quorums."""
        if _is_raft(exchange):
            early, self._early = self._early or (), None
            yield from (*early, exchange)
        elif exchange.first.api_key == ApiKey.API_VERSIONS:
            if self._early is None:
                yield exchange
            else:
                self._early.append(exchange)


def _is_raft(exchange: TableExchange) -> bool:
    key = exchange.first.api_key
    if key in RAFT_APIS:
        return True
    body: Any = exchange.request_body
    if body is None:
        return False
    if key == ApiKey.FETCH:
        return any(map(is_of_metadata, body.topics))
    if key == ApiKey.FETCH_SNAPSHOT:
        return any(topic.name == METADATA_TOPIC for topic in body.topics)
    return False
