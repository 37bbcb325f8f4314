"""The wire layout of one version of a message: the fields in order, nothing else.

Owns the notion of "the same bytes" by which merging is checked and the report compares. Names of
structs are left out, since renaming one changes no byte.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

from kraftwire.errors import UsageError
from tools.import_schemas.schema import Field, Message


@dataclass(frozen=True, slots=True)
class Slot:
    """One field of one version.

    `path` is dotted from the message, `place` is where the field stands in the file (`renames`);
    `type` is a primitive or ``struct``, with ``[]`` in front for an array; `tag` is None unless the
    field is tagged in this version.
    """

    path: str
    type: str
    is_nullable: bool
    tag: int | None
    is_flexible: bool
    place: str = dataclasses.field(compare=False)


def layout(message: Message, version: int) -> tuple[Slot, ...]:
    """Return the fields of a version, parents before their children.

    Raises: UsageError if a field names a struct that the message does not define.
    """
    return tuple(_walk(message, message.fields, version, "", ""))


def struct_fields(message: Message, field: Field) -> tuple[Field, ...] | None:
    """Return the fields of the struct that a field holds, None for a primitive.

    Raises: UsageError if the message does not define the struct.
    """
    if not field.struct:
        return None
    if field.fields is not None:
        return field.fields
    for struct in message.structs:
        if struct.name == field.struct:
            return struct.fields
    raise UsageError(f"{message.name}.{field.name}: no struct {field.struct} in this schema")


def _walk(
    message: Message, fields: tuple[Field, ...], version: int, path: str, place: str
) -> Iterator[Slot]:
    for field in fields:
        if version not in field.versions:
            continue
        inner = struct_fields(message, field)
        flexible = message.flexible if field.flexible is None else field.flexible
        here = f"{path}{field.name}", f"{place}{field.name}"
        yield Slot(
            path=here[0],
            type=field.type if inner is None else field.type.replace(field.struct, "struct"),
            is_nullable=version in field.nullable,
            tag=field.tag if version in field.tagged else None,
            is_flexible=version in flexible,
            place=here[1],
        )
        if inner is not None:
            inside = here[1] if field.fields is not None else f"@{field.struct}"
            yield from _walk(message, inner, version, f"{here[0]}.", f"{inside}.")
