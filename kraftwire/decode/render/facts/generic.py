"""Facts of messages without words of their own: their first fields that say something.

Works from the schema: fields of simple types that are not at their default, and how long arrays of
structs are. Plans are made once per message and version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any

from kraftwire.decode.body.topics import TopicNames
from kraftwire.decode.render.facts.words import bytes_text, some
from kraftwire.wire.facts import FieldFacts, StructFacts
from kraftwire.wire.json_form import uuid_to_text
from kraftwire.wire.message import Message

__all__ = ["generic"]

_SHOWN_MAX = 4
_TEXT_MAX = 40

# Known to every reader, or shown elsewhere.
_SKIPPED = frozenset({"throttleTimeMs", "errorCode", "errorMessage", "timeoutMs", "clusterId"})

_plans: dict[type[Message], tuple[tuple[str, Callable[[Any], str]], ...]] = {}


def generic(body: Message, _names: TopicNames) -> str:
    """The first fields that say something."""
    plan = _plans.get(type(body))
    if plan is None:
        plan = _plans[type(body)] = tuple(_plan(body.facts().root))
    parts: list[str] = []
    for attribute, show in plan:
        value = getattr(body, attribute)
        if value is None or value == "" or value == b"" or value == [] or value is False:
            continue
        text = show(value)
        if text:
            parts.append(text)
        if len(parts) == _SHOWN_MAX:
            break
    return ", ".join(parts)


def _plan(struct: StructFacts) -> Iterator[tuple[str, Callable[[Any], str]]]:
    for each in struct.fields:
        if each.name not in _SKIPPED:
            yield each.attribute, _shower(each)


def _shower(facts: FieldFacts) -> Callable[[Any], str]:
    words = " ".join(facts.attribute.split("_"))
    if facts.is_array and facts.struct:
        return _structs(words, facts.struct)
    if facts.is_array:
        return lambda value: f"{words} {some([_value(facts, each) for each in value])}"
    if facts.struct:
        return lambda _value: ""
    default = facts.default
    return lambda value: "" if value == default else f"{words} {_value(facts, value)}"


def _structs(words: str, struct: StructFacts) -> Callable[[Any], str]:
    """How many structs an array has, and what the first few are called."""
    named = next(
        (each for each in struct.fields if each.type in ("string", "int32") and not each.is_array),
        None,
    )
    if named is None:
        return lambda value: f"{len(value)} {words}"
    get = attrgetter(named.attribute)
    return lambda value: f"{words} {some([_value(named, get(each)) for each in value])}"


def _value(facts: FieldFacts, value: Any) -> str:
    if value is None:
        return "null"
    if facts.type == "uuid":
        return uuid_to_text(value)
    if facts.type in ("bytes", "records"):
        return bytes_text(len(value))
    text = str(value)
    return text if len(text) <= _TEXT_MAX else f"{text[: _TEXT_MAX - 3]}..."
