"""Sizes and defaults that the slow reader, the slow writer and the JSON form share."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from kraftwire.wire.facts import FieldFacts, StructFacts

FIXED_CODES = {
    "bool": ">?",
    "int8": ">b",
    "int16": ">h",
    "uint16": ">H",
    "int32": ">i",
    "uint32": ">I",
    "int64": ">q",
    "float64": ">d",
    "uuid": ">16s",
}

FIXED_SIZES = {
    "bool": 1,
    "int8": 1,
    "int16": 2,
    "uint16": 2,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
    "float64": 8,
    "uuid": 16,
}


def is_optional_struct(facts: FieldFacts) -> bool:
    """Whether None stands for a struct with every field at its default (tagged structs)."""
    tagged = facts.tagged.low <= facts.tagged.high
    nullable = facts.nullable.low <= facts.nullable.high
    return facts.struct is not None and not facts.is_array and tagged and not nullable


def fresh_default(facts: FieldFacts) -> Any:
    """Return the value of an absent field; a new object if it is mutable."""
    if facts.default != ():
        return facts.default
    if facts.is_array:
        return []
    assert facts.struct is not None
    return facts.struct.cls()


def is_at_default(facts: FieldFacts, value: Any) -> bool:
    """Whether a value need not be written: a tagged field's default, or an absent field's."""
    if value is None and facts.default is None:
        return True
    if is_optional_struct(facts):
        assert facts.struct is not None
        return bool(value == facts.struct.cls())
    return bool(value == fresh_default(facts))


def _sizes_of(type_name: str, compact: bool) -> int:
    if compact:
        return 1
    return 2 if type_name == "string" else 4


def min_struct_size(facts: StructFacts, version: int, flexible: bool) -> int:
    """Return the smallest size of a struct in a version."""
    total = int(flexible)
    for each in facts.fields:
        if version in each.versions and version not in each.tagged:
            total += _min_field_size(each, version, flexible)
    return total


def _min_field_size(facts: FieldFacts, version: int, flexible: bool) -> int:
    if facts.is_array:
        return 1 if version in facts.flexible else 4
    if facts.struct:
        if version in facts.nullable:
            return 1
        return min_struct_size(facts.struct, version, flexible)
    if facts.type in FIXED_SIZES:
        return FIXED_SIZES[facts.type]
    return _sizes_of(facts.type, version in facts.flexible)


def in_runs(
    facts: StructFacts, version: int, *, apart: str = ""
) -> Iterator[FieldFacts | list[FieldFacts]]:
    """The untagged fields of a version, in order: those of fixed size that follow each other
    together, and every other field alone; so is the field named `apart`.
    """
    run: list[FieldFacts] = []
    for each in facts.fields:
        if version not in each.versions or version in each.tagged:
            continue
        if each.type in FIXED_SIZES and not each.is_array and each.name != apart:
            run.append(each)
            continue
        if run:
            yield run
            run = []
        yield each
    if run:
        yield run


def tagged_fields(facts: StructFacts, version: int) -> list[FieldFacts]:
    """The tagged fields of a version, in the order of the schema."""
    return [each for each in facts.fields if version in each.versions and version in each.tagged]
