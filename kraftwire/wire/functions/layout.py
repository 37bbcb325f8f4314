"""The wire layout of a struct in one version; versions of equal layout share their functions.

A layout is hashable and holds everything that a decoder or encoder of that version must know, down
through nested structs. It is made from the facts that a module carries, both for generated
modules and at run time.
"""

from __future__ import annotations

from kraftwire.wire.functions.values import Value
from kraftwire.wire.sizes import FIXED_SIZES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from kraftwire.wire.facts import FieldFacts, MessageFacts, StructFacts

__all__ = ["Absent", "Item", "Layout", "layouts_of", "versions_of"]


class Item(Value):
    """One field as it stands on the wire in one version.

    `kind` is fixed, string, bytes, records, struct or array; an array's `element` is one
    of fixed, string, bytes, struct. `type` is the primitive type's name or the struct's.
    """

    attribute: str
    kind: str
    type: str
    element: str
    nullable: bool
    compact: bool
    layout: Layout | None
    default: str
    may_be_none: bool
    is_tagged: bool

    @property
    def min_size(self) -> int:
        """The least number of bytes that the field can take."""
        if self.kind == "fixed":
            return FIXED_SIZES[self.type]
        if self.kind == "struct":
            inner = self.layout.min_size if self.layout else 0
            return 1 if self.nullable else inner
        if self.compact:
            return 1
        return 2 if self.kind == "string" else 4


class Absent(Value):
    """A field that the version does not carry; `refuse` unless the schema calls it ignorable."""

    attribute: str
    type: str
    default: str
    refuse: bool
    is_struct: bool
    nullable: bool


class Layout(Value):
    """Fields of a struct in wire order, tagged fields by tag, fields that are absent."""

    name: str
    items: tuple[Item, ...]
    tagged: tuple[tuple[int, Item], ...]
    absent: tuple[Absent, ...]
    flexible: bool

    @property
    def min_size(self) -> int:
        """The least number of bytes that the struct can take."""
        return sum(item.min_size for item in self.items) + self.flexible

    @property
    def children(self) -> tuple[Layout, ...]:
        """Layouts of nested structs, in wire order."""
        items = (*self.items, *(item for _, item in self.tagged))
        return tuple(item.layout for item in items if item.layout)

    def walk(self) -> Iterator[Layout]:
        """Yield the layout and all layouts inside it."""
        yield self
        for each in self.children:
            yield from each.walk()


def layouts_of(facts: MessageFacts) -> dict[int, Layout]:
    """The layout of a message in each version."""
    versions = range(facts.versions.low, facts.versions.high + 1)
    return {
        version: _Layouter(version, version in facts.flexible).layout(facts.root)
        for version in versions
    }


def versions_of(layouts: dict[int, Layout]) -> dict[Layout, list[int]]:
    """The versions in which each layout is used, down through nested structs."""
    used: dict[Layout, list[int]] = {}
    for version, root in layouts.items():
        for layout in root.walk():
            versions = used.setdefault(layout, [])
            if version not in versions:
                versions.append(version)
    return used


class _Layouter:
    """Lays out the structs of one version."""

    def __init__(self, version: int, is_flexible: bool) -> None:
        self._version = version
        self._is_flexible = is_flexible

    def layout(self, facts: StructFacts) -> Layout:
        """The layout of a struct."""
        items: list[Item] = []
        tagged: list[tuple[int, Item]] = []
        absent: list[Absent] = []
        for field in facts.fields:
            if self._version in field.tagged:
                tagged.append((field.tag, self._item(field)))
            elif self._version in field.versions:
                items.append(self._item(field))
            else:
                absent.append(_absent(field))
        in_order = tuple(sorted(tagged, key=lambda pair: pair[0]))
        return Layout(facts.name, tuple(items), in_order, tuple(absent), self._is_flexible)

    def _item(self, field: FieldFacts) -> Item:
        kind = "struct" if field.struct else "fixed" if field.type in FIXED_SIZES else field.type
        return Item(
            attribute=field.attribute,
            kind="array" if field.is_array else kind,
            type=field.type,
            element=kind if field.is_array else "",
            nullable=self._version in field.nullable,
            compact=self._version in field.flexible,
            layout=self.layout(field.struct) if field.struct else None,
            default=_default(field),
            may_be_none=_is_nullable(field),
            is_tagged=self._version in field.tagged,
        )


def _absent(field: FieldFacts) -> Absent:
    return Absent(
        attribute=field.attribute,
        type=field.type,
        default=_default(field),
        refuse=not field.is_ignorable,
        is_struct=field.struct is not None and not field.is_array,
        nullable=_is_nullable(field),
    )


def _is_nullable(field: FieldFacts) -> bool:
    """Whether the field can be null in any version."""
    return field.nullable.low <= field.nullable.high


def _default(field: FieldFacts) -> str:
    """Python expression for the default value of a field."""
    if field.default == ():
        return "[]" if field.is_array else f"{field.type}()"
    if field.default == bytes(16) and field.type == "uuid":
        return "ZERO_UUID"
    # With double quotes, which the encoder's plan looks for.
    return '""' if field.default == "" else 'b""' if field.default == b"" else repr(field.default)
