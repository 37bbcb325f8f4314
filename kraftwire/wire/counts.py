"""How many elements of small structs a message has, of which decoders take a limited number.

A decoder allows so many for the bytes of a message, and encoding refuses to write more, so that the
sender learns of it rather than the peer. A plan has the fields of a struct that are arrays of small
structs, or lead to some.
"""

from __future__ import annotations

from kraftwire.limits import ELEMENT_BYTES_MIN, ELEMENT_FREE_COUNT
from kraftwire.wire.facts import MessageFacts, StructFacts
from kraftwire.wire.sizes import min_struct_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["has_too_many"]

# Attribute, whether it is an array, whether its elements count, and the plan of its struct.
_Plan = tuple[tuple[str, bool, bool, "_Plan"], ...]

_plans: dict[tuple[str, int], _Plan] = {}


def has_too_many(facts: MessageFacts, message: Any, version: int, size: int) -> bool:
    """Whether decoders refuse the elements of a message that takes so many bytes."""
    key = facts.name, version
    plan = _plans.get(key)
    if plan is None:
        plan = _plans[key] = _plan(facts.root, version, version in facts.flexible)
    return _count(plan, message) > ELEMENT_FREE_COUNT + size // ELEMENT_BYTES_MIN


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


def _count(plan: _Plan, value: Any) -> int:
    total = 0
    for attribute, is_array, is_small, inner in plan:
        held = getattr(value, attribute)
        if not held:
            continue
        if is_small:
            total += len(held)
        if inner:
            total += sum(_count(inner, one) for one in held) if is_array else _count(inner, held)
    return total
