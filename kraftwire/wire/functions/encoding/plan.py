"""Plan the encoder of one layout: which writes are fused and what a version must refuse."""

from __future__ import annotations

from kraftwire.wire.functions.encoding.frames import (
    EncodeArray,
    EncodeRoot,
    EncodeRows,
    EncodeTags,
    TagBranch,
    TryRows,
)
from kraftwire.wire.functions.encoding.row import (
    PlannedRow,
    ignored,
    local_name,
    plan_row,
    size_of,
)
from kraftwire.wire.functions.encoding.steps import (
    CheckBool,
    CheckUuid,
    Pack,
    PackLength,
    Pass,
    PutBytes,
    PutLength,
    PutNullableStruct,
    PutNumbers,
    PutStruct,
    PutStructs,
    PutTags,
    PutText,
    PutUnknownTags,
    PutValues,
    Refuse,
    TakeLength,
    TakeText,
    Zero,
)
from kraftwire.wire.functions.layout import Absent, Item, Layout
from kraftwire.wire.functions.names import function_stem, ranges
from kraftwire.wire.functions.packers import CODES, PackerSet, Run
from kraftwire.wire.functions.planner import Planner
from kraftwire.wire.functions.steps import Step

__all__ = ["EncodePlanner"]

_UNKNOWN = "o.unknown_tagged_fields"

EncodeFunction = EncodeArray | EncodeRoot | EncodeRows


class EncodePlanner(Planner):
    """Plans the encoders of a message."""

    def __init__(self, packers: PackerSet, layouts: dict[int, Layout]) -> None:
        super().__init__(packers, layouts)
        self.rows: dict[str, str] = {}

    def _root(self, layout: Layout) -> EncodeRoot:
        steps = (*self._steps(layout), *self._tail(layout))
        name = f"encode_{self._stem(layout)}"
        return EncodeRoot(name, layout.name, self._label(layout), _refusal(layout), steps)

    def _array(self, layout: Layout) -> EncodeArray | EncodeRows:
        name, label = f"encode_{self._stem(layout)}_array", self._label(layout)
        row = self._row(layout)
        written = self._steps(layout)
        packed = "" if row else _packed(written)
        # What is rare: something to refuse, or tagged fields to write.
        odd = " or ".join(filter(None, (_refused(layout), _tagged(layout))))
        if packed and not layout.flexible:
            return EncodeRows(name, layout.name, label, packed, odd)
        steps = row.before(written) if row else written
        steps = (*_refusal(layout), *steps, *self._tail(layout)) or (Pass(),)
        rows = (TryRows(packed, odd),) if packed else ()
        start = row.start if row else ()
        return EncodeArray(name, layout.name, label, rows, start, steps)

    def _row(self, layout: Layout) -> PlannedRow | None:
        name = f"row_{self._stem(layout)}"
        row = plan_row(layout, self.packers, name)
        if row and row.layout:
            self.rows[name] = row.layout
        return row

    def _tail(self, layout: Layout) -> tuple[Step, ...]:
        if layout in self.tags:
            return (PutTags(_tagged(layout), self.tags[layout].name),)
        return (PutUnknownTags(),) if layout.flexible else ()

    def _steps(self, layout: Layout) -> tuple[Step, ...]:
        steps: list[Step] = []
        run = Run()
        for item in layout.items:
            self._item(item, steps, run)
        if layout.flexible:
            # A zero ends the struct; put_tags replaces it in the rare case of tagged fields.
            run.add("x", "")
        self._flush(run, steps)
        return tuple(steps)

    def _item(self, item: Item, steps: list[Step], run: Run) -> None:
        source = f"o.{item.attribute}"
        if item.kind == "fixed":
            if item.type == "uuid":
                steps.append(CheckUuid(source))
            if item.type == "bool" and item.is_tagged:
                steps.append(CheckBool(source))
            run.add(CODES[item.type], source)
        elif item.kind == "struct":
            self._struct(item, source, steps, run)
        else:
            steps.append(_take(item, source))
            self._length(item, steps, run)
            steps.append(self._value(item))

    def _struct(self, item: Item, source: str, steps: list[Step], run: Run) -> None:
        assert item.layout is not None
        if item.nullable:
            null = 0 if item.is_tagged else -1
            run.add("b", f"{null} if {source} is None else 1")
        self._flush(run, steps)
        kind = PutNullableStruct if item.nullable else PutStruct
        steps.append(kind(source, self.functions[item.layout].name))

    def _value(self, item: Item) -> Step:
        local = local_name(item.attribute)
        if item.kind == "string":
            return PutText()
        if item.kind != "array":
            return PutBytes(local)
        if item.layout:
            return PutStructs(local, self.functions[item.layout].name)
        if item.type == "uuid":
            return PutValues(local, "put_uuids", f"{local}, out")
        if item.element == "fixed":
            return PutNumbers(local, CODES[item.type])
        helper = "put_strings" if item.element == "string" else "put_blobs"
        return PutValues(local, helper, f"{local}, out, {item.compact}")

    def _length(self, item: Item, steps: list[Step], run: Run) -> None:
        if not item.compact:
            run.add("h" if item.kind == "string" else "i", "n")
            self._flush(run, steps)
            return
        table = "STRING_LENGTH" if item.kind == "string" else "LENGTH"
        if not run:
            steps.append(PutLength(table))
            return
        long_packer, long_arguments = self.packers.name("put", run.codes), run.arguments
        run.add("B", "n")
        packer = self.packers.name("put", run.codes)
        steps.append(PackLength(packer, run.arguments, long_packer, long_arguments, table))
        run.clear()

    def _flush(self, run: Run, steps: list[Step]) -> None:
        if run.codes == ["x"]:
            steps.append(Zero())
        elif run:
            steps.append(Pack(self.packers.name("put", run.codes), run.arguments))
        run.clear()

    def _tags(self, layout: Layout, versions: list[int]) -> EncodeTags:
        branches: list[TagBranch] = []
        for tag, item in layout.tagged:
            steps: list[Step] = []
            run = Run()
            self._item(item, steps, run)
            self._flush(run, steps)
            out = "out" if branches else "out: Parts"
            branches.append(TagBranch(tag, _differs(item), out, tuple(steps)))
        name = f"encode_{function_stem(layout.name, versions)}_tags"
        return EncodeTags(name, layout.name, ranges(versions), tuple(branches))


def _take(item: Item, source: str) -> Step:
    """Return the step that takes a value and its length into local variables."""
    null, one = ("0", " + 1") if item.compact else ("-1", "")
    is_unchecked = item.may_be_none and not item.nullable
    if item.kind == "string":
        length = f"len(s){one}"
        if not item.nullable:
            ignore = ignored("union-attr" if is_unchecked else "")
            return TakeText(f"{source}.encode()", length, ignore)
        text = f'b"" if {source} is None else {source}.encode()'
        return TakeText(text, f"{null} if {source} is None else {length}", "")
    local = local_name(item.attribute)
    if item.kind == "array":
        length, ignore = f"len({local}){one}", "arg-type" if is_unchecked else ""
    else:
        can_be_view = item.kind == "records" or is_unchecked
        length, ignore = f"{size_of(local)}{one}", "union-attr" if can_be_view else "attr-defined"
    if item.nullable:
        length = f"{null} if {local} is None else {length}"
    return TakeLength(local, source, length, ignored(ignore))


def _packed(steps: tuple[Step, ...]) -> str:
    """Return the call that packs a whole struct of fixed-width fields; empty for other structs."""
    if len(steps) != 1 or not isinstance(steps[0], Pack):
        return ""
    return f"{steps[0].packer}({steps[0].arguments})"


def _refusal(layout: Layout) -> tuple[Refuse, ...]:
    condition = _refused(layout)
    return (Refuse(condition),) if condition else ()


def _refused(layout: Layout) -> str:
    """Return the condition that a version has no room for a value, or its type is wrong."""
    refused = [_carries(absent) for absent in layout.absent if absent.refuse]
    # To `struct` anything is true or false, so these are checked before.
    refused += [f"o.{each.attribute}.__class__ is not bool" for each in _bools(layout)]
    if not layout.flexible:
        refused.append(_UNKNOWN)
    return " or ".join(refused)


def _tagged(layout: Layout) -> str:
    """Return the condition that there are tagged fields to write."""
    if not layout.flexible:
        return ""
    return " or ".join([_UNKNOWN, *(_differs(item) for _, item in layout.tagged)])


def _bools(layout: Layout) -> list[Item]:
    return [item for item in layout.items if item.kind == "fixed" and item.type == "bool"]


def _differs(item: Item) -> str:
    """Return the condition that a tagged field is not at its default, so it must be written."""
    is_optional = item.kind == "struct" and not item.nullable
    return _is_other(item.attribute, item.default, item.type, is_optional, item.nullable)


def _carries(absent: Absent) -> str:
    """Return the condition that the field holds something that the version has no room for."""
    is_optional = absent.is_struct and not absent.nullable
    return _is_other(absent.attribute, absent.default, absent.type, is_optional, absent.nullable)


def _is_other(
    attribute: str, default: str, type_name: str, is_optional: bool, is_nullable: bool
) -> str:
    source = f"o.{attribute}"
    if default == "None":
        if is_optional:
            return f"({source} is not None and {source} != {type_name}())"
        return f"{source} is not None"
    if default in ("[]", '""', 'b""', "0", "False") and not is_nullable:
        return source
    return f"not {source}" if default == "True" else f"{source} != {default}"
