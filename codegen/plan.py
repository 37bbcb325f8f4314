"""Plan a whole module: classes, functions, tables and facts, all decided before a template runs."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from codegen.decode_plan import DecodePlanner
from codegen.decode_steps import Numbers, UnevenSweep
from codegen.encode_plan import EncodePlanner
from codegen.encode_steps import EncodeRoot, EncodeTags
from codegen.layout import Layout, default_of, is_optional_struct, layouts_of
from codegen.packers import PackerSet
from codegen.schema import NO_VERSIONS, Field, Message, Struct, Versions
from codegen.steps import Function, helpers_of
from codegen.types import FIXED, VARIABLE

__all__ = ["AttributePlan", "ModulePlan", "StructPlan", "fill", "plan_module"]


@dataclass
class AttributePlan:
    """One attribute of a class."""

    name: str
    annotation: str
    parameter_default: str
    assigned: str
    note: str


@dataclass
class StructPlan:
    """One class."""

    name: str
    about: str
    slots: str
    attributes: list[AttributePlan]
    is_root: bool

    @property
    def helpers(self) -> set[str]:
        """What its constructor needs of kraftwire.wire.fast."""
        defaults = {attribute.parameter_default for attribute in self.attributes}
        return defaults & {"EMPTY", "ZERO_UUID"}


@dataclass
class ModulePlan:
    """Everything the module template prints."""

    message: Message
    about: str
    structs: list[StructPlan]
    decoders: list[Function]
    encoders: list[Function]
    decoder_table: str
    encoder_table: str
    globals: list[tuple[str, str]]
    facts: str
    exported: str
    imports: str
    has_structs: bool
    has_arrays: bool


def plan_module(message: Message) -> ModulePlan:
    """Plan the module of one message; a pure function of the schema."""
    layouts = layouts_of(message)
    labels = _labels(layouts)
    packers = PackerSet()
    decode = DecodePlanner(packers, labels)
    encode = EncodePlanner(packers, labels)
    decoder_table: list[str] = []
    encoder_table: list[str] = []
    for version, layout in layouts.items():
        decoder_table.append(f"{version}: {decode.plan(layout, is_root=True).name},")
        encoder_table.append(f"{version}: {encode.plan(layout, is_root=True).name},")
    decoders, encoders = decode.in_order(), encode.in_order()
    structs = [_struct(struct, message) for struct in message.structs]
    found = [*_tables(packers, encode.rows, decoders)]
    used = {"Parts", "blanks", *helpers_of(decoders), *helpers_of(encoders)}
    used |= {value.partition("(")[0].partition("[")[0] for _, value in found}
    used |= {name for struct in structs for name in struct.helpers}
    return ModulePlan(
        message=message,
        about=structs[-1].about,
        structs=structs,
        decoders=decoders,
        encoders=encoders,
        decoder_table=fill(decoder_table, 4),
        encoder_table=fill(encoder_table, 4),
        globals=found,
        facts=_facts(message),
        exported=_wrap(sorted(struct.name for struct in message.structs), 4),
        imports=fill([f"{name}," for name in sorted(used, key=_import_order)], 4),
        has_structs=len(structs) > 1,
        has_arrays=any(not isinstance(each, EncodeRoot | EncodeTags) for each in encoders),
    )


def _import_order(name: str) -> tuple[int, str]:
    """Constants, classes, functions, each by name."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2), name


def _tables(
    packers: PackerSet, rows: dict[str, str], decoders: list[Function]
) -> Iterator[tuple[str, str]]:
    """The global values that functions look things up in, each after those that it needs."""
    yield from sorted(packers.formats.items())
    for name, layout in rows.items():
        yield name, f'Rows("{layout}")'
    steps = [step for function in decoders for step in function.walk()]
    sweeps = [step for step in steps if isinstance(step, UnevenSweep)]
    groups = {group.lists: group.arguments for sweep in sweeps for group in sweep.groups}
    for name, arguments in sorted(groups.items()):
        yield name, f"lists({arguments})"
    for sweep in sweeps:
        places = ", ".join(f"({group.gap}, {group.lists})" for group in sweep.groups)
        yield sweep.name, f'Sweep("{sweep.layout}", {places})'
    for code in sorted({step.code for step in steps if isinstance(step, Numbers)}):
        yield f"UNPACK_{code}", f'UNPACK["{code}"]'
        yield f"PACK_{code}", f'PACK["{code}"]'


def _wrap(names: list[str], indent: int) -> str:
    return fill([f'"{name}",' for name in names], indent)


def fill(parts: list[str], indent: int) -> str:
    """Parts that hold no space themselves, as many on a line as fit."""
    text = " ".join(part.replace(" ", "\0") for part in parts)
    pad = " " * indent
    lines = textwrap.wrap(
        text, 100, initial_indent=pad, subsequent_indent=pad, break_on_hyphens=False
    )
    return "\n".join(lines).replace("\0", " ")


def _labels(layouts: dict[int, Layout]) -> dict[Layout, str]:
    """The versions in which each layout is used, such as ``0-3,5``."""
    used: dict[Layout, list[int]] = {}

    def visit(layout: Layout, version: int) -> None:
        versions = used.setdefault(layout, [])
        if version not in versions:
            versions.append(version)
        for child in layout.children:
            visit(child, version)

    for version, layout in layouts.items():
        visit(layout, version)
    return {layout: _ranges(versions) for layout, versions in used.items()}


def _ranges(versions: list[int]) -> str:
    parts: list[Versions] = []
    for version in sorted(versions):
        if parts and parts[-1].high == version - 1:
            parts[-1] = Versions(parts[-1].low, version)
        else:
            parts.append(Versions(version, version))
    return ",".join(str(part) for part in parts)


def _struct(struct: Struct, message: Message) -> StructPlan:
    return StructPlan(
        name=struct.name,
        about=_docstring(struct.about) or f"Struct of {message.name}.",
        slots=_wrap([*(each.attribute for each in struct.fields), "unknown_tagged_fields"], 8),
        attributes=[_attribute(each) for each in struct.fields],
        is_root=struct is message.root,
    )


def _sentence(text: str) -> str:
    text = " ".join(text.split())
    return text if not text or text.endswith(".") else text + "."


def _docstring(text: str) -> str:
    return _sentence(text).replace("\\", "\\\\").replace('"""', "'''")


def _attribute(field: Field) -> AttributePlan:
    name = field.attribute
    default = default_of(field)
    is_mutable = default == "[]" or default.endswith("()")
    return AttributePlan(
        name=name,
        annotation=_annotation(field),
        parameter_default="EMPTY" if is_mutable else default,
        assigned=f"{default} if {name} is EMPTY else {name}" if is_mutable else name,
        note=_note(field),
    )


def _annotation(field: Field) -> str:
    if field.struct:
        base = field.type
    elif field.type in FIXED:
        base = FIXED[field.type].annotation
    else:
        base = VARIABLE[field.type][0]
    if field.is_array:
        base = f"list[{base}]"
    may_be_none = field.nullable or is_optional_struct(field) or field.default == "null"
    return f"{base} | None" if may_be_none else base


def _note(field: Field) -> str:
    parts = [f"{field.type_text}, versions {field.versions}"]
    if field.tagged:
        parts[0] += f", tag {field.tag}"
    return ": ".join([*parts, *filter(None, [_sentence(field.about)])])


def _facts(message: Message) -> str:
    structs = []
    for struct in message.structs:
        fields = [_field_fact(each, message) for each in struct.fields]
        body = "".join(f"            {fact},\n" for fact in fields)
        structs.append(f'        ("{struct.name}", (\n{body}        )),\n')
    head = (
        message.name, message.kind, message.api_key, _pair(message.versions),
        _pair(message.flexible), message.unstable, message.listeners, message.about,
    )  # fmt: skip
    lines = "".join(f"    {value!r},\n" for value in head)
    return f"(\n{lines}    (\n{''.join(structs)}    ),\n)"


def _pair(versions: Versions) -> tuple[int, int]:
    return (versions.low, versions.high)


def _field_fact(field: Field, message: Message) -> str:
    flags = ("i" if field.ignorable else "") + ("k" if field.map_key else "")
    own_flexible = field.flexible != message.flexible
    values = [
        repr(field.json),
        repr(field.attribute),
        repr(field.type_text),
        repr(_pair(field.versions)),
        repr(_pair(field.nullable) if field.nullable else None),
        repr(_pair(field.tagged) if field.tagged else None),
        repr(field.tag),
        _default_fact(field),
        repr(flags),
        repr(_pair(field.flexible or NO_VERSIONS) if own_flexible else None),
        repr(field.entity_type),
        repr(field.about),
    ]
    return f"({', '.join(values)})"


def _default_fact(field: Field) -> str:
    default = default_of(field)
    if default == "ZERO_UUID":
        return repr(bytes(16))
    # Lists and structs are made afresh by the readers; the facts only say that it is not null.
    return "()" if default == "[]" or default.endswith("()") else default
