"""Which elements of a response answer which elements of its request, and where errors stand.

Derived from the schemas: an array of a response answers the array of the request that names the
same kinds of things, such as a topic, or a partition within it. Elements that name none of these
kinds are in the table below.

Source: Kafka's `AbstractRequest.getErrorResponse`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from kraftwire import messages
from kraftwire.protocol.entities import Level, NamingField, level_of
from kraftwire.wire.facts import FieldFacts, StructFacts

# An array of a response, by attribute, and the arrays of the request that it answers.
_ANSWERED: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "AlterClientQuotas": {"entries": ("entries",), "entity": ("entity",)},
    "AlterUserScramCredentials": {"results": ("deletions", "upsertions")},
    "AssignReplicasToDirs": {"directories": ("directories",)},
    "CreateAcls": {"results": ("creations",)},
    "DeleteAcls": {"filter_results": ("filters",)},
    "DescribeUserScramCredentials": {"results": ("users",)},
    "FindCoordinator": {"coordinators": ("coordinator_keys",)},
    "LeaveGroup": {"members": ("members",)},
    "UpdateFeatures": {"results": ("feature_updates",)},
    "WriteTxnMarkers": {"markers": ("markers",)},
}
# Fields that an element repeats from the request's although they name none of the kinds; and those
# that the request has under another name.
_REPEATED = frozenset(
    {
        *("entity_name", "entity_type", "feature", "group_instance_id", "id", "key", "member_id"),
        *("producer_id", "resource_name", "resource_type", "user"),
    }
)
_RENAMED = {"user": "name"}
_ERROR_CODES = ("error_code", "partition_error_code")


class Copy(NamedTuple):
    """A field of an answer that repeats one of the request.

    `outer` is how many structs further out the request has it; `source` is None for an element of
    the request that is itself the value. A null in the request is empty where the answer's field
    is not nullable.
    """

    target: str
    outer: int
    source: str | None
    is_nullable: bool = True

    def value(self, sources: tuple[Any, ...]) -> Any:
        """Return the value; `sources` are the request's element and the structs around it."""
        found = sources[self.outer]
        if self.source is not None:
            found = getattr(found, self.source)
        return "" if found is None and not self.is_nullable else found


@dataclass(frozen=True, slots=True)
class Route:
    """The attributes from a struct of a request to an array, and what its elements' answers
    repeat."""

    path: tuple[str, ...]
    copies: tuple[Copy, ...]


@dataclass(frozen=True, slots=True)
class Answers:
    """An array of a response, with the arrays of the request whose elements it answers.

    `error` is the attribute of its elements' error code, empty if they have none.
    """

    attribute: str
    facts: StructFacts
    carried: tuple[str, ...]
    level: Level
    error: str
    routes: tuple[Route, ...]
    inner: tuple[Answers, ...]

    @property
    def targets(self) -> tuple[str, ...]:
        """The fields by which an answer is known to be that of an element."""
        return tuple(each.target for each in self.routes[0].copies)

    @property
    def has_errors(self) -> bool:
        """Whether there is a place for errors, here or further in."""
        return bool(self.error) or any(each.has_errors for each in self.inner)


def carried_fields(facts: StructFacts, version: int) -> list[FieldFacts]:
    """Return the fields of a struct that a version carries."""
    return [each for each in facts.fields if version in each.versions]


def error_field(facts: StructFacts, version: int) -> str:
    """Return the attribute of a struct's error code, empty without one."""
    carried = [each.attribute for each in carried_fields(facts, version)]
    return next((name for name in _ERROR_CODES if name in carried), "")


@cache
def answers_of(api_key: int, version: int) -> tuple[Answers, ...]:
    """Return the arrays of an API's response that answer arrays of its request."""
    response = messages.response_class(api_key).facts().root
    request = messages.request_class(api_key).facts().root
    return _Derived(messages.API_NAMES[api_key], version).answers((request,), response)


@dataclass(frozen=True, slots=True)
class _Array:
    """An array of a request, by the path to it, and the kinds that its elements and the structs
    around them name.

    `structs` are these structs, the element last if it is one; else `own` is what it names.
    """

    path: tuple[str, ...]
    kinds: frozenset[str]
    structs: tuple[StructFacts, ...]
    is_primitive: bool
    own: NamingField | None = None


class _Derived:
    """Derives the answers of one API in one version."""

    def __init__(self, name: str, version: int) -> None:
        self._given = _ANSWERED.get(name, {})
        self._version = version

    def answers(
        self, outer: tuple[StructFacts, ...], response: StructFacts, *, is_in_topic: bool = False
    ) -> tuple[Answers, ...]:
        """Return what answers a struct of a request, the last of `outer`."""
        found = []
        for each in carried_fields(response, self._version):
            if each.struct is not None and each.is_array:
                one = self._answers_in(outer, each, each.struct, is_in_topic=is_in_topic)
                if one is not None and (one.has_errors or each.attribute in self._given):
                    found.append(one)
        return tuple(found)

    def _answers_in(
        self,
        outer: tuple[StructFacts, ...],
        field: FieldFacts,
        facts: StructFacts,
        *,
        is_in_topic: bool,
    ) -> Answers | None:
        level = level_of(facts, self._version, is_in_topic=is_in_topic)
        wanted = _kinds(level)
        arrays = list(self._arrays(outer, (), frozenset(), is_in_topic=is_in_topic))
        given = self._given.get(field.attribute)
        if given is not None:
            fitting = [each for each in arrays if each.path in [(name,) for name in given]]
        else:
            fitting = [each for each in arrays if wanted and each.kinds == wanted][:1]
        if not fitting:
            return None
        return Answers(
            field.attribute,
            facts,
            tuple(each.attribute for each in carried_fields(facts, self._version)),
            level,
            error_field(facts, self._version),
            tuple(Route(each.path, tuple(self._copies(facts, level, each))) for each in fitting),
            self.answers(fitting[0].structs, facts, is_in_topic=is_in_topic or _names_topic(facts)),
        )

    def _arrays(
        self,
        outer: tuple[StructFacts, ...],
        path: tuple[str, ...],
        kinds: frozenset[str],
        *,
        is_in_topic: bool,
    ) -> Iterator[_Array]:
        """Yield the arrays in a struct of a request, the outer ones first."""
        naming = level_of(outer[-1], self._version, is_in_topic=is_in_topic).fields
        own = {each.attribute: each for each in naming}
        for each in carried_fields(outer[-1], self._version):
            here = (*path, each.attribute)
            if each.is_array and each.struct is None:
                named = own.get(each.attribute)
                more = frozenset(named.kinds.values()) if named is not None else frozenset()
                yield _Array(here, kinds | more, outer, True, named)
            elif each.is_array and each.struct is not None:
                structs = (*outer, each.struct)
                level = level_of(each.struct, self._version, is_in_topic=is_in_topic)
                yield _Array(here, kinds | _kinds(level), structs, False)
                has_topic = is_in_topic or _names_topic(each.struct)
                yield from self._arrays(structs, here, kinds | _kinds(level), is_in_topic=has_topic)

    def _copies(self, facts: StructFacts, level: Level, array: _Array) -> Iterator[Copy]:
        naming = {each.attribute: each for each in level.fields if not each.is_array}
        for field in carried_fields(facts, self._version):
            name = field.attribute
            if name in naming:
                found = self._source_of(naming[name], field.type, array)
                if found is not None:
                    yield found._replace(is_nullable=self._version in field.nullable)
            elif name in _REPEATED and array.is_primitive:
                if array.own is None or array.own.by:
                    yield Copy(name, 0, None)
            elif name in _REPEATED:
                names = [each.attribute for each in array.structs[-1].fields]
                sources = [one for one in (name, _RENAMED.get(name)) if one in names]
                yield from (Copy(name, 0, one) for one in sources[:1])

    def _source_of(self, wanted: NamingField, type_name: str, array: _Array) -> Copy | None:
        """Return where the request names what a field of its answer does, the innermost first."""
        if array.own is not None and array.own.kinds == wanted.kinds:
            return Copy(wanted.attribute, 0, None)
        for outer, facts in enumerate(reversed(array.structs), int(array.is_primitive)):
            types = {each.attribute: each.type for each in carried_fields(facts, self._version)}
            for each in level_of(facts, self._version, is_in_topic=True).fields:
                is_same = each.kinds == wanted.kinds and types[each.attribute] == type_name
                if is_same and not each.is_array:
                    return Copy(wanted.attribute, outer, each.attribute)
        return None


def _kinds(level: Level) -> frozenset[str]:
    """Return the kinds that a struct's own fields name."""
    fields = [each for each in level.fields if not each.is_array]
    return frozenset(kind for each in fields for kind in each.kinds.values())


def _names_topic(facts: StructFacts) -> bool:
    return any(each.names_topic and not each.is_array for each in facts.fields)
