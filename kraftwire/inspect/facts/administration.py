"""Facts of administrative APIs: clusters, topics, partitions, configurations, ACLs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kraftwire.decode.body.context import TopicNames
from kraftwire.inspect.facts.phrases import (
    counted,
    each_partition,
    ids_text,
    named,
    partitions_text,
    some,
    topics_text,
)
from kraftwire.protocol.config_resources import RESOURCE_NAMES
from kraftwire.security.acls import Operation, ResourceType

_PATTERNS = ("UNKNOWN", "ANY", "MATCH", "LITERAL", "PREFIXED")
_PERMISSIONS = ("UNKNOWN", "ANY", "DENY", "ALLOW")
_ANY_HOST = "*"


def create_acls_request(body: Any, _names: TopicNames) -> str:
    """List the entries to create."""
    entries = [_entry(_resource(each, each.resource_pattern_type), each) for each in body.creations]
    return some(entries) or "no entries"


def delete_acls_request(body: Any, _names: TopicNames) -> str:
    """List the filters of the entries to delete."""
    return some([_filter(each) for each in body.filters]) or "no filters"


def delete_acls_response(body: Any, _names: TopicNames) -> str:
    """List the deleted entries."""
    entries = [
        _entry(_resource(each, each.pattern_type), each)
        for result in body.filter_results
        for each in result.matching_acls
        if not each.error_code
    ]
    return f"deleted {some(entries)}" if entries else "nothing deleted"


def describe_acls_request(body: Any, _names: TopicNames) -> str:
    """Give the filter."""
    return _filter(body)


def describe_acls_response(body: Any, _names: TopicNames) -> str:
    """List the entries."""
    return some(list(_described(body))) or "no entries"


def _described(body: Any) -> Iterator[str]:
    for resource in body.resources:
        for each in resource.acls:
            yield _entry(_resource(resource, resource.pattern_type), each)


def _resource(each: Any, pattern_type: int) -> str:
    kind = _name(ResourceType.NAMES, each.resource_type)
    return f"{kind} {named(each.resource_name)} {_name(_PATTERNS, pattern_type)}"


def _entry(resource: str, each: Any) -> str:
    """Return who may, or may not, do what with a resource."""
    permission = _name(_PERMISSIONS, each.permission_type)
    operation = _name(Operation.NAMES, each.operation)
    text = f"{permission} {named(each.principal)} {operation} {resource}"
    return text if each.host == _ANY_HOST else f"{text} from {named(each.host)}"


def _filter(each: Any) -> str:
    """Return the parts of a filter; null matches everything and is left out."""
    name = each.resource_name_filter
    resource = _name(ResourceType.NAMES, each.resource_type_filter)
    parts = [
        f"resource {resource}" if name is None else f"resource {resource} {named(name)}",
        f"pattern {_name(_PATTERNS, each.pattern_type_filter)}",
        f"operation {_name(Operation.NAMES, each.operation)}",
        f"permission {_name(_PERMISSIONS, each.permission_type)}",
    ]
    if each.principal_filter is not None:
        parts.append(f"principal {named(each.principal_filter)}")
    if each.host_filter is not None:
        parts.append(f"host {named(each.host_filter)}")
    return ", ".join(parts)


def _name(names: tuple[str, ...], number: int) -> str:
    """Return the name of a number, or the number if a later release has given it a meaning."""
    return names[number] if 0 <= number < len(names) else str(number)


def api_versions_request(body: Any, _names: TopicNames) -> str:
    """Name the client's software."""
    return f"{body.client_software_name} {body.client_software_version}".strip()


def api_versions_response(body: Any, _names: TopicNames) -> str:
    """Count the APIs that the server offers."""
    return counted(body.api_keys, "APIs")


def metadata_request(body: Any, names: TopicNames) -> str:
    """Name the topics that the client asks about."""
    if body.topics is None:
        return "all topics"
    return topics_text(body.topics, names) or "no topics"


def metadata_response(body: Any, _names: TopicNames) -> str:
    """Count brokers, topics and partitions, and name the controller."""
    partitions = [each for topic in body.topics for each in topic.partitions]
    counts = (body.brokers, "brokers"), (body.topics, "topics"), (partitions, "partitions")
    text = ", ".join([counted(values, words) for values, words in counts])
    return f"{text}, controller {body.controller_id}" if body.controller_id >= 0 else text


def describe_cluster_response(body: Any, _names: TopicNames) -> str:
    """Name the cluster id, the controller and the first few nodes."""
    nodes = some([each.broker_id for each in body.brokers])
    if not nodes:
        return "no nodes"
    return f"cluster {body.cluster_id}, controller {body.controller_id}, nodes {nodes}"


def create_topics_request(body: Any, _names: TopicNames) -> str:
    """List the topics with their numbers of partitions."""
    texts = [
        f"{each.name} ({each.num_partitions})" if each.num_partitions >= 0 else each.name
        for each in body.topics
    ]
    return some(texts) or "no topics"


def delete_topics_request(body: Any, names: TopicNames) -> str:
    """List the topics by name or id."""
    if body.topic_names:
        return some(body.topic_names)
    return topics_text(body.topics, names) or "no topics"


def topics_response(body: Any, _names: TopicNames) -> str:
    """Count the topics in the response."""
    return counted(body.topics, "topics")


def configs_request(body: Any, _names: TopicNames) -> str:
    """List resources and configuration keys, never values."""
    texts = []
    for each in body.resources:
        kind = RESOURCE_NAMES.get(each.resource_type, f"type {each.resource_type}")
        keys = getattr(each, "configuration_keys", None)
        if keys is None:
            keys = [config.name for config in getattr(each, "configs", ())]
        text = f"{kind} {each.resource_name or '(default)'}"
        texts.append(f"{text}: {some(keys)}" if keys else text)
    return some(texts) or "no resources"


def quotas_request(body: Any, _names: TopicNames) -> str:
    """Say whose quotas the request is about, and list their keys."""
    texts = []
    for each in body.entries:
        whose = " ".join([f"{of.entity_type} {_entity(of.entity_name)}" for of in each.entity])
        keys = some([f"{op.key} removed" if op.remove else op.key for op in each.ops])
        texts.append(f"{whose}: {keys}" if keys else whose)
    return some(texts) or "no entries"


def quotas_response(body: Any, _names: TopicNames) -> str:
    """Count the entities in the response."""
    return "no quotas" if body.entries is None else counted(body.entries, "entries")


def _entity(name: str | None) -> str:
    return "(default)" if name is None else name


def names_request(body: Any, _names: TopicNames) -> str:
    """List the groups or topics of a request that has a plain list of names."""
    for attribute in ("group_ids", "groups", "groups_names", "topics"):
        found = getattr(body, attribute, None)
        if found:
            return some([each if isinstance(each, str) else each.name for each in found])
    return "no names"


def sasl_handshake_request(body: Any, _names: TopicNames) -> str:
    """Name the SASL mechanism."""
    return str(body.mechanism)


def sasl_handshake_response(body: Any, _names: TopicNames) -> str:
    """List the SASL mechanisms that the server offers."""
    return some(body.mechanisms)


def sasl_token(body: Any, _names: TopicNames) -> str:
    """Give the size of the token, but nothing of its content."""
    return f"token of {len(body.auth_bytes)} B" if body.auth_bytes else "no token"


_NONE = "no partitions"


def delete_records_request(body: Any, names: TopicNames) -> str:
    """List partitions, and the offsets before which records are deleted."""
    return each_partition(body.topics, names, _before) or _NONE


def _before(partition: Any) -> str:
    offset = partition.offset
    return f"before {offset}" if offset >= 0 else "before the high watermark"


def delete_records_response(body: Any, names: TopicNames) -> str:
    """List partitions with their low watermarks."""
    return each_partition(body.topics, names, _low_watermark) or _NONE


def _low_watermark(partition: Any) -> str:
    return "" if partition.error_code else f"low watermark {partition.low_watermark}"


def alter_reassignments_request(body: Any, names: TopicNames) -> str:
    """List partitions with their new replicas."""
    return each_partition(body.topics, names, _new_replicas) or _NONE


def _new_replicas(partition: Any) -> str:
    return "cancel" if partition.replicas is None else f"to replicas {ids_text(partition.replicas)}"


def alter_reassignments_response(body: Any, names: TopicNames) -> str:
    """Give the first partition in the response, and count the others."""
    return partitions_text(body.responses, names, "partitions") or _NONE


def list_reassignments_request(body: Any, names: TopicNames) -> str:
    """Give the partitions that the client asks about."""
    if body.topics is None:
        return "all topics"
    return partitions_text(body.topics, names, "partition_indexes") or _NONE


def list_reassignments_response(body: Any, names: TopicNames) -> str:
    """List partitions with their replicas, those that are added and those that are removed."""
    return each_partition(body.topics, names, _ongoing) or _NONE


def _ongoing(partition: Any) -> str:
    text = f"replicas {ids_text(partition.replicas)}"
    text += f" adding {ids_text(partition.adding_replicas)}" if partition.adding_replicas else ""
    return text + (
        f" removing {ids_text(partition.removing_replicas)}" if partition.removing_replicas else ""
    )


def alter_replica_log_dirs_request(body: Any, _names: TopicNames) -> str:
    """List partitions with their new directories."""
    texts = [
        f"{topic.name}-{index} to {named(each.path)}"
        for each in body.dirs
        for topic in each.topics
        for index in topic.partitions
    ]
    return some(texts) or _NONE


def alter_replica_log_dirs_response(body: Any, _names: TopicNames) -> str:
    """List the partitions in the response."""
    texts = [
        f"{topic.topic_name}-{each.partition_index}"
        for topic in body.results
        for each in topic.partitions
    ]
    return some(texts) or _NONE
