"""Configurations of client metrics, groups and loggers (C-CFG-1, C-CFG-2, C-CFG-7, C-CFG-10)."""

from __future__ import annotations

import pytest

from kraftwire.controller.configs import alter_configs, alter_configs_incrementally
from kraftwire.controller.described_configs import describe_resource
from kraftwire.controller.group_configs import (
    GROUP_SETTINGS,
    INTERNAL_GROUP_KEYS,
    group_setting_errors,
)
from kraftwire.controller.step import config_record
from kraftwire.controller.topic_configs import Origin
from kraftwire.errors import ApiError
from kraftwire.messages import alter_configs_request as whole
from kraftwire.messages import incremental_alter_configs_request as single
from kraftwire.protocol.config_resources import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    LOGGER_RESOURCE,
    TOPIC_RESOURCE,
)
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.kafka_keys import kafka_keys
from tests.support.nodes.controlled_cluster import ControlledCluster

SET, DELETE, APPEND, SUBTRACT = range(4)
NONE, BAD_REQUEST, BAD_CONFIG = ErrorCode.NONE, ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_CONFIG


def alter(
    cluster: ControlledCluster, kind: int, name: str, *changes: tuple[str, int, str | None]
) -> int:
    """Change a configuration; returns the code."""
    configs = [
        single.AlterableConfig(name=key, config_operation=operation, value=value)
        for key, operation, value in changes
    ]
    resource = single.AlterConfigsResource(
        resource_type=kind, resource_name=name, configs=configs
    )
    request = single.IncrementalAlterConfigsRequest(resources=[resource])
    answer = cluster.do(alter_configs_incrementally(cluster.view, request))
    return int(answer.responses[0].error_code)


def replace(cluster: ControlledCluster, kind: int, name: str, **values: str) -> int:
    """Replace a configuration; returns the code. In keys, _ stands for a dot."""
    configs = [
        whole.AlterableConfig(name=key.replace("_", "."), value=value)
        for key, value in values.items()
    ]
    resource = whole.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    request = whole.AlterConfigsRequest(resources=[resource])
    answer = cluster.do(alter_configs(cluster.view, request))
    return int(answer.responses[0].error_code)


def test_resources_that_need_not_exist_are_configured() -> None:
    """Kafka looks for topics and brokers alone (C-CFG-6)."""
    cluster = ControlledCluster()
    assert alter(cluster, CLIENT_METRICS_RESOURCE, "s", ("metrics", SET, "a,b")) == NONE
    assert replace(cluster, CLIENT_METRICS_RESOURCE, "s", interval_ms="100") == NONE
    session = "consumer.session.timeout.ms"
    assert alter(cluster, GROUP_RESOURCE, "g", (session, SET, "50000")) == NONE
    assert cluster.image.configs[CLIENT_METRICS_RESOURCE, "s"] == {"interval.ms": "100"}
    assert cluster.image.configs[GROUP_RESOURCE, "g"] == {session: "50000"}
    assert replace(cluster, GROUP_RESOURCE, "g") == NONE
    assert (GROUP_RESOURCE, "g") not in cluster.image.configs


@pytest.mark.parametrize(
    ("key", "value", "code"),
    [
        ("nope", "1", BAD_REQUEST),
        ("interval.ms", "99", BAD_REQUEST),
        ("interval.ms", "3600001", BAD_REQUEST),
        ("interval.ms", "soon", BAD_CONFIG),
        ("metrics", "", NONE),
        ("metrics", "a, a", NONE),
        ("metrics", "a,,b", BAD_CONFIG),
        ("match", "client_id=a.*, client_source_port=90[0-9]+", NONE),
        ("match", "client_id", BAD_CONFIG),
        ("match", "client_id=", BAD_CONFIG),
        ("match", "client_id=a=", NONE),
        ("match", "client_id=a=b", BAD_CONFIG),
        ("match", "color=red", BAD_CONFIG),
        ("match", "client_id=(", BAD_CONFIG),
    ],
)
def test_values_of_client_metrics(key: str, value: str, code: int) -> None:
    """Keys and intervals are invalid requests, what cannot be read is not (C-CFG-7)."""
    assert alter(ControlledCluster(), CLIENT_METRICS_RESOURCE, "s", (key, SET, value)) == code


@pytest.mark.parametrize(
    ("key", "value", "code"),
    [
        ("nope", "1", BAD_CONFIG),
        ("consumer.session.timeout.ms", "44999", BAD_CONFIG),
        ("share.session.timeout.ms", "60001", BAD_CONFIG),
        ("streams.heartbeat.interval.ms", "x", BAD_CONFIG),
        ("streams.heartbeat.interval.ms", "15000", NONE),
        ("consumer.assignment.interval.ms", "0", NONE),
        ("consumer.assignment.interval.ms", "15001", BAD_CONFIG),
        ("share.record.lock.duration.ms", "14999", BAD_CONFIG),
        ("share.delivery.count.limit", "1", BAD_CONFIG),
        ("share.partition.max.record.locks", "4000", NONE),
        ("streams.num.standby.replicas", "3", BAD_CONFIG),
        ("streams.initial.rebalance.delay.ms", "999999", NONE),
        ("share.isolation.level", "read_committed", NONE),
        ("share.isolation.level", "READ_COMMITTED", BAD_CONFIG),
        ("share.renew.acknowledge.enable", "no", BAD_CONFIG),
        ("share.auto.offset.reset", "earliest", NONE),
        ("share.auto.offset.reset", "none", BAD_CONFIG),
        ("share.auto.offset.reset", "by_duration:P1DT2H3.5S", NONE),
        ("share.auto.offset.reset", "by_duration:-PT-1M", NONE),
        ("share.auto.offset.reset", "by_duration:PT-1M", BAD_CONFIG),
        ("share.auto.offset.reset", "by_duration:P1DT", BAD_CONFIG),
        ("share.auto.offset.reset", "by_duration:", BAD_CONFIG),
        ("share.auto.offset.reset", "PT1M", BAD_CONFIG),
        ("errors.deadletterqueue.topic.name", "__mine", BAD_CONFIG),
        ("errors.deadletterqueue.topic.name", "mine", NONE),
        ("errors.deadletterqueue.copy.record.enable", "x", BAD_CONFIG),
        ("streams.assignor.name", "sticky", NONE),
        ("streams.assignor.name", " sticky ", NONE),
        ("streams.assignor.name", "Sticky", BAD_CONFIG),
        ("streams.assignor.name", "", BAD_CONFIG),
        ("streams.assignor.name", "mine", BAD_CONFIG),
        ("streams.task.offset.interval.ms", "14999", BAD_CONFIG),
        ("streams.task.offset.interval.ms", "15000", NONE),
        ("streams.num.warmup.replicas", "0", NONE),
        ("streams.num.warmup.replicas", "21", BAD_CONFIG),
        ("streams.acceptable.recovery.lag", "-1", BAD_CONFIG),
        ("streams.acceptable.recovery.lag", "9223372036854775807", NONE),
        ("streams.acceptable.recovery.lag", "9223372036854775808", BAD_CONFIG),
        ("consumer.assignor.offload.enable", " True ", NONE),
        ("share.assignor.offload.enable", "no", BAD_CONFIG),
        ("streams.assignor.offload.enable", "1", BAD_CONFIG),
        ("streams.rack.aware.assignment.tags", "a, b", NONE),
        ("streams.rack.aware.assignment.tags", "a,a", BAD_CONFIG),
        ("streams.rack.aware.assignment.tags", "a,,b", BAD_CONFIG),
    ],
)
def test_values_of_groups(key: str, value: str, code: int) -> None:
    """Bounds are those of Kafka's brokers (C-CFG-10)."""
    assert alter(ControlledCluster(), GROUP_RESOURCE, "g", (key, SET, value)) == code


_SHARE = "share.session.timeout.ms"


def test_the_controllers_file_bounds_groups() -> None:
    """And a session has to be longer than its heartbeats' interval (C-CFG-10)."""
    assert kafka_keys() >= GROUP_SETTINGS
    bad = "group.share.min.session.timeout.ms"
    assert set(group_setting_errors({"group.share.max.size": "x", bad: "x"})) == {bad}
    cluster = ControlledCluster()
    cluster.settings = {"group.consumer.min.session.timeout.ms": "5000"}
    session = "consumer.session.timeout.ms"
    assert alter(cluster, GROUP_RESOURCE, "g", (session, SET, "6000")) == NONE
    assert alter(cluster, GROUP_RESOURCE, "g", (session, SET, "5000")) == BAD_CONFIG
    # What a group does not give is not compared: it may be right for another group.
    cluster.settings = {"group.share.min.session.timeout.ms": "50000"}
    assert alter(cluster, GROUP_RESOURCE, "s", ("share.delivery.count.limit", SET, "5")) == NONE
    assert alter(cluster, GROUP_RESOURCE, "s", (_SHARE, SET, "45000")) == BAD_CONFIG
    cluster.settings = {"group.streams.max.standby.replicas": "3"}
    assert alter(cluster, GROUP_RESOURCE, "h", ("streams.num.standby.replicas", SET, "3")) == NONE
    cluster.settings = {"group.streams.min.task.offset.interval.ms": "5"}
    offsets = ("streams.task.offset.interval.ms", SET, "5")
    assert alter(cluster, GROUP_RESOURCE, "i", offsets) == NONE
    cluster.settings = {"group.streams.max.warmup.replicas": "1"}
    warmup = ("streams.num.warmup.replicas", SET, "2")
    assert alter(cluster, GROUP_RESOURCE, "j", warmup) == BAD_CONFIG


_ASSIGNORS = "group.streams.assignors"
_STICKY_CLASS = "org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor"


@pytest.mark.parametrize(
    ("given", "name", "code"),
    [
        ("sticky", "mine", BAD_CONFIG),
        (_STICKY_CLASS, "sticky", NONE),
        (_STICKY_CLASS, _STICKY_CLASS, BAD_CONFIG),
        (f"com.mine.Assignor, {_STICKY_CLASS}", "mine", NONE),
    ],
)
def test_the_controllers_file_names_the_assignors_of_streams(
    given: str, name: str, code: int
) -> None:
    """A class of others says only in Java what it is called (C-CFG-10)."""
    cluster = ControlledCluster()
    cluster.settings = {_ASSIGNORS: given}
    assert alter(cluster, GROUP_RESOURCE, "g", ("streams.assignor.name", SET, name)) == code


def test_a_file_with_wrong_values_for_groups_is_refused() -> None:
    """Lists of names and switches too (C-CFG-10)."""
    wrong = {
        _ASSIGNORS: " ",
        "group.streams.rack.aware.assignment.tags": "a,a",
        "group.share.assignor.offload.enable": "on",
        "group.streams.acceptable.recovery.lag": "9223372036854775808",
    }
    assert group_setting_errors(wrong).keys() == wrong.keys()
    right = {
        _ASSIGNORS: "sticky, com.mine.Assignor",
        "group.streams.rack.aware.assignment.tags": "",
        "group.share.assignor.offload.enable": "FALSE",
        "group.streams.acceptable.recovery.lag": "9223372036854775807",
    }
    assert group_setting_errors(right) == {}


def test_internal_keys_of_groups_are_described_where_they_are_set() -> None:
    """By the group or by the file (C-CFG-16)."""
    lag, warmup = "streams.acceptable.recovery.lag", "streams.num.warmup.replicas"
    cluster = ControlledCluster()
    cluster.settings = {
        f"group.{warmup}": "3", _ASSIGNORS: f"{_STICKY_CLASS},com.mine.Assignor"
    }
    assert alter(cluster, GROUP_RESOURCE, "g", (lag, SET, "5")) == NONE
    found = {one.name: one for one in describe_resource(cluster.view, GROUP_RESOURCE, "g")}
    shown = INTERNAL_GROUP_KEYS & found.keys()
    assert {key: (found[key].value, found[key].origin) for key in shown} == {
        lag: ("5", Origin.GROUP),
        warmup: ("3", Origin.PROPERTIES_FILE),
    }
    assert found["streams.assignor.name"].value == "sticky"
    none = {one.name for one in describe_resource(ControlledCluster().view, GROUP_RESOURCE, "g")}
    assert not none & INTERNAL_GROUP_KEYS


def test_the_last_change_of_a_key_counts() -> None:
    """What came before it is not even looked at (C-CFG-2)."""
    cluster = ControlledCluster(brokers=(1,))
    changes = ("metrics", APPEND, "a"), ("metrics", 9, None), ("metrics", SET, "b")
    assert alter(cluster, CLIENT_METRICS_RESOURCE, "s", *changes) == NONE
    assert cluster.image.configs[CLIENT_METRICS_RESOURCE, "s"] == {"metrics": "b"}
    assert alter(cluster, CLIENT_METRICS_RESOURCE, "s", *reversed(changes)) == BAD_CONFIG


def test_lists_are_only_those_of_topics_and_brokers() -> None:
    """Kafka has no other table of types (C-CFG-4)."""
    cluster = ControlledCluster()
    assert alter(cluster, CLIENT_METRICS_RESOURCE, "s", ("metrics", APPEND, "a")) == BAD_CONFIG
    assert alter(cluster, GROUP_RESOURCE, "", ("nope", SET, "1")) == BAD_REQUEST
    assert alter(cluster, CLIENT_METRICS_RESOURCE, "", ("metrics", SET, "a")) == BAD_REQUEST


def test_a_node_has_no_loggers_of_kafkas() -> None:
    """Checks are those of Kafka, down to the logger that does not exist (C-CFG-2)."""
    cluster = ControlledCluster()
    level = "kafka.Kafka", SET, "DEBUG"
    assert alter(cluster, LOGGER_RESOURCE, "2", level) == BAD_REQUEST
    assert alter(cluster, LOGGER_RESOURCE, "x", level) == BAD_REQUEST
    assert alter(cluster, LOGGER_RESOURCE, "1", level) == BAD_CONFIG
    assert alter(cluster, LOGGER_RESOURCE, "1", ("kafka.Kafka", APPEND, "DEBUG")) == BAD_REQUEST
    assert alter(cluster, LOGGER_RESOURCE, "1") == NONE
    assert replace(cluster, LOGGER_RESOURCE, "1") == BAD_REQUEST
    one = single.AlterConfigsResource(resource_type=LOGGER_RESOURCE, resource_name="1")
    other = single.AlterConfigsResource(resource_type=GROUP_RESOURCE, resource_name="g")
    request = single.IncrementalAlterConfigsRequest(resources=[one, one, other])
    answer = cluster.do(alter_configs_incrementally(cluster.view, request))
    found = [(each.resource_type, each.error_code) for each in answer.responses]
    assert found == [(GROUP_RESOURCE, NONE), (LOGGER_RESOURCE, NONE), (LOGGER_RESOURCE, NONE)]
    assert alter(cluster, 7, "1", level) == ErrorCode.UNSUPPORTED_VERSION
    assert alter(cluster, 7, "1", ("a", APPEND, "b")) == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize(
    ("kind", "name", "key", "value"),
    [
        (TOPIC_RESOURCE, "t", "retention.ms", "5"),
        (CLIENT_METRICS_RESOURCE, "s", "interval.ms", "100"),
        (GROUP_RESOURCE, "g", "share.delivery.count.limit", "6"),
    ],
)
def test_keys_of_other_releases_stay_in_the_log_and_keep_nobody_from_changes(
    kind: int, name: str, key: str, value: str
) -> None:
    """After a downgrade each change of that resource would be refused (C-CFG-14)."""
    cluster = ControlledCluster(brokers=(1,))
    cluster.topic("t", [1])
    cluster.replay([config_record(kind, name, "key.of.later", "x")])
    assert alter(cluster, kind, name, ("key.of.later", SET, "y")) in (BAD_REQUEST, BAD_CONFIG)
    assert alter(cluster, kind, name, (key, SET, value)) == NONE
    assert cluster.image.configs[kind, name] == {"key.of.later": "x", key: value}
    assert key in {one.name for one in describe_resource(cluster.view, kind, name)}
    assert "key.of.later" not in {one.name for one in describe_resource(cluster.view, kind, name)}
    assert alter(cluster, kind, name, ("key.of.later", DELETE, None)) == NONE
    assert cluster.image.configs[kind, name] == {key: value}


def test_a_configuration_is_described_with_what_would_count_without_it() -> None:
    """The first is what counts; without a value of its own, a topic inherits (C-CFG-16)."""
    cluster = ControlledCluster(brokers=(1,))
    cluster.topic("t", [1], cleanup_policy="compact, delete")
    cluster.replay([config_record(BROKER_RESOURCE, "", "log.cleanup.policy", "compact")])
    found = {one.name: one for one in describe_resource(cluster.view, TOPIC_RESOURCE, "t")}
    policy = found["cleanup.policy"]
    assert (policy.value, policy.origin) == ("compact,delete", Origin.TOPIC)
    assert [(one.name, one.value, one.origin) for one in policy.synonyms] == [
        ("cleanup.policy", "compact,delete", Origin.TOPIC),
        ("log.cleanup.policy", "compact", Origin.ALL_BROKERS),
        ("log.cleanup.policy", "delete", Origin.DEFAULT),
    ]
    assert found["remote.storage.enable"].synonyms == ()
    assert len(found) == 37


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC_RESOURCE, "t", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC_RESOURCE, "a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (CLIENT_METRICS_RESOURCE, "", ErrorCode.INVALID_REQUEST),
        (GROUP_RESOURCE, "", ErrorCode.INVALID_REQUEST),
    ],
)
def test_resources_that_cannot_be_are_not_described(kind: int, name: str, code: int) -> None:
    """Groups and subscriptions need not exist, but have names (C-CFG-16)."""
    with pytest.raises(ApiError) as caught:
        describe_resource(ControlledCluster().view, kind, name)
    assert caught.value.code == code
    if kind != TOPIC_RESOURCE:
        assert {one.origin for one in describe_resource(ControlledCluster().view, kind, "x")} == {
            Origin.DEFAULT
        }
