"""Which topics, partitions, groups and transactional ids a message is about, by its schema.

The entity type of a field says what it names. Where the schemas leave it out, or the meaning
depends on another field's value, a table below says it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from kraftwire import messages
from kraftwire.protocol.config_resources import GROUP_RESOURCE, TOPIC_RESOURCE
from kraftwire.wire.facts import FieldFacts, StructFacts
from kraftwire.wire.message import Message

TOPIC: Final = "topic"
PARTITION: Final = "partition"
GROUP: Final = "group"
TRANSACTIONAL_ID: Final = "transactional_id"
KINDS: Final = (TOPIC, PARTITION, GROUP, TRANSACTIONAL_ID)

ALL: Final = "\0all"
"""In place of a name or an index: a null array, which stands for all that there are."""

TopicName = Callable[[bytes], str | None]
"""The name of the topic with an id, None for an unknown one."""

Context = Mapping[str, Any]
"""What a struct is about: names and partition indexes by kind. An unknown topic is missing."""

_BY_ENTITY_TYPE = {"topicName": TOPIC, "groupId": GROUP, "transactionalId": TRANSACTIONAL_ID}
_BY_NAME = {"topicId": TOPIC, "groupId": GROUP, "transactionalId": TRANSACTIONAL_ID}
# No entity type says that a number is a partition; a topic is named beside it, or around it.
_PARTITION = {"partition", "partitionIndex", "partitionId", "index"}
_PARTITIONS = {"partitions", "partitionIndexes"}
_ACL_GROUP = 3
_RESOURCES = (
    "resource_type",
    {TOPIC_RESOURCE: TOPIC, GROUP_RESOURCE: GROUP, _ACL_GROUP: GROUP},
)
_COORDINATED = ("key_type", {0: GROUP, 1: TRANSACTIONAL_ID})
# The attribute that says what a field names, and the kinds by its value.
_BY_TYPE: Mapping[str, tuple[str, Mapping[int, str]]] = {
    "resourceName": _RESOURCES,
    "key": _COORDINATED,
    "coordinatorKeys": _COORDINATED,
}
# Topics that a request is no longer about.
_PASSED_OVER = {"forgottenTopicsData"}


@dataclass(frozen=True, slots=True)
class NamingField:
    """A field that names something: one, or many in an array. `by` is the attribute that decides
    which of the `kinds` it is; without it there is one."""

    attribute: str
    is_array: bool
    kinds: Mapping[int, str]
    by: str = ""

    def kind(self, source: Any) -> str | None:
        """Return what the field of a struct names."""
        return self.kinds.get(getattr(source, self.by, -1) if self.by else 0)


@dataclass(frozen=True, slots=True)
class Level:
    """What a struct names: its own fields, and the structs in it, by attribute, that name more."""

    fields: tuple[NamingField, ...] = ()
    inner: tuple[tuple[str, bool, Level], ...] = ()
    kinds: frozenset[str] = field(default_factory=frozenset)

    def own_context(self, source: Any, outer: Context, topic_name: TopicName) -> Context:
        """Return what a struct's own fields name, together with the structs around it."""
        found = dict(outer)
        for each in self.fields:
            kind, value = each.kind(source), getattr(source, each.attribute)
            if each.is_array or kind is None:
                continue
            if isinstance(value, bytes):
                value = topic_name(value) if any(value) else None
            if value is not None and value != "":
                found[kind] = value
        return found


def _naming(facts: StructFacts, each: FieldFacts, *, is_in_topic: bool) -> NamingField | None:
    if each.struct is not None or each.name in _PASSED_OVER:
        return None
    by, kinds = _BY_TYPE.get(each.name, ("", {}))
    if any(one.attribute == by for one in facts.fields):
        return NamingField(each.attribute, each.is_array, kinds, by)
    kind = _BY_ENTITY_TYPE.get(each.entity_type) or _BY_NAME.get(each.name)
    # A number of partitions has the name of an array.
    if is_in_topic and each.name in (_PARTITIONS if each.is_array else _PARTITION):
        kind = PARTITION
    return None if kind is None else NamingField(each.attribute, each.is_array, {0: kind})


def level_of(facts: StructFacts, version: int, *, is_in_topic: bool = False) -> Level:
    """Return what a struct names in a version; `is_in_topic` if one around it names a topic."""
    carried = [each for each in facts.fields if version in each.versions]
    is_in_topic = is_in_topic or any(each.names_topic and not each.is_array for each in carried)
    found = [_naming(facts, each, is_in_topic=is_in_topic) for each in carried]
    fields = tuple(each for each in found if each is not None)
    levels = [
        (each.attribute, each.is_array, level_of(each.struct, version, is_in_topic=is_in_topic))
        for each in carried
        if each.struct is not None and each.name not in _PASSED_OVER
    ]
    inner = tuple(each for each in levels if each[2].kinds)
    kinds = {kind for each in fields for kind in each.kinds.values()}
    return Level(fields, inner, frozenset(kinds).union(*(level.kinds for _, _, level in inner)))


@cache
def request_level(api_key: int, version: int) -> Level:
    """Return what the requests of an API name in a version."""
    return level_of(messages.request_class(api_key).facts().root, version)


def contexts(message: Message, version: int, topic_name: TopicName) -> Iterator[Context]:
    """Yield what a request is about, outermost first: each struct, each name in an array.

    A null array stands for `ALL`, in heartbeats of groups for what was said before.
    """
    level = request_level(message.API_KEY, version)
    has_all = not message.NAME.endswith("GroupHeartbeatRequest")
    yield from _contexts(level, message, {}, topic_name, has_all)


def _contexts(
    level: Level, source: Any, outer: Context, topic_name: TopicName, has_all: bool
) -> Iterator[Context]:
    own = level.own_context(source, outer, topic_name)
    yield own
    for each in level.fields:
        values, kind = getattr(source, each.attribute), each.kind(source)
        if each.is_array and kind is not None:
            missing = (ALL,) if values is None and has_all else ()
            yield from ({**own, kind: value} for value in values or missing)
    for attribute, is_array, inner in level.inner:
        value = getattr(source, attribute)
        if value is None:
            if is_array and has_all:
                yield {**own, **dict.fromkeys(inner.kinds - own.keys(), ALL)}
            continue
        for one in value if is_array else (value,):
            yield from _contexts(inner, one, own, topic_name, has_all)
