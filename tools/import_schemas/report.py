"""Reports what changed on the wire from one release to the next, grouped by message.

Compares what the bytes and their reading depend on (versions, types, tags, nullability, defaults,
flexible versions); listeners and entity types are not mentioned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tools.import_schemas.layout import layout
from tools.import_schemas.renames import nameless, renamed_fields
from tools.import_schemas.schema import Field, Message
from tools.import_schemas.versions import EMPTY, Versions


def wire_changes(older: Mapping[str, Message], newer: Mapping[str, Message]) -> str:
    """Return the report as text, one block per message, empty if nothing changed.

    Both releases are by message name, as in the jars (not merged).
    """
    before, after = _alive(older), _alive(newer)
    renamed = _renamed_messages(before, after)
    successors = set(renamed.values())
    blocks: dict[str, list[str]] = {}
    for name, message in after.items():
        if name not in before and name not in successors:
            blocks[name] = [f"new, {_summary(message)}"]
    for name, message in before.items():
        successor = after.get(renamed.get(name, name))
        if successor is None:
            blocks[name] = [f"removed, was {_summary(message)}"]
        else:
            blocks[successor.name] = list(_message_changes(message, successor))
    return "\n".join(
        f"{name}\n" + "".join(f"  {line}\n" for line in lines)
        for name, lines in sorted(blocks.items())
        if lines
    )


def _alive(release: Mapping[str, Message]) -> dict[str, Message]:
    return {name: message for name, message in release.items() if message.valid}


def _summary(message: Message) -> str:
    key = "" if message.api_key is None else f", API key {message.api_key}"
    return f"{message.type}{key}, versions {message.valid}"


def _renamed_messages(
    before: Mapping[str, Message], after: Mapping[str, Message]
) -> dict[str, str]:
    """Old name to new name of requests and responses that kept their API key."""
    by_key = {
        (message.api_key, message.type): name
        for name, message in after.items()
        if name not in before and message.type in ("request", "response")
    }
    found = {}
    for name, message in before.items():
        successor = by_key.get((message.api_key, message.type))
        if name not in after and successor is not None:
            found[name] = successor
    return found


def _message_changes(old: Message, new: Message) -> Iterator[str]:
    if old.name != new.name:
        yield f"renamed from {old.name}"
    if old.type != new.type:
        yield f"type {old.type} -> {new.type}"
    if old.api_key != new.api_key:
        yield f"API key {_or_none(old.api_key)} -> {_or_none(new.api_key)}"
    if old.valid != new.valid:
        yield f"versions {old.valid} -> {new.valid}{_gained_and_lost(old.valid, new.valid)}"
    shared = old.valid & new.valid
    if old.flexible & shared != new.flexible & shared:
        yield f"flexible versions {old.flexible} -> {new.flexible}"
    moves = renamed_fields(old, new)
    for old_path, new_path in moves.items():
        yield f"renamed  {old_path} -> {new_path}"
    yield from _field_changes(_places(old, moves), _places(new, {}), shared)
    yield from _other_bytes(old, new, shared)


def _gained_and_lost(old: Versions, new: Versions) -> str:
    gained, lost = new.without(old), old.without(new)
    parts = []
    if gained:
        parts.append(f"new: {_list(gained)}")
    if lost:
        parts.append(f"removed: {_list(lost)}")
    return f" ({'; '.join(parts)})"


def _other_bytes(old: Message, new: Message, shared: Versions) -> Iterator[str]:
    versions = [
        version
        for version in shared.without(EMPTY)
        if nameless(layout(old, version)) != nameless(layout(new, version))
    ]
    if versions:
        yield f"changed  the layout of versions that both releases have: {_list(versions)}"


@dataclass(frozen=True, slots=True)
class _Place:
    """A field with the versions in which its message carries it."""

    field: Field
    versions: Versions

    def summary(self) -> str:
        facts = [self.field.type, f"versions {self.versions}"]
        if self.field.tagged:
            facts.append(f"tag {self.field.tag}")
        if self.field.nullable:
            facts.append(f"nullable {self.field.nullable}")
        if self.field.default is not None:
            facts.append(f"default {self.field.default!r}")
        return ", ".join(facts)


def _places(message: Message, moves: Mapping[str, str]) -> dict[str, _Place]:
    """All fields by path, in the names of the newer release; shared structs once, as @Name."""
    places: dict[str, _Place] = {}

    def walk(fields: tuple[Field, ...], parent: str) -> None:
        for field in fields:
            path = f"{parent}{field.name}"
            versions = (field.versions & message.valid).opened(message.valid)
            if versions:
                places[moves.get(path, path)] = _Place(field, versions)
            walk(field.fields or (), f"{path}.")

    walk(message.fields, "")
    for struct in message.structs:
        walk(struct.fields, f"@{struct.name}.")
    return places


def _field_changes(
    old: Mapping[str, _Place], new: Mapping[str, _Place], shared: Versions
) -> Iterator[str]:
    for path, place in new.items():
        if path not in old:
            yield f"added    {path}: {place.summary()}"
        elif changes := list(_changes(old[path].field, place.field, shared)):
            yield f"changed  {path}: {'; '.join(changes)}"
    for path, place in old.items():
        if path not in new:
            yield f"removed  {path}: {place.summary()}"


def _changes(old: Field, new: Field, shared: Versions) -> Iterator[str]:
    if old.type != new.type and not (old.struct and new.struct):
        yield f"type {old.type} -> {new.type}"
    ranges = (
        ("versions", old.versions, new.versions),
        ("nullable", old.nullable, new.nullable),
        ("tagged", old.tagged, new.tagged),
    )
    for word, before, after in ranges:
        if before & shared != after & shared:
            yield f"{word} {before} -> {after}"
    if old.tag != new.tag:
        yield f"tag {_or_none(old.tag)} -> {_or_none(new.tag)}"
    if old.default != new.default:
        yield f"default {_or_none(old.default)} -> {_or_none(new.default)}"


def _or_none(value: object) -> str:
    return "none" if value is None else str(value)


def _list(versions: list[int] | tuple[int, ...]) -> str:
    return ", ".join(str(version) for version in versions)
