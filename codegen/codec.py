"""Plan the reader and the writer of each struct: one of each for all versions, as the schema reads.

Fields stand in the order of the schema. Fields of fixed size that follow each other are read by one
call, and so are written. What differs by version stands under a condition.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field

from codegen.branches import Block, Row, Step, blocks_of, condition, groups
from codegen.defaults import default_of, is_optional_struct
from codegen.schema import Field, Message, Struct
from codegen.types import FIXED

# Fields of fixed size are read by one call for each combination in which versions have them, as
# long as there are no more combinations than this.
_COMBINATIONS_MAX = 4

# The letters of formats that cannot be part of a name.
_LETTERS = {"16s": "U", "?": "o"}

_StepsOf = Callable[[list[Field], int], list[Step]]


@dataclass
class TagPlan:
    """A tagged field: the lines before the steps that read and write it, and these steps.

    `parts` is where a writer collects it.
    """

    read_head: str
    write_test: str
    parts: str
    reads: list[Step]
    writes: list[Step]


@dataclass
class CodecPlan:
    """The reader and the writer of a struct.

    `wire` is the encoding of lengths and tags: Classic or Compact, or a variable of this name that
    holds Compact where `compact_test` holds. `refusals` are conditions under which a version has
    no field for a value.
    """

    struct: str
    versions: list[int]
    wire: str
    compact_test: str
    reads: list[Block]
    refusals: list[str]
    writes: list[Block]
    tags: list[TagPlan]
    # Names that the module has to import, and formats by the names of their packers.
    helpers: set[str] = field(default_factory=set)
    packers: dict[str, str] = field(default_factory=dict)

    @property
    def reads_by_wire(self) -> bool:
        """Whether the reader needs the variable of the encoding."""
        if self.wire == "wire" and not self.tags:
            return True
        steps = (step for block in self.reads for branch in block.branches for step in branch.steps)
        return any(step.wire == "wire" for step in steps)


def plan_codecs(message: Message) -> list[CodecPlan]:
    """Plan the readers and writers of all structs, innermost first."""
    used = _versions_of(message)
    return [_Planner(message, struct, used[struct.name]).plan() for struct in message.structs]


def _versions_of(message: Message) -> dict[str, list[int]]:
    """The versions in which each struct is on the wire; all of them for one that never is."""
    every = list(range(message.versions.low, message.versions.high + 1))
    used: dict[str, set[int]] = {struct.name: set() for struct in message.structs}
    used[message.root.name] = set(every)
    # A struct comes after those that it holds.
    for struct in reversed(message.structs):
        for each in struct.fields:
            if each.struct:
                held = {version for version in used[struct.name] if version in each.versions}
                used[each.struct.name] |= held
    return {name: sorted(versions) or every for name, versions in used.items()}


class _Planner:
    """Plans the codec of one struct."""

    def __init__(self, message: Message, struct: Struct, versions: list[int]) -> None:
        self._struct = struct
        self._versions = versions
        self._compact = [each for each in versions if each in message.flexible]
        self._message = message
        self._helpers: set[str] = {"Parts", "new"}
        self._packers: dict[str, str] = {}
        self._wire = "wire"
        if not self._compact:
            self._wire = "Classic"
        elif self._compact == versions:
            self._wire = "Compact"

    def plan(self) -> CodecPlan:
        """Return the plan."""
        reads, writes = self._rows(self._reads), self._rows(self._writes)
        plan = CodecPlan(
            struct=self._struct.name,
            versions=self._versions,
            wire=self._wire,
            compact_test=condition(self._compact, self._versions) if self._compact else "",
            reads=blocks_of(reads, self._versions),
            refusals=self._refusals(),
            writes=blocks_of(writes, self._versions),
            tags=self._tags(),
            helpers=self._helpers,
            packers=self._packers,
        )
        self._helpers |= {"Classic", "Compact"} if self._wire == "wire" else {self._wire}
        if self._packers:
            self._helpers.add("Packer")
        if self._compact:
            self._helpers.add("Compact")
        if plan.tags:
            self._helpers |= {"Tags", "check_end", "keep_tag", "read_tag"}
        if plan.refusals:
            self._helpers.add("NotInVersion")
        return plan

    # -- which versions have which fields ------------------------------------------------------

    def _is_on_wire(self, each: Field, version: int) -> bool:
        """Whether a version has the field, and not as a tagged one."""
        return version in each.versions and version not in each.tagged

    def _rows(self, steps_of: _StepsOf) -> list[Row]:
        """The fields as rows of alternatives; those of fixed size together where possible."""
        rows: list[Row] = []
        run: list[Field] = []
        absent: list[Field] = []
        for each in self._struct.fields:
            if not any(self._is_on_wire(each, version) for version in self._versions):
                absent.append(each)
                continue
            if _is_fixed(each):
                run.append(each)
                continue
            rows += self._run_rows(run, steps_of)
            run = []
            forms = {version: self._form(each, version) for version in self._versions}
            rows.append({some: steps_of([each], some[0]) for some in groups(self._versions, forms)})
        rows += self._run_rows(run, steps_of)
        # Fields that are tagged in every version that has them.
        version = self._versions[-1]
        rows.append({tuple(self._versions): steps_of(absent, version)})
        return rows

    def _run_rows(self, run: list[Field], steps_of: _StepsOf) -> list[Row]:
        """The rows of fields of fixed size that follow each other."""
        if not run:
            return []
        combinations = self._combinations(run)
        if len(combinations) <= _COMBINATIONS_MAX:
            return [{some: steps_of(run, some[0]) for some in combinations}]
        # Fields of the same versions stay together.
        alike = 1
        while alike < len(run) and self._combinations(run[:alike]) == self._combinations(
            [run[alike]]
        ):
            alike += 1
        return self._run_rows(run[:alike], steps_of) + self._run_rows(run[alike:], steps_of)

    def _combinations(self, run: list[Field]) -> list[tuple[int, ...]]:
        """The versions that have the same of these fields."""
        present = {
            version: tuple(self._is_on_wire(each, version) for each in run)
            for version in self._versions
        }
        return groups(self._versions, present)

    def _form(self, each: Field, version: int) -> tuple[bool, bool, str]:
        """What a field's steps depend on: is it there, can it be null, how is it encoded."""
        if not self._is_on_wire(each, version):
            return (False, False, "")
        return (True, version in each.nullable, self._wire_of(each, version))

    def _wire_of(self, each: Field, version: int) -> str:
        """The encoding of a field, by its name if it is not always that of the struct."""
        flexible = self._message.flexible
        if all((one in each.flexible) == (one in flexible) for one in self._versions):
            return self._wire
        name = "Compact" if version in each.flexible else "Classic"
        self._helpers.add(name)
        return name

    # -- steps -------------------------------------------------------------------------------

    def _reads(self, fields: list[Field], version: int) -> list[Step]:
        """The steps that read fields in a version, and set those that it lacks."""
        steps: list[Step] = []
        there = [each for each in fields if self._is_on_wire(each, version)]
        if there and _is_fixed(there[0]):
            steps += self._unpack(there)
        elif there:
            steps.append(self._value(there[0], version, "read"))
        lacking = [each for each in fields if each not in there]
        return steps + [self._default(each) for each in lacking]

    def _writes(self, fields: list[Field], version: int) -> list[Step]:
        """The steps that write fields in a version."""
        there = [each for each in fields if self._is_on_wire(each, version)]
        if there and _is_fixed(there[0]):
            return [self._pack(there)]
        return [self._value(each, version, "write") for each in there]

    def _default(self, each: Field) -> Step:
        value = default_of(each)
        if value == "ZERO_UUID":
            self._helpers.add(value)
        return Step("default", each.attribute, value=value)

    def _unpack(self, fields: list[Field], holder: str = "o") -> list[Step]:
        targets = ", ".join(f"{holder}.{each.attribute}" for each in fields)
        if len(fields) == 1:
            targets = f"({targets},)"
        size = sum(FIXED[each.type].size for each in fields)
        packer = self._packer("unpack", fields)
        read = Step("unpack", value=targets, packer=packer, lines=_lines(targets))
        return [read, Step("advance", size=size)]

    def _pack(self, fields: list[Field]) -> Step:
        values = ", ".join(map(self._packed, fields))
        packer = self._packer("pack", fields)
        return Step("pack", value=values, packer=packer, lines=_lines(values))

    def _packed(self, each: Field) -> str:
        """The value of a field of fixed size, checked where `struct` would take anything."""
        check = {"bool": "exact_bool", "uuid": "exact_uuid"}.get(each.type)
        if check is None:
            return f"self.{each.attribute}"
        self._helpers.add(check)
        return f"{check}(self.{each.attribute})"

    def _packer(self, verb: str, fields: list[Field]) -> str:
        codes = [FIXED[each.type].code for each in fields]
        name = f"{verb}_{''.join(_LETTERS.get(code, code) for code in codes)}"
        method = "pack" if verb == "pack" else "unpack_from"
        self._packers[name] = f'Packer(">{"".join(codes)}").{method}'
        return name

    def _value(self, each: Field, version: int, verb: str) -> Step:
        """The step for a field of variable size."""
        nullable = "nullable_" if version in each.nullable else ""
        if each.struct and not each.is_array:
            kind = "tagged_struct" if nullable and version in each.tagged else "struct"
            helper = f"{nullable}{kind}"
            self._helpers.add(f"{verb}_{helper}")
            return Step("struct", each.attribute, value=helper, struct=each.type)
        wire = self._wire_of(each, version)
        if wire == "wire" and version in each.tagged:
            wire = "Compact"
        if each.struct:
            return Step("array", each.attribute, wire, f"{nullable}array", struct=each.type)
        if not each.is_array:
            what = "bytes" if verb == "write" and each.type == "records" else each.type
            return Step("value", each.attribute, wire, f"{nullable}{what}")
        if each.type in ("string", "bytes", "uuid"):
            what, element = "elements", f"{wire}.{verb}_{each.type}"
        else:
            what, element = "numbers", each.type.upper()
            self._helpers.add(element)
        return Step("elements", each.attribute, wire, f"{nullable}{what}", element)

    # -- tagged fields, and values that a version has no field for ------------------------------

    def _tags(self) -> list[TagPlan]:
        plans: list[TagPlan] = []
        for each in sorted(self._struct.fields, key=lambda each: each.tag):
            some = [version for version in self._versions if version in each.tagged]
            if not some:
                continue
            is_fixed = _is_fixed(each)
            version = some[-1]
            differs = self._differs(each)
            test = condition(some, self._versions)
            tests = [f"tag == {each.tag}", *filter(None, [condition(some, self._compact)])]
            plans.append(
                TagPlan(
                    read_head=f"{'elif' if plans else 'if'} {' and '.join(tests)}:",
                    write_test=f"{test} and {differs}" if test else differs,
                    parts=f"tags[{each.tag}]",
                    reads=self._unpack([each], "self")
                    if is_fixed
                    else [self._value(each, version, "read")],
                    writes=[self._pack([each])]
                    if is_fixed
                    else [self._value(each, version, "write")],
                )
            )
        return plans

    def _refusals(self) -> list[str]:
        """The conditions under which a version has no field for a value that is not the default."""
        found: dict[str, list[str]] = {}
        for each in self._struct.fields:
            lacking = [version for version in self._versions if version not in each.versions]
            if lacking and not each.ignorable:
                test = condition(lacking, self._versions)
                found.setdefault(test, []).append(self._differs(each))
        tests = []
        for test, values in found.items():
            held = " or ".join(values)
            if test and len(values) > 1:
                held = f"({held})"
            tests.append(f"{test} and {held}" if test else held)
        return tests

    def _differs(self, each: Field) -> str:
        """The condition that a field is not at its default."""
        source, default = f"self.{each.attribute}", default_of(each)
        if default == "ZERO_UUID":
            self._helpers.add(default)
        if is_optional_struct(each):
            return f"{source} is not None and {source} != {each.type}()"
        if default == "None":
            return f"{source} is not None"
        if default in ("[]", '""', 'b""', "0", "False") and not each.nullable:
            return source
        return f"not {source}" if default == "True" else f"{source} != {default}"


def _lines(names: str) -> tuple[str, ...]:
    """Names in several lines; none if they fit into one, with a call around them."""
    return tuple(textwrap.wrap(names, 76)) if len(names) > 60 else ()


def _is_fixed(each: Field) -> bool:
    return each.type in FIXED and not each.is_array
