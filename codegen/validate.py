"""Numbered rules that a schema must follow; an error names file, line and field path.

They are the rules of Kafka's own schema format (its message generator enforces the same) and those
that kraftwire's code relies on. `RULES` is the list; `codegen/README.md` explains each.
"""

from __future__ import annotations

import base64
import itertools
import keyword
import math
import re
from collections.abc import Callable, Iterator

from codegen.defaults import default_of
from codegen.errors import SchemaError
from codegen.names import snake
from codegen.schema import Field, Message, Struct
from codegen.types import FIXED

_KINDS = {
    "request", "response", "header", "metadata", "data", "coordinator-key", "coordinator-value",
}  # fmt: skip
_NAME = re.compile(r"[A-Z][A-Za-z0-9]*")
# Names that a generated module and its classes need for themselves.
_TAKEN_STRUCTS = frozenset({
    "Classic", "Compact", "EMPTY", "FLOAT64", "INT16", "INT32", "INT64", "INT8", "Message",
    "NotInVersion", "Packer", "Parts", "Struct", "Tags", "UINT16", "UINT32", "Versions",
})  # fmt: skip
_TAKEN_ATTRIBUTES = frozenset({
    "decode", "encode", "facts", "from_json", "self", "to_json", "unknown_tagged_fields",
})  # fmt: skip
Problem = str
MessageRule = Callable[[Message], Problem]
FieldRule = Callable[[Message, Struct, Field], Problem]

MESSAGE_RULES: dict[str, MessageRule] = {
    "M1": lambda m: "" if _NAME.fullmatch(m.name) and not _is_taken(m.name) else (
        f"name {m.name!r} is not CamelCase, or taken"
    ),
    "M2": lambda m: "" if m.kind in _KINDS else f"type {m.kind!r} is none of {sorted(_KINDS)}",
    "M3": lambda m: (
        "a request or response needs an apiKey of 0 or more"
        if m.kind in ("request", "response") and m.api_key < 0
        else ""
    ),
    "M4": lambda m: "validVersions must have an end" if m.versions.high > 1000 else "",
    "M5": lambda m: (
        "flexibleVersions must reach to the end: once flexible, always flexible"
        if m.flexible and m.flexible.high < m.versions.high
        else ""
    ),
}

FIELD_RULES: dict[str, FieldRule] = {
    "F1": lambda m, s, f: (
        ""
        if all(_NAME.fullmatch(str(name).capitalize()) for name in (f.name, *f.former))
        else "the name is not a word"
    ),
    "F2": lambda m, s, f: (
        "" if f.tagged.within(f.versions) else f"taggedVersions {f.tagged} exceed {f.versions}"
    ),
    "F3": lambda m, s, f: (
        f"taggedVersions {f.tagged} need flexible versions, which are {m.flexible}"
        if f.tagged and not f.tagged.within(m.flexible)
        else ""
    ),
    "F4": lambda m, s, f: "a tag needs taggedVersions" if f.tag >= 0 and not f.tagged else "",
    "F5": lambda m, s, f: "taggedVersions need a tag" if f.tagged and f.tag < 0 else "",
    "F6": lambda m, s, f: (
        f"type {f.type} cannot be null"
        if f.nullable and not f.is_array and f.type in FIXED
        else ""
    ),
    "F7": lambda m, s, f: (
        "default null needs nullableVersions that cover all versions"
        if f.default == "null" and not _covers(f, m)
        else ""
    ),
    "F8": lambda m, s, f: _default_problem(f),
    "F9": lambda m, s, f: (
        f"arrays of {f.type} are not supported"
        if f.is_array and f.type in ("bool", "records")
        else ""
    ),
    "F10": lambda m, s, f: (
        f"an array or struct has no default but null, is {f.default!r}"
        if (f.is_array or f.struct) and f.default not in (None, "", "null")
        else ""
    ),
    "F11": lambda m, s, f: (
        f"attribute {f.attribute!r} is taken by the generated class"
        if not _TAKEN_ATTRIBUTES.isdisjoint((f.attribute, *map(snake, f.former)))
        else ""
    ),
    "F12": lambda m, s, f: (
        f"versions {f.versions} are none of the message's, which are {m.versions}"
        if f.versions.high < m.versions.low or f.versions.low > m.versions.high
        else ""
    ),
}

RULES = (*MESSAGE_RULES, *FIELD_RULES, "S1", "S2", "S3", "S4", "S5")


def validate(message: Message) -> None:
    """Check one message. Raises: SchemaError for the first broken rule."""
    for rule, check_message in MESSAGE_RULES.items():
        problem = check_message(message)
        if problem:
            raise SchemaError(
                problem, file=message.file, line=message.root.line, path=message.name, rule=rule
            )
    for struct in message.structs:
        _validate_struct(message, struct)


def _validate_struct(message: Message, struct: Struct) -> None:
    for rule, problem, line in _struct_problems(struct):
        raise SchemaError(problem, file=message.file, line=line, path=struct.name, rule=rule)
    for field in struct.fields:
        for rule, check_field in FIELD_RULES.items():
            problem = check_field(message, struct, field)
            if problem:
                raise SchemaError(
                    problem,
                    file=message.file,
                    line=field.tag_line if rule == "F4" else field.line,
                    path=f"{struct.name}.{field.name}",
                    rule=rule,
                )


def _struct_problems(struct: Struct) -> Iterator[tuple[str, str, int]]:
    names: set[str] = set()
    tags: dict[int, str] = {}
    for field in struct.fields:
        if field.attribute in names:
            yield "S1", f"field {field.name} appears twice", field.line
        names.add(field.attribute)
        if field.tag >= 0 and field.tag in tags:
            other = tags[field.tag]
            yield "S2", f"tag {field.tag} of {field.name} is also {other}'s", field.tag_line
        tags[field.tag] = field.name
    if not _NAME.fullmatch(struct.name) or _is_taken(struct.name):
        yield "S4", f"struct name {struct.name!r} is not CamelCase, or taken", struct.line
    yield from _former_problems(struct)
    missing = [tag for tag in range(len(tags) - (-1 in tags)) if tag not in tags]
    if missing:
        line = next(field.tag_line for field in struct.fields if field.tag > missing[0])
        yield "S3", f"tags must be 0, 1, 2 ... without a hole; {missing[0]} is missing", line


def _former_problems(struct: Struct) -> Iterator[tuple[str, str, int]]:
    for field, other in itertools.permutations(struct.fields, 2):
        both = {other.name, *other.former} & {*field.former}
        if both and field.versions.overlaps(other.versions):
            name = min(both)
            yield "S5", f"former name {name} of {field.name} is also {other.name}'s", field.line


def _is_taken(name: str) -> bool:
    return name in _TAKEN_STRUCTS or keyword.iskeyword(name)


def _covers(field: Field, message: Message) -> bool:
    low = max(field.versions.low, message.versions.low)
    high = min(field.versions.high, message.versions.high)
    return low > high or (field.nullable.low <= low and field.nullable.high >= high)


def _default_problem(field: Field) -> str:
    try:
        text = default_of(field)
    except ValueError:
        return f"default {field.default!r} is not a value of type {field.type_text}"
    if text == "None" or field.is_array or field.struct or not field.has_default:
        return ""
    return _fits(field, text)


def _fits(field: Field, text: str) -> str:
    given = field.default
    if field.type == "bool" and given not in (True, False, "true", "false", ""):
        return f"default {given!r} is neither true nor false"
    if field.type == "string" and any("\ud800" <= char <= "\udfff" for char in str(given)):
        return f"default {given!r} is not text that UTF-8 can encode"
    if field.type in ("bytes", "records") and given not in (None, ""):
        return f"type {field.type} has no default but empty or null, is {given!r}"
    if field.type == "float64" and not math.isfinite(float(text)):
        return f"default {given!r} is not finite"
    if field.type == "uuid" and given and len(base64.urlsafe_b64decode(f"{given}==")) != 16:
        return f"default {given!r} is not a uuid"
    if field.type.startswith(("int", "uint")):
        bits = FIXED[field.type].size * 8
        low, high = (0, 2**bits) if field.type[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1))
        if not low <= int(text) < high:
            return f"default {text} does not fit {field.type}"
    return ""
