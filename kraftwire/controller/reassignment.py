"""Reassignments: partitions are moved to other replicas. Rules: C-REA.

Source: Kafka's `ReplicationControlManager.alterPartitionReassignments`,
`PartitionReassignmentReplicas` and `PartitionReassignmentRevert`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from kraftwire.controller.cluster import Cluster
from kraftwire.controller.image.topics import PartitionKey, is_reassigning
from kraftwire.controller.partition_changes import RECOVERING, Election, Target, change_partition
from kraftwire.controller.step import StepResult, VersionedRecord
from kraftwire.controller.topics import check_replicas
from kraftwire.errors import ApiError
from kraftwire.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
)
from kraftwire.messages.alter_partition_reassignments_response import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from kraftwire.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
)
from kraftwire.messages.list_partition_reassignments_response import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from kraftwire.messages.partition_record import PartitionRecord
from kraftwire.pieces import Divided, Pieces
from kraftwire.protocol.error_codes import ErrorCode


@Divided
def alter_reassignments(
    cluster: Cluster, request: AlterPartitionReassignmentsRequest
) -> Pieces[StepResult]:
    """Begin, change or cancel reassignments."""
    can_resize = request.allow_replication_factor_change
    response = AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=can_resize, error_message=None
    )
    topics = cluster.image.topics
    records: list[VersionedRecord] = []
    done: set[PartitionKey] = set()
    for topic in request.topics:
        results = ReassignableTopicResponse(name=topic.name)
        response.responses.append(results)
        for wanted in topic.partitions:
            yield
            key = topics.ids.get(topic.name, b""), wanted.partition_index
            result = ReassignablePartitionResponse(partition_index=key[1], error_message=None)
            results.partitions.append(result)
            try:
                if key in done:
                    text = "the request names this partition more than once"
                    raise ApiError(ErrorCode.INVALID_REQUEST, text)
                record = _reassign(cluster, key, wanted.replicas, can_resize=can_resize)
                done.add(key)
                records += [] if record is None else [record]
            except ApiError as error:
                result.error_code, result.error_message = error.code, error.detail or None
    return StepResult(response, records)


def _reassign(
    cluster: Cluster, key: PartitionKey, replicas: Sequence[int] | None, *, can_resize: bool
) -> VersionedRecord | None:
    """Return the change of one partition. Raises: ApiError."""
    partition = cluster.image.topics.partition(key)
    if partition is None:
        text = "there is no such partition"
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
    if replicas is None:
        return _cancel_reassignment(cluster, key, partition)
    check_replicas(cluster, replicas)
    before = set(partition.replicas) | set(partition.adding_replicas)
    size = len(before - set(partition.removing_replicas)) if is_reassigning(partition) else (
        len(partition.replicas)
    )
    if not can_resize and len(replicas) != size:
        text = f"the partition has {size} replicas, and {len(replicas)} are requested"
        raise ApiError(ErrorCode.INVALID_REPLICATION_FACTOR, text)
    removing = sorted(set(partition.replicas) - set(replicas))
    adding = sorted(set(replicas) - set(partition.replicas))
    # Empty lists leave those of a reassignment that is under way, as in Kafka (C-REA-3).
    target = Target(
        replicas=[*replicas, *removing],
        removing=removing or None,
        adding=adding or None,
    )
    return change_partition(cluster, key, target)


def _cancel_reassignment(
    cluster: Cluster, key: PartitionKey, partition: PartitionRecord
) -> VersionedRecord | None:
    """Return the change that undoes a reassignment (C-REA-6). Raises: ApiError."""
    if not is_reassigning(partition):
        raise ApiError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "")
    adding = partition.adding_replicas
    replicas = [each for each in partition.replicas if each not in adding]
    isr = [each for each in partition.isr if each not in adding]
    is_unclean = cluster.allows_unclean(key[0])
    if not replicas or not (isr or is_unclean):
        text = "without the added replicas, no replica of this partition is in sync"
        raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
    target = Target(
        isr=isr or replicas[:1],
        replicas=replicas,
        removing=[],
        adding=[],
        # Differs from Kafka, whose leader then is taken for complete (C-REA-6).
        recovery_state=None if isr else RECOVERING,
        election=Election.UNCLEAN if is_unclean else Election.ONLINE,
    )
    return change_partition(cluster, key, target)


def list_reassignments(
    cluster: Cluster, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """Return the reassignments under way, of some topics or of all (C-REA-7)."""
    topics = cluster.image.topics
    keys = sorted(topics.reassigning, key=topics.order)
    if request.topics is not None:
        wanted = {
            (topics.ids.get(topic.name, b""), index)
            for topic in request.topics
            for index in topic.partition_indexes
        }
        keys = [key for key in keys if key in wanted]
    found: defaultdict[str, list[OngoingPartitionReassignment]] = defaultdict(list)
    for key in keys:
        partition = topics.partition(key)
        assert partition is not None
        one = OngoingPartitionReassignment(
            partition_index=key[1],
            replicas=partition.replicas,
            adding_replicas=partition.adding_replicas,
            removing_replicas=partition.removing_replicas,
        )
        found[topics.names[key[0]]].append(one)
    return ListPartitionReassignmentsResponse(
        error_message=None,
        topics=[OngoingTopicReassignment(name=n, partitions=p) for n, p in found.items()],
    )
