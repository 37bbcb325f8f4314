"""Facts of what administrators send: partitions, access control lists; and of tasks of Streams."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.decode.body.context import TopicNames
from kraftwire.inspect.facts import REQUEST_FACTS, RESPONSE_FACTS
from kraftwire.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kraftwire.messages.alter_partition_reassignments_response import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from kraftwire.messages.alter_replica_log_dirs_request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kraftwire.messages.alter_replica_log_dirs_response import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from kraftwire.messages.create_acls_request import AclCreation, CreateAclsRequest
from kraftwire.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from kraftwire.messages.delete_acls_response import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsResponse,
)
from kraftwire.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kraftwire.messages.delete_records_response import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from kraftwire.messages.describe_acls_request import DescribeAclsRequest
from kraftwire.messages.describe_acls_response import (
    AclDescription,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from kraftwire.messages.list_partition_reassignments_response import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from kraftwire.messages.streams_group_heartbeat_request import (
    StreamsGroupHeartbeatRequest,
)
from kraftwire.messages.streams_group_heartbeat_request import TaskIds as AskedTasks
from kraftwire.messages.streams_group_heartbeat_response import (
    StreamsGroupHeartbeatResponse,
    TaskIds,
)
from kraftwire.wire.message import Message


def _of(kind: Any, *values: object) -> Any:
    """Return a struct with some values for its first fields."""
    return kind(**dict(zip(kind.__slots__, values, strict=False)))


_ALICE: dict[str, Any] = {
    "principal": "User:alice", "host": "*", "operation": 3, "permission_type": 3,
}  # fmt: skip
_BOB: dict[str, Any] = {
    "principal": "User:bob", "host": "10.0.0.1", "operation": 99, "permission_type": 2,
}  # fmt: skip

_REQUESTS: list[tuple[Message, str]] = [
    (
        DeleteRecordsRequest(topics=[
            _of(DeleteRecordsTopic, "t", [
                _of(DeleteRecordsPartition, 0, 42), _of(DeleteRecordsPartition, 1, -1),
            ])
        ]),
        "t-0 before 42, t-1 before the high watermark",
    ),
    (
        AlterPartitionReassignmentsRequest(topics=[
            _of(ReassignableTopic, "t", [
                _of(ReassignablePartition, 0, [1, 2]), _of(ReassignablePartition, 1, None),
            ])
        ]),
        "t-0 to replicas [1, 2], t-1 cancel",
    ),
    (
        AlterReplicaLogDirsRequest(
            dirs=[_of(AlterReplicaLogDir, "/data/2", [_of(AlterReplicaLogDirTopic, "t", [0, 3])])]
        ),
        "t-0 to /data/2, t-3 to /data/2",
    ),
    (
        CreateAclsRequest(creations=[
            AclCreation(resource_type=2, resource_name="t", resource_pattern_type=4, **_ALICE),
            AclCreation(resource_type=3, resource_name="*", resource_pattern_type=3, **_BOB),
        ]),
        "ALLOW User:alice READ TOPIC t PREFIXED, "
        "DENY User:bob 99 GROUP * LITERAL from 10.0.0.1",
    ),
    (
        DescribeAclsRequest(
            resource_type_filter=1, resource_name_filter=None, pattern_type_filter=1,
            principal_filter=None, host_filter=None, operation=1, permission_type=1,
        ),
        "resource ANY, pattern ANY, operation ANY, permission ANY",
    ),
    (
        DeleteAclsRequest(filters=[
            _of(DeleteAclsFilter, 2, "t", 3, "User:alice", "*", 4, 3)
        ]),
        "resource TOPIC t, pattern LITERAL, operation WRITE, permission ALLOW, "
        "principal User:alice, host *",
    ),
    (
        StreamsGroupHeartbeatRequest(
            group_id="g", member_id="m", member_epoch=3,
            active_tasks=[_of(AskedTasks, "0", [0, 2])],
            standby_tasks=[_of(AskedTasks, "1", [1])], warmup_tasks=[],
        ),
        "group g member m epoch 3, active 0_0, 0_2, standby 1_1",
    ),
    (
        StreamsGroupHeartbeatRequest(
            group_id="g", member_epoch=3, active_tasks=None, standby_tasks=None, warmup_tasks=None
        ),
        "group g epoch 3",
    ),
]  # fmt: skip

_RESPONSES: list[tuple[Message, str]] = [
    (
        DeleteRecordsResponse(topics=[
            _of(DeleteRecordsTopicResult, "t", [
                _of(DeleteRecordsPartitionResult, 0, 42, 0),
                _of(DeleteRecordsPartitionResult, 1, -1, 1),
            ])
        ]),
        "t-0 low watermark 42, t-1",
    ),
    (
        AlterPartitionReassignmentsResponse(responses=[
            _of(ReassignableTopicResponse, "t", [_of(ReassignablePartitionResponse, 3)])
        ]),
        "t-3",
    ),
    (
        ListPartitionReassignmentsResponse(topics=[
            _of(OngoingTopicReassignment, "t", [
                _of(OngoingPartitionReassignment, 0, [1, 2, 3], [3], [1])
            ])
        ]),
        "t-0 replicas [1, 2, 3] adding [3] removing [1]",
    ),
    (
        AlterReplicaLogDirsResponse(results=[
            _of(AlterReplicaLogDirTopicResult, "t", [_of(AlterReplicaLogDirPartitionResult, 4)])
        ]),
        "t-4",
    ),
    (
        DescribeAclsResponse(resources=[
            _of(DescribeAclsResource, 5, "tx", 3, [AclDescription(**_ALICE)])
        ]),
        "ALLOW User:alice READ TRANSACTIONAL_ID tx LITERAL",
    ),
    (DescribeAclsResponse(), "no entries"),
    (
        DeleteAclsResponse(filter_results=[
            DeleteAclsFilterResult(matching_acls=[
                DeleteAclsMatchingAcl(
                    resource_type=2, resource_name="t", pattern_type=3, **_ALICE
                )
            ])
        ]),
        "deleted ALLOW User:alice READ TOPIC t LITERAL",
    ),
    (DeleteAclsResponse(filter_results=[DeleteAclsFilterResult()]), "nothing deleted"),
    (
        StreamsGroupHeartbeatResponse(
            member_epoch=4, active_tasks=[_of(TaskIds, "0", [0, 1, 2, 3])],
            standby_tasks=[], warmup_tasks=[_of(TaskIds, "1", [5])],
        ),
        "epoch 4, active 0_0, 0_1, 0_2 +1, warm-up 1_5",
    ),
    (
        StreamsGroupHeartbeatResponse(member_epoch=4, active_tasks=[]),
        "epoch 4, no active tasks",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("body", "facts"), _REQUESTS, ids=lambda each: type(each).__name__)
def test_facts_of_requests(body: Message, facts: str) -> None:
    """Names stand for Kafka's numbers; a number without a name is shown itself."""
    assert REQUEST_FACTS[body.API_KEY or 0](body, TopicNames()) == facts


@pytest.mark.parametrize(("body", "facts"), _RESPONSES, ids=lambda each: type(each).__name__)
def test_facts_of_responses(body: Message, facts: str) -> None:
    """What was refused has an error in its own column, and no values."""
    assert RESPONSE_FACTS[body.API_KEY or 0](body, TopicNames()) == facts
