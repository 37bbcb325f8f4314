"""What changed between two versions of a message, in words and as JSON.

Owns the comparison, which works on facts alone: fields that come and go, become nullable or
tagged, and the step to flexible versions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kraftwire.cli.schema.names import field_name, json_path, type_words
from kraftwire.cli.tables import heading, paragraph
from kraftwire.errors import UsageError
from kraftwire.wire.facts import FieldFacts, MessageFacts, StructFacts


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """One difference between a version and the one before it.

    `kind` is added, removed, tagged, untagged, tag, nullable, not nullable, flexible.
    """

    kind: str
    path: str
    words: str
    facts: FieldFacts | None = None


def changes_between(facts: MessageFacts, old: int, new: int) -> list[SchemaChange]:
    """Return the changes of a newer version; empty if the layout of the bytes is the same."""
    changes = []
    if new in facts.flexible and old not in facts.flexible:
        words = "becomes flexible: compact lengths, tagged fields at the end of every struct"
        changes.append(SchemaChange("flexible", "", words))
    return changes + list(_struct_changes(facts.root, old, new, ""))


def _struct_changes(struct: StructFacts, old: int, new: int, path: str) -> Iterator[SchemaChange]:
    for each in struct.fields:
        here = path + field_name(each)
        was, is_now = old in each.versions, new in each.versions
        if is_now and not was:
            yield SchemaChange("added", here, f"adds {here} ({_described(each, new)})", each)
        elif was and not is_now:
            yield SchemaChange("removed", here, f"removes {here} ({type_words(each)})", each)
        elif was:
            yield from _field_changes(each, old, new, here)


def _field_changes(each: FieldFacts, old: int, new: int, here: str) -> Iterator[SchemaChange]:
    if new in each.tagged and old not in each.tagged:
        yield SchemaChange("tagged", here, f"{here} becomes a tagged field, tag {each.tag}", each)
    if old in each.tagged and new not in each.tagged:
        yield SchemaChange("untagged", here, f"{here} is no longer a tagged field", each)
    if new in each.nullable and old not in each.nullable:
        yield SchemaChange("nullable", here, f"{here} may be null", each)
    if old in each.nullable and new not in each.nullable:
        yield SchemaChange("not nullable", here, f"{here} may not be null any more", each)
    if each.struct:
        dot = "[]." if each.is_array else "."
        yield from _struct_changes(each.struct, old, new, here + dot)


def _described(each: FieldFacts, version: int) -> str:
    parts = [type_words(each)]
    if each.struct:
        inner = (
            f"{field_name(child)} {type_words(child)}"
            for child in each.struct.fields
            if version in child.versions
        )
        noun = parts[0] if each.is_array else "struct"
        parts[0] = f"{noun} with {', '.join(inner)}"
    if version in each.tagged:
        parts.append(f"tag {each.tag}")
    if version in each.nullable:
        parts.append("may be null")
    return "; ".join(parts)


def history(facts: MessageFacts, low: int, high: int) -> Iterator[tuple[int, list[SchemaChange]]]:
    """Return every version above `low` up to `high`, with its changes from the one before it."""
    for version in range(low + 1, high + 1):
        yield version, changes_between(facts, version - 1, version)


def changes_text(facts: MessageFacts, low: int, high: int) -> list[str]:
    """Return the history of a message between two versions, as text."""
    lines = [heading(f"{facts.name}, from version {low} to {high}")]
    width = len(str(high)) + 2
    for version, changes in history(facts, low, high):
        number = f"{version:>{width}}  "
        if not changes:
            lines.append(f"{number}same layout as {version - 1}")
        for change in changes:
            about = change.facts.about if change.facts and change.kind == "added" else ""
            words = f"{change.words}: {about}" if about else change.words
            lines += paragraph(words, first=number, indent=" " * (len(number) + 2))
            number = " " * len(number)
    return lines


def changes_json(facts: MessageFacts, low: int, high: int) -> dict[str, Any]:
    """Return the history of a message between two versions, as JSON."""
    return {
        "name": facts.name,
        "kind": facts.kind,
        "apiKey": facts.api_key,
        "from": low,
        "to": high,
        "versions": [
            {"version": version, "changes": [_change_json(change) for change in changes]}
            for version, changes in history(facts, low, high)
        ],
    }


def _change_json(change: SchemaChange) -> dict[str, Any]:
    result = {"kind": change.kind, "path": json_path(change.path) or None, "words": change.words}
    if change.facts:
        result |= {"type": change.facts.type_text, "about": change.facts.about}
    return result


def check_range(facts: MessageFacts, low: int, high: int) -> None:
    """Raises: UsageError unless both ends are versions of the message, in ascending order."""
    for version in (low, high):
        if version not in facts.versions:
            raise UsageError(f"{facts.name} has versions {facts.versions}, not {version}")
    if low >= high:
        raise UsageError(f"{low}..{high} is not ascending; put the older version first")
