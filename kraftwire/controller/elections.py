"""Elections of leaders on request and at intervals. Rules: C-ELE.

Source: Kafka's `ReplicationControlManager.electLeaders`, `maybeBalancePartitionLeaders` and
`maybeElectUncleanLeaders`.
"""

from __future__ import annotations

from collections.abc import Iterable

from kraftwire.controller.cluster import Cluster
from kraftwire.controller.image.topics import NO_LEADER, PartitionKey
from kraftwire.controller.partition_changes import Election, Target, change_partition
from kraftwire.controller.step import StepResult, VersionedRecord
from kraftwire.errors import ApiError
from kraftwire.messages.elect_leaders_request import ElectLeadersRequest
from kraftwire.messages.elect_leaders_response import (
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from kraftwire.pieces import Divided, Pieces
from kraftwire.protocol.error_codes import ErrorCode

# Records of one run at an interval.
PERIODIC_RECORDS_MAX = 1000

_PREFERRED, _UNCLEAN = 0, 1
_ELECTIONS = {_PREFERRED: Election.PREFERRED, _UNCLEAN: Election.UNCLEAN}
_NOT_AVAILABLE = {
    _PREFERRED: (
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        "the preferred leader is not available",
    ),
    _UNCLEAN: (ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "no replica is available"),
}


@Divided
def elect_leaders(cluster: Cluster, request: ElectLeadersRequest) -> Pieces[StepResult]:
    """Elect leaders of the partitions named, or of all. Raises: ApiError for the whole request."""
    kind = request.election_type
    if kind not in _ELECTIONS:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"election type {kind} is unknown")
    topics = cluster.image.topics
    named = request.topic_partitions
    wanted: Iterable[tuple[str, Iterable[int]]]
    if named is None:
        wanted = ((name, sorted(topics.partitions(id))) for name, id in sorted(topics.ids.items()))
    else:
        wanted = ((each.topic, each.partitions) for each in named)
    response = ElectLeadersResponse()
    records: list[VersionedRecord] = []
    done: set[PartitionKey] = set()
    for name, indexes in wanted:
        results = ReplicaElectionResult(topic=name)
        response.replica_election_results.append(results)
        for index in indexes:
            yield
            key = topics.ids.get(name, b""), index
            result, record = _elect_leader(cluster, key, kind)
            is_needed = result.error_code != ErrorCode.ELECTION_NOT_NEEDED
            if named is not None or is_needed:
                results.partition_result.append(result)
            if record is not None and key not in done:
                records.append(record)
            done.add(key)
    return StepResult(response, records)


def _elect_leader(
    cluster: Cluster, key: PartitionKey, kind: int
) -> tuple[PartitionResult, VersionedRecord | None]:
    partition = cluster.image.topics.partition(key)
    result = PartitionResult(partition_id=key[1], error_message=None)
    if partition is None:
        result.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        result.error_message = "there is no such partition"
        return result, None
    is_preferred = partition.leader == partition.replicas[0]
    if is_preferred if kind == _PREFERRED else partition.leader != NO_LEADER:
        result.error_code = ErrorCode.ELECTION_NOT_NEEDED
        result.error_message = "the partition has such a leader"
        return result, None
    record = change_partition(cluster, key, Target(election=_ELECTIONS[kind]))
    if record is None:
        result.error_code, result.error_message = _NOT_AVAILABLE[kind]
    return result, record


def elect_preferred(cluster: Cluster) -> list[VersionedRecord]:
    """Return the changes that give leadership back to preferred leaders, at most
    PERIODIC_RECORDS_MAX (C-ELE-6)."""
    return _periodic_changes(cluster, cluster.image.topics.away, Election.PREFERRED)


def elect_unclean(cluster: Cluster) -> list[VersionedRecord]:
    """Return the changes that give a leader to partitions without one, where that may lose records
    by configuration, at most PERIODIC_RECORDS_MAX (C-ELE-7)."""
    allowed = (key for key in cluster.image.topics.without_leader if cluster.allows_unclean(key[0]))
    return _periodic_changes(cluster, allowed, Election.UNCLEAN)


def _periodic_changes(
    cluster: Cluster, keys: Iterable[PartitionKey], election: Election
) -> list[VersionedRecord]:
    records: list[VersionedRecord] = []
    for key in sorted(keys, key=cluster.image.topics.order):
        record = change_partition(cluster, key, Target(election=election))
        if record is not None:
            records.append(record)
        if len(records) >= PERIODIC_RECORDS_MAX:
            break
    return records
