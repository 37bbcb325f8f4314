"""Complete exchanges of quorums and groups, for the stages that read their bodies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kraftwire.decode.body.topics import METADATA_TOPIC
from kraftwire.errors import WireError
from kraftwire.protocol.versions import response_header_version
from kraftwire.spark.captures.bodies import Read
from kraftwire.spark.captures.exchange import Exchange
from kraftwire.spark.captures.place import micros
from kraftwire.spark.captures.quorum import is_of_metadata

__all__ = ["GROUP_APIS", "RAFT_APIS", "RaftTalk", "helper_cells"]

_FETCH, _API_VERSIONS, _FETCH_SNAPSHOT = 1, 18, 59

# Vote, BeginQuorumEpoch, EndQuorumEpoch, DescribeQuorum, UpdateFeatures, BrokerRegistration,
# BrokerHeartbeat, ControllerRegistration, AddRaftVoter, RemoveRaftVoter, UpdateRaftVoter.
RAFT_APIS = frozenset({52, 53, 54, 55, 57, 62, 63, 70, 80, 81, 82})

# JoinGroup, SyncGroup, Heartbeat, LeaveGroup, OffsetCommit, FindCoordinator,
# ConsumerGroupHeartbeat, ShareGroupHeartbeat, StreamsGroupHeartbeat.
GROUP_APIS = frozenset({8, 10, 11, 12, 13, 14, 68, 76, 88})


class RaftTalk:
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
        connection = exchange.first.frame.connection
        told = getattr(request.body, "cluster_id", None) if request is not None else None
        if told:
            self._clusters[connection] = told
        return told or self._clusters.get(connection)

    def add(self, exchange: Exchange) -> Iterator[Exchange]:
        """Return the exchanges that are now known to belong to quorums."""
        frame = exchange.first.frame
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
    key = exchange.first.frame.api_key
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


def helper_cells(exchange: Exchange, *cluster: str | None) -> tuple[Any, ...]:
    """The row of an exchange in `group_exchanges`, or with its cluster in `raft_exchanges`."""
    frame = exchange.first.frame
    request, response = exchange.request, exchange.response
    return (
        frame.file,
        frame.position,
        None if response is None else response.frame.file,
        None if response is None else response.frame.position,
        micros(frame.time_ns),
        frame.time_ns,
        frame.connection,
        frame.api_key,
        frame.api_version,
        frame.correlation_id,
        None if frame.request is None else frame.request.client_id,
        exchange.latency_ns,
        *cluster,
        None if request is None else _payload(request),
        None if response is None else _payload(response),
    )


def _payload(read: Read) -> bytes | None:
    """Return header and body of a frame without records and secrets; None if bytes are missing."""
    frame = read.frame
    if frame.missing:
        return None
    data: bytes = frame.data
    if any(field.size for field in read.fields):
        return _without_records(read)
    if read.decoded is not None:
        for start, end in read.decoded.hidden_ranges:
            data = data[:start] + bytes(end - start) + data[end:]
    return data


def _body_start(read: Read) -> int:
    """Return where the body begins in a frame; records are removed only from responses."""
    if read.decoded is not None:
        return read.decoded.payload.header_end
    # The header of a frame from the fast path has no tagged fields.
    api = read.frame.api_key or 0, read.frame.api_version or 0
    return 5 if response_header_version(*api) else 4


def _without_records(read: Read) -> bytes | None:
    """Return the same message with empty records."""
    frame = read.frame
    start = _body_start(read)
    held = [getattr(field.where.holder, field.where.attribute) for field in read.fields]
    try:
        for field in read.fields:
            setattr(field.where.holder, field.where.attribute, b"")
        return frame.data[:start] + read.body.encode(read.version)
    except WireError:
        return None
    finally:
        for field, data in zip(read.fields, held, strict=True):
            setattr(field.where.holder, field.where.attribute, data)
