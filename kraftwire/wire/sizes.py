"""Least sizes, defaults and counts by schema, which readers, writers and the JSON form share.

`count_check` counts the elements of small structs in a message, which decoders limit by the
message's size. Encoding refuses to write more, so that the sender gets the error rather than the
peer.
"""

from __future__ import annotations

from operator import attrgetter

from kraftwire.limits import ELEMENT_BYTES_MIN, ELEMENT_FREE_COUNT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from kraftwire.wire.facts import FieldFacts, MessageFacts, StructFacts

    CountCheck = Callable[[Any, int], bool]
    Counter = Callable[[Any], int]

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

# The fields of a struct that are arrays of small structs, or contain some: attribute, whether it is
# an array, whether its elements count, and the plan of its struct.
_Plan = tuple[tuple[str, bool, bool, "_Plan"], ...]


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


def count_check(facts: MessageFacts, version: int) -> CountCheck:
    """Return a function that takes a message and its size: whether decoders would refuse it."""
    plan = _plan(facts.root, version, version in facts.flexible)
    if not plan:
        return _never
    count = _counter(plan)
    return lambda message, size: count(message) > ELEMENT_FREE_COUNT + size // ELEMENT_BYTES_MIN


def _never(message: Any, size: int) -> bool:  # noqa: ARG001
    return False


def _plan(facts: StructFacts, version: int, is_flexible: bool) -> _Plan:
    steps = []
    for each in facts.fields:
        if each.struct is None or version not in each.versions:
            continue
        inner = _plan(each.struct, version, is_flexible)
        size = min_struct_size(each.struct, version, is_flexible)
        is_small = each.is_array and size < ELEMENT_BYTES_MIN
        if is_small or inner:
            steps.append((each.attribute, each.is_array, is_small, inner))
    return tuple(steps)


def _counter(plan: _Plan) -> Counter:
    """Return a function that counts the elements in a struct."""
    steps = [_step_counter(*step) for step in plan]
    return steps[0] if len(steps) == 1 else lambda value: sum(step(value) for step in steps)


def _step_counter(attribute: str, is_array: bool, is_small: bool, inner: _Plan) -> Counter:
    get = attrgetter(attribute)
    if not inner:
        return lambda value: len(get(value) or ())
    count = _counter(inner)
    if not is_array:
        return lambda value: count(held) if (held := get(value)) else 0

    def count_array(value: Any) -> int:
        held = get(value) or ()
        return (len(held) if is_small else 0) + sum(map(count, held))

    return count_array
