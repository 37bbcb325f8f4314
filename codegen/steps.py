"""The steps that a generated function consists of, ready for the templates to print."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["DecodeFunction", "EncodeFunction", "Step", "Sweep", "TagBranch", "TagsFunction"]


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
    at: int = 0

    @property
    def start(self) -> str:
        """Expression for where the step's bytes begin."""
        return f"pos + {self.at}" if self.at else "pos"

    @property
    def stop(self) -> str:
        """Expression for where they end, given a length in `n`."""
        known = self.at - self.compact
        if known == 0:
            return "pos + n"
        return f"pos + {known} + n" if known > 0 else f"pos + n - {-known}"


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


@dataclass(frozen=True)
class SweepArray:
    """An array or records field of a swept element: its length (or its values) in a local."""

    attribute: str
    local: str
    code: str
    compact: bool
    nullable: bool
    empty: str

    @property
    def letters(self) -> str:
        """What tells the array from others in a name."""
        return self.code + "c" * self.compact + "n" * self.nullable

    @property
    def surprise(self) -> str:
        """Condition: it is not empty."""
        if self.nullable:
            return f"{self.local} > 1" if self.compact else f"{self.local} > 0"
        return f"{self.local} != 1" if self.compact else self.local

    @property
    def value(self) -> str:
        """What an empty one becomes."""
        if not self.nullable:
            return self.empty
        return f"{self.empty} if {self.local}{'' if self.compact else ' >= 0'} else None"


@dataclass(frozen=True)
class SweepGroup:
    """Arrays of numbers that stand together, `gap` bytes after the group before."""

    local: str
    gap: int
    arrays: tuple[SweepArray, ...]

    @property
    def name(self) -> str:
        """Global name of what reads these arrays, such as ``lists_ic_ic``."""
        return "_".join(["lists", *(each.letters for each in self.arrays)])

    @property
    def spec(self) -> str:
        """Arguments of what reads them."""
        return ", ".join(f'("{a.code}", {a.compact}, {a.nullable})' for a in self.arrays)


@dataclass(frozen=True)
class Sweep:
    """Elements of equal size read by one `iter_unpack`.

    Arrays of structs and records have to be empty, those of numbers as long as the first's.
    """

    packer: str
    targets: str
    is_flexible: bool
    empty: tuple[SweepArray, ...]
    groups: tuple[SweepGroup, ...]
    format: str

    @property
    def surprises(self) -> str:
        """Condition: the element is not as small as the sweep assumes."""
        return " or ".join([each.surprise for each in self.empty] + ["n"] * self.is_flexible)

    @property
    def spec(self) -> str:
        """Arguments of what reads the rows, where their size is not known before."""
        groups = ", ".join(f"({group.gap}, {group.name})" for group in self.groups)
        return f'"{self.format}", {groups}'


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
    sweep: Sweep | None = None
    guess: list[Step] = field(default_factory=list)


@dataclass(frozen=True)
class RowArray:
    """An array or records field within a row, held in a local variable."""

    attribute: str
    local: str


@dataclass(frozen=True)
class RecordsRow:
    """A struct whose last field is records: what stands before them is packed by one call."""

    local: str
    packer: str
    arguments: str
    compact: bool


@dataclass(frozen=True)
class Row:
    """A struct and its short arrays of numbers packed by one call, where `condition` holds."""

    packer: str
    layout: str
    condition: str
    arguments: str
    arrays: tuple[RowArray, ...]
    records: RecordsRow | None = None


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
    row: Row | None = None

    @property
    def packed(self) -> str:
        """The call that packs a whole struct of fixed-width fields, empty for other structs."""
        steps = self.steps
        if self.is_root or len(steps) != 1 or steps[0].kind != "pack":
            return ""
        return f"{steps[0].packer}({steps[0].arguments})"

    @property
    def clean(self) -> str:
        """Condition of what is rare in a struct: something to refuse or tagged fields to write."""
        return " or ".join(filter(None, (self.refuse, self.tags_condition)))
