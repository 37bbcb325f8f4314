"""A schema as objects: messages, structs, fields, version ranges."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from codegen.names import json_name, snake

ANY_VERSION = 32767


@dataclass(frozen=True, order=True)
class Versions:
    """An inclusive range; empty if `low` is above `high`."""

    low: int
    high: int

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.low <= version <= self.high

    def __bool__(self) -> bool:
        return self.low <= self.high

    def __str__(self) -> str:
        if not self:
            return "none"
        if self.high == ANY_VERSION:
            return f"{self.low}+"
        return str(self.low) if self.low == self.high else f"{self.low}-{self.high}"

    def overlaps(self, other: Versions) -> bool:
        """Whether some version lies in both ranges."""
        return max(self.low, other.low) <= min(self.high, other.high)

    def within(self, other: Versions) -> bool:
        """Whether every version of this range lies in the other."""
        return not self or (other.low <= self.low and self.high <= other.high)


NO_VERSIONS = Versions(0, -1)


@dataclass
class Field:
    """A field of a struct; `type` is the element's type where `is_array`.

    `former` are the names that older releases of Kafka have for it.
    """

    name: str
    type: str
    is_array: bool
    versions: Versions
    nullable: Versions
    tagged: Versions
    tag: int
    default: Any
    has_default: bool
    ignorable: bool
    map_key: bool
    entity_type: str
    flexible: Versions
    own_flexible: bool
    former: tuple[str, ...]
    about: str
    struct: Struct | None = None
    line: int = 0
    tag_line: int = 0

    @property
    def attribute(self) -> str:
        """Name of the Python attribute."""
        return snake(self.name)

    @property
    def json(self) -> str:
        """Key in Kafka's JSON form."""
        return json_name(self.name)

    @property
    def type_text(self) -> str:
        """The type as the schema spells it."""
        return f"[]{self.type}" if self.is_array else self.type


@dataclass
class Struct:
    """A named list of fields in wire order; `versions` is where the struct is used."""

    name: str
    fields: list[Field]
    versions: Versions
    about: str
    line: int = 0


@dataclass
class Message:
    """One schema file; `structs` lists every struct, innermost first, the root last.

    `renamed_to` names the message that took over the API key; this one serves the old name.
    """

    name: str
    kind: str
    api_key: int
    versions: Versions
    flexible: Versions
    unstable: bool
    listeners: tuple[str, ...]
    renamed_to: str
    about: str
    root: Struct
    structs: list[Struct] = field(default_factory=list)
    file: str = ""
    digest: str = ""

    @property
    def module(self) -> str:
        """Name of the generated module."""
        return snake(self.name)
