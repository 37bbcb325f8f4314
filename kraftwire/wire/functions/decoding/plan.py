"""Plan the decoder of one layout: which reads are fused, which lengths are checked, in order."""

from __future__ import annotations

from kraftwire.wire.functions.decoding.frames import (
    DecodeArray,
    DecodeRoot,
    DecodeTags,
    Spend,
    TagBranch,
    View,
)
from kraftwire.wire.functions.decoding.loops import ExpectEmpty, Guess
from kraftwire.wire.functions.decoding.reads import advance, flush, length_code
from kraftwire.wire.functions.decoding.steps import (
    Advance,
    Bytes,
    KnownTags,
    LongLength,
    NoTags,
    NullableStruct,
    Numbers,
    OneStruct,
    OrNone,
    RecordsLength,
    RefuseNull,
    Structs,
    Text,
    UnknownTags,
    Values,
)
from kraftwire.wire.functions.decoding.sweep import empty_value, plan_sweep, surprise
from kraftwire.wire.functions.layout import Item, Layout
from kraftwire.wire.functions.names import function_stem, ranges
from kraftwire.wire.functions.packers import CODES, Run, offset
from kraftwire.wire.functions.planner import Planner
from kraftwire.wire.functions.steps import Default, Step
from kraftwire.wire.sizes import FIXED_SIZES

__all__ = ["DecodePlanner"]

# An element this small costs far more as an object than on the wire, so a budget bounds them.
_SMALL_STRUCT_SIZE = 8


class DecodePlanner(Planner):
    """Plans the decoders of a message."""

    def _root(self, layout: Layout) -> DecodeRoot:
        return DecodeRoot(
            name=f"decode_{self._stem(layout)}",
            struct=layout.name,
            versions=self._label(layout),
            view=_view(layout),
            steps=(*_defaults(layout), *self._steps(layout)),
        )

    def _array(self, layout: Layout) -> DecodeArray:
        is_small = layout.min_size < _SMALL_STRUCT_SIZE
        takes_budget = is_small or any(self._takes_budget(each) for each in layout.children)
        left = _left(takes_budget)
        min_size = max(1, layout.min_size)
        absurd = f"count * {min_size} > len(buf) - pos"
        name = f"{self._stem(layout)}_array"
        guess = self._guess(layout)
        return DecodeArray(
            name=f"decode_{name}",
            struct=layout.name,
            versions=self._label(layout),
            min_size=min_size,
            absurd=f"{absurd} or count > left" if is_small else absurd,
            takes_budget=takes_budget,
            left=left,
            parameter=", left: int" if takes_budget else "",
            result=", int" if takes_budget else "",
            spend=(Spend(),) if is_small else (),
            view=_view(layout),
            sweep=plan_sweep(layout, self.packers, f"sweep_{name}", _defaults(layout)),
            guess=(Guess(layout.name, guess, left),) if guess else (),
            steps=(*_defaults(layout), *self._steps(layout)),
        )

    def _takes_budget(self, layout: Layout | None) -> bool:
        return layout is not None and self.functions[layout].takes_budget

    def _guess(self, layout: Layout) -> tuple[Step, ...]:
        """Return steps for structs whose arrays of structs are empty, before records that are not.

        A fetched partition is like that, unless transactions were aborted: one read then covers
        all fields before the records.
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
                run.add(CODES[item.type], f"o.{item.attribute}")
                continue
            local = f"n{len(steps)}"
            run.add("B" if item.compact else "i", local)
            target, value = f"o.{item.attribute}", empty_value(item, local, is_bounded=True)
            steps.append(ExpectEmpty(surprise(item, local, is_bounded=True), target, value))
        run.add(length_code(layout.items[-1]), "n")
        before: list[Step] = []
        flush(run, before, self.packers)
        last = self._variable(layout.items[-1], run.at)
        return (*_defaults(layout), *before, *steps, *last, *self._end(layout, Run()))

    def _steps(self, layout: Layout) -> tuple[Step, ...]:
        steps: list[Step] = []
        run = Run()
        for item in layout.items:
            self._item(item, steps, run)
        return (*steps, *self._end(layout, run))

    def _end(self, layout: Layout, run: Run) -> list[Step]:
        """Return the steps for what is left in a run, and for the tagged fields."""
        steps: list[Step] = []
        if layout.flexible:
            run.add("B", "n")
        flush(run, steps, self.packers)
        advance(run, steps)
        if not layout.flexible:
            steps.append(NoTags())
        elif layout in self.tags:
            tags = self.tags[layout]
            steps.append(KnownTags(tags.name, _left(tags.takes_budget)))
        else:
            steps.append(UnknownTags())
        return steps

    def _item(self, item: Item, steps: list[Step], run: Run) -> None:
        if item.kind == "fixed":
            run.add(CODES[item.type], f"o.{item.attribute}")
            return
        if item.kind == "struct":
            self._struct(item, steps, run)
        else:
            run.add(length_code(item), "n")
            flush(run, steps, self.packers)
            steps += self._variable(item, run.at)
        run.at = 0

    def _struct(self, item: Item, steps: list[Step], run: Run) -> None:
        assert item.layout is not None
        function = self.functions[item.layout]
        if item.nullable:
            # Kafka marks null by an int8 of -1, but within a tag by an unsigned varint of 0.
            run.add("B" if item.is_tagged else "b", "n")
        flush(run, steps, self.packers)
        start, left = offset("pos", run.at), _left(function.takes_budget)
        one = OneStruct(f"o.{item.attribute}", function.name, start, left)
        if not item.nullable:
            steps.append(one)
            return
        if item.is_tagged:
            steps.append(LongLength("n > 127", "long_length", run.at))
        steps.append(NullableStruct("n == 0" if item.is_tagged else "n < 0", one, run.at))

    def _variable(self, item: Item, at: int) -> list[Step]:
        """Return the steps for a value whose length was read."""
        target = f"o.{item.attribute}"
        value: Step = self._value(item, target, at)
        if item.nullable:
            skip = (Advance(at),) if at else ()
            value = OrNone("n" if item.compact else "n >= 0", value, target, skip)
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
            return Structs(target, function.name, start, count, _left(function.takes_budget))
        if item.element == "fixed" and item.type != "uuid":
            size = FIXED_SIZES[item.type]
            length = offset(f"{size} * n" if size > 1 else "n", at - size * item.compact)
            return Numbers(target, CODES[item.type], count, start, length)
        return Values(target, _reader(item), start, count)

    def _tags(self, layout: Layout, versions: list[int]) -> DecodeTags:
        branches: list[TagBranch] = []
        for tag, item in layout.tagged:
            steps: list[Step] = []
            run = Run()
            self._item(item, steps, run)
            flush(run, steps, self.packers)
            advance(run, steps)
            branches.append(TagBranch("elif" if branches else "if", tag, tuple(steps)))
        budget = any(self._takes_budget(item.layout) for _, item in layout.tagged)
        return DecodeTags(
            name=f"decode_{function_stem(layout.name, versions)}_tags",
            struct=layout.name,
            versions=ranges(versions),
            branches=tuple(branches),
            takes_budget=budget,
            left=_left(budget),
            parameter=", left: int" if budget else "",
            result="tuple[int, int]" if budget else "int",
        )


def _left(takes_budget: bool) -> str:
    """Return the expression that passes the budget of small structs on and back."""
    return ", left" if takes_budget else ""


def _view(layout: Layout) -> tuple[View, ...]:
    has_records = any(item.kind == "records" for item in layout.items)
    return (View(),) if has_records else ()


def _defaults(layout: Layout) -> tuple[Default, ...]:
    absent = [Default(f"o.{each.attribute}", each.default) for each in layout.absent]
    tagged = [Default(f"o.{item.attribute}", item.default) for _, item in layout.tagged]
    return (*absent, *tagged)


def _length(item: Item, at: int) -> list[Step]:
    """Return steps for the rare forms of a length: several bytes, or a null that is not allowed."""
    if not item.compact:
        return [] if item.nullable else [RefuseNull()]
    condition = "n > 127" if item.nullable else "not 0 < n < 128"
    if item.kind == "records":
        return [RecordsLength(condition, offset("pos", at), at)]
    helper = "long_string" if item.kind == "string" else "long_length"
    return [LongLength(condition, helper, at)]


def _reader(item: Item) -> str:
    """Return the name of the helper that reads an array of strings, bytes or uuids."""
    if item.type == "uuid":
        return "uuids"
    form = "compact" if item.compact else "plain"
    return f"{form}_{'strings' if item.element == 'string' else 'blobs'}"
