"""The steps that a generated function consists of, ready for the templates to print."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["DecodeFunction", "EncodeFunction", "Step", "TagBranch", "TagsFunction"]


@dataclass(frozen=True)
class Step:
    """One step; the templates have a macro for each `kind` and print these values verbatim."""

    kind: str
    target: str = ""
    packer: str = ""
    size: int = 0
    arguments: str = ""
    nullable: bool = False
    compact: bool = False
    code: str = ""
    function: str = ""
    takes_budget: bool = False
    long_packer: str = ""
    long_arguments: str = ""
    value: str = ""
    is_unchecked: bool = False


@dataclass
class TagBranch:
    """What to do with one known tag."""

    tag: int
    steps: list[Step]
    condition: str = ""


@dataclass
class TagsFunction:
    """Reads or writes the tagged fields of a struct."""

    name: str
    struct: str
    branches: list[TagBranch]
    takes_budget: bool = False
    defaults: list[str] = field(default_factory=list)


@dataclass
class DecodeFunction:
    """Reads `count` structs, or one message where `is_root`."""

    name: str
    struct: str
    versions: str
    is_root: bool
    steps: list[Step]
    absent: list[str]
    min_size: int
    is_small: bool
    takes_budget: bool
    tags: TagsFunction | None
    uses_view: bool


@dataclass
class EncodeFunction:
    """Writes structs behind a bytearray, or one message where `is_root`."""

    name: str
    struct: str
    versions: str
    is_root: bool
    steps: list[Step]
    refuse: str
    tags: TagsFunction | None
    tags_condition: str
