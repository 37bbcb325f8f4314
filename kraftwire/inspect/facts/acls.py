"""Facts of the APIs for access control lists, in the names that Kafka's tools print.

Source: Kafka's `ResourceType`, `PatternType`, `AclOperation` and `AclPermissionType`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kraftwire.decode.body.topics import TopicNames
from kraftwire.inspect.facts.words import named, some

__all__ = [
    "create_acls_request",
    "delete_acls_request",
    "delete_acls_response",
    "describe_acls_request",
    "describe_acls_response",
]

_RESOURCES = (
    "UNKNOWN", "ANY", "TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER",
)  # fmt: skip
_PATTERNS = ("UNKNOWN", "ANY", "MATCH", "LITERAL", "PREFIXED")
_OPERATIONS = (
    "UNKNOWN", "ANY", "ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE",
    "CLUSTER_ACTION", "DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE", "CREATE_TOKENS",
    "DESCRIBE_TOKENS", "TWO_PHASE_COMMIT",
)  # fmt: skip
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
    kind = _name(_RESOURCES, each.resource_type)
    return f"{kind} {named(each.resource_name)} {_name(_PATTERNS, pattern_type)}"


def _entry(resource: str, each: Any) -> str:
    """Return who may, or may not, do what with a resource."""
    permission = _name(_PERMISSIONS, each.permission_type)
    text = f"{permission} {named(each.principal)} {_name(_OPERATIONS, each.operation)} {resource}"
    return text if each.host == _ANY_HOST else f"{text} from {named(each.host)}"


def _filter(each: Any) -> str:
    """Return the parts of a filter; null matches everything and is left out."""
    name = each.resource_name_filter
    resource = _name(_RESOURCES, each.resource_type_filter)
    parts = [
        f"resource {resource}" if name is None else f"resource {resource} {named(name)}",
        f"pattern {_name(_PATTERNS, each.pattern_type_filter)}",
        f"operation {_name(_OPERATIONS, each.operation)}",
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
