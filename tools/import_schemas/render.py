"""Schemas as text: one field per line, keys in a fixed order, the same on every machine."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tools.import_schemas.schema import Field, Message, Struct

_WIDTH = 100


def render_schema(message: Message) -> str:
    """Return the text of a file; parsing it gives the same message."""
    members = [*_head(message), *_body(message)]
    return "{\n" + ",\n".join(members) + "\n}\n"


def _head(message: Message) -> Iterator[str]:
    facts: list[tuple[str, object]] = [
        ("apiKey", message.api_key),
        ("type", message.type),
        ("listeners", list(message.listeners) or None),
        ("name", message.name),
        ("renamedTo", message.renamed_to or None),
        ("about", message.about or None),
        ("validVersions", str(message.valid)),
        ("deprecatedVersions", str(message.deprecated) if message.deprecated else None),
        ("flexibleVersions", str(message.flexible)),
        ("latestVersionUnstable", message.is_latest_unstable or None),
    ]
    for key, value in facts:
        if value is not None:
            yield f"  {_pair(key, value)}"


def _body(message: Message) -> Iterator[str]:
    if message.structs:
        structs = ",\n".join(_struct(struct) for struct in message.structs)
        yield f'  "commonStructs": [\n{structs}\n  ]'
    yield f'  "fields": {_list(message.fields, 1)}'


def _struct(struct: Struct) -> str:
    facts = [_pair("name", struct.name), _pair("versions", str(struct.versions))]
    return _object(facts, struct.about, struct.fields, 2)


def _field(field: Field, depth: int) -> str:
    return _object([_pair(*fact) for fact in _facts(field)], field.about, field.fields, depth)


def _facts(field: Field) -> Iterator[tuple[str, object]]:
    yield "name", field.name
    yield "type", field.type
    yield "versions", str(field.versions)
    if field.nullable:
        yield "nullableVersions", str(field.nullable)
    if field.tagged:
        yield "taggedVersions", str(field.tagged)
        yield "tag", field.tag
    if field.default is not None:
        yield "default", field.default
    if field.is_ignorable:
        yield "ignorable", True
    if field.entity_type:
        yield "entityType", field.entity_type
    if field.is_map_key:
        yield "mapKey", True
    if field.is_zero_copy:
        yield "zeroCopy", True
    if field.flexible is not None:
        yield "flexibleVersions", str(field.flexible)
    if field.former:
        yield "formerNames", list(field.former)


def _object(facts: list[str], about: str, fields: tuple[Field, ...] | None, depth: int) -> str:
    indent = "  " * depth
    lines: list[str] = []
    for fact in facts:
        _append(lines, fact, indent)
    if about:
        lines.append(f"{indent}  {_pair('about', about)}")
    if fields is not None:
        _append(lines, f'"fields": {_list(fields, depth)}', indent)
    body = ",\n".join(lines)
    return f"{indent}{{{body[len(indent) + 1 :]} }}"


def _append(lines: list[str], item: str, indent: str) -> None:
    """Put an item on the last line if its first line fits there, two columns in from the brace."""
    first_line = item.partition("\n")[0]
    # Three columns stay free for what closes the object.
    if lines and len(lines[-1]) + len(first_line) + len(", ") <= _WIDTH - 3:
        lines[-1] += f", {item}"
    else:
        lines.append(f"{indent}  {item}")


def _list(fields: tuple[Field, ...], depth: int) -> str:
    if not fields:
        return "[]"
    inner = ",\n".join(_field(field, depth + 1) for field in fields)
    return "[\n" + inner + "\n" + "  " * depth + "]"


def _pair(key: str, value: object) -> str:
    return f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}"
