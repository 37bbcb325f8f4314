"""Facts of messages that have no function of their own: their first informative fields.

Works from the schema: shows fields of simple types that differ from their default, and for arrays
the names of their structs, or how many structs there are. A message whose lists are empty says so.
Plans are made once per message class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any

from kraftwire.decode.body.topics import TopicNames
from kraftwire.inspect.facts.words import MORE_THAN, bytes_text, counted, some
from kraftwire.wire.facts import FieldFacts, StructFacts
from kraftwire.wire.json_form import uuid_to_text
from kraftwire.wire.message import Message

__all__ = ["generic"]

_SHOWN_MAX = 4
_TEXT_MAX = 40

# Fields that every reader knows, or that other columns show.
_SKIPPED = frozenset({"throttleTimeMs", "errorCode", "errorMessage", "timeoutMs", "clusterId"})

_NAMES = ("string", "int32")

_plans: dict[type[Message], tuple[tuple[str, Callable[[Any], str]], ...]] = {}


def generic(body: Message, _names: TopicNames) -> str:
    """Give the first informative fields."""
    plan = _plans.get(type(body))
    if plan is None:
        plan = _plans[type(body)] = tuple(_plan(body.facts().root))
    parts: list[str] = []
    lists = 0
    for attribute, show in plan:
        value = getattr(body, attribute)
        if value is None or value == "" or value == b"" or value == [] or value is False:
            continue
        text = show(value)
        if text:
            parts.append(text)
            lists += value.__class__ is list
        if len(parts) == _SHOWN_MAX:
            break
    if not lists and (nothing := _nothing(body)):
        parts.append(nothing)
    return ", ".join(parts)


def _nothing(body: Message) -> str:
    """Describe a message whose first list is empty, or null, which stands for all."""
    for each in body.facts().root.fields:
        words = _words(each)
        # A filter that is absent lets everything pass; tagged fields are optional extras.
        if not each.is_array or each.tag >= 0 or words.endswith(("filter", "filters")):
            continue
        value = getattr(body, each.attribute)
        if value is None:
            return f"all {words}" if body.KIND == "request" else ""
        return "" if value else f"no {words}"
    return ""


def _plan(struct: StructFacts) -> Iterator[tuple[str, Callable[[Any], str]]]:
    for each in struct.fields:
        if each.name not in _SKIPPED:
            yield each.attribute, _shower(each)


def _shower(facts: FieldFacts) -> Callable[[Any], str]:
    words = _words(facts)
    if facts.is_array and facts.struct:
        return _structs(words, facts.struct)
    if facts.is_array:
        return lambda value: f"{words} {some([_value(facts, each) for each in value])}"
    if facts.struct:
        return lambda _value: ""
    default = facts.default
    return lambda value: "" if value == default else f"{words} {_value(facts, value)}"


def _words(facts: FieldFacts) -> str:
    return " ".join(facts.attribute.split("_"))


def _structs(words: str, struct: StructFacts) -> Callable[[Any], str]:
    """Return a function that names the first few structs of an array, or counts nameless ones."""
    names = [
        (attrgetter(each.attribute), each)
        for each in struct.fields
        if each.type in _NAMES and not each.is_array and each.name not in _SKIPPED
    ]

    def name(each: Any) -> str:
        for get, facts in names:
            if (value := get(each)) is not None and value not in ("", facts.default):
                return _value(facts, value)
        return ""

    def show(value: Any) -> str:
        shown = [name(each) for each in value[: MORE_THAN + 1]]
        if not all(shown):
            return counted(value, words)
        return f"{words} {some([*shown, *value[MORE_THAN + 1 :]])}"

    return show


def _value(facts: FieldFacts, value: Any) -> str:
    if value is None:
        return "null"
    if facts.type == "uuid":
        return uuid_to_text(value)
    if facts.type in ("bytes", "records"):
        return bytes_text(len(value))
    text = str(value)
    return text if len(text) <= _TEXT_MAX else f"{text[: _TEXT_MAX - 3]}..."
