"""Changes of configurations, incremental and as a whole. Rules: C-CFG-1 to C-CFG-8.

Source: Kafka's `ConfigurationControlManager` and `ControllerConfigurationValidator`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

from kraftwire.controller.client_metrics import METRICS_KEYS, check_subscription
from kraftwire.controller.cluster import MIN_INSYNC_REPLICAS, Cluster
from kraftwire.controller.group_configs import GROUP_KEY_NAMES, check_group
from kraftwire.controller.step import StepResult, VersionedRecord, config_record
from kraftwire.controller.topic_configs import check_topic_configs
from kraftwire.controller.topic_keys import (
    TOPIC_KEY_NAMES,
    TOPIC_KEYS,
    Kind,
    check_length,
    check_name,
    elements,
)
from kraftwire.controller.versions import METADATA_VERSION, WITH_CORDONED
from kraftwire.errors import ApiError
from kraftwire.messages import alter_configs_response, incremental_alter_configs_response
from kraftwire.messages.alter_configs_request import AlterableConfig as WholeConfig
from kraftwire.messages.alter_configs_request import AlterConfigsRequest
from kraftwire.messages.alter_configs_response import AlterConfigsResponse
from kraftwire.messages.clear_elr_record import ClearElrRecord
from kraftwire.messages.config_record import ConfigRecord
from kraftwire.messages.incremental_alter_configs_request import (
    AlterableConfig,
    IncrementalAlterConfigsRequest,
)
from kraftwire.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from kraftwire.pieces import Divided, Pieces
from kraftwire.protocol.config_resources import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    LOGGER_RESOURCE,
    TOPIC_RESOURCE,
)
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.wire.message import Message

_CORDONED = "cordoned.log.dirs"
_SET, _DELETE, _APPEND, _SUBTRACT = range(4)

# Keys of brokers whose values are lists, and their defaults. Source: `AbstractKafkaConfig`.
_BROKER_LISTS = {
    "advertised.listeners": "",
    "controller.listener.names": "",
    "controller.quorum.bootstrap.servers": "",
    "controller.quorum.voters": "",
    "early.start.listeners": "",
    "group.consumer.assignors": "uniform,range",
    "group.coordinator.rebalance.protocols": "classic,consumer,streams",
    "listeners": "PLAINTEXT://:9092",
    "log.cleanup.policy": "delete",
    "log.dir": "/tmp/kafka-logs",
    "log.dirs": "",
    "metric.reporters": "org.apache.kafka.common.metrics.JmxReporter",
    "process.roles": "",
    "sasl.enabled.mechanisms": "GSSAPI",
    "sasl.kerberos.principal.to.local.rules": "DEFAULT",
    "sasl.oauthbearer.expected.audience": "",
    "ssl.cipher.suites": "",
    "ssl.enabled.protocols": "TLSv1.2,TLSv1.3",
}

_Resource = tuple[int, str]
_Changes = Mapping[str, str | None]


@Divided
def alter_configs_incrementally(
    cluster: Cluster, request: IncrementalAlterConfigsRequest, *, is_forwarded: bool = False
) -> Pieces[StepResult]:
    """Set, delete, extend or shorten single values; each resource succeeds or fails as a whole.

    `is_forwarded` is whether a broker has checked its own values in it.
    """
    response = IncrementalAlterConfigsResponse()
    answer = incremental_alter_configs_response.AlterConfigsResourceResponse
    loggers = [one for one in request.resources if one.resource_type == LOGGER_RESOURCE]
    others = [one for one in request.resources if one.resource_type != LOGGER_RESOURCE]
    changes_of = partial(_changed_values, is_forwarded=is_forwarded)
    records = yield from _alter_resources(cluster, others, response.responses, answer, changes_of)
    for one in loggers:
        error = _logger_error(cluster, one.resource_name, one.configs)
        response.responses.append(
            answer(
                error_code=error.code if error is not None else ErrorCode.NONE,
                error_message=error.detail if error is not None else None,
                resource_type=LOGGER_RESOURCE,
                resource_name=one.resource_name,
            )
        )
    return _config_result(cluster, response, [] if request.validate_only else records)


@Divided
def alter_configs(
    cluster: Cluster, request: AlterConfigsRequest, *, is_forwarded: bool = False
) -> Pieces[StepResult]:
    """Replace the whole configuration of resources: what is not given is deleted. `is_forwarded` as
    above."""
    response = AlterConfigsResponse()
    answer = alter_configs_response.AlterConfigsResourceResponse
    changes_of = partial(_replaced_values, is_forwarded=is_forwarded)
    records = yield from _alter_resources(
        cluster, request.resources, response.responses, answer, changes_of
    )
    return _config_result(cluster, response, [] if request.validate_only else records)


def _alter_resources(
    cluster: Cluster,
    resources: Sequence[Any],
    responses: list[Any],
    answer: Callable[..., Any],
    changes_of: Callable[[Cluster, _Resource, Any], _Changes],
) -> Pieces[list[VersionedRecord]]:
    """Return the records of the resources that can be changed, and add the answer of each
    (C-CFG-2)."""
    records: list[VersionedRecord] = []
    times = Counter((one.resource_type, one.resource_name) for one in resources)
    answered: set[_Resource] = set()
    for one in resources:
        yield
        resource = one.resource_type, one.resource_name
        if resource in answered:
            continue
        result = answer(error_message=None, resource_type=resource[0], resource_name=resource[1])
        responses.append(result)
        try:
            if resource[0] not in (*_CHECKS, LOGGER_RESOURCE):
                text = f"{resource[0]} is no type of a resource"
                raise ApiError(ErrorCode.UNSUPPORTED_VERSION, text)
            answered.add(resource)
            if times[resource] > 1:
                text = "the request names this resource more than once"
                raise ApiError(ErrorCode.INVALID_REQUEST, text)
            changes = changes_of(cluster, resource, one.configs)
            records += _config_records(cluster, resource, changes)
        except ApiError as error:
            result.error_code, result.error_message = error.code, error.detail
    return records


def _replaced_values(
    cluster: Cluster, resource: _Resource, configs: Sequence[WholeConfig], *, is_forwarded: bool
) -> dict[str, str | None]:
    """Return the new values by key, None for one that is not given any more."""
    if resource[0] == LOGGER_RESOURCE:
        text = "levels of loggers are not replaced as a whole"
        raise ApiError(ErrorCode.INVALID_REQUEST, text)
    given: dict[str, str | None] = {each.name: each.value for each in configs}
    stored = cluster.image.configs.get(resource, {})
    changes = given | {name: None for name in stored if name not in given}
    _check_cordoned(cluster, resource, changes, is_forwarded=is_forwarded)
    return changes


def _changed_values(
    cluster: Cluster,
    resource: _Resource,
    configs: Sequence[AlterableConfig],
    *,
    is_forwarded: bool,
) -> dict[str, str | None]:
    """Return the new values by key, None for a deleted one. The last change of a key counts."""
    stored = cluster.image.configs.get(resource, {})
    changes: dict[str, str | None] = {}
    for name, config in {config.name: config for config in configs}.items():
        operation, value = config.config_operation, config.value
        if operation in (_SET, _DELETE):
            changes[name] = value if operation == _SET else None
            continue
        # Differs from Kafka, whose controller resigns on these (C-ERR-3).
        if operation not in (_APPEND, _SUBTRACT) or value is None:
            text = f"{name}: operation {operation} with the value {value!r}"
            raise ApiError(ErrorCode.INVALID_REQUEST, text)
        default = _list_default(resource, name)
        before = [part for part in _split_list(stored.get(name, default)) if part]
        changed = _extended_list if operation == _APPEND else _shortened_list
        changes[name] = ",".join(changed(before, _split_list(value)))
    _check_cordoned(cluster, resource, changes, is_forwarded=is_forwarded)
    return changes


def _split_list(value: str) -> list[str]:
    """Split a list as Java does: as it is written, without the empty parts at its end."""
    parts = value.rstrip(",").split(",")
    return parts if any(parts) or not value else []


def _extended_list(before: list[str], given: list[str]) -> list[str]:
    """Return a list with the elements that it lacks, each once, in the order given."""
    known = set(before)
    added = [each for each in dict.fromkeys(given) if each not in known]
    return before + added


def _shortened_list(before: list[str], given: list[str]) -> list[str]:
    """Return a list without the first of its elements for each one that is given."""
    left = Counter(given)
    kept = []
    for each in before:
        if left[each] > 0:
            left[each] -= 1
        else:
            kept.append(each)
    return kept


def _list_default(resource: _Resource, name: str) -> str:
    """Return the default of a key with a list. Raises: ApiError if it has none."""
    if resource[0] == TOPIC_RESOURCE:
        key = TOPIC_KEYS.get(name)
        if key is not None and key.kind is Kind.LIST:
            return key.default
    elif resource[0] == BROKER_RESOURCE and name in _BROKER_LISTS:
        return _BROKER_LISTS[name]
    raise ApiError(ErrorCode.INVALID_CONFIG, f"{name} is not a list: it can be set or deleted")


def _config_records(
    cluster: Cluster, resource: _Resource, changes: _Changes
) -> list[VersionedRecord]:
    """Return the records of the changes of a resource. Raises: ApiError."""
    kind, name = resource
    stored = cluster.image.configs.get(resource, {})
    _check_min_isr(cluster, resource, changes)
    known = _KNOWN.get(kind, stored)
    kept = {key: value for key, value in stored.items() if key in known}
    after = {key: value for key, value in {**kept, **changes}.items() if value is not None}
    for key, value in after.items():
        check_length(key, value)
    _CHECKS[kind](cluster, name, after)
    records: list[VersionedRecord] = []
    for key, new in changes.items():
        # A broker's is written although it is the same: the broker applies it again (C-CFG-5).
        if kind == BROKER_RESOURCE or new != stored.get(key):
            records.append(config_record(kind, name, key, new))
    return records


def _config_result(
    cluster: Cluster, response: Message, records: Sequence[VersionedRecord]
) -> StepResult:
    """Return the result: after all configurations, eligible replicas are cleared where another
    number of in-sync replicas is the least (C-CFG-8)."""
    cleared: list[VersionedRecord] = []
    for record, _ in records:
        assert isinstance(record, ConfigRecord)
        if record.name == MIN_INSYNC_REPLICAS and cluster.has_elr:
            topic = record.resource_name if record.resource_type == TOPIC_RESOURCE else ""
            cleared.append((ClearElrRecord(topic_name=topic), 0))
    return StepResult(response, [*records, *cleared])


def _check_min_isr(cluster: Cluster, resource: _Resource, changes: _Changes) -> None:
    """Check that all brokers keep one value where partitions have eligible leader replicas."""
    if resource[0] != BROKER_RESOURCE or MIN_INSYNC_REPLICAS not in changes or not cluster.has_elr:
        return
    if resource[1]:
        text = f"{MIN_INSYNC_REPLICAS} cannot be set for one broker"
        raise ApiError(ErrorCode.INVALID_CONFIG, text)
    if changes[MIN_INSYNC_REPLICAS] is None:
        text = f"{MIN_INSYNC_REPLICAS} of all brokers cannot be deleted"
        raise ApiError(ErrorCode.INVALID_CONFIG, text)


def _check_cordoned(
    cluster: Cluster, resource: _Resource, changes: _Changes, *, is_forwarded: bool
) -> None:
    """Check that brokers can report cordoned directories at all, and that they exist: only the
    broker knows new ones (C-CFG-6)."""
    if resource[0] != BROKER_RESOURCE or _CORDONED not in changes:
        return
    if cluster.level < WITH_CORDONED:
        text = f"{_CORDONED} needs {METADATA_VERSION} {WITH_CORDONED}, which is {cluster.level}"
        raise ApiError(ErrorCode.INVALID_CONFIG, text)
    before = cluster.image.configs.get(resource, {}).get(_CORDONED, "")
    added = set(elements(changes[_CORDONED] or "")) - set(elements(before))
    if added and not is_forwarded:
        text = f"{_CORDONED}: {min(added):.300} is new, which the broker has to check: ask a broker"
        raise ApiError(ErrorCode.INVALID_CONFIG, text)


def _check_topic(cluster: Cluster, name: str, values: Mapping[str, str]) -> None:
    if not name:
        raise ApiError(ErrorCode.INVALID_REQUEST, "the name of the topic is missing")
    check_name(name)
    check_topic_configs(cluster, values)
    if name not in cluster.image.topics.ids:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name:.300}")


def _check_broker(cluster: Cluster, name: str, _: Mapping[str, str]) -> None:
    """Check that a resource is a node that is known, or all brokers. Brokers check the values."""
    if not name:
        return
    if not re.fullmatch(r"\d{1,10}", name):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{name!r:.100} is not the id of a node")
    image = cluster.image
    if not any(int(name) in known for known in (cluster.voters, image.brokers, image.controllers)):
        raise ApiError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"node {name} is not registered")


def _logger_error(
    cluster: Cluster, name: str, configs: Sequence[AlterableConfig]
) -> ApiError | None:
    """Return why levels of loggers cannot be changed: this node has none of Kafka's (C-CFG-2)."""
    if not re.fullmatch(r"[+-]?\d{1,10}", name) or int(name) != cluster.node_id:
        text = f"{name!r:.100} is not this node, which is {cluster.node_id}"
        return ApiError(ErrorCode.INVALID_REQUEST, text)
    for config in configs[:1]:
        if config.config_operation not in (_SET, _DELETE):
            text = f"{config.name}: levels of loggers are set or deleted"
            return ApiError(ErrorCode.INVALID_REQUEST, text)
        return ApiError(ErrorCode.INVALID_CONFIG, f"there is no logger {config.name:.300}")
    return None


# Other keys in the log are of other releases: they are kept, and not looked at (C-CFG-14).
_KNOWN: Mapping[int, Collection[str]] = {
    TOPIC_RESOURCE: TOPIC_KEY_NAMES,
    CLIENT_METRICS_RESOURCE: METRICS_KEYS,
    GROUP_RESOURCE: GROUP_KEY_NAMES,
}

# The types of resources, and how the whole configuration of one is checked.
_CHECKS: Mapping[int, Callable[[Cluster, str, Mapping[str, str]], None]] = {
    TOPIC_RESOURCE: _check_topic,
    BROKER_RESOURCE: _check_broker,
    CLIENT_METRICS_RESOURCE: lambda _, name, values: check_subscription(name, values),
    GROUP_RESOURCE: check_group,
}
