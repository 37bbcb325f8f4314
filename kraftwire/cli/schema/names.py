"""The names by which users ask for messages, and the names of fields and types in texts.

Owns the look-up by message name, API name or API key, in any case; Kafka's CamelCase field names.
"""

from __future__ import annotations

import base64
import json
from difflib import get_close_matches
from typing import Any

from kraftwire import messages
from kraftwire.errors import UsageError
from kraftwire.wire.facts import FieldFacts, MessageFacts, Versions
from kraftwire.wire.json_form import uuid_to_text

_SIDES = ("Request", "Response")


def find_messages(word: str) -> list[MessageFacts]:
    """Return the messages that a word names: one, or request and response of an API.

    Raises: UsageError with the nearest names if it names none.
    """
    if word.isdecimal():
        key = int(word)
        sides = (messages.request_class(key), messages.response_class(key))
        return [side.facts() for side in sides]
    found = _by_word().get(word.casefold())
    if found is None:
        near = get_close_matches(word.casefold(), _by_word(), n=3, cutoff=0.5)
        names = [_spelled(_by_word()[each]) for each in near]
        hint = f"did you mean {', '.join(names)}?" if names else "see kraftwire schema"
        raise UsageError(f"there is no message or API {word!r}; {hint}")
    return [messages.find(name).facts() for name in found]


def all_words() -> list[str]:
    """Return the names of all APIs and messages, for completion."""
    return sorted({_spelled(names) for names in _by_word().values()})


def _by_word() -> dict[str, tuple[str, ...]]:
    """Case-folded word -> message names."""
    names = messages.names()
    result: dict[str, tuple[str, ...]] = {name.casefold(): (name,) for name in names}
    for name in names:
        stem = name.removesuffix("Request")
        if stem != name and f"{stem}Response" in names:
            result[stem.casefold()] = tuple(stem + side for side in _SIDES)
    return result


def _spelled(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else names[0].removesuffix("Request")


def title(facts: MessageFacts) -> str:
    """Return name, kind and key of a message in words."""
    if facts.kind in ("request", "response"):
        api = facts.name.removesuffix("Request").removesuffix("Response")
        return f"{facts.name}: {facts.kind} of {api}, API key {facts.api_key}"
    if facts.kind == "metadata":
        is_remote = facts.name not in messages.METADATA_RECORDS.values()
        log = "remote log metadata" if is_remote else "metadata"
        return f"{facts.name}: {log} record, type {facts.api_key}"
    if facts.kind in ("coordinator-key", "coordinator-value"):
        part = facts.kind.removeprefix("coordinator-")
        owner = coordinator(facts)
        return f"{facts.name}: {part} of a {owner} coordinator record, type {facts.api_key}"
    return f"{facts.name}: {facts.kind}"


def coordinator(facts: MessageFacts) -> str:
    """Return which coordinator writes records with this key or value: group, share or transaction.
    """
    for family, records in messages.COORDINATOR_RECORDS.items():
        if any(facts.name in pair for pair in records.values()):
            return family
    return "unknown"


def json_path(path: str) -> str:
    """Convert a path of CamelCase names to the keys of JSON."""
    return ".".join(part[:1].lower() + part[1:] for part in path.split("."))


def field_name(field: FieldFacts) -> str:
    """Return a field's name in CamelCase, as Kafka's documentation spells it."""
    return camel_case(field.name)


def camel_case(name: str) -> str:
    """Return a name as Kafka's documentation spells it, given as in JSON."""
    return name[:1].upper() + name[1:]


def type_words(field: FieldFacts) -> str:
    """Return the type of a field in words, such as ``array of int32``."""
    return f"array of {field.type}" if field.is_array else field.type


def default_json(field: FieldFacts) -> Any:
    """Return the default of a field in JSON; null for a struct."""
    if field.default == ():
        return [] if field.is_array else None
    if isinstance(field.default, bytes):
        is_uuid = field.type == "uuid"
        return uuid_to_text(field.default) if is_uuid else base64.b64encode(field.default).decode()
    return field.default


def default_words(field: FieldFacts) -> str:
    """Return the default of a field in words."""
    if field.default is None:
        is_optional = field.struct is not None and not field.is_array and is_empty(field.nullable)
        return "all at default" if is_optional else "null"
    if field.is_array:
        return "empty"
    if field.struct:
        return "all at default"
    if field.type == "uuid" and not any(field.default):
        return "zero"
    return json.dumps(default_json(field))


def is_empty(versions: Versions) -> bool:
    """Whether a range holds no version."""
    return versions.low > versions.high
