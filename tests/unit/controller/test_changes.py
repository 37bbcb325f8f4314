"""Reassignments, directories, producer ids, configurations, features."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.controller import configs as configs_module
from kraftwire.controller.configs import alter_configs, alter_configs_incrementally
from kraftwire.controller.directories import assign_replicas
from kraftwire.controller.features import check_updates, feature_records
from kraftwire.controller.partition_changes import RECOVERING, Target, change_partition
from kraftwire.controller.producer_ids import allocate_producer_ids
from kraftwire.controller.reassignment import alter_reassignments, list_reassignments
from kraftwire.controller.topic_keys import setting_errors
from kraftwire.controller.versions import KRAFT_VERSION, METADATA_VERSION, SUPPORTED_FEATURES
from kraftwire.errors import ApiError
from kraftwire.log.features import FeatureWishes, choose_features
from kraftwire.messages import alter_configs_request as whole
from kraftwire.messages import assign_replicas_to_dirs_request as schema
from kraftwire.messages import incremental_alter_configs_request as single
from kraftwire.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from kraftwire.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kraftwire.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
)
from kraftwire.messages.update_features_request import FeatureUpdateKey
from kraftwire.protocol.config_resources import BROKER_RESOURCE, TOPIC_RESOURCE
from kraftwire.protocol.error_codes import ErrorCode
from tests.support.nodes.controlled_cluster import ControlledCluster, changes

SET, DELETE, APPEND, SUBTRACT = range(4)


def reassign(cluster: ControlledCluster, replicas: list[int] | None, **more: bool) -> int:
    """Reassign partition 0 of t; returns the error code."""
    partition = ReassignablePartition(partition_index=0, replicas=replicas)
    request = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name="t", partitions=[partition])], **more
    )
    answer = cluster.do(alter_reassignments(cluster.view, request))
    return int(answer.responses[0].partitions[0].error_code)


def under_way(cluster: ControlledCluster) -> list[Any]:
    """The reassignments of the cluster."""
    request = ListPartitionReassignmentsRequest(topics=None)
    return [
        (topic.name, one.replicas, one.adding_replicas, one.removing_replicas)
        for topic in list_reassignments(cluster.view, request).topics
        for one in topic.partitions
    ]


def test_a_reassignment_is_begun_listed_and_cancelled() -> None:
    """Cancelled, everything is as before (C-REA-6)."""
    cluster = ControlledCluster(brokers=(1, 2, 3))
    topic_id = cluster.topic("t", [1, 2])
    assert reassign(cluster, None) == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    assert reassign(cluster, [3, 2]) == ErrorCode.NONE
    assert under_way(cluster) == [("t", [3, 2, 1], [3], [1])]
    assert reassign(cluster, None) == ErrorCode.NONE
    assert under_way(cluster) == []
    assert sorted(cluster.partition((topic_id, 0)).replicas) == [1, 2]


def test_a_partition_recovers_if_only_added_replicas_were_in_sync() -> None:
    """The replica that is left may lack records, and leads because that is allowed (C-REA-6)."""
    cluster = ControlledCluster(has_elr=False, brokers=(1, 2, 3))
    configs = {"unclean_leader_election_enable": "true"}
    key = cluster.topic("t", [1], **configs), 0
    assert reassign(cluster, [2, 3]) == ErrorCode.NONE
    record = change_partition(cluster.view, key, Target(isr=[2]))
    assert record is not None
    cluster.replay([record])
    assert reassign(cluster, None) == ErrorCode.NONE
    partition = cluster.partition(key)
    assert (partition.replicas, partition.isr, partition.leader) == ([1], [1], 1)
    assert partition.leader_recovery_state == RECOVERING


@pytest.mark.parametrize("has_elr", [True, False])
def test_a_reassignment_whose_end_would_lose_records_goes_on(has_elr: bool) -> None:
    """Only what it adds is in sync, and nobody has allowed to lose records (C-REA-6)."""
    cluster = ControlledCluster(has_elr=has_elr, brokers=(1, 2, 3))
    key = cluster.topic("t", [1]), 0
    assert reassign(cluster, [2, 3]) == ErrorCode.NONE
    record = change_partition(cluster.view, key, Target(isr=[2]))
    assert record is not None
    cluster.replay([record])
    before = cluster.image.next_offset
    assert reassign(cluster, None) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert cluster.image.next_offset == before
    assert under_way(cluster) == [("t", [2, 3, 1], [2, 3], [1])]
    assert cluster.partition(key).isr == [2]


def test_a_reassignment_that_cannot_be_right_is_refused() -> None:
    """The partition stays as it is (C-REA)."""
    cluster = ControlledCluster(brokers=(1, 2, 3))
    cluster.topic("t", [1, 2])
    assert reassign(cluster, []) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert reassign(cluster, [1, 9]) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert reassign(cluster, [1, 1]) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    resized = reassign(cluster, [1, 2, 3], allow_replication_factor_change=False)
    assert resized == ErrorCode.INVALID_REPLICATION_FACTOR
    assert under_way(cluster) == []
    unknown = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name="x", partitions=[ReassignablePartition(replicas=[1])])]
    )
    answer = cluster.do(alter_reassignments(cluster.view, unknown))
    code = answer.responses[0].partitions[0].error_code
    assert code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_change_of_the_target_keeps_what_is_added_already() -> None:
    """As in Kafka, where the lists are replaced only by others that are not empty (C-REA-3)."""
    cluster = ControlledCluster(brokers=(1, 2, 3))
    topic_id = cluster.topic("t", [1, 2])
    reassign(cluster, [3])
    assert under_way(cluster) == [("t", [3, 1, 2], [3], [1, 2])]
    reassign(cluster, [3, 1])
    assert under_way(cluster) == [("t", [3, 1, 2], [3], [2])]
    record = change_partition(cluster.view, (topic_id, 0), Target(isr=[1, 2, 3]))
    assert record is not None
    cluster.replay([record])
    assert cluster.partition((topic_id, 0)).replicas == [3, 1]


def test_a_broker_reports_the_directory_of_a_replica() -> None:
    """One that is offline takes the replica out of the isr (C-DIR-6)."""
    cluster = ControlledCluster(brokers=(1, 2))
    topic_id = cluster.topic("t", [1, 2])
    key = topic_id, 0
    record = change_partition(cluster.view, key, Target(directories={2: (1).to_bytes(16, "big")}))
    assert record is not None
    cluster.replay([record])

    def assign(
        broker_id: int, directory: bytes, index: int = 0
    ) -> tuple[int, list[dict[str, Any]]]:
        topic = schema.TopicData(
            topic_id=topic_id, partitions=[schema.PartitionData(partition_index=index)]
        )
        request = schema.AssignReplicasToDirsRequest(
            broker_id=broker_id,
            broker_epoch=cluster.image.brokers[broker_id].epoch,
            directories=[schema.DirectoryData(id=directory, topics=[topic])],
        )
        result = assign_replicas(cluster.view, request)
        answer = cluster.do(result)
        return answer.directories[0].topics[0].partitions[0].error_code, changes(result.records)  # type: ignore[return-value]

    own = (1002).to_bytes(16, "big")
    code, made = assign(2, own)
    assert (code, len(made)) == (0, 1)
    assert cluster.partition(key).directories[1] == own
    assert assign(2, own) == (0, [])
    assert assign(2, own, 5) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, [])
    code, made = assign(2, (555).to_bytes(16, "big"))
    assert (code, [set(one) - {"topic_id", "partition_id"} for one in made]) == (
        0,
        [{"directories"}, {"isr"}],
    )


def test_producer_ids_are_given_once() -> None:
    """Also after a restart, as the log has the next one (C-PID)."""
    cluster = ControlledCluster(brokers=(1, 2))

    def block(broker_id: int, epoch: int) -> tuple[int, int, int]:
        request = AllocateProducerIdsRequest(broker_id=broker_id, broker_epoch=epoch)
        answer = cluster.do(allocate_producer_ids(cluster.view, request))
        return answer.error_code, answer.producer_id_start, answer.producer_id_len

    epochs = {id: broker.epoch for id, broker in cluster.image.brokers.items()}
    assert block(1, epochs[1]) == (0, 0, 1000)
    assert block(2, epochs[2]) == (0, 1000, 1000)
    assert block(1, 99)[0] == ErrorCode.STALE_BROKER_EPOCH


def incremental(cluster: ControlledCluster, kind: int, name: str, *changed: Any) -> Any:
    """Change values of one resource by (key, operation, value); returns the error code."""
    configs = [
        single.AlterableConfig(name=key, config_operation=operation, value=value)
        for key, operation, value in changed
    ]
    resource = single.AlterConfigsResource(
        resource_type=kind, resource_name=name, configs=configs
    )
    request = single.IncrementalAlterConfigsRequest(resources=[resource])
    return cluster.do(alter_configs_incrementally(cluster.view, request)).responses[0].error_code


def test_values_are_set_deleted_and_lists_extended() -> None:
    """A list that is not set begins with its default (C-CFG)."""
    cluster = ControlledCluster(brokers=(1,))
    cluster.topic("t", [1])
    topic = (TOPIC_RESOURCE, "t")
    assert incremental(cluster, *topic, ("retention.ms", SET, "5")) == 0
    assert incremental(cluster, *topic, ("cleanup.policy", APPEND, "compact,delete")) == 0
    assert cluster.image.configs[topic] == {
        "retention.ms": "5",
        "cleanup.policy": "delete,compact",
    }
    assert incremental(cluster, *topic, ("cleanup.policy", SUBTRACT, "delete")) == 0
    assert incremental(cluster, *topic, ("retention.ms", DELETE, None)) == 0
    assert cluster.image.configs[topic] == {"cleanup.policy": "compact"}
    before = cluster.image.next_offset
    assert incremental(cluster, *topic, ("cleanup.policy", SET, "compact")) == 0
    assert cluster.image.next_offset == before, "nothing changes (C-CFG-5)"


@pytest.mark.parametrize(
    ("before", "operation", "given", "after"),
    [
        ("a,b,a", APPEND, "c,b,c", "a,b,a,c"),
        ("a,b,a,c", SUBTRACT, "a,x,c", "b,a"),
        ("a,a", SUBTRACT, "a,a,a", ""),
        # As they are written, and as Java splits them.
        ("a", APPEND, " a,b,,", "a, a,b"),
        ("a", APPEND, "", "a,"),
        ("a,,b", APPEND, ",", "a,b"),
    ],
)
def test_lists_change_as_kafkas_do(before: str, operation: int, given: str, after: str) -> None:
    """Elements keep their order; those that stand twice do so afterwards (C-CFG-4)."""
    cluster = ControlledCluster(brokers=(1,))
    broker = (BROKER_RESOURCE, "1")
    assert incremental(cluster, *broker, ("metric.reporters", SET, before)) == 0
    assert incremental(cluster, *broker, ("metric.reporters", operation, given)) == 0
    assert cluster.image.configs[broker] == {"metric.reporters": after}


class _Element(str):
    """An element of a list; `compared` counts the comparisons of all of them."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other: object) -> bool:
        _Element.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_an_error_about_a_long_value_fits_into_the_response() -> None:
    """It named the whole value, so that the connection ended without an answer."""
    cluster = ControlledCluster(brokers=(1,))
    cluster.topic("t", [1])
    config = single.AlterableConfig(name="compression.type", value="x" * 32_767)
    resource = single.AlterConfigsResource(
        resource_type=TOPIC_RESOURCE, resource_name="t", configs=[config]
    )
    request = single.IncrementalAlterConfigsRequest(resources=[resource])
    answer = cluster.do(alter_configs_incrementally(cluster.view, request))
    assert answer.responses[0].error_code == ErrorCode.INVALID_CONFIG
    assert answer.encode(1)


@pytest.mark.parametrize("operation", [APPEND, SUBTRACT])
def test_a_change_of_a_long_list_compares_each_element_once(
    monkeypatch: pytest.MonkeyPatch, operation: int
) -> None:
    """16,384 elements on a list as long held the leader up for 57 s (SEC-WORK)."""
    count = 1_000
    cluster = ControlledCluster(brokers=(1,))
    broker = (BROKER_RESOURCE, "1")
    text = ",".join(map(str, range(count)))
    assert incremental(cluster, *broker, ("metric.reporters", SET, text)) == 0
    split = configs_module._split_list
    monkeypatch.setattr(configs_module, "_split_list", lambda value: [*map(_Element, split(value))])
    _Element.compared = 0
    text = ",".join(map(str, range(count - 1, -count, -1)))
    assert incremental(cluster, *broker, ("metric.reporters", operation, text)) == 0
    assert _Element.compared < 4 * count


@pytest.mark.parametrize(
    ("kind", "name", "change", "code"),
    [
        (TOPIC_RESOURCE, "t", ("no.such.key", SET, "1"), ErrorCode.INVALID_CONFIG),
        (TOPIC_RESOURCE, "t", ("retention.ms", SET, "x"), ErrorCode.INVALID_CONFIG),
        # What Python would read and a broker would not.
        (TOPIC_RESOURCE, "t", ("retention.ms", SET, "\u06615"), ErrorCode.INVALID_CONFIG),
        (TOPIC_RESOURCE, "t", ("retention.ms", SET, "5\xa0"), ErrorCode.INVALID_CONFIG),
        (TOPIC_RESOURCE, "t", ("preallocate", SET, "true\u2003"), ErrorCode.INVALID_CONFIG),
        (TOPIC_RESOURCE, "t", ("min.cleanable.dirty.ratio", SET, "0_1"), ErrorCode.INVALID_CONFIG),
        (TOPIC_RESOURCE, "t", ("min.cleanable.dirty.ratio", SET, "nan"), ErrorCode.INVALID_CONFIG),
        (TOPIC_RESOURCE, "t", ("min.cleanable.dirty.ratio", SET, "1.5"), ErrorCode.INVALID_CONFIG),
        (TOPIC_RESOURCE, "t", ("cleanup.policy", SET, "compact,,delete"), ErrorCode.INVALID_CONFIG),
        (TOPIC_RESOURCE, "t", ("retention.ms", APPEND, "1"), ErrorCode.INVALID_CONFIG),
        (TOPIC_RESOURCE, "t", ("cleanup.policy", APPEND, None), ErrorCode.INVALID_REQUEST),
        (TOPIC_RESOURCE, "t", ("cleanup.policy", 7, "delete"), ErrorCode.INVALID_REQUEST),
        (TOPIC_RESOURCE, "t", ("min.compaction.lag.ms", SET, "9" * 19), ErrorCode.INVALID_CONFIG),
        (TOPIC_RESOURCE, "x", ("retention.ms", SET, "1"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC_RESOURCE, "", ("retention.ms", SET, "1"), ErrorCode.INVALID_REQUEST),
        (BROKER_RESOURCE, "one", ("a", SET, "1"), ErrorCode.INVALID_REQUEST),
        (BROKER_RESOURCE, "9", ("a", SET, "1"), ErrorCode.BROKER_ID_NOT_REGISTERED),
        (BROKER_RESOURCE, "1", ("min.insync.replicas", SET, "1"), ErrorCode.INVALID_CONFIG),
        (BROKER_RESOURCE, "", ("min.insync.replicas", DELETE, None), ErrorCode.INVALID_CONFIG),
        (BROKER_RESOURCE, "1", ("a", SET, "x" * 32_768), ErrorCode.INVALID_CONFIG),
        (64, "1", ("a", SET, "1"), ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_a_change_that_cannot_be_right_is_refused(
    kind: int, name: str, change: Any, code: ErrorCode
) -> None:
    """The resource stays as it is (C-CFG)."""
    cluster = ControlledCluster(brokers=(1,))
    cluster.topic("t", [1])
    before = cluster.image.next_offset
    assert incremental(cluster, kind, name, change) == code
    assert cluster.image.next_offset == before


def test_another_least_isr_clears_the_eligible_replicas() -> None:
    """They were eligible by the old one (C-CFG-8)."""
    cluster = ControlledCluster(brokers=(1, 2))
    topic_id = cluster.topic("t", [1, 2], min_insync_replicas="2")
    record = change_partition(cluster.view, (topic_id, 0), Target(isr=[1]))
    assert record is not None
    cluster.replay([record])
    assert cluster.partition((topic_id, 0)).eligible_leader_replicas == [2]
    incremental(cluster, TOPIC_RESOURCE, "t", ("min.insync.replicas", SET, "1"))
    assert cluster.partition((topic_id, 0)).eligible_leader_replicas is None


def test_a_whole_configuration_replaces_the_one_before() -> None:
    """What is not given is deleted (C-CFG-3)."""
    cluster = ControlledCluster(brokers=(1,))
    cluster.topic("t", [1], retention_ms="5", segment_ms="7")
    resource = whole.AlterConfigsResource(
        resource_type=TOPIC_RESOURCE,
        resource_name="t",
        configs=[whole.AlterableConfig(name="segment.ms", value="8")],
    )
    twice = whole.AlterConfigsRequest(resources=[resource, resource])
    codes = [one.error_code for one in cluster.do(alter_configs(cluster.view, twice)).responses]
    assert codes == [ErrorCode.INVALID_REQUEST]
    request = whole.AlterConfigsRequest(resources=[resource])
    assert cluster.do(alter_configs(cluster.view, request)).responses[0].error_code == 0
    assert cluster.image.configs[TOPIC_RESOURCE, "t"] == {"segment.ms": "8"}


def test_settings_that_topics_cannot_have_are_found() -> None:
    """A node does not start with them."""
    given = {"log.retention.hours": "x", "log.segment.bytes": "1", "log.retention.ms": "5"}
    assert set(setting_errors(given)) == {"log.retention.hours", "log.segment.bytes"}


def test_eligible_leader_replicas_need_a_level_and_bring_one_least_isr() -> None:
    """Brokers of different values would disagree about who is eligible (C-FEA-8)."""
    cluster = ControlledCluster(22, has_elr=False, brokers=(1,))
    incremental(cluster, BROKER_RESOURCE, "1", ("min.insync.replicas", SET, "2"))
    update = FeatureUpdateKey(
        feature="eligible.leader.replicas.version", max_version_level=1, upgrade_type=1
    )
    with pytest.raises(ApiError, match=r"needs metadata\.version 23"):
        check_updates(cluster.image, [update], kraft_version=1, own_id=1, configured=[])
    cluster.replay(feature_records(cluster.view, [update]))
    assert cluster.image.configs == {(BROKER_RESOURCE, ""): {"min.insync.replicas": "1"}}
    assert cluster.view.has_elr


def test_new_clusters_get_the_highest_levels_that_are_supported() -> None:
    """The table of `storage format` and that of the controller are of one release (C-FEA-9)."""
    features = choose_features(FeatureWishes(None, {}), is_dynamic=True)
    levels = dict(features.levels)
    levels |= {METADATA_VERSION: features.metadata_version, KRAFT_VERSION: 1}
    assert levels == {name: high for name, (_, high) in SUPPORTED_FEATURES.items()}
