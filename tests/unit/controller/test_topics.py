"""Creating and deleting topics, adding partitions, placing replicas."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from kraftwire.controller.placement import place_replicas
from kraftwire.controller.step import config_record
from kraftwire.controller.topics import (
    check_assignments,
    create_partitions,
    create_topics,
    delete_topics,
)
from kraftwire.errors import ApiError
from kraftwire.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraftwire.messages.create_partitions_request import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kraftwire.messages.create_partitions_response import CreatePartitionsResponse
from kraftwire.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kraftwire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kraftwire.messages.remove_topic_record import RemoveTopicRecord
from kraftwire.protocol.config_resources import BROKER_RESOURCE
from kraftwire.protocol.error_codes import ErrorCode
from tests.support.nodes.controlled_cluster import ControlledCluster

ID = bytes(15) + b"\x09"


def topic(name: str, partitions: int = 1, factor: int = 1, **more: object) -> CreatableTopic:
    """A topic that the controller places."""
    return CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=factor, **more  # type: ignore[arg-type]
    )


def assigned(*partitions: tuple[int, list[int]], **more: int) -> CreatableTopic:
    """A topic with given replicas."""
    numbers = {"num_partitions": -1, "replication_factor": -1} | more
    return CreatableTopic(
        name="a",
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=ids)
            for index, ids in partitions
        ],
        **numbers,
    )


def test_a_new_topic_is_led_by_active_brokers() -> None:
    """Fenced replicas are placed too, but are not in sync (C-TOP-6)."""
    cluster = ControlledCluster(brokers=(1, 2, 3))
    cluster.fence(2)
    topic_id = cluster.topic("t", [2, 1, 3])
    one = cluster.partition((topic_id, 0))
    assert (one.replicas, one.isr, one.leader) == ([2, 1, 3], [1, 3], 1)
    assert (one.leader_epoch, one.partition_epoch) == (0, 0)
    assert one.directories[0] == (1002).to_bytes(16, "big")


def test_the_answer_has_the_topic_and_its_effective_configuration() -> None:
    """A client shows it without asking again (C-CFG-11)."""
    cluster = ControlledCluster(brokers=(1, 2))
    cluster.settings["log.retention.hours"] = "2"
    configs = [CreatableTopicConfig(name="cleanup.policy", value="compact")]
    (result,) = cluster.do(cluster.create(topic("t", 3, 2, configs=configs))).topics
    assert (result.error_code, result.num_partitions, result.replication_factor) == (0, 3, 2)
    values = {one.name: (one.value, one.config_source) for one in result.configs}
    assert len(values) == 37
    assert values["cleanup.policy"] == ("compact", 1)
    assert values["retention.ms"] == ("7200000", 4)
    assert values["segment.bytes"] == ("1073741824", 5)


def test_the_defaults_of_the_file_count_for_topics_without_numbers() -> None:
    """As -1 in the request says (C-TOP-4)."""
    cluster = ControlledCluster(brokers=(1, 2))
    cluster.settings |= {"num.partitions": "5", "default.replication.factor": "2"}
    (result,) = cluster.do(cluster.create(topic("t", -1, -1))).topics
    assert (result.num_partitions, result.replication_factor) == (5, 2)


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        (topic("no blanks"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic(".."), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic("t" * 250), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic("a.b"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic("a_b"), ErrorCode.TOPIC_ALREADY_EXISTS),
        (topic("__cluster_metadata"), ErrorCode.INVALID_REQUEST),
        (topic("t", 0), ErrorCode.INVALID_PARTITIONS),
        (topic("t", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (topic("t", 1, 4), ErrorCode.INVALID_REPLICATION_FACTOR),
        (
            topic("t", configs=[CreatableTopicConfig(name="no.such.key", value="1")]),
            ErrorCode.INVALID_CONFIG,
        ),
        (
            topic("t", configs=[CreatableTopicConfig(name="retention.ms", value="-2")]),
            ErrorCode.INVALID_CONFIG,
        ),
        (
            topic("t", configs=[CreatableTopicConfig(name="retention.ms", value=None)]),
            ErrorCode.INVALID_CONFIG,
        ),
        (assigned((0, [1]), num_partitions=1), ErrorCode.INVALID_REQUEST),
        (assigned((0, [1]), replication_factor=1), ErrorCode.INVALID_REQUEST),
        (assigned((0, [1]), (0, [2])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (assigned((0, [1]), (2, [2])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (assigned((0, [1]), (1, [1, 2])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (assigned((0, [1, 1])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (assigned((0, [9])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (assigned((0, [])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (assigned((0, [3])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_a_topic_that_cannot_be_right_is_refused(wanted: CreatableTopic, code: ErrorCode) -> None:
    """The others of the request are created (C-TOP-3, C-TOP-4)."""
    cluster = ControlledCluster(brokers=(1, 2, 3))
    cluster.topic("a_b", [1])
    cluster.fence(3)
    bad, good = cluster.do(cluster.create(wanted, topic("good"))).topics
    assert (bad.error_code, good.error_code) == (code, 0)
    assert bad.error_message
    assert set(cluster.image.topics.ids) == {"a_b", "good"}


def test_names_that_metrics_cannot_tell_apart_collide_until_the_topic_is_gone() -> None:
    """However many topics there are, others are not looked at (C-TOP-3)."""
    cluster = ControlledCluster(brokers=(1,))
    first = cluster.topic("a.b_c", [1])
    cluster.topic("ab", [1])
    names = ("a_b.c", "a.b.c", "a.b", "a-b_c")
    codes = [cluster.create(topic(name)).response.topics[0].error_code for name in names]
    assert codes == [ErrorCode.INVALID_TOPIC_EXCEPTION] * 2 + [0, 0]
    cluster.replay([(RemoveTopicRecord(topic_id=first), 0)])
    assert {cluster.create(topic(name)).response.topics[0].error_code for name in names} == {0}


def test_a_name_twice_is_refused_and_nothing_is_written_to_look() -> None:
    """Both would be right alone (C-TOP-1); validate_only answers and changes nothing."""
    cluster = ControlledCluster(brokers=(1,))
    answer = cluster.do(cluster.create(topic("t"), topic("t"), topic("u"), validate_only=True))
    codes = {one.name: one.error_code for one in answer.topics}
    assert codes == {"t": ErrorCode.INVALID_REQUEST, "u": 0}
    assert not cluster.image.topics.ids


def test_a_request_for_too_many_partitions_is_refused_whole() -> None:
    """One request must not hold up everybody (C-TOP-2)."""
    cluster = ControlledCluster(brokers=(1,))
    with pytest.raises(ApiError) as caught:
        cluster.create(topic("t", 6000), topic("u", 6000))
    assert caught.value.code == ErrorCode.POLICY_VIOLATION


def test_replicas_count_towards_the_size_of_a_request() -> None:
    """9,000 partitions of 5,000 replicas took 20 s and a gigabyte (C-TOP-2, C-PART-6)."""
    cluster = ControlledCluster(brokers=range(1, 21))
    for wanted in (topic("t", 5_001, 20), assigned(*((n, [*range(1, 21)]) for n in range(5_001)))):
        with pytest.raises(ApiError) as caught:
            cluster.create(wanted, validate_only=True)
        assert caught.value.code == ErrorCode.POLICY_VIOLATION
    (refused,) = cluster.do(cluster.create(topic("t", 9_000, 5_000))).topics
    assert refused.error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    for name in ("a", "b"):
        cluster.topic(name, [*range(1, 21)])
    request = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=n, count=c, assignments=None) for n, c in
                (("a", 101), ("b", 4_902))],
        validate_only=True,
    )  # fmt: skip
    answer = create_partitions(cluster.view, request, random=Random(1)).response
    assert isinstance(answer, CreatePartitionsResponse)
    codes = [one.error_code for one in answer.results]
    assert codes == [0, ErrorCode.POLICY_VIOLATION]


def test_topics_are_deleted_by_name_or_id_once() -> None:
    """With their partitions and configurations (C-DEL)."""
    cluster = ControlledCluster(brokers=(1,))
    ids = {name: cluster.topic(name, [1], retention_ms="5") for name in ("a", "b", "c")}
    wanted = [
        DeleteTopicState(name="a"),
        DeleteTopicState(name=None, topic_id=ids["b"]),
        DeleteTopicState(name="c"),
        DeleteTopicState(name=None, topic_id=ids["c"]),
        DeleteTopicState(name="x"),
        DeleteTopicState(name=None, topic_id=bytes(15) + b"\x77"),
        DeleteTopicState(name=None),
    ]
    answer = cluster.do(delete_topics(cluster.view, DeleteTopicsRequest(topics=wanted)))
    codes = {(one.name, one.topic_id): one.error_code for one in answer.responses}
    assert codes == {
        ("a", ids["a"]): ErrorCode.NONE,
        ("b", ids["b"]): ErrorCode.NONE,
        ("c", ids["c"]): ErrorCode.INVALID_REQUEST,
        ("x", bytes(16)): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        (None, bytes(15) + b"\x77"): ErrorCode.UNKNOWN_TOPIC_ID,
        (None, bytes(16)): ErrorCode.INVALID_REQUEST,
    }
    topics = cluster.image.topics
    assert (set(topics.ids), topics.in_isr(1)) == ({"c"}, [(ids["c"], 0)])
    assert [name for _, name in cluster.image.configs] == ["c"]


def test_partitions_are_added_with_the_replication_factor_of_the_topic() -> None:
    """By the request's assignment or by placement (C-PART)."""
    cluster = ControlledCluster(brokers=(1, 2, 3))
    topic_id = cluster.topic("t", [1, 2])

    def more(count: int, *replicas: list[int]) -> int:
        given = [CreatePartitionsAssignment(broker_ids=ids) for ids in replicas] or None
        request = CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name="t", count=count, assignments=given)]
        )
        result = create_partitions(cluster.view, request, random=Random(1))
        return int(cluster.do(result).results[0].error_code)

    assert more(1) == ErrorCode.INVALID_PARTITIONS
    assert more(2, [2], [3]) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert more(2, [3]) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert more(2, [3, 2]) == ErrorCode.NONE
    assert more(5) == ErrorCode.NONE
    found = cluster.image.topics.partitions(topic_id)
    assert found[1].replicas == [3, 2]
    assert [len(one.replicas) for one in found.values()] == [2] * 5


def test_a_request_to_add_too_many_partitions_is_refused_whole() -> None:
    """Those that are there do not count, nor do topics that are not or have as many (C-PART-6)."""
    cluster = ControlledCluster(brokers=(1,))
    for name in ("t", "u"):
        cluster.topic(name, [1])

    def codes(**counts: int) -> list[int]:
        topics = [
            CreatePartitionsTopic(name=name, count=n, assignments=None)
            for name, n in counts.items()
        ]
        request = CreatePartitionsRequest(topics=topics, validate_only=True)
        response = create_partitions(cluster.view, request, random=Random(1)).response
        return [result.error_code for result in response.results]

    with pytest.raises(ApiError) as caught:
        codes(t=5001, u=5002)
    assert caught.value.code == ErrorCode.POLICY_VIOLATION
    missing, invalid = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_PARTITIONS
    assert codes(t=5001, u=5001, v=2**31 - 1) == [0, 0, missing]
    assert codes(t=10_001, u=1, v=-(2**31)) == [0, invalid, missing]


@pytest.mark.parametrize("seed", range(20))
def test_placement_spreads_leaders_over_brokers_and_replicas_over_racks(seed: int) -> None:
    """Whatever the random order is (C-PLA-3)."""
    cluster = ControlledCluster()
    racks = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c", 6: "c"}
    for broker_id, rack in racks.items():
        cluster.register(broker_id, rack)
        cluster.fence(broker_id, is_fenced=broker_id == 6)
    placed = place_replicas(cluster.view, 60, 3, Random(seed))
    assert all(len(set(replicas)) == 3 for replicas in placed)
    assert all({racks[each] for each in replicas} == {"a", "b", "c"} for replicas in placed)
    leaders = Counter(replicas[0] for replicas in placed)
    assert set(leaders) == {1, 2, 3, 4, 5}
    # The two racks with two brokers that are not fenced lead as often as the third one.
    assert max(leaders.values()) <= 2 * 60 // 5


def test_a_broker_that_leaves_takes_no_replicas_until_it_has_left() -> None:
    """Then it counts as one that is away, and topics can be created as before (C-PLA-1)."""
    cluster = ControlledCluster(brokers=(1, 2))
    two = cluster.image.brokers[2]
    leaves = BrokerRegistrationChangeRecord(
        broker_id=2, broker_epoch=two.epoch, in_controlled_shutdown=1
    )
    cluster.replay([(leaves, 1)])
    with pytest.raises(ApiError):
        place_replicas(replace(cluster.view, leaving={2: 7}), 1, 2, Random(3))
    cluster.fence(2)
    assert place_replicas(cluster.view, 3, 2, Random(3)) == [[1, 2]] * 3


def test_a_broker_that_only_has_cordoned_directories_takes_no_replicas() -> None:
    """An operator empties it (C-DIR-5)."""
    cluster = ControlledCluster(brokers=(1, 2))
    broker = cluster.image.brokers[2]
    change = BrokerRegistrationChangeRecord(
        broker_id=2, broker_epoch=broker.epoch, cordoned_log_dirs=list(broker.log_dirs)
    )
    cluster.replay([(change, 3)])
    assert place_replicas(cluster.view, 3, 1, Random(3)) == [[1], [1], [1]]
    with pytest.raises(ApiError):
        place_replicas(cluster.view, 1, 2, Random(3))
    with pytest.raises(ApiError, match="all directories of broker 2 are cordoned"):
        check_assignments(cluster.view, [[1, 2]])
    check_assignments(cluster.view, [[1]])


@pytest.mark.parametrize("value", ["abc", "", "9" * 5000, "-" + "9" * 19, "\u06615", "1_0", "1.0"])
def test_values_of_all_brokers_that_cannot_be_read_stop_no_topic(value: str) -> None:
    """The controller passes them over, and answers show them; times in another unit are shown as 0
    (C-CFG-17)."""
    cluster = ControlledCluster(brokers=(1, 2), has_elr=False)
    cluster.settings |= {"min.insync.replicas": "2", "log.cleaner.max.compaction.lag.ms": "7"}
    keys = ["log.cleaner.min.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms"]
    keys += ["min.insync.replicas", "unclean.leader.election.enable", "log.retention.hours"]
    cluster.replay(config_record(BROKER_RESOURCE, "", key, value) for key in keys)
    request = CreateTopicsRequest(topics=[topic("t", factor=2)])
    made = create_topics(cluster.view, request, random=Random(1), new_id=lambda: ID)
    (result,) = cluster.do(made).topics
    assert result.error_code == ErrorCode.NONE, result.error_message
    shown = {one.name: one.value for one in result.configs}
    assert shown["min.compaction.lag.ms"] == value
    assert shown["retention.ms"] == "0"
    assert cluster.view.min_isr(ID) == 2, "the file's"
    assert not cluster.view.allows_unclean(ID)
    lag = [CreatableTopicConfig(name="min.compaction.lag.ms", value="8")]
    request = CreateTopicsRequest(topics=[topic("u", configs=lag)])
    response = create_topics(cluster.view, request, random=Random(1), new_id=lambda: ID).response
    assert response.topics[0].error_code == ErrorCode.INVALID_CONFIG, "above the file's largest"
