"""Plan the decoder of one layout: which reads are fused, which lengths are looked at, in order."""

from __future__ import annotations

from dataclasses import dataclass, field

from codegen.decode_steps import (
    Advance,
    Bytes,
    DecodeArray,
    DecodeRoot,
    DecodeTags,
    ExpectEmpty,
    KnownTags,
    LongLength,
    NoTags,
    NullableStruct,
    Numbers,
    OneStruct,
    OrNone,
    ReadByte,
    RecordsLength,
    RefuseNull,
    Structs,
    TagBranch,
    Text,
    UnknownTags,
    Unpack,
    Values,
)
from codegen.layout import Item, Layout
from codegen.names import function_stem
from codegen.packers import PackerSet, Run, offset
from codegen.steps import Default, Function, Step
from codegen.sweep_plan import empty_value, plan_sweep, surprise
from codegen.types import FIXED

__all__ = ["DecodePlanner"]

# An element this small costs far more as an object than on the wire, so a budget bounds them.
_SMALL_STRUCT_SIZE = 8


@dataclass
class DecodePlanner:
    """Collects the decode functions of a module; equal layouts share one."""

    packers: PackerSet
    labels: dict[Layout, str]
    functions: dict[Layout, DecodeArray | DecodeRoot] = field(default_factory=dict)
    tags: dict[Layout, DecodeTags] = field(default_factory=dict)

    def plan(self, layout: Layout, *, is_root: bool = False) -> DecodeArray | DecodeRoot:
        """The function for a layout, planned on first use together with those it calls."""
        if layout not in self.functions:
            # Inner functions first: the module reads bottom-up.
            for child in layout.children:
                self.plan(child)
            if layout.tagged:
                self.tags[layout] = self._tags(layout)
            self.functions[layout] = self._root(layout) if is_root else self._array(layout)
        return self.functions[layout]

    def in_order(self) -> list[Function]:
        """All functions, that of the tags of a struct before that of the struct."""
        found: list[Function] = []
        for layout, function in self.functions.items():
            if layout in self.tags:
                found.append(self.tags[layout])
            found.append(function)
        return found

    def _stem(self, layout: Layout) -> str:
        return function_stem(layout.name, self.labels[layout])

    def _root(self, layout: Layout) -> DecodeRoot:
        return DecodeRoot(
            name=f"decode_{self._stem(layout)}",
            struct=layout.name,
            versions=self.labels[layout],
            has_view=_has_records(layout),
            steps=(*_defaults(layout), *self._steps(layout)),
        )

    def _array(self, layout: Layout) -> DecodeArray:
        is_small = layout.min_size < _SMALL_STRUCT_SIZE
        name = f"{self._stem(layout)}_array"
        return DecodeArray(
            name=f"decode_{name}",
            struct=layout.name,
            versions=self.labels[layout],
            min_size=max(1, layout.min_size),
            is_small=is_small,
            takes_budget=is_small or any(self._takes_budget(each) for each in layout.children),
            has_view=_has_records(layout),
            sweep=plan_sweep(layout, self.packers, f"sweep_{name}", _defaults(layout)),
            guess=self._guess(layout),
            steps=(*_defaults(layout), *self._steps(layout)),
        )

    def _takes_budget(self, layout: Layout | None) -> bool:
        return layout is not None and self.functions[layout].takes_budget

    def _guess(self, layout: Layout) -> tuple[Step, ...]:
        """Steps for structs whose arrays of structs are empty, before records that are not.

        A fetched partition is such a one, unless transactions were aborted: one read then does
        for all that stands before the records.
        """
        if not layout.items or layout.items[-1].kind != "records":
            return ()
        arrays = [item for item in layout.items[:-1] if item.kind != "fixed"]
        if not arrays or any(item.element != "struct" for item in arrays):
            return ()
        steps: list[Step] = []
        run = Run()
        for item in layout.items[:-1]:
            if item.kind == "fixed":
                run.add(FIXED[item.type].code, f"o.{item.attribute}")
                continue
            local = f"n{len(steps)}"
            run.add("B" if item.compact else "i", local)
            target, value = f"o.{item.attribute}", empty_value(item, local, is_bounded=True)
            steps.append(ExpectEmpty(surprise(item, local, is_bounded=True), target, value))
        run.add(_length_code(layout.items[-1]), "n")
        before: list[Step] = []
        self._flush(run, before)
        last = self._variable(layout.items[-1], run.at)
        return (*_defaults(layout), *before, *steps, *last, *self._end(layout, Run()))

    def _steps(self, layout: Layout) -> tuple[Step, ...]:
        steps: list[Step] = []
        run = Run()
        for item in layout.items:
            self._item(item, steps, run)
        return (*steps, *self._end(layout, run))

    def _end(self, layout: Layout, run: Run) -> list[Step]:
        """What is left in a run, and the tagged fields."""
        steps: list[Step] = []
        if layout.flexible:
            run.add("B", "n")
        self._flush(run, steps)
        self._advance(run, steps)
        if not layout.flexible:
            steps.append(NoTags())
        elif layout in self.tags:
            tags = self.tags[layout]
            steps.append(KnownTags(tags.name, tags.takes_budget))
        else:
            steps.append(UnknownTags())
        return steps

    def _item(self, item: Item, steps: list[Step], run: Run) -> None:
        if item.kind == "fixed":
            run.add(FIXED[item.type].code, f"o.{item.attribute}")
            return
        if item.kind == "struct":
            self._struct(item, steps, run)
        else:
            run.add(_length_code(item), "n")
            self._flush(run, steps)
            steps += self._variable(item, run.at)
        run.at = 0

    def _struct(self, item: Item, steps: list[Step], run: Run) -> None:
        assert item.layout is not None
        function = self.functions[item.layout]
        if item.nullable:
            # Kafka marks null by an int8 of -1, but within a tag by an unsigned varint of 0.
            run.add("B" if item.is_tagged else "b", "n")
        self._flush(run, steps)
        start, budget = offset("pos", run.at), function.takes_budget
        one = OneStruct(f"o.{item.attribute}", function.name, start, budget)
        if not item.nullable:
            steps.append(one)
            return
        if item.is_tagged:
            steps.append(LongLength("n > 127", "long_length", run.at))
        steps.append(NullableStruct("n == 0" if item.is_tagged else "n < 0", one, run.at))

    def _variable(self, item: Item, at: int) -> list[Step]:
        """The steps for a value whose length was read."""
        target = f"o.{item.attribute}"
        value: Step = self._value(item, target, at)
        if item.nullable:
            value = OrNone("n" if item.compact else "n >= 0", value, target, at)
        return [*_length(item, at), value]

    def _value(self, item: Item, target: str, at: int) -> Step:
        start, stop = offset("pos", at), f"{offset('pos', at - item.compact, 'n')}"
        count = "n - 1" if item.compact else "n"
        if item.kind == "string":
            return Text(target, start, stop)
        if item.kind != "array":
            return Bytes(target, "view" if item.kind == "records" else "buf", start, stop)
        if item.layout:
            function = self.functions[item.layout]
            return Structs(target, function.name, start, count, function.takes_budget)
        if item.element == "fixed" and item.type != "uuid":
            size = FIXED[item.type].size
            length = offset(f"{size} * n" if size > 1 else "n", at - size * item.compact)
            return Numbers(target, FIXED[item.type].code, count, start, length)
        return Values(target, _reader(item), start, count)

    def _flush(self, run: Run, steps: list[Step]) -> None:
        start = offset("pos", run.at)
        if run.codes == ["B"]:
            steps.append(ReadByte(start))
        elif run:
            targets = run.arguments + ("," if len(run.codes) == 1 else "")
            steps.append(Unpack(targets, self.packers.name("get", run.codes), start))
        run.at += run.size
        run.clear()

    def _advance(self, run: Run, steps: list[Step]) -> None:
        if run.at:
            steps.append(Advance(run.at))
        run.at = 0

    def _tags(self, layout: Layout) -> DecodeTags:
        branches = []
        for tag, item in layout.tagged:
            steps: list[Step] = []
            run = Run()
            self._item(item, steps, run)
            self._flush(run, steps)
            self._advance(run, steps)
            branches.append(TagBranch(tag, tuple(steps)))
        budget = any(self._takes_budget(item.layout) for _, item in layout.tagged)
        name = f"decode_{self._stem(layout)}_tags"
        return DecodeTags(name, layout.name, self.labels[layout], tuple(branches), budget)


def _has_records(layout: Layout) -> bool:
    return any(item.kind == "records" for item in layout.items)


def _defaults(layout: Layout) -> tuple[Default, ...]:
    absent = [Default(f"o.{each.attribute}", each.default) for each in layout.absent]
    tagged = [Default(f"o.{item.attribute}", item.default) for _, item in layout.tagged]
    return (*absent, *tagged)


def _length_code(item: Item) -> str:
    if item.compact:
        return "B"
    return "h" if item.kind == "string" else "i"


def _length(item: Item, at: int) -> list[Step]:
    """The rare forms of a length: of several bytes, or null where that cannot be."""
    if not item.compact:
        return [] if item.nullable else [RefuseNull()]
    condition = "n > 127" if item.nullable else "not 0 < n < 128"
    if item.kind == "records":
        return [RecordsLength(condition, offset("pos", at), at)]
    helper = "long_string" if item.kind == "string" else "long_length"
    return [LongLength(condition, helper, at)]


def _reader(item: Item) -> str:
    """The helper that reads an array of strings, bytes or uuids."""
    if item.type == "uuid":
        return "uuids"
    form = "compact" if item.compact else "plain"
    return f"{form}_{'strings' if item.element == 'string' else 'blobs'}"
