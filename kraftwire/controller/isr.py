"""AlterPartition: a leader reports which replicas are in sync. Rules: C-ISR.

Source: Kafka's `ReplicationControlManager.alterPartition`.
"""

from __future__ import annotations

from collections.abc import Mapping

from kraftwire.controller.cluster import Cluster
from kraftwire.controller.image.topics import PartitionKey, changed_partition
from kraftwire.controller.partition_changes import (
    RECOVERED,
    RECOVERING,
    Election,
    Target,
    change_partition,
)
from kraftwire.controller.step import StepResult, VersionedRecord
from kraftwire.messages import alter_partition_response as answers
from kraftwire.messages.alter_partition_request import AlterPartitionRequest, PartitionData
from kraftwire.messages.alter_partition_response import AlterPartitionResponse
from kraftwire.messages.partition_change_record import PartitionChangeRecord
from kraftwire.messages.partition_record import PartitionRecord
from kraftwire.pieces import Divided, Pieces
from kraftwire.protocol.error_codes import ErrorCode

# The first version that gives the epochs of the brokers.
_WITH_EPOCHS = 3
_ANY_EPOCH = -1


@Divided
def alter_partition(
    cluster: Cluster, request: AlterPartitionRequest, version: int
) -> Pieces[StepResult]:
    """Change the in-sync replicas of partitions that the sender leads."""
    broker = cluster.image.brokers.get(request.broker_id)
    if broker is None or broker.epoch != request.broker_epoch:
        return StepResult(AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH))
    records: list[VersionedRecord] = []
    response = AlterPartitionResponse()
    seen: set[PartitionKey] = set()
    for topic in request.topics:
        results = answers.TopicData(topic_id=topic.topic_id)
        response.topics.append(results)
        for wanted in topic.partitions:
            yield
            key = topic.topic_id, wanted.partition_index
            # Twice in one request: the second is of the state before the first.
            error = _update_error(cluster, request.broker_id, key, wanted, version)
            if key in seen:
                error = error or ErrorCode.INVALID_UPDATE_VERSION
            seen.add(key)
            result = answers.PartitionData(partition_index=key[1], error_code=error)
            results.partitions.append(result)
            if not error:
                target = _target(cluster, key, wanted, version)
                record = change_partition(cluster, key, target)
                records += [] if record is None else [record]
                _fill_response(cluster, key, record, result)
    return StepResult(response, records)


def _isr(wanted: PartitionData, version: int) -> dict[int, int]:
    """Return the requested in-sync replicas, in order, with their broker epochs."""
    if version < _WITH_EPOCHS:
        return dict.fromkeys(wanted.new_isr, _ANY_EPOCH)
    return {each.broker_id: each.broker_epoch for each in wanted.new_isr_with_epochs}


def _update_error(
    cluster: Cluster, sender: int, key: PartitionKey, wanted: PartitionData, version: int
) -> ErrorCode:
    """Check a change in Kafka's order (C-ISR-2)."""
    if key[0] not in cluster.image.topics.names:
        return ErrorCode.UNKNOWN_TOPIC_ID
    partition = cluster.image.topics.partition(key)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    epochs = wanted.leader_epoch, wanted.partition_epoch
    if epochs[0] > partition.leader_epoch or epochs[1] > partition.partition_epoch:
        return ErrorCode.NOT_CONTROLLER
    if epochs[0] < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if sender != partition.leader:
        return ErrorCode.INVALID_REQUEST
    if epochs[1] < partition.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    isr = _isr(wanted, version)
    count = len(wanted.new_isr if version < _WITH_EPOCHS else wanted.new_isr_with_epochs)
    if len(isr) < count or not set(isr) <= set(partition.replicas) or sender not in isr:
        return ErrorCode.INVALID_REQUEST
    error = _recovery_error(partition, wanted.leader_recovery_state, isr)
    return error or _eligibility_error(cluster, isr)


def _recovery_error(partition: PartitionRecord, state: int, isr: Mapping[int, int]) -> ErrorCode:
    """Check the recovery state. Differs from Kafka, whose controller resigns on an unknown one."""
    is_known = state in (RECOVERED, RECOVERING)
    begins = state == RECOVERING and partition.leader_recovery_state == RECOVERED
    if not is_known or begins or (state == RECOVERING and len(isr) > 1):
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE


def _eligibility_error(cluster: Cluster, isr: Mapping[int, int]) -> ErrorCode:
    """Check that the replicas are those of active brokers, with their epochs."""
    for broker_id, epoch in isr.items():
        broker = cluster.image.brokers.get(broker_id)
        if broker is None or not cluster.is_active(broker_id):
            return ErrorCode.INELIGIBLE_REPLICA
        if epoch not in (_ANY_EPOCH, broker.epoch):
            return ErrorCode.INELIGIBLE_REPLICA
    return ErrorCode.NONE


def _target(cluster: Cluster, key: PartitionKey, wanted: PartitionData, version: int) -> Target:
    """Return the target of a partition's change (C-ISR-3)."""
    return Target(
        isr=list(_isr(wanted, version)),
        recovery_state=wanted.leader_recovery_state,
        election=Election.UNCLEAN if cluster.allows_unclean(key[0]) else Election.ONLINE,
    )


def _fill_response(
    cluster: Cluster,
    key: PartitionKey,
    record: VersionedRecord | None,
    result: answers.PartitionData,
) -> None:
    """Fill in the partition after the change, or the error if another replica leads (C-ISR-4)."""
    before = after = cluster.image.topics.partition(key)
    assert before is not None
    assert after is not None
    if record is not None:
        change = record[0]
        assert isinstance(change, PartitionChangeRecord)
        after = changed_partition(before, change)
    if after.leader != before.leader:
        result.error_code = ErrorCode.NEW_LEADER_ELECTED
        return
    result.leader_id, result.leader_epoch = after.leader, after.leader_epoch
    result.isr, result.leader_recovery_state = after.isr, after.leader_recovery_state
    result.partition_epoch = after.partition_epoch
