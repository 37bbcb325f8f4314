"""Which exchanges the stages about quorums and groups read as a whole."""

from __future__ import annotations

from collections.abc import Iterator

from kraftwire.decode.body.context import METADATA_TOPIC
from kraftwire.spark.captures.exchange import Exchange
from kraftwire.spark.captures.quorum import is_of_metadata

__all__ = ["GROUP_APIS", "RAFT_APIS", "QuorumExchanges"]

_FETCH, _API_VERSIONS, _FETCH_SNAPSHOT = 1, 18, 59

# Vote, BeginQuorumEpoch, EndQuorumEpoch, DescribeQuorum, UpdateFeatures, BrokerRegistration,
# BrokerHeartbeat, ControllerRegistration, AddRaftVoter, RemoveRaftVoter, UpdateRaftVoter.
RAFT_APIS = frozenset({52, 53, 54, 55, 57, 62, 63, 70, 80, 81, 82})

# JoinGroup, SyncGroup, Heartbeat, LeaveGroup, OffsetCommit, FindCoordinator,
# ConsumerGroupHeartbeat, ShareGroupHeartbeat, StreamsGroupHeartbeat.
GROUP_APIS = frozenset({8, 10, 11, 12, 13, 14, 68, 76, 88})


class QuorumExchanges:
    """Determines which exchanges belong to a quorum, and to which cluster.

    ApiVersions comes before it is clear what a connection is for, so the first exchanges of a
    connection are kept until it speaks Raft.
    """

    def __init__(self) -> None:
        self._clusters: dict[str, str] = {}
        self._speaks: set[str] = set()
        self._early: dict[str, list[Exchange]] = {}

    def cluster(self, exchange: Exchange) -> str | None:
        """Return the cluster of an exchange: the last one named by requests of its connection."""
        request = exchange.request
        connection = exchange.frame.connection
        told = getattr(request.body, "cluster_id", None) if request is not None else None
        if told:
            self._clusters[connection] = told
        return told or self._clusters.get(connection)

    def add(self, exchange: Exchange) -> Iterator[Exchange]:
        """Return the exchanges that are now known to belong to quorums."""
        frame = exchange.frame
        if frame.api_key == _API_VERSIONS and frame.connection not in self._speaks:
            self._early.setdefault(frame.connection, []).append(exchange)
        elif _is_raft(exchange):
            if frame.connection not in self._speaks:
                self._speaks.add(frame.connection)
                yield from self._early.pop(frame.connection, ())
            yield exchange
        elif frame.api_key == _API_VERSIONS:
            yield exchange


def _is_raft(exchange: Exchange) -> bool:
    key = exchange.frame.api_key
    if key in RAFT_APIS:
        return True
    body = exchange.request.body if exchange.request is not None else None
    if body is None:
        return False
    if key == _FETCH:
        return any(map(is_of_metadata, body.topics))
    if key == _FETCH_SNAPSHOT:
        return any(topic.name == METADATA_TOPIC for topic in body.topics)
    return False
