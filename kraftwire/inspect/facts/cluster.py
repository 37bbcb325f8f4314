"""Facts of the APIs for client metadata, and of those for administrators."""

from __future__ import annotations

from typing import Any

from kraftwire.decode.body.topics import TopicNames
from kraftwire.inspect.facts.words import counted, some, topics_text

__all__ = [
    "api_versions_request",
    "api_versions_response",
    "configs_request",
    "create_topics_request",
    "delete_topics_request",
    "describe_cluster_response",
    "metadata_request",
    "metadata_response",
    "names_request",
    "quotas_request",
    "quotas_response",
    "sasl_handshake_request",
    "sasl_handshake_response",
    "sasl_token",
    "topics_response",
]

_RESOURCES = {2: "topic", 4: "broker", 8: "broker logger", 16: "client metrics", 32: "group"}


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
        kind = _RESOURCES.get(each.resource_type, f"type {each.resource_type}")
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
