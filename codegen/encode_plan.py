"""Plan the encoder of one layout: which writes are fused and what a version must refuse."""

from __future__ import annotations

from dataclasses import dataclass, field

from codegen.layout import Absent, Item, Layout
from codegen.names import function_stem
from codegen.packers import PackerSet, Run
from codegen.row_plan import local_name, plan_row
from codegen.steps import EncodeFunction, Step, TagBranch, TagsFunction
from codegen.types import FIXED

__all__ = ["EncodePlanner"]


@dataclass
class EncodePlanner:
    """Collects the encode functions of a module; equal layouts share one."""

    packers: PackerSet
    labels: dict[Layout, str]
    functions: dict[Layout, EncodeFunction] = field(default_factory=dict)

    def plan(self, layout: Layout, *, is_root: bool = False) -> EncodeFunction:
        """The function for a layout, planned on first use together with those it calls."""
        if layout not in self.functions:
            for child in layout.children:
                self.plan(child)
            self.functions[layout] = self._function(layout, is_root)
        return self.functions[layout]

    def _function(self, layout: Layout, is_root: bool) -> EncodeFunction:
        label = self.labels[layout]
        stem = function_stem(layout.name, label)
        conditions = ["o.unknown_tagged_fields"]
        conditions += [_differs(item) for _, item in layout.tagged]
        refused = [_carries(absent) for absent in layout.absent if absent.refuse]
        # To `struct` anything is true or false, so these are looked at before.
        refused += [f"o.{each.attribute}.__class__ is not bool" for each in _bools(layout)]
        if not layout.flexible:
            refused.append("o.unknown_tagged_fields")
        return EncodeFunction(
            name=f"encode_{stem}" if is_root else f"encode_{stem}_array",
            struct=layout.name,
            versions=label,
            is_root=is_root,
            steps=self._steps(layout),
            refuse=" or ".join(refused),
            tags=self._tags(layout, stem) if layout.tagged else None,
            tags_condition=" or ".join(conditions) if layout.flexible else "",
            row=None if is_root else plan_row(layout, self.packers, f"row_{stem}"),
        )

    def _steps(self, layout: Layout) -> list[Step]:
        steps: list[Step] = []
        run = Run()
        for item in layout.items:
            self._item(item, steps, run)
        if layout.flexible:
            # A zero ends the struct; put_tags replaces it in the rare case of tagged fields.
            run.add("x", "")
        self._flush(run, steps)
        return steps

    def _item(self, item: Item, steps: list[Step], run: Run) -> None:
        source = f"o.{item.attribute}"
        if item.kind == "fixed":
            if item.type == "uuid":
                steps.append(Step("check_uuid", target=source))
            if item.type == "bool" and item.is_tagged:
                steps.append(Step("check_bool", target=source))
            run.add(FIXED[item.type].code, source)
        elif item.kind == "struct":
            self._struct(item, steps, run)
        else:
            self._variable(item, source, steps, run)

    def _struct(self, item: Item, steps: list[Step], run: Run) -> None:
        assert item.layout is not None
        source = f"o.{item.attribute}"
        if item.nullable:
            null = 0 if item.is_tagged else -1
            run.add("b", f"{null} if {source} is None else 1")
        self._flush(run, steps)
        function = self.functions[item.layout].name
        steps.append(Step("struct", target=source, nullable=item.nullable, function=function))

    def _variable(self, item: Item, source: str, steps: list[Step], run: Run) -> None:
        kind = item.kind if item.kind != "array" else f"{item.element}_array"
        if kind == "fixed_array" and item.type == "uuid":
            kind = "uuid_array"
        value = "s" if item.kind == "string" else local_name(item.attribute)
        steps.append(
            Step(
                "length",
                target=source,
                nullable=item.nullable,
                compact=item.compact,
                value=value,
                # The attribute may be None in other versions; here that raises, as it should.
                is_unchecked=item.may_be_none and not item.nullable,
                function=item.kind,
            )
        )
        self._flush_length(item, steps, run)
        function = self.functions[item.layout].name if item.layout else ""
        code = FIXED[item.type].code if kind == "fixed_array" else ""
        steps.append(Step(kind, compact=item.compact, code=code, function=function, value=value))

    def _flush_length(self, item: Item, steps: list[Step], run: Run) -> None:
        if not item.compact:
            run.add("h" if item.kind == "string" else "i", "n")
            self._flush(run, steps)
            return
        put_long = "STRING_LENGTH" if item.kind == "string" else "LENGTH"
        short, arguments = "", ""
        if run:
            short, arguments = self.packers.name("put", run.codes), run.arguments
        run.add("B", "n")
        packer = self.packers.name("put", run.codes) if len(run.codes) > 1 else ""
        steps.append(
            Step(
                "put_length",
                packer=packer,
                arguments=run.arguments,
                long_packer=short,
                long_arguments=arguments,
                function=put_long,
            )
        )
        run.clear()

    def _flush(self, run: Run, steps: list[Step]) -> None:
        if run.codes == ["x"]:
            steps.append(Step("zero"))
        elif run:
            name = self.packers.name("put", run.codes)
            steps.append(Step("pack", packer=name, arguments=run.arguments))
        run.clear()

    def _tags(self, layout: Layout, stem: str) -> TagsFunction:
        branches = []
        for tag, item in layout.tagged:
            steps: list[Step] = []
            run = Run()
            self._item(item, steps, run)
            self._flush(run, steps)
            branches.append(TagBranch(tag, steps, _differs(item)))
        return TagsFunction(f"encode_{stem}_tags", layout.name, branches)


def _bools(layout: Layout) -> list[Item]:
    return [item for item in layout.items if item.kind == "fixed" and item.type == "bool"]


def _differs(item: Item) -> str:
    """Python condition: the tagged field is not at its default, so it must be written."""
    source = f"o.{item.attribute}"
    if item.default == "None":
        if item.kind == "struct" and not item.nullable:
            return f"({source} is not None and {source} != {item.type}())"
        return f"{source} is not None"
    if item.default in ("[]", '""', 'b""', "0", "False") and not item.nullable:
        return source
    return f"not {source}" if item.default == "True" else f"{source} != {item.default}"


def _carries(absent: Absent) -> str:
    """Python condition: the field holds something that the version has no room for."""
    source = f"o.{absent.attribute}"
    if absent.default == "None":
        if absent.is_struct and not absent.nullable:
            return f"({source} is not None and {source} != {absent.type}())"
        return f"{source} is not None"
    if absent.default in ("[]", '""', 'b""', "0", "False") and not absent.nullable:
        return source
    return f"not {source}" if absent.default == "True" else f"{source} != {absent.default}"
