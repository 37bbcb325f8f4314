"""AssignReplicasToDirs: a broker reports which log directory holds a replica. Rules: C-DIR-6.

Source: Kafka's `ReplicationControlManager.handleAssignReplicasToDirs`.
"""

from __future__ import annotations

from kraftwire.controller.cluster import Cluster
from kraftwire.controller.image.topics import PartitionKey
from kraftwire.controller.partition_changes import Target, change_partition, changes_for_broker
from kraftwire.controller.step import StepResult, VersionedRecord
from kraftwire.controller.versions import WITH_DIRECTORIES
from kraftwire.errors import ApiError
from kraftwire.messages import assign_replicas_to_dirs_response as answers
from kraftwire.messages.assign_replicas_to_dirs_request import AssignReplicasToDirsRequest
from kraftwire.messages.assign_replicas_to_dirs_response import AssignReplicasToDirsResponse
from kraftwire.pieces import Divided, Pieces
from kraftwire.protocol.error_codes import ErrorCode


@Divided
def assign_replicas(
    cluster: Cluster, request: AssignReplicasToDirsRequest
) -> Pieces[StepResult]:
    """Store the directories of replicas. Raises: ApiError for the whole request.

    A directory that is not online is stored too, so that the replica there cannot lead; further
    records take such replicas out of the in-sync ones.
    """
    if cluster.level < WITH_DIRECTORIES:
        text = f"metadata.version {cluster.level} has no log directories"
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, text)
    broker = cluster.image.brokers.get(request.broker_id)
    if broker is None or broker.epoch != request.broker_epoch:
        code = ErrorCode.STALE_BROKER_EPOCH
        return StepResult(AssignReplicasToDirsResponse(error_code=code))
    response = AssignReplicasToDirsResponse()
    records: list[VersionedRecord] = []
    offline: list[PartitionKey] = []
    done: set[PartitionKey] = set()
    for directory in request.directories:
        topics = [answers.TopicData(topic_id=topic.topic_id) for topic in directory.topics]
        response.directories.append(answers.DirectoryData(id=directory.id, topics=topics))
        for topic, results in zip(directory.topics, topics, strict=True):
            for each in topic.partitions:
                yield
                key = topic.topic_id, each.partition_index
                error = _assignment_error(cluster, broker.id, key)
                if not error and key not in done:
                    target = Target(directories={broker.id: directory.id})
                    record = change_partition(cluster, key, target)
                    records += [] if record is None else [record]
                    offline += [] if cluster.is_online(directory.id, broker.id) else [key]
                    done.add(key)
                result = answers.PartitionData(partition_index=key[1], error_code=error)
                results.partitions.append(result)
    moved = yield from changes_for_broker.in_pieces(cluster, offline, removed=broker.id)
    return StepResult(response, [*records, *moved])


def _assignment_error(cluster: Cluster, broker_id: int, key: PartitionKey) -> ErrorCode:
    topics = cluster.image.topics
    if key[0] not in topics.names:
        return ErrorCode.UNKNOWN_TOPIC_ID
    partition = topics.partition(key)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    is_replica = broker_id in partition.replicas
    return ErrorCode.NONE if is_replica else ErrorCode.NOT_LEADER_OR_FOLLOWER
