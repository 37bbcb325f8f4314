"""Responses that refuse: an error for the whole request, or for each of its elements.

A response follows from its schema: an element for each element of the request, with the same name
or index. An error of the whole request stands once at the top of the response where its version has
a place for it, otherwise in every element; a few APIs have it in both.

Source: Kafka's `AbstractRequest.getErrorResponse`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from kraftwire import messages
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.wire.facts import StructFacts
from kraftwire.wire.message import Message, Struct


class Error(NamedTuple):
    """An error code, and a text for people where the response has a field for it."""

    code: ErrorCode
    text: str | None = None


SUCCESS = Error(ErrorCode.NONE)

# Their elements repeat an error of the whole request.
_IN_ALL_PLACES = frozenset({"AlterPartitionReassignmentsRequest", "ElectLeadersRequest"})

# Fields that a response repeats from its request, and those with another default in a refusal.
_REPEATED = frozenset(
    {
        "allow_replication_factor_change",
        "entity_name",
        "entity_type",
        "id",
        "index",
        "key",
        "name",
        "partition",
        "partition_id",
        "partition_index",
        "resource_name",
        "resource_type",
        "topic",
        "topic_id",
        "user",
    }
)
# Those that the request has under another name.
_RENAMED = {"partition_index": "partition", "user": "name"}
_WITHOUT_VALUE = {
    "base_offset": -1,
    "expiry_timestamp_ms": -1,
    "issue_timestamp_ms": -1,
    "max_timestamp_ms": -1,
    "node_id": -1,
    "port": -1,
    "producer_epoch": -1,
    "producer_id": -1,
}


def refusal(
    message: Message,
    version: int,
    error_of: Callable[[Any], Error],
    elements: Mapping[str, str],
    whole: Error = SUCCESS,
) -> Message:
    """Return the response to a request that is refused.

    `error_of` returns the error of an element of the request's outermost array, of the request
    itself where its response has no array. `elements` maps a path of arrays in the request to one
    in the response. An error of the `whole` request goes before all others.
    """
    response = messages.response_class(message.API_KEY)()
    root = response.facts().root
    carried = _carried(root, version)
    arrays = [(p, q) for p, q in elements.items() if q.partition(".")[0] in carried]
    is_once = "error_code" in carried and message.NAME not in _IN_ALL_PLACES
    if not arrays or (whole.code and is_once):
        _fill(response, carried, message, whole if whole.code else error_of(message))
        return response
    _fill(response, carried, message, whole)
    for requested, answered in arrays:
        outer, _, inner = requested.partition(".")
        first, _, rest = answered.partition(".")
        errors = [
            (one, whole if whole.code else error_of(one)) for one in getattr(message, outer) or ()
        ]
        layout = _Elements(_struct(root, first), version, inner, rest)
        getattr(response, first).extend(layout.answer(one, error) for one, error in errors)
    return response


class _Elements:
    """Makes elements of one array of a response from those of the request."""

    def __init__(self, facts: StructFacts, version: int, requested: str, answered: str) -> None:
        """The paths lead from an element to the arrays in it; empty in the innermost array."""
        self._cls: type[Struct] = facts.cls
        self._carried = _carried(facts, version)
        self._requested, _, requested = requested.partition(".")
        self._answered, _, answered = answered.partition(".")
        self._inner: _Elements | None = None
        if self._answered:
            inner = _struct(facts, self._answered)
            self._inner = _Elements(inner, version, requested, answered)

    def answer(self, element: object, error: Error) -> Struct:
        """Return the response's element for one of the request."""
        result = self._cls()
        _fill(result, self._carried, element, error)
        if self._inner is not None:
            inner = [self._inner.answer(one, error) for one in getattr(element, self._requested)]
            setattr(result, self._answered, inner)
        return result


def _carried(facts: StructFacts, version: int) -> list[str]:
    return [one.attribute for one in facts.fields if version in one.versions]


def _struct(facts: StructFacts, attribute: str) -> StructFacts:
    (found,) = [one.struct for one in facts.fields if one.attribute == attribute]
    assert found is not None
    return found


def _fill(target: Struct, carried: list[str], source: object, error: Error) -> None:
    """Set what the response repeats from the request, and the error.

    An element that is no struct is itself the name or index.
    """
    for name in carried:
        if name == "error_code":
            setattr(target, name, error.code)
        elif name == "error_message":
            if error.code:
                setattr(target, name, error.text)
        elif name in _WITHOUT_VALUE:
            setattr(target, name, _WITHOUT_VALUE[name])
        elif name in _REPEATED:
            if not isinstance(source, Struct):
                setattr(target, name, source)
            elif hasattr(source, name):
                setattr(target, name, getattr(source, name))
            elif name in _RENAMED and hasattr(source, _RENAMED[name]):
                setattr(target, name, getattr(source, _RENAMED[name]))
