"""The byte layout of one version of a message: the place and size of each field.

Owns the walk over the facts and its two forms, text and JSON. Offsets are given where they are
fixed: from the start of the message, or from the start of an array's element.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kraftwire.cli.schema.names import default_json, default_words, field_name, json_path, title
from kraftwire.cli.tables import heading, paragraph, table
from kraftwire.wire.facts import FieldFacts, MessageFacts, StructFacts
from kraftwire.wire.sizes import FIXED_SIZES, min_struct_size

# The parts of a type on the wire; printed below the table for the types that occur.
_LEGEND = {
    "compact string": "length + 1 as unsigned varint (0 for null), then UTF-8",
    "compact bytes": "length + 1 as unsigned varint (0 for null), then the bytes",
    "compact records": "length + 1 as unsigned varint (0 for null), then record batches",
    "compact array": "count + 1 as unsigned varint (0 for null), then the elements",
    "string": "int16 length (-1 for null), then UTF-8",
    "bytes": "int32 length (-1 for null), then the bytes",
    "records": "int32 length (-1 for null), then record batches",
    "array": "int32 count (-1 for null), then the elements",
    "struct": "int8, below 0 for null, else the fields follow",
    "tagged": "unsigned varints: count, then for each its tag and size, then its value",
}


@dataclass(slots=True)
class LayoutPart:
    """A field of a layout, or the section of tagged fields at the end of a struct.

    Units: offset in bytes from the start of the message or, where `is_relative`, of the array
    element; None if the bytes before it vary in length. `size` is the minimum unless `is_fixed`.
    """

    path: str
    name: str
    type: str
    wire: str
    size: int
    is_fixed: bool = False
    offset: int | None = None
    is_relative: bool = False
    facts: FieldFacts | None = None
    tag: int | None = None
    is_nullable: bool = False
    children: list[LayoutPart] = field(default_factory=list)


def layout(facts: MessageFacts, version: int) -> list[LayoutPart]:
    """Return the parts of a message in wire order."""
    return _Walk(facts, version).struct(facts.root, "", 0, is_relative=False)


class _Walk:
    def __init__(self, facts: MessageFacts, version: int) -> None:
        self.version = version
        self.is_flexible = version in facts.flexible

    def struct(
        self, facts: StructFacts, path: str, offset: int | None, *, is_relative: bool
    ) -> list[LayoutPart]:
        parts: list[LayoutPart] = []
        tagged: list[FieldFacts] = []
        for each in facts.fields:
            if self.version in each.tagged:
                tagged.append(each)
            elif self.version in each.versions:
                parts.append(self.part(each, path, offset, is_relative=is_relative))
                offset = _end_of(parts[-1])
        if self.is_flexible:
            section = LayoutPart(path, "tagged fields", "", "tagged fields", 1, offset=offset)
            section.is_relative = is_relative
            section.children = [self.tagged(each, path) for each in sorted(tagged, key=_tag)]
            parts.append(section)
        return parts

    def tagged(self, each: FieldFacts, path: str) -> LayoutPart:
        part = self.part(each, path, None, is_relative=True)
        part.tag = each.tag
        return part

    def part(
        self, each: FieldFacts, path: str, offset: int | None, *, is_relative: bool
    ) -> LayoutPart:
        name = field_name(each)
        here = f"{path}.{name}" if path else name
        part = LayoutPart(
            here, name, each.type_text, self.wire(each), self.size(each),
            offset=offset, is_relative=is_relative, facts=each,
            is_nullable=self.version in each.nullable,
        )  # fmt: skip
        if each.struct is None:
            part.is_fixed = not each.is_array and each.type in FIXED_SIZES
        elif each.is_array:
            part.children = self.struct(each.struct, f"{here}[]", 0, is_relative=True)
        else:
            inside = None if part.is_nullable else offset
            part.children = self.struct(each.struct, here, inside, is_relative=is_relative)
            part.is_fixed = not part.is_nullable and all(p.is_fixed for p in part.children)
        return part

    def wire(self, each: FieldFacts) -> str:
        compact = "compact " if self.version in each.flexible else ""
        if each.is_array:
            text = f"{compact}array of {each.type}"
        elif each.struct or each.type in FIXED_SIZES:
            text = each.type
        else:
            text = compact + each.type
        return f"{text} or null" if self.version in each.nullable else text

    def size(self, each: FieldFacts) -> int:
        if not each.is_array and each.type in FIXED_SIZES:
            return FIXED_SIZES[each.type]
        if each.struct and not each.is_array:
            if self.version in each.nullable:
                return 1
            return min_struct_size(each.struct, self.version, self.is_flexible)
        if self.version in each.flexible:
            return 1
        return 2 if each.type == "string" and not each.is_array else 4


def _tag(each: FieldFacts) -> int:
    return each.tag


def _end_of(part: LayoutPart) -> int | None:
    return part.offset + part.size if part.is_fixed and part.offset is not None else None


def layout_text(facts: MessageFacts, version: int) -> list[str]:
    """Return the layout as a table of text."""
    parts = layout(facts, version)
    flexible = "flexible" if version in facts.flexible else "not flexible"
    size = min_struct_size(facts.root, version, version in facts.flexible)
    lines = [
        heading(title(facts)),
        *([*paragraph(facts.about)] if facts.about else []),
        f"version {version}, {flexible}, {_at_least(parts, size)}",
        "",
    ]
    rows = list(_rows(parts, 0))
    if rows:
        lines += table(("offset", "size", "field", "on the wire", "about"), rows, right=(0, 1))
        lines += _legend(parts)
    return lines


def _at_least(parts: list[LayoutPart], size: int) -> str:
    is_fixed = all(part.is_fixed for part in parts)
    return f"{size} bytes" if is_fixed else f"at least {size} bytes"


def _rows(parts: list[LayoutPart], depth: int) -> Iterator[tuple[str, ...]]:
    for part in parts:
        offset = ""
        if part.offset is not None:
            offset = f"+{part.offset}" if part.is_relative else str(part.offset)
        wire = part.wire if part.tag is None else f"tag {part.tag}: {part.wire}"
        size = str(part.size) if part.is_fixed else f"{part.size}+"
        yield offset, size, "  " * depth + part.name, wire, _about(part)
        yield from _rows(part.children, depth + 1)


def _about(part: LayoutPart) -> str:
    if part.facts is None:
        return ""
    if part.tag is None:
        return part.facts.about
    default = f"left out if {default_words(part.facts)}"
    return f"{part.facts.about} ({default})" if part.facts.about else default


def _legend(parts: list[LayoutPart]) -> list[str]:
    used = set(_forms(parts))
    if not used:
        return []
    lines = [""]
    for form, text in _LEGEND.items():
        if form in used:
            name = {"struct": "struct or null", "tagged": "tagged fields"}.get(form, form)
            lines += paragraph(f"{name}: {text}", indent="  ")
    return lines


def _forms(parts: list[LayoutPart]) -> Iterator[str]:
    for part in parts:
        if part.facts is None:
            yield "tagged"
        elif part.facts.struct and not part.facts.is_array:
            if part.is_nullable:
                yield "struct"
        elif not part.is_fixed:
            yield part.wire.removesuffix(" or null").partition(" of ")[0]
        yield from _forms(part.children)


def layout_json(facts: MessageFacts, version: int) -> dict[str, Any]:
    """Return the layout as JSON."""
    parts = layout(facts, version)
    return {
        "name": facts.name,
        "kind": facts.kind,
        "apiKey": facts.api_key,
        "version": version,
        "isFlexible": version in facts.flexible,
        "sizeMin": min_struct_size(facts.root, version, version in facts.flexible),
        "about": facts.about,
        "fields": [_part_json(part) for part in parts],
    }


def _part_json(part: LayoutPart) -> dict[str, Any]:
    own = part.facts
    result: dict[str, Any] = {
        "path": json_path(part.path if own else f"{part.path}.tagged fields".lstrip(".")),
        "name": own.name if own else part.name,
        "type": part.type or None,
        "wire": part.wire,
        "offset": part.offset,
        "isOffsetInElement": part.is_relative,
        "size": part.size if part.is_fixed else None,
        "sizeMin": part.size,
        "isNullable": part.is_nullable,
        "tag": part.tag,
    }
    if own:
        result |= {
            "default": default_json(own),
            "isIgnorable": own.is_ignorable,
            "entityType": own.entity_type or None,
            "about": own.about,
        }
    if part.children:
        result["fields"] = [_part_json(child) for child in part.children]
    return result
