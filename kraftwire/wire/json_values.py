"""Checks quickly whether values have their fields' types, before they become JSON.

Encoding notices most wrong types by itself. Printing would not: a number in a string field is valid
JSON too.
"""

from __future__ import annotations

from kraftwire.wire.sizes import is_optional_struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from kraftwire.wire.facts import FieldFacts

# Combinations of classes that are cached for a struct: a few, unless every field is nullable.
_COMBINATIONS_MAX = 256


class CannotPrintError(Exception):
    """A field holds a value that the version cannot carry, or that has the wrong type."""


class Values:
    """Checks the values of some fields at once.

    `known` holds the classes of values that were right and need not be checked again.
    """

    __slots__ = ("_fields", "_version", "known")

    def __init__(self, fields: list[FieldFacts], version: int) -> None:
        self._fields = fields
        self._version = version
        self.known: set[tuple[type, ...]] = set()

    def __call__(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the values, numbers as plain ones. Raises: CannotPrintError for a wrong type."""
        pairs = zip(self._fields, values, strict=True)
        sound = tuple(_sound(each, value, self._version) for each, value in pairs)
        is_plain = all(map(_is_same, values, sound))
        if is_plain and len(self.known) < _COMBINATIONS_MAX:
            self.known.add((*map(type, values),))
        return sound


def elements(field: FieldFacts) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """Return a function that checks an array's elements and returns them, numbers as plain ones.

    Raises: that function TypeError or CannotPrintError for an element of a wrong type.
    """
    plain = _METHODS.get(field.type)
    if plain:
        return lambda values: [*map(plain, values)]
    known: set[type] = set()

    def check(values: Sequence[Any]) -> Sequence[Any]:
        if not known.issuperset(map(type, values)):
            values = [_element(field, value) for value in values]
            if field.struct and len(known) < _COMBINATIONS_MAX:
                known.update(map(type, values))
        return values

    return check


def _is_same(one: object, two: object) -> bool:
    return one is two


def _sound(field: FieldFacts, value: Any, version: int) -> Any:
    if value is None:
        may_be_none = version in field.nullable
        if not may_be_none and not (version in field.tagged and is_optional_struct(field)):
            raise CannotPrintError
        return None
    if not field.is_array:
        return _element(field, value)
    if not isinstance(value, list | tuple):
        raise CannotPrintError
    return value


def _element(field: FieldFacts, value: Any) -> Any:
    if field.struct:
        if value.__class__ is not field.struct.cls:
            raise CannotPrintError
        return value
    if not isinstance(value, _CLASSES.get(field.type, int)):
        raise CannotPrintError
    # True is written as the number 1, so it is printed as 1.
    convert = _PLAIN.get(field.type, int)
    return value if convert is None or type(value) is convert else convert(value)


# Methods that accept only their own class, and return a plain value of it.
_METHODS: dict[str, Callable[[Any], Any]] = {
    "string": str.__str__,
    **dict.fromkeys(("int8", "int16", "uint16", "int32", "uint32", "int64"), int.__index__),
}

_CLASSES: dict[str, type | tuple[type, ...]] = {
    "bool": bool,
    "string": str,
    "float64": (int, float),
    "uuid": (bytes, bytearray, memoryview),
    "bytes": (bytes, bytearray, memoryview),
    "records": (bytes, bytearray, memoryview),
}

# Converts a number of another class; None for a field that is not a number.
_PLAIN: dict[str, type | None] = {
    "bool": None,
    "string": None,
    "float64": float,
    "uuid": None,
    "bytes": None,
    "records": None,
}
