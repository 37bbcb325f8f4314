"""Looks things up in decoded messages by their schema: error codes, topics, groups, unknown tags.

A plan per message class and version lists where such a field can be; running it flattens one level
of structs after the other, so that a message of a thousand partitions costs a few list operations
instead of a thousand calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from typing import Any, NamedTuple

from kraftwire.wire.facts import FieldFacts, StructFacts
from kraftwire.wire.message import Message

_PARTITIONS = frozenset(
    {"partition", "partitionIndex", "partitionId", "partitions", "partitionIndexes", "index"}
)

Wanted = Callable[[FieldFacts], bool]


@dataclass(frozen=True, slots=True)
class TopicUse:
    """A topic that a message refers to, by name, by id or by both, and its partitions."""

    name: str | None
    id: bytes | None
    partitions: frozenset[int]


@dataclass(frozen=True, slots=True)
class UnknownTag:
    """A tagged field that the schema lacks; `path` is that of the struct that carries it."""

    path: str
    tag: int
    size: int


class RecordsField(NamedTuple):
    """A field of type records, and the topic whose records they are.

    `holder` is the struct that has the field under `attribute`; `steps` lead from the JSON
    form of the message to that of the holder, `name` from there to the field.
    """

    steps: tuple[str | int, ...]
    name: str
    holder: Any
    attribute: str
    topic: str | None
    topic_id: bytes | None

    @property
    def path(self) -> str:
        """The place in the JSON form."""
        text = ""
        for step in (*self.steps, self.name):
            text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
        return text


@dataclass(frozen=True, slots=True)
class _Child:
    """A field that leads to structs."""

    facts: FieldFacts
    is_array: bool
    get: Callable[[Any], Any]
    plan: _Plan

    def structs(self, objects: list[Any]) -> list[Any]:
        """The structs in this field of all the objects."""
        get = self.get
        if len(objects) == 1:
            held = get(objects[0])
            return held or [] if self.is_array else [] if held is None else [held]
        if self.is_array:
            return list(chain.from_iterable(filter(None, map(get, objects))))
        return [held for held in map(get, objects) if held is not None]


@dataclass(frozen=True, slots=True)
class _Plan:
    """The wanted fields of a struct in one version, and the fields that lead to more of them."""

    fields: tuple[FieldFacts, ...]
    getters: tuple[Callable[[Any], Any], ...]
    children: tuple[_Child, ...]


class _Scanner:
    """Plans for one kind of field, made when a message is seen for the first time."""

    def __init__(self, wanted: Wanted, *, all_structs: bool = False) -> None:
        self._wanted = wanted
        self._all_structs = all_structs
        self._plans: dict[tuple[type[Message], int], _Plan] = {}

    def plan(self, message: type[Message], version: int) -> _Plan:
        """The plan of a message in a version."""
        plan = self._plans.get((message, version))
        if plan is None:
            plan = self._struct(message.facts().root, version)
            self._plans[message, version] = plan
        return plan

    def _struct(self, facts: StructFacts, version: int) -> _Plan:
        present = [each for each in facts.fields if version in each.versions]
        fields = tuple(each for each in present if self._wanted(each))
        children = tuple(
            _Child(each, each.is_array, attrgetter(each.attribute), plan)
            for each in present
            if each.struct
            and ((plan := self._struct(each.struct, version)) != _NOTHING or self._all_structs)
        )
        return _Plan(fields, tuple(attrgetter(each.attribute) for each in fields), children)

    def values(self, message: Message, version: int) -> Iterator[Any]:
        """The wanted values, arrays flattened, outer structs first."""
        return _values(self.plan(type(message), version), [message])


_NOTHING = _Plan((), (), ())


def _values(plan: _Plan, objects: list[Any]) -> Iterator[Any]:
    for facts, get in zip(plan.fields, plan.getters, strict=True):
        held = map(get, objects)
        yield from chain.from_iterable(filter(None, held)) if facts.is_array else held
    for child in plan.children:
        structs = child.structs(objects)
        if structs:
            yield from _values(child.plan, structs)


_errors = _Scanner(lambda facts: facts.is_error_code)
_groups = _Scanner(lambda facts: facts.entity_type == "groupId" or facts.name == "groupId")
_topics = _Scanner(lambda facts: facts.names_topic)
_partitions = _Scanner(lambda facts: facts.type == "int32" and facts.name in _PARTITIONS)


def error_codes(message: Message, version: int) -> list[int]:
    """The error codes other than 0 in a message, each once, in order of appearance by level."""
    special = _ERRORS.get(message.NAME)
    if special is not None:
        return special(message)
    return list(dict.fromkeys(filter(None, _errors.values(message, version))))


def _fetch_errors(body: Any) -> list[int]:
    codes = [body.error_code] if body.error_code else []
    for topic in body.responses:
        for partition in topic.partitions:
            if partition.error_code and partition.error_code not in codes:
                codes.append(partition.error_code)
    return codes


def _produce_errors(body: Any) -> list[int]:
    codes: list[int] = []
    for topic in body.responses:
        for partition in topic.partition_responses:
            if partition.error_code and partition.error_code not in codes:
                codes.append(partition.error_code)
    return codes


# The two APIs that most frames belong to.
_ERRORS: dict[str, Callable[[Any], list[int]]] = {
    "FetchResponse": _fetch_errors,
    "ProduceResponse": _produce_errors,
}


def groups(message: Message, version: int) -> list[str]:
    """The group ids in a message, each once."""
    return list(dict.fromkeys(filter(None, _groups.values(message, version))))


def topics(message: Message, version: int) -> Iterator[TopicUse]:
    """The topics that a message names; one that is named twice comes twice."""
    plan = _topics.plan(type(message), version)
    return _topics_in(plan, _partitions.plan(type(message), version), [message])


def _topics_in(plan: _Plan, partitions: _Plan, objects: list[Any]) -> Iterator[TopicUse]:
    """Walk both plans side by side; below a topic all partitions are that topic's."""
    if plan.fields:
        for each in objects:
            yield from _uses_in(plan, partitions, each)
    below = {child.facts.name: child.plan for child in partitions.children}
    for child in plan.children:
        inner = below.get(child.facts.name, _NOTHING)
        yield from _topics_in(child.plan, inner, child.structs(objects))


def _uses_in(plan: _Plan, partitions: _Plan, struct: Any) -> Iterator[TopicUse]:
    name: str | None = None
    topic_id: bytes | None = None
    for facts, get in zip(plan.fields, plan.getters, strict=True):
        held = get(struct)
        if facts.is_array:
            yield from (TopicUse(each, None, frozenset()) for each in held or ())
        elif facts.type == "uuid":
            topic_id = held if any(held) else None
        else:
            name = held or name
    if name is not None or topic_id is not None:
        yield TopicUse(name, topic_id, frozenset(_values(partitions, [struct])))


def unknown_tags(message: Message, version: int) -> list[UnknownTag]:
    """The tagged fields that the schema does not know, outer structs first."""
    if not has_unknown_tags(message, version):
        return []
    return list(_unknown(_structs.plan(type(message), version), message, ""))


def has_unknown_tags(message: Message, version: int) -> bool:
    """Whether there are tagged fields that the schema does not know."""
    key = type(message), version
    if key not in _TAG_CHECKS:
        is_flexible = version in message.facts().flexible
        _TAG_CHECKS[key] = _tag_check(_structs.plan(*key)) if is_flexible else _has_none
    return bool(_TAG_CHECKS[key](message))


_TAG_CHECKS: dict[tuple[type[Message], int], Callable[[Any], Any]] = {}


def _has_none(_message: Any) -> bool:
    return False


def _tag_check(plan: _Plan) -> Callable[[Any], Any]:
    """Return a function that looks for unknown tags in a struct and those inside it."""
    if not plan.children:
        return attrgetter("unknown_tagged_fields")
    arrays = [(each.get, _tag_check(each.plan)) for each in plan.children if each.is_array]
    structs = [(each.get, _tag_check(each.plan)) for each in plan.children if not each.is_array]

    def check(struct: Any) -> bool:
        if struct.unknown_tagged_fields:
            return True
        for get, has_tags in arrays:
            for each in get(struct) or ():
                if has_tags(each):
                    return True
        for get, has_tags in structs:
            each = get(struct)
            if each is not None and has_tags(each):
                return True
        return False

    return check


_records = _Scanner(lambda facts: facts.type == "records" or facts.names_topic)


_held_records = _Scanner(lambda facts: facts.type == "records")


def has_records(message: Message, version: int) -> bool:
    """Whether any field of type records has bytes in it."""
    return any(_held_records.values(message, version))


def records_fields(message: Message, version: int) -> list[RecordsField]:
    """The fields of type records in a message, null ones included, in order of their bytes."""
    if not may_have_records(type(message)):
        return []
    found: list[RecordsField] = []
    _add_records(found, _records.plan(type(message), version), message, (), None, None)
    return found


def may_have_records(message: type[Message]) -> bool:
    """Whether a message has fields of type records in any version."""
    if message not in _HAVE_RECORDS:
        _HAVE_RECORDS[message] = _has_records(message.facts().root)
    return _HAVE_RECORDS[message]


_HAVE_RECORDS: dict[type[Message], bool] = {}


def _has_records(facts: StructFacts) -> bool:
    return any(
        each.type == "records" or (each.struct is not None and _has_records(each.struct))
        for each in facts.fields
    )


def _add_records(
    found: list[RecordsField],
    plan: _Plan,
    struct: Any,
    steps: tuple[str | int, ...],
    *topic: Any,
) -> None:
    """Add the fields of a struct and those inside it; `topic` is the name and id around it."""
    name, topic_id = topic
    for facts, get in zip(plan.fields, plan.getters, strict=True):
        if facts.type == "records":
            field = RecordsField(steps, facts.name, struct, facts.attribute, name, topic_id)
            found.append(field)
        elif facts.type == "uuid":
            topic_id = get(struct)
        elif not facts.is_array:
            name = get(struct)
    for child in plan.children:
        inner = (*steps, child.facts.name)
        for index, each in enumerate(child.structs([struct])):
            place = (*inner, index) if child.is_array else inner
            _add_records(found, child.plan, each, place, name, topic_id)


_structs = _Scanner(lambda _: False, all_structs=True)


def _unknown(plan: _Plan, struct: Any, path: str) -> Iterator[UnknownTag]:
    for tag, data in (struct.unknown_tagged_fields or {}).items():
        yield UnknownTag(path, tag, len(data))
    for child in plan.children:
        where = f"{path}.{child.facts.name}" if path else child.facts.name
        held = child.get(struct)
        if not child.facts.is_array:
            held = [held] if held is not None else []
        for index, each in enumerate(held or ()):
            inner = f"{where}[{index}]" if child.facts.is_array else where
            yield from _unknown(child.plan, each, inner)
