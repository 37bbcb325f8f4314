"""Counts the elements of small structs in a message, which decoders limit by the message's size.

Encoding refuses to write more, so that the sender gets the error rather than the peer. A plan lists
the fields of a struct that are arrays of small structs, or contain some.
"""

from __future__ import annotations

from operator import attrgetter

from kraftwire.limits import ELEMENT_BYTES_MIN, ELEMENT_FREE_COUNT
from kraftwire.wire.facts import MessageFacts, StructFacts
from kraftwire.wire.sizes import min_struct_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    CountCheck = Callable[[Any, int], bool]
    Counter = Callable[[Any], int]

# Attribute, whether it is an array, whether its elements count, and the plan of its struct.
_Plan = tuple[tuple[str, bool, bool, "_Plan"], ...]


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
