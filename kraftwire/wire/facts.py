"""The facts of a message schema at run time, as every generated module carries them.

A generated module holds one nested tuple (cheap to load); `load` turns it into these objects on
first use. The annotating reader, the explaining writer, the JSON form and `kraftwire schema` all
work from them, so they need no schema files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kraftwire.wire.versions import ANY_VERSION, Versions

__all__ = ["ANY_VERSION", "FieldFacts", "MessageFacts", "StructFacts", "Versions", "load"]


@dataclass(frozen=True, slots=True)
class FieldFacts:
    """One field of a struct.

    Shape: `type` is a primitive of the schema language or a struct's name, of the element where
    `is_array`; `default` is a Python value of the field's own type.
    """

    name: str
    attribute: str
    type: str
    is_array: bool
    struct: StructFacts | None
    versions: Versions
    nullable: Versions
    tagged: Versions
    tag: int
    default: Any
    is_ignorable: bool
    is_map_key: bool
    flexible: Versions
    entity_type: str
    about: str

    @property
    def type_text(self) -> str:
        """The type as the schema spells it, such as ``[]int32``."""
        return f"[]{self.type}" if self.is_array else self.type


@dataclass(frozen=True, slots=True)
class StructFacts:
    """A struct: the Python class that holds it and its fields in wire order."""

    name: str
    fields: tuple[FieldFacts, ...]
    cls: Any


@dataclass(frozen=True, slots=True)
class MessageFacts:
    """One schema file."""

    name: str
    kind: str
    api_key: int
    versions: Versions
    flexible: Versions
    latest_version_unstable: bool
    listeners: tuple[str, ...]
    about: str
    root: StructFacts


_NONE = Versions(0, -1)


def load(raw: tuple[Any, ...], namespace: dict[str, Any]) -> MessageFacts:
    """Build the facts from a generated module's tuple and its global names (for the classes)."""
    name, kind, api_key, versions, flexible, unstable, listeners, about, structs = raw
    flexible_versions = Versions(*flexible)
    done: dict[str, StructFacts] = {}
    # Structs are listed innermost first, so a field's struct is known when the field is read.
    for struct_name, fields in structs:
        built = tuple(_field(field, done, flexible_versions) for field in fields)
        done[struct_name] = StructFacts(struct_name, built, namespace[struct_name])
    return MessageFacts(
        name, kind, api_key, Versions(*versions), flexible_versions, unstable, listeners, about,
        done[name],
    )


def _field(
    raw: tuple[Any, ...], structs: dict[str, StructFacts], message_flexible: Versions
) -> FieldFacts:
    name, attribute, type_text, versions, nullable, tagged, tag, default, flags, *rest = raw
    flexible, entity_type, about = rest
    element = type_text.removeprefix("[]")
    return FieldFacts(
        name=name,
        attribute=attribute,
        type=element,
        is_array=type_text.startswith("[]"),
        struct=structs.get(element),
        versions=Versions(*versions),
        nullable=Versions(*nullable) if nullable else _NONE,
        tagged=Versions(*tagged) if tagged else _NONE,
        tag=tag,
        default=default,
        is_ignorable="i" in flags,
        is_map_key="k" in flags,
        flexible=Versions(*flexible) if flexible else message_flexible,
        entity_type=entity_type,
        about=about,
    )
