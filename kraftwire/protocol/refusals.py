"""Responses that refuse: an error for the whole request, or for some of its elements.

A response follows from its schema (`answers`): an element for each element of the request, with the
same name or index. An error of the whole request stands once at the top of the response where its
version has a place for it, otherwise in every element; a few APIs have it in both. Requests that
are refused in part are in `partial_refusals`.

Source: Kafka's `AbstractRequest.getErrorResponse`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from kraftwire import messages
from kraftwire.protocol.answers import Answers, Route, answers_of, carried_fields, error_field
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.wire.message import Message, Struct


class Error(NamedTuple):
    """An error code, and a text for people where the response has a field for it."""

    code: ErrorCode
    text: str | None = None


SUCCESS = Error(ErrorCode.NONE)

# Their elements repeat an error of the whole request; Fetch does so before version 13.
_IN_ALL_PLACES = frozenset(
    {
        *("AlterPartitionReassignments", "DescribeUserScramCredentials", "ElectLeaders"),
        *("LeaderAndIsr", "Metadata", "StopReplica"),
    }
)
_FETCH_AT_TOP = 13

# Fields that a response repeats from the request itself, and those with another default in a
# refusal.
_REPEATED_AT_TOP = ("allow_replication_factor_change",)
_WITHOUT_VALUE = {
    "base_offset": -1,
    "committed_offset": -1,
    "expiry_timestamp_ms": -1,
    "high_watermark": -1,
    "issue_timestamp_ms": -1,
    "low_watermark": -1,
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
    whole: Error = SUCCESS,
) -> Message:
    """Return the response to a request that is refused.

    `error_of` returns the error of an element of the request's outermost array, of the request
    itself where its response has no array for it. An error of the `whole` request goes before all
    others.
    """
    answers = answers_of(message.API_KEY, version)
    response = top_answer(message, version, whole if whole.code or answers else error_of(message))
    if whole.code and is_at_top(message.API_KEY, version) and not _is_in_all(message, version):
        return response
    for each in answers:
        answered = set()
        for sources, route in _elements(each, (message,)):
            values = tuple(one.value(sources) for one in route.copies)
            if len(each.routes) > 1 and values in answered:
                continue  # what two arrays name is answered once
            answered.add(values)
            error = whole if whole.code else error_of(sources[len(route.path) - 1])
            getattr(response, each.attribute).append(answer(each, route, sources, error))
    return response


def is_at_top(api_key: int, version: int) -> bool:
    """Return whether a response has a place for an error of the whole request."""
    return bool(error_field(messages.response_class(api_key).facts().root, version))


def _is_in_all(message: Message, version: int) -> bool:
    name = messages.API_NAMES[message.API_KEY]
    return name in _IN_ALL_PLACES or (name == "Fetch" and version < _FETCH_AT_TOP)


def requested_arrays(message: Message, version: int) -> list[str]:
    """Return the outermost arrays of a request whose elements are answered one by one."""
    found = answers_of(message.API_KEY, version)
    return list(dict.fromkeys(route.path[0] for each in found for route in each.routes))


def answered_arrays(response: Message, version: int) -> list[str]:
    """Return the arrays of a response that answer those."""
    return [each.attribute for each in answers_of(response.API_KEY, version)]


def top_answer(message: Message, version: int, error: Error) -> Message:
    """Return a response without elements."""
    response = messages.response_class(message.API_KEY)()
    carried = [each.attribute for each in carried_fields(response.facts().root, version)]
    _fill(response, carried, error)
    for name in _REPEATED_AT_TOP:
        if name in carried:
            setattr(response, name, getattr(message, name))
    return response


def _fill(target: Struct, carried: Sequence[str], error: Error) -> None:
    for name in carried:
        if name in ("error_code", "partition_error_code"):
            setattr(target, name, error.code)
        elif name == "error_message" and error.code:
            setattr(target, name, error.text)
        elif name in _WITHOUT_VALUE:
            setattr(target, name, _WITHOUT_VALUE[name])


Sources = tuple[Any, ...]
"""An element of a request, and the structs around it, the innermost first."""


def _elements(answers: Answers, outer: Sources) -> Iterator[tuple[Sources, Route]]:
    """Yield the elements of the request that elements of an array answer, in order."""
    for route in answers.routes:
        for sources in _along(route.path, outer):
            yield sources, route


def _along(path: Sequence[str], outer: Sources) -> Iterator[Sources]:
    for element in getattr(outer[0], path[0]) or ():
        sources = (element, *outer)
        if len(path) == 1:
            yield sources
        else:
            yield from _along(path[1:], sources)


def answer(answers: Answers, route: Route, sources: Sources, error: Error) -> Struct:
    """Return the answer to an element; an error stands in it, or else further in."""
    values = {each.target: each.value(sources) for each in route.copies}
    result = bare_answer(answers, values, error)
    for each in answers.inner:
        if not (error.code and answers.error and each.has_errors):
            inner = [answer(each, way, found, error) for found, way in _elements(each, sources)]
            setattr(result, each.attribute, inner)
    return result


def bare_answer(answers: Answers, values: Mapping[str, Any], error: Error) -> Struct:
    """Return an answer with these values, by attribute, and nothing further in."""
    result: Struct = answers.facts.cls()
    _fill(result, answers.carried, error)
    for name, value in values.items():
        setattr(result, name, value)
    return result
