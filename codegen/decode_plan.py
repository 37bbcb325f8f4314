"""Plan the decoder of one layout: which reads are fused, which lengths are looked at, in order."""

from __future__ import annotations

from dataclasses import dataclass, field

from codegen.layout import Item, Layout
from codegen.names import function_stem
from codegen.packers import PackerSet, Run
from codegen.steps import DecodeFunction, Step, TagBranch, TagsFunction
from codegen.sweep_plan import plan_sweep
from codegen.types import FIXED

__all__ = ["DecodePlanner"]

# An element this small costs far more as an object than on the wire, so a budget bounds them.
_SMALL_STRUCT_SIZE = 8


@dataclass
class DecodePlanner:
    """Collects the decode functions of a module; equal layouts share one."""

    packers: PackerSet
    labels: dict[Layout, str]
    functions: dict[Layout, DecodeFunction] = field(default_factory=dict)

    def plan(self, layout: Layout, *, is_root: bool = False) -> DecodeFunction:
        """The function for a layout, planned on first use together with those it calls."""
        if layout not in self.functions:
            # Inner functions first: the module reads bottom-up.
            for child in layout.children:
                self.plan(child)
            self.functions[layout] = self._function(layout, is_root)
        return self.functions[layout]

    def _function(self, layout: Layout, is_root: bool) -> DecodeFunction:
        label = self.labels[layout]
        is_small = not is_root and layout.min_size < _SMALL_STRUCT_SIZE
        children = [self.functions[child] for child in layout.children]
        takes_budget = is_small or any(child.takes_budget for child in children)
        stem = function_stem(layout.name, label)
        tags = self._tags(layout, stem) if layout.tagged else None
        steps = self._steps(layout)
        return DecodeFunction(
            name=f"decode_{stem}" if is_root else f"decode_{stem}_array",
            struct=layout.name,
            versions=label,
            is_root=is_root,
            steps=steps,
            absent=[
                f"o.{absent.attribute} = {absent.default}" for absent in layout.absent
            ],
            min_size=max(1, layout.min_size),
            is_small=is_small,
            takes_budget=takes_budget or is_root,
            tags=tags,
            uses_view=any(item.kind == "records" for item in layout.items),
            sweep=None if is_root else plan_sweep(layout, self.packers),
            guess=[] if is_root else self._guess(layout),
        )

    def _guess(self, layout: Layout) -> list[Step]:
        """Steps for structs whose arrays of structs are empty, before records that are not.

        A fetched partition is such a one, unless transactions were aborted: one read then does
        for all that stands before the records.
        """
        if not layout.items or layout.items[-1].kind != "records":
            return []
        arrays = [item for item in layout.items[:-1] if item.kind != "fixed"]
        if not arrays or any(item.element != "struct" for item in arrays):
            return []
        return self._steps(layout, is_guess=True)

    def _steps(self, layout: Layout, *, is_guess: bool = False) -> list[Step]:
        steps: list[Step] = []
        run = Run()
        guessed: list[Step] = []
        for item in layout.items:
            if is_guess and item.element == "struct":
                name = f"n{len(guessed)}"
                run.add("B" if item.compact else "i", name)
                target = f"o.{item.attribute}"
                guessed.append(
                    Step("guess", target, nullable=item.nullable, compact=item.compact, code=name)
                )
                continue
            if item.kind == "records" and guessed:
                run.add(_length_code(item), "n")
                self._flush(run, steps)
                steps += guessed
                steps.append(self._variable(item, f"o.{item.attribute}", run.at))
                run.at = 0
                continue
            self._item(item, steps, run)
        if layout.flexible:
            run.add("B", "n")
            self._flush(run, steps)
            self._advance(run, steps)
            stem = function_stem(layout.name, self.labels[layout])
            if layout.tagged:
                budget = any(
                    self.functions[item.layout].takes_budget
                    for _, item in layout.tagged
                    if item.layout
                )
                steps.append(
                    Step("known_tags", function=f"decode_{stem}_tags", takes_budget=budget)
                )
            else:
                steps.append(Step("unknown_tags"))
        else:
            self._flush(run, steps)
            self._advance(run, steps)
            steps.append(Step("no_tags"))
        return steps

    def _item(self, item: Item, steps: list[Step], run: Run) -> None:
        target = f"o.{item.attribute}"
        if item.kind == "fixed":
            run.add(FIXED[item.type].code, target)
        elif item.kind == "struct":
            self._struct(item, steps, run)
        else:
            run.add(_length_code(item), "n")
            self._flush(run, steps)
            steps.append(self._variable(item, target, run.at))
            run.at = 0

    def _struct(self, item: Item, steps: list[Step], run: Run) -> None:
        assert item.layout is not None
        function = self.functions[item.layout]
        if item.nullable:
            # Kafka marks null by an int8 of -1, but within a tag by an unsigned varint of 0.
            run.add("B" if item.is_tagged else "b", "n")
        self._flush(run, steps)
        steps.append(
            Step(
                "struct",
                compact=item.is_tagged,
                target=f"o.{item.attribute}",
                nullable=item.nullable,
                function=function.name,
                takes_budget=function.takes_budget,
                at=run.at,
            )
        )
        run.at = 0

    def _variable(self, item: Item, target: str, at: int) -> Step:
        kind = item.kind if item.kind != "array" else f"{item.element}_array"
        if kind == "fixed_array" and item.type == "uuid":
            kind = "uuid_array"
        function = self.functions[item.layout] if item.layout else None
        return Step(
            kind,
            target=target,
            nullable=item.nullable,
            compact=item.compact,
            code=FIXED[item.type].code if kind == "fixed_array" else "",
            size=FIXED[item.type].size if kind == "fixed_array" else 0,
            function=function.name if function else "",
            takes_budget=function.takes_budget if function else False,
            at=at,
        )

    def _flush(self, run: Run, steps: list[Step]) -> None:
        if run.codes == ["B"]:
            steps.append(Step("byte", at=run.at))
        elif run:
            targets = run.arguments + ("," if len(run.codes) == 1 else "")
            name = self.packers.name("get", run.codes)
            steps.append(Step("unpack", target=targets, packer=name, at=run.at))
        run.at += run.size
        run.clear()

    def _advance(self, run: Run, steps: list[Step]) -> None:
        if run.at:
            steps.append(Step("advance", size=run.at))
        run.at = 0

    def _tags(self, layout: Layout, stem: str) -> TagsFunction:
        branches = []
        budget = False
        for tag, item in layout.tagged:
            steps: list[Step] = []
            run = Run()
            self._item(item, steps, run)
            self._flush(run, steps)
            self._advance(run, steps)
            branches.append(TagBranch(tag, steps))
            budget |= bool(item.layout and self.functions[item.layout].takes_budget)
        defaults = [f"o.{item.attribute} = {item.default}" for _, item in layout.tagged]
        return TagsFunction(f"decode_{stem}_tags", layout.name, branches, budget, defaults)


def _length_code(item: Item) -> str:
    if item.compact:
        return "B"
    return "h" if item.kind == "string" else "i"
