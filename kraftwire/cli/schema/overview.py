"""A message in all its versions, and the list of all messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kraftwire import messages
from kraftwire.cli.schema.changes import changes_json, changes_text
from kraftwire.cli.schema.names import (
    camel_case,
    coordinator,
    default_json,
    default_words,
    field_name,
    is_empty,
    title,
)
from kraftwire.cli.tables import heading, paragraph, table
from kraftwire.wire.facts import FieldFacts, MessageFacts, StructFacts, Versions

# Kind of message -> heading of its list.
KINDS = {
    "request": "Requests",
    "response": "Responses",
    "header": "Headers",
    "data": "Control records, state files, data inside other messages",
    "metadata": "Metadata records",
    "coordinator-key": "Keys of coordinator records",
    "coordinator-value": "Values of coordinator records",
}


def overview_text(facts: MessageFacts) -> list[str]:
    """Return all fields with their versions, and the history, as text."""
    flexible = "never flexible" if is_empty(facts.flexible) else f"flexible {facts.flexible}"
    summary = f"versions {facts.versions}, {flexible}"
    if facts.listeners:
        summary += f", listeners {', '.join(facts.listeners)}"
    if facts.latest_version_unstable:
        summary += f"; version {facts.versions.high} is not stable yet"
    lines = [heading(title(facts)), *paragraph(facts.about), summary, ""]
    rows = list(_rows(facts.root, 0))
    if rows:
        lines += table(("field", "type", "versions", "notes", "about"), rows)
    if facts.versions.low < facts.versions.high:
        lines += ["", *changes_text(facts, facts.versions.low, facts.versions.high)]
    return lines


def _rows(struct: StructFacts, depth: int) -> Iterator[tuple[str, ...]]:
    for each in struct.fields:
        name = "  " * depth + field_name(each)
        yield name, each.type_text, str(each.versions), _notes(each), each.about
        if each.struct:
            yield from _rows(each.struct, depth + 1)


def _notes(each: FieldFacts) -> str:
    notes = []
    if not is_empty(each.tagged):
        notes.append(f"tag {each.tag} in {each.tagged}")
    if not is_empty(each.nullable):
        notes.append(f"null in {each.nullable}")
    if each.default not in (0, "", b"", (), False, bytes(16)) and not each.struct:
        notes.append(f"default {default_words(each)}")
    if each.is_map_key:
        notes.append("key")
    if each.is_ignorable:
        notes.append("ignorable")
    if each.former_names:
        notes.append(f"formerly {', '.join(map(camel_case, each.former_names))}")
    return ", ".join(notes)


def overview_json(facts: MessageFacts) -> dict[str, Any]:
    """Return all fields with their versions, and the history, as JSON."""
    low, high = facts.versions.low, facts.versions.high
    return _message_json(facts) | {
        "listeners": list(facts.listeners),
        "isLatestVersionUnstable": facts.latest_version_unstable,
        "fields": _fields_json(facts.root),
        "history": changes_json(facts, low, high)["versions"],
    }


def _message_json(facts: MessageFacts) -> dict[str, Any]:
    return {
        "name": facts.name,
        "kind": facts.kind,
        "apiKey": facts.api_key,
        "versions": str(facts.versions),
        "flexibleVersions": str(facts.flexible),
        "about": facts.about,
    }


def _fields_json(struct: StructFacts) -> list[dict[str, Any]]:
    rows = []
    for each in struct.fields:
        row = {
            "name": each.name,
            "type": each.type_text,
            "versions": str(each.versions),
            "nullableVersions": _text_or_none(each.nullable),
            "taggedVersions": _text_or_none(each.tagged),
            "tag": each.tag if each.tag >= 0 else None,
            "default": default_json(each),
            "isIgnorable": each.is_ignorable,
            "isMapKey": each.is_map_key,
            "entityType": each.entity_type or None,
            "formerNames": list(each.former_names),
            "about": each.about,
        }
        if each.struct:
            row["fields"] = _fields_json(each.struct)
        rows.append(row)
    return rows


def _text_or_none(versions: Versions) -> str | None:
    return None if is_empty(versions) else str(versions)


def list_text(kind: str | None) -> list[str]:
    """Return all messages, or those of a kind, as text; related messages are together."""
    every = _every()
    if kind:
        return _section(KINDS[kind], [facts for facts in every if facts.kind == kind])
    sections: dict[str, list[MessageFacts]] = {}
    for facts in every:
        if facts.kind != "response":
            sections.setdefault(_heading(facts), []).append(facts)
    lines: list[str] = []
    for text, found in sections.items():
        suffix = "Request" if found[0].kind == "request" else ""
        lines += [*([""] if lines else []), *_section(text, found, suffix)]
    return lines


def _heading(facts: MessageFacts) -> str:
    if facts.kind == "request":
        return "APIs: NAMERequest and NAMEResponse"
    if facts.kind == "metadata" and facts.name not in messages.METADATA_RECORDS.values():
        return "Records of the remote log's metadata topic"
    if facts.kind.startswith("coordinator-"):
        return f"Records of the {coordinator(facts)} coordinator"
    return KINDS[facts.kind]


def _section(text: str, found: list[MessageFacts], suffix: str = "") -> list[str]:
    rows = [
        (
            str(facts.api_key) if facts.api_key >= 0 else "",
            facts.name.removesuffix(suffix),
            str(facts.versions),
            "" if is_empty(facts.flexible) else str(facts.flexible),
            facts.about,
        )
        for facts in found
    ]
    return [
        heading(text),
        *table(("key", "name", "versions", "flexible", "about"), rows, right=(0,)),
    ]


def list_json(kind: str | None) -> list[dict[str, Any]]:
    """Return the list of all messages, or those of a kind, as JSON."""
    return [_message_json(facts) for facts in _every() if kind in (None, facts.kind)]


def _every() -> list[MessageFacts]:
    every = [messages.find(name).facts() for name in messages.names()]
    return sorted(every, key=_order)


def _order(facts: MessageFacts) -> tuple[int, str, int, str]:
    # The key and the value of a coordinator record are listed next to each other.
    kind = facts.kind.replace("-value", "-key")
    return list(KINDS).index(kind), _heading(facts), facts.api_key, facts.name
