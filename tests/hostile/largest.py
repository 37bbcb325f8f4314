"""The largest legal requests of every API: one array filled, elements of others only below it.

`largest_requests` makes them from the schemas. Names and ids are those of the cluster of `grown`:
one of them again and again, all of them in turn, or unknown ones; or a value is as long as it may
be.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from kraftwire import messages
from kraftwire.controller.topic_keys import TOPIC_KEYS
from kraftwire.limits import REQUEST_ELEMENTS_MAX, REQUEST_SIZE_MAX, STRING_SIZE_MAX
from kraftwire.node.handlers.versions import BROKER_VERSIONS, CONTROLLER_VERSIONS
from kraftwire.protocol.config_resources import TOPIC_RESOURCE
from kraftwire.wire.facts import FieldFacts, StructFacts
from kraftwire.wire.message import Message
from tests.hostile.grown import BROKERS, topic_id, topic_name

# The numbers of names and ids that no cluster has begin here.
_UNKNOWN = 1_000_000
# What the header and the framing of a request may take.
_SPARE_BYTES = 4096


class Names(StrEnum):
    """Which names and ids the elements of a filled array have."""

    SAME = "one name"
    KNOWN = "known names"
    UNKNOWN = "unknown names"
    LONG = "long values"


class LargestRequest(NamedTuple):
    """A request, what was filled in it, and for which listener it is (see `request_of`)."""

    api: str
    array: str
    names: str
    message: Message
    version: int
    to: str


def largest_requests(
    elements: int = REQUEST_ELEMENTS_MAX, *, apis: Collection[str] = ()
) -> Iterator[LargestRequest]:
    """Make the largest requests of all or some APIs, of at most so many elements."""
    for key, (_, version) in sorted({**BROKER_VERSIONS, **CONTROLLER_VERSIONS}.items()):
        if apis and messages.API_NAMES[key] not in apis:
            continue
        facts = messages.request_class(key).facts()
        for path in _arrays(facts.root, version) or [()]:
            for names in Names:
                made = _Maker(key, version, path, names, elements).message()
                title = ".".join(each.attribute for each in path)
                to = "peer" if key in CONTROLLER_VERSIONS else "client"
                yield LargestRequest(messages.API_NAMES[key], title, names, made, version, to)


def _arrays(struct: StructFacts, version: int) -> list[tuple[FieldFacts, ...]]:
    """Find the arrays of a request, as paths from its root."""
    found: list[tuple[FieldFacts, ...]] = []
    for one in struct.fields:
        if version not in one.versions or version in one.tagged:
            continue
        if one.is_array:
            found.append((one,))
        if one.struct is not None:
            found += [(one, *rest) for rest in _arrays(one.struct, version)]
    return found


class _Maker:
    """Makes one request. `number` counts the structs and values that it has made."""

    def __init__(
        self, key: int, version: int, path: tuple[FieldFacts, ...], names: Names, elements: int
    ) -> None:
        self._class, self._version = messages.request_class(key), version
        self._path, self._names = path, names
        self._count = max(1, elements // 2 if _has_arrays(path, version) else elements - len(path))
        self._number = -1

    def message(self) -> Message:
        """Make it, with fewer elements if it would be too long."""
        while True:
            made: Message = self._struct(self._class.facts().root, self._path)
            size = len(made.encode(self._version))
            if size <= REQUEST_SIZE_MAX - _SPARE_BYTES:
                return made
            self._count = self._count * (REQUEST_SIZE_MAX - 2 * _SPARE_BYTES) // size
            self._number = -1

    def _struct(
        self, facts: StructFacts, path: tuple[FieldFacts, ...], *, is_below: bool = False
    ) -> Any:
        made = facts.cls()
        self._number += not path
        for one in facts.fields:
            if self._version not in one.versions or self._version in one.tagged:
                continue
            is_on_path = bool(path) and one is path[0]
            rest = path[1:] if is_on_path else ()
            below = is_below or (is_on_path and not rest)
            name = f"{facts.name}.{one.attribute}"
            if one.is_array and not is_on_path and (not is_below or name in _EMPTY):
                value: Any = one.default if one.default is None else []
            elif one.is_array:
                count = self._count if is_on_path and not rest else 1
                value = [self._one(name, one, rest, is_below=below) for _ in range(count)]
            else:
                value = self._one(name, one, rest, is_below=below)
            setattr(made, one.attribute, value)
        return made

    def _one(
        self, name: str, field: FieldFacts, rest: tuple[FieldFacts, ...], *, is_below: bool
    ) -> Any:
        if field.struct is not None:
            return self._struct(field.struct, rest, is_below=is_below)
        self._number += field.is_array
        number = 0 if self._names is Names.SAME else max(self._number, 0)
        is_unknown = self._names is Names.UNKNOWN
        special = _SPECIAL.get(name, _SPECIAL.get(field.attribute))
        if field.type == "string" and self._names is Names.LONG and name in _LONG:
            return f"{self._number:08}" + "x" * (STRING_SIZE_MAX - 16)
        if special is not None:
            return special(number, is_unknown)
        if field.entity_type == "topicName":
            return topic_name(number + _UNKNOWN * is_unknown)
        if field.type == "string":
            return f"n{number}"
        if field.type == "uuid":
            return topic_id(number + _UNKNOWN * is_unknown)
        if field.entity_type == "brokerId":
            return BROKERS[number % len(BROKERS)] + _UNKNOWN * is_unknown
        if field.type in ("bytes", "records"):
            return bytes(STRING_SIZE_MAX if self._names is Names.LONG else 20)
        if field.type.startswith(("int", "uint")) and "partition" in field.attribute:
            return number if len(self._path) > 1 else 0
        if field.is_array:
            return False if field.type == "bool" else number % 100
        return field.default


def _has_arrays(path: tuple[FieldFacts, ...], version: int) -> bool:
    return bool(path) and path[-1].struct is not None and bool(_arrays(path[-1].struct, version))


def _config_key(number: int, is_unknown: bool) -> str:
    keys = list(TOPIC_KEYS)
    return f"key-{number}" if is_unknown else keys[number % len(keys)]


_Special = Callable[[int, bool], Any]
_SPECIAL: Mapping[str, _Special] = {
    "resource_type": lambda _, __: TOPIC_RESOURCE,
    "resource_name": lambda n, unknown: topic_name(n + _UNKNOWN * unknown),
    "resource_type_filter": lambda _, __: 2,
    "pattern_type_filter": lambda _, __: 2,
    "resource_pattern_type": lambda n, _: 3 + n % 2,
    "operation": lambda _, __: 3,
    "permission_type": lambda _, __: 3,
    "principal": lambda n, _: f"User:u{n}",
    "host": lambda _, __: "*",
    "broker_epoch": lambda n, _: BROKERS[n % len(BROKERS)],
    "timeout_ms": lambda _, __: 30_000,
    "CreatableTopic.num_partitions": lambda _, __: -1,
    "CreatableTopic.replication_factor": lambda _, __: 3,
    "CreatableReplicaAssignment.partition_index": lambda n, _: n,
    "CreatePartitionsTopic.count": lambda n, _: 2 if n else 20_000,
    "CreatableTopicConfig.name": _config_key,
    "AlterableConfig.name": _config_key,
    "AlterableConfig.config_operation": lambda n, _: 2 + n % 2,
    "AlterableConfig.value": lambda _, __: "delete,compact",
    "EntityData.entity_type": lambda _, __: "user",
    "OpData.key": lambda _, __: "producer_byte_rate",
    "OpData.value": lambda n, _: float(n + 1),
    "ScramCredentialUpsertion.mechanism": lambda _, __: 1,
    "ScramCredentialUpsertion.iterations": lambda _, __: 4096,
    "ScramCredentialDeletion.mechanism": lambda _, __: 1,
    "principal_type": lambda _, __: "User",
}  # fmt: skip

# What a valid new topic does not have.
_EMPTY = {
    "CreatableTopic.assignments",
    "CreatableTopic.configs",
    "CreatePartitionsTopic.assignments",
}
# Strings of any length.
_LONG = {
    "AlterableConfig.value",
    "CreatableTopicConfig.value",
    "AclCreation.resource_name",
    "EntityData.entity_name",
    "ScramCredentialUpsertion.name",
    "ScramCredentialDeletion.name",
    "CreatableRenewers.principal_name",
    "DescribeConfigsResource.resource_name",
}
