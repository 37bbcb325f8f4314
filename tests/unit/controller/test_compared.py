"""Decisions in which a comparison with Kafka's controller found a difference.

The comparison itself is `tests/interop/test_controller_java.py`.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from kraftwire.controller import brokers
from kraftwire.controller.cluster import MIN_INSYNC_REPLICAS
from kraftwire.controller.configs import alter_configs_incrementally
from kraftwire.controller.directories import assign_replicas
from kraftwire.controller.reassignment import alter_reassignments
from kraftwire.controller.sessions import Sessions
from kraftwire.controller.topic_configs import Origin
from kraftwire.controller.topics import create_partitions, delete_topics
from kraftwire.messages import assign_replicas_to_dirs_request as directories
from kraftwire.messages import incremental_alter_configs_request as incremental
from kraftwire.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kraftwire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftwire.messages.create_partitions_request import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kraftwire.messages.create_topics_request import CreatableTopic, CreatableTopicConfig
from kraftwire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kraftwire.protocol.config_resources import BROKER_RESOURCE, TOPIC_RESOURCE
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.wire.message import Message
from tests.support.nodes.controlled_cluster import ControlledCluster, changes

SET, APPEND = 0, 2
LOST = (2).to_bytes(16, "big")


def test_replicas_to_be_removed_follow_in_the_order_of_their_ids() -> None:
    """The order of replicas is that in which leaders are looked for (C-REA-2)."""
    cluster = ControlledCluster(brokers=(1, 2, 3, 4))
    topic_id = cluster.topic("t", [4, 3, 2])
    partition = ReassignablePartition(partition_index=0, replicas=[1])
    topic = ReassignableTopic(name="t", partitions=[partition])
    cluster.do(
        alter_reassignments(cluster.view, AlterPartitionReassignmentsRequest(topics=[topic]))
    )
    assert cluster.partition((topic_id, 0)).replicas == [1, 2, 3, 4]


def test_a_replica_in_a_lost_directory_does_not_lead_again() -> None:
    """Its broker has lost the records, although it is active (C-DIR-6, C-DIR-4)."""
    cluster = ControlledCluster(brokers=(1, 2))
    topic_id = cluster.topic("t", [1])
    topic = directories.TopicData(
        topic_id=topic_id, partitions=[directories.PartitionData(partition_index=0)]
    )
    request = directories.AssignReplicasToDirsRequest(
        broker_id=1,
        broker_epoch=cluster.image.brokers[1].epoch,
        directories=[directories.DirectoryData(id=LOST, topics=[topic])],
    )
    result = assign_replicas(cluster.view, request)
    cluster.do(result)
    assert changes(result.records) == [
        {"directories": [LOST]},
        {"isr": [], "leader": -1, "eligible_leader_replicas": [1], "last_known_elr": [1]},
    ]
    cluster.fence(2)
    _beat(cluster, Sessions(9000), 2)
    assert cluster.partition((topic_id, 0)).leader == -1


def test_a_broker_that_came_back_from_a_shutdown_is_waited_for() -> None:
    """It serves clients again, so it has to know that another one goes (C-HB-6)."""
    cluster = ControlledCluster(brokers=(1, 2))
    cluster.topic("t", [1, 2])
    cluster.topic("u", [2, 1])
    sessions = Sessions(9000)
    before = cluster.image.highest_offset
    for broker_id in (1, 2):
        _beat(cluster, sessions, broker_id)
    _beat(cluster, sessions, 1, want_shut_down=True)
    _beat(cluster, sessions, 2)
    assert _beat(cluster, sessions, 1, want_shut_down=True)
    assert not _beat(cluster, sessions, 1, current_metadata_offset=1000)
    _beat(cluster, sessions, 1, current_metadata_offset=before)
    assert not _beat(cluster, sessions, 2, want_shut_down=True)
    assert not _beat(cluster, sessions, 2, want_shut_down=True)


def test_what_is_deleted_twice_has_one_result() -> None:
    """A name twice, an id twice, and the same topic by both (C-DEL)."""
    cluster = ControlledCluster(brokers=(1,))
    ids = {name: cluster.topic(name, [1]) for name in "abc"}
    wanted = [
        *[DeleteTopicState(name="a")] * 2,
        *[DeleteTopicState(name=None, topic_id=ids["b"])] * 2,
        DeleteTopicState(name="c"),
        DeleteTopicState(name=None, topic_id=ids["c"]),
        DeleteTopicState(name="a", topic_id=ids["b"]),
    ]
    result = delete_topics(cluster.view, DeleteTopicsRequest(topics=wanted))
    assert result.records == []
    answer = cluster.do(result)
    assert {one.error_code for one in answer.responses} == {ErrorCode.INVALID_REQUEST}
    assert [(one.name, one.topic_id) for one in answer.responses] == [
        ("a", ids["b"]),
        ("a", bytes(16)),
        (None, ids["b"]),
        ("c", ids["c"]),
    ]


def test_an_empty_list_of_assignments_assigns_too_few() -> None:
    """Only null leaves the placement to the controller (C-PART-2)."""
    cluster = ControlledCluster(brokers=(1,))
    cluster.topic("t", [1])
    for assignments, code in (([], ErrorCode.INVALID_REPLICA_ASSIGNMENT), (None, ErrorCode.NONE)):
        topic = CreatePartitionsTopic(name="t", count=2, assignments=assignments)
        result = create_partitions(
            cluster.view, CreatePartitionsRequest(topics=[topic]), random=Random(1)
        )
        assert cluster.do(result).results[0].error_code == code


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("cleanup.policy", "compact,compact"),
        ("cleanup.policy", ""),
        ("compression.type", " gzip"),
        ("internal.segment.bytes", "5"),
        ("min.cleanable.dirty.ratio", ".5f"),
        ("preallocate", " TRUE"),
    ],
)
def test_a_topic_may_have_what_kafka_accepts(key: str, value: str) -> None:
    """Java's forms of values, and the key that is listed only where it is set (C-CFG-9)."""
    cluster = ControlledCluster(brokers=(1,))
    topic = CreatableTopic(
        name="t",
        num_partitions=1,
        replication_factor=1,
        configs=[CreatableTopicConfig(name=key, value=value)],
    )
    answer = cluster.do(cluster.create(topic))
    own = [one for one in answer.topics[0].configs if one.config_source == Origin.TOPIC]
    assert [(one.name, one.value) for one in own] == [(key, value)]


def _configure(
    cluster: ControlledCluster,
    kind: int,
    name: str,
    *changes: tuple[str, int, str | None],
    is_forwarded: bool = False,
) -> tuple[list[int], list[Message]]:
    """Change the configuration of a resource; returns the codes and the records."""
    resource = incremental.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            incremental.AlterableConfig(name=key, config_operation=operation, value=value)
            for key, operation, value in changes
        ],
    )
    request = incremental.IncrementalAlterConfigsRequest(resources=[resource])
    result = alter_configs_incrementally(cluster.view, request, is_forwarded=is_forwarded)
    answer = cluster.do(result)
    return [one.error_code for one in answer.responses], [record for record, _ in result.records]


def test_eligible_replicas_are_cleared_after_all_configurations() -> None:
    """The order of kinds of records is Kafka's (C-CFG-8)."""
    cluster = ControlledCluster(brokers=(1,))
    cluster.topic("t", [1])
    changes = (MIN_INSYNC_REPLICAS, SET, "2"), ("retention.ms", SET, "5")
    codes, records = _configure(cluster, TOPIC_RESOURCE, "t", *changes)
    assert codes == [ErrorCode.NONE]
    assert [record.NAME for record in records] == [
        "ConfigRecord",
        "ConfigRecord",
        "ClearElrRecord",
    ]


def test_a_list_of_a_broker_is_extended_from_its_default() -> None:
    """What the broker has without a value of its own must not get lost (C-CFG-4)."""
    cluster = ControlledCluster(brokers=(1,))
    change = "log.cleanup.policy", APPEND, "compact"
    codes, _ = _configure(cluster, BROKER_RESOURCE, "1", change)
    assert codes == [ErrorCode.NONE]
    stored = cluster.image.configs[BROKER_RESOURCE, "1"]
    assert stored == {"log.cleanup.policy": "delete,compact"}


def test_names_that_no_topic_can_have_are_refused_as_such() -> None:
    """Before the topic is looked for (C-CFG-7)."""
    cluster = ControlledCluster(brokers=(1,))
    codes, _ = _configure(cluster, TOPIC_RESOURCE, "a b", ("retention.ms", SET, "5"))
    assert codes == [ErrorCode.INVALID_TOPIC_EXCEPTION]


def test_a_resource_that_is_named_twice_has_one_result() -> None:
    """It is changed neither way (C-CFG-2)."""
    cluster = ControlledCluster(brokers=(1,))
    cluster.topic("t", [1])
    one = incremental.AlterConfigsResource(resource_type=TOPIC_RESOURCE, resource_name="t")
    request = incremental.IncrementalAlterConfigsRequest(resources=[one, one])
    answer = cluster.do(alter_configs_incrementally(cluster.view, request))
    assert [each.error_code for each in answer.responses] == [ErrorCode.INVALID_REQUEST]


@pytest.mark.parametrize(("level", "code"), [(29, ErrorCode.INVALID_CONFIG), (30, ErrorCode.NONE)])
def test_cordoned_directories_need_their_level(level: int, code: ErrorCode) -> None:
    """Below it brokers cannot report them (C-CFG-6)."""
    cluster = ControlledCluster(level, brokers=(1,))
    change = "cordoned.log.dirs", SET, "/d"
    codes, _ = _configure(cluster, BROKER_RESOURCE, "1", change, is_forwarded=True)
    assert codes == [code]


def test_only_a_broker_can_say_which_directories_it_has() -> None:
    """With another one in its configuration it would not start (C-CFG-6)."""
    cluster = ControlledCluster(brokers=(1,))
    key = "cordoned.log.dirs"
    for value, is_forwarded, code in (
        ("/a", False, ErrorCode.INVALID_CONFIG),
        ("/a,/b", True, ErrorCode.NONE),
        ("/a,/c", False, ErrorCode.INVALID_CONFIG),
        ("/b", False, ErrorCode.NONE),
        ("", False, ErrorCode.NONE),
    ):
        change = key, SET, value
        codes, _ = _configure(cluster, BROKER_RESOURCE, "1", change, is_forwarded=is_forwarded)
        assert codes == [code], value


def test_a_voter_of_the_file_need_not_be_registered_to_be_configured() -> None:
    """Controllers do not register at old levels (C-CFG-6)."""
    cluster = ControlledCluster(11)
    resource = incremental.AlterConfigsResource(resource_type=BROKER_RESOURCE, resource_name="3000")
    request = incremental.IncrementalAlterConfigsRequest(resources=[resource])
    for voters, code in ((), ErrorCode.BROKER_ID_NOT_REGISTERED), ((3000,), ErrorCode.NONE):
        view = replace(cluster.view, voters=frozenset(voters))
        answer = cluster.do(alter_configs_incrementally(view, request))
        assert [each.error_code for each in answer.responses] == [code]


def _beat(
    cluster: ControlledCluster, sessions: Sessions, broker_id: int, **more: int | bool
) -> bool:
    """Send a heartbeat; returns whether the broker may go."""
    values: dict[str, int | bool] = {
        "broker_id": broker_id,
        "broker_epoch": cluster.image.brokers[broker_id].epoch,
        "current_metadata_offset": cluster.image.highest_offset,
    }
    request = BrokerHeartbeatRequest(**(values | more))  # type: ignore[arg-type]
    result = brokers.heartbeat(
        cluster.view, sessions, request, next_offset=cluster.image.next_offset, now_ms=0
    )
    return bool(cluster.do(result).should_shut_down)
