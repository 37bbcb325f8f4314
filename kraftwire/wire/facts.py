"""The facts of a message schema at run time, as every generated module carries them.

A generated module holds one nested tuple (cheap to load); `load` turns it into these objects on
first use. The annotating reader, the explaining writer, the JSON form and `kraftwire schema` all
work from them, so they need no schema files.
"""

from __future__ import annotations

from kraftwire.wire.versions import ANY_VERSION, Versions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["ANY_VERSION", "FieldFacts", "MessageFacts", "StructFacts", "Versions", "load"]


class _Facts:
    """Attributes by position, in the order of `__slots__`, never changed afterwards.

    Plain classes: `dataclasses` alone takes longer to import than all of this package.
    """

    __slots__: tuple[str, ...] = ()

    def __init__(self, *values: Any) -> None:
        for name, value in zip(self.__slots__, values, strict=True):
            setattr(self, name, value)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({shown})"


class FieldFacts(_Facts):
    """One field of a struct.

    `type` is a primitive of the schema language or a struct's name, of the element where
    `is_array`; `default` is a Python value of the field's own type; `former_names` are those that
    older releases of Kafka have for it.
    """

    __slots__ = (
        "name", "attribute", "type", "is_array", "struct", "versions", "nullable", "tagged", "tag",
        "default", "is_ignorable", "is_map_key", "flexible", "entity_type", "about",
        "former_names",
    )  # fmt: skip
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
    former_names: tuple[str, ...]

    @property
    def type_text(self) -> str:
        """The type in the schema's spelling, such as ``[]int32``."""
        return f"[]{self.type}" if self.is_array else self.type

    @property
    def names_topic(self) -> bool:
        """Whether the field names the topic, by name or by id, of the fields around it."""
        return self.entity_type == "topicName" or self.name == "topicId"

    @property
    def is_error_code(self) -> bool:
        """Whether the field holds an error code."""
        return self.type == "int16" and not self.is_array and self.name.endswith("rrorCode")


class StructFacts(_Facts):
    """A struct: the Python class that holds it and its fields in wire order."""

    __slots__ = ("name", "fields", "cls")
    name: str
    fields: tuple[FieldFacts, ...]
    cls: Any

    def names_of(self, field: FieldFacts, version: int) -> tuple[str, ...]:
        """The names of one of its fields in a version: its own, and former ones.

        A name that another field of the version has by now means that one.
        """
        taken = {each.name for each in self.fields if version in each.versions}
        return (field.name, *(name for name in field.former_names if name not in taken))


class MessageFacts(_Facts):
    """One schema file."""

    __slots__ = (
        "name", "kind", "api_key", "versions", "flexible", "latest_version_unstable", "listeners",
        "about", "root",
    )  # fmt: skip
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
    flexible, entity_type, about, *former_names = rest
    element = type_text.removeprefix("[]")
    return FieldFacts(
        name,
        attribute,
        element,
        type_text.startswith("[]"),
        structs.get(element),
        Versions(*versions),
        Versions(*nullable) if nullable else _NONE,
        Versions(*tagged) if tagged else _NONE,
        tag,
        default,
        "i" in flags,
        "k" in flags,
        Versions(*flexible) if flexible else message_flexible,
        entity_type,
        about,
        tuple(former_names),
    )
