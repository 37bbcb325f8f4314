"""Plan a whole module: classes, readers, writers and facts, all decided before a template runs."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

from codegen.codec import CodecPlan, plan_codecs
from codegen.defaults import default_of, is_optional_struct
from codegen.facts import facts_of
from codegen.names import snake
from codegen.schema import Field, Message, Struct
from codegen.types import FIXED, VARIABLE

_ENCODINGS = {"Classic", "Compact"}


@dataclass
class AttributePlan:
    """One attribute of a class."""

    name: str
    annotation: str
    parameter_default: str
    assigned: str
    note: str
    former: list[str]


@dataclass
class StructPlan:
    """One class."""

    name: str
    about: str
    slots: str
    attributes: list[AttributePlan]
    codec: CodecPlan
    is_root: bool

    @property
    def helpers(self) -> set[str]:
        """The names that it needs from kraftwire.wire."""
        defaults = {attribute.parameter_default for attribute in self.attributes}
        several = {"one_of" for attribute in self.attributes if attribute.former}
        return self.codec.helpers | several | defaults & {"EMPTY", "ZERO_UUID"}


@dataclass
class ModulePlan:
    """Everything the module template prints."""

    message: Message
    about: str
    structs: list[StructPlan]
    packers: list[tuple[str, str]]
    facts: str
    exported: str
    encodings: str
    imports: str
    has_structs: bool


def plan_module(message: Message) -> ModulePlan:
    """Plan the module of one message; a pure function of the schema."""
    pairs = zip(message.structs, plan_codecs(message), strict=True)
    structs = [_struct(struct, codec, message) for struct, codec in pairs]
    packers = {name: value for struct in structs for name, value in struct.codec.packers.items()}
    used = {name for struct in structs for name in struct.helpers}
    return ModulePlan(
        message=message,
        about=structs[-1].about,
        structs=structs,
        packers=sorted(packers.items()),
        facts=facts_of(message),
        exported=_wrap(sorted(struct.name for struct in message.structs), 4),
        encodings=", ".join(sorted(used & _ENCODINGS)),
        imports=_imports(used - _ENCODINGS),
        has_structs=len(structs) > 1,
    )


def _imports(names: set[str]) -> str:
    """Constants, classes, functions, each by name."""
    kinds = {name: 0 if name.isupper() else 1 if name[0].isupper() else 2 for name in names}
    return fill([f"{name}," for name in sorted(names, key=lambda name: (kinds[name], name))], 4)


def _wrap(names: list[str], indent: int) -> str:
    return fill([f'"{name}",' for name in names], indent)


def fill(parts: list[str], indent: int) -> str:
    """Fill lines with parts that contain no space themselves."""
    text = " ".join(part.replace(" ", "\0") for part in parts)
    pad = " " * indent
    lines = textwrap.wrap(
        text, 100, initial_indent=pad, subsequent_indent=pad, break_on_hyphens=False
    )
    return "\n".join(lines).replace("\0", " ")


def _struct(struct: Struct, codec: CodecPlan, message: Message) -> StructPlan:
    return StructPlan(
        name=struct.name,
        about=_docstring(struct.about) or f"Struct of {message.name}.",
        slots=_wrap([*(each.attribute for each in struct.fields), "unknown_tagged_fields"], 8),
        attributes=[_attribute(each, struct) for each in struct.fields],
        codec=codec,
        is_root=struct is message.root,
    )


def _sentence(text: str) -> str:
    text = " ".join(text.split())
    return text if not text or text.endswith(".") else text + "."


def _docstring(text: str) -> str:
    return _sentence(text).replace("\\", "\\\\").replace('"""', "'''")


def _attribute(field: Field, struct: Struct) -> AttributePlan:
    name = field.attribute
    default = default_of(field)
    is_mutable = default == "[]" or default.endswith("()")
    # A name that another field has by now means that one.
    taken = {each.attribute for each in struct.fields}
    former = [each for each in map(snake, field.former) if each not in taken]
    assigned = f"{default} if {name} is EMPTY else {name}" if is_mutable else name
    if former:
        given = ", ".join(f"{each}={each}" for each in (name, *former))
        assigned = f"one_of({default}, {given})"
    return AttributePlan(
        name=name,
        annotation=_annotation(field),
        parameter_default="EMPTY" if is_mutable or former else default,
        assigned=assigned,
        note=_note(field),
        former=former,
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
