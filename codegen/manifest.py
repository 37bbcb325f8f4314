"""The tables of the registry: which messages exist, by name, API key and record type."""

from __future__ import annotations

from typing import Any

from codegen.errors import SchemaError
from codegen.schema import ANY_VERSION, Message

# Three coordinators number their record types independently; the names tell them apart.
_FAMILY = {"TransactionLog": "transaction", "ShareSnapshot": "share", "ShareUpdate": "share"}


def manifest_values(messages: list[Message]) -> dict[str, Any]:
    """Values for the manifest template. Raises: SchemaError if two messages claim one key."""
    modules = {message.name: message.module for message in messages}
    for message in messages:
        if message.renamed_to and message.renamed_to not in modules:
            problem = f"renamedTo {message.renamed_to!r} is not a message"
            raise SchemaError(problem, file=message.file, path=message.name)
    requests = _by_key(messages, "request")
    responses = _by_key(messages, "response")
    return {
        "modules": sorted(modules.items()),
        "apis": [_api(requests[key], responses, key) for key in sorted(requests)],
        "metadata": sorted((m.api_key, m.name) for m in messages if _is_metadata(m)),
        "coordinators": _coordinators(messages),
    }


def _is_metadata(message: Message) -> bool:
    # The records of remote log storage have their own type numbers, outside this folder.
    return message.kind == "metadata" and message.file.startswith("metadata/")


def _by_key(messages: list[Message], kind: str) -> dict[int, Message]:
    result: dict[int, Message] = {}
    for message in messages:
        if message.kind != kind or message.renamed_to:
            continue
        if message.api_key in result:
            other = result[message.api_key].name
            problem = f"apiKey {message.api_key} is also {other}'s"
            raise SchemaError(problem, file=message.file, path=message.name)
        result[message.api_key] = message
    return result


def _api(request: Message, responses: dict[int, Message], key: int) -> dict[str, Any]:
    if key not in responses:
        raise SchemaError("the request has no response", file=request.file, path=request.name)
    response = responses[key]
    if response.versions != request.versions:
        problem = f"validVersions {response.versions} are not {request.name}'s {request.versions}"
        raise SchemaError(problem, file=response.file, path=response.name)
    return {
        "key": key,
        "name": request.name.removesuffix("Request"),
        "low": request.versions.low,
        "high": request.versions.high,
        "flexible": request.flexible.low if request.flexible else ANY_VERSION,
        "response": response.name,
        "request": request.name,
    }


def _coordinators(messages: list[Message]) -> list[tuple[str, list[tuple[int, str, str]]]]:
    names = {message.name for message in messages}
    families: dict[str, list[tuple[int, str, str]]] = {}
    for message in messages:
        if message.kind != "coordinator-key":
            continue
        stem = message.name.removesuffix("Key")
        value = f"{stem}Value"
        if value not in names:
            raise SchemaError(f"{value} is missing", file=message.file, path=message.name)
        family = families.setdefault(_FAMILY.get(stem, "group"), [])
        family.append((message.api_key, message.name, value))
    return sorted((family, sorted(rows)) for family, rows in families.items())
