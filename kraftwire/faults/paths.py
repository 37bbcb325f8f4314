"""Values for fields of responses, by paths such as ``topics[*].partitions[0].errorCode``.

Names are those of the schemas, values those of Kafka's JSON; an error code may be its name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from typing import Any, NamedTuple

from kraftwire import messages
from kraftwire.errors import UsageError, WireError
from kraftwire.faults.fault import error_code
from kraftwire.wire.facts import FieldFacts, StructFacts
from kraftwire.wire.json_form import field_from_json
from kraftwire.wire.message import Message

_STEP = re.compile(r"([A-Za-z]\w*)(?:\[(\*|\d{1,9})\])?", re.ASCII)

Change = Callable[[Any, int], None]
"""Changes a response of a version in place."""


class _Step(NamedTuple):
    """A field, and which elements of its array: ``*`` for all, a number, or None for the field."""

    field: FieldFacts
    element: str | None


def falsifier(
    values: Mapping[str, Any], versions: Mapping[int, range]
) -> tuple[Change, dict[int, range]]:
    """Return a function that puts values in responses, and the versions that have all the fields.

    Raises: UsageError for a path or a value that no response of these versions has.
    """
    found: dict[int, range] = {}
    problems: list[str] = []
    assignments: dict[tuple[int, int], list[_Assignment]] = {}
    for key, some in versions.items():
        for version in some:
            try:
                one = [_Assignment(key, version, *each) for each in values.items()]
            except (UsageError, WireError) as error:
                problems.append(str(error))
                continue
            assignments[key, version] = one
            first = found.get(key, range(version, version))
            found[key] = range(first.start, version + 1)
    if not values or not found:
        raise UsageError(problems[-1] if problems else "expected paths and values, found none")

    def change(response: Message, version: int) -> None:
        for each in assignments.get((response.API_KEY, version), ()):
            each.apply(response)

    return change, found


class _Assignment:
    """A value for the fields of a path, in one version of a response."""

    def __init__(self, api_key: int, version: int, path: str, value: Any) -> None:
        """Raises: UsageError, WireError."""
        facts = messages.response_class(api_key).facts()
        self._steps = list(_steps(facts.name, facts.root, version, path))
        field, element = self._steps[-1]
        if field.is_error_code and isinstance(value, str):
            value = _code(path, value)
        self._value = field_from_json(facts, field, value, version, is_element=element is not None)
        self._alone(facts.root).encode(version)

    def _alone(self, root: StructFacts) -> Any:
        """Return a response with nothing but the value: one that cannot be encoded shows here."""
        structs = [root, *(field.struct for field, _ in self._steps[:-1])]
        held = self._value
        for struct, (field, element) in zip(reversed(structs), reversed(self._steps), strict=True):
            assert struct is not None
            held = struct.cls(**{field.attribute: held if element is None else [held]})
        return held

    def apply(self, response: Message) -> None:
        """Set the fields that there are: no array is made longer, no null on the way replaced."""
        structs: list[Any] = [response]
        for field, element in self._steps[:-1]:
            structs = [
                one
                for struct in structs
                for one in _elements(getattr(struct, field.attribute), field, element)
            ]
        field, element = self._steps[-1]
        for struct in structs:
            if element is None:
                setattr(struct, field.attribute, deepcopy(self._value))
                continue
            held = getattr(struct, field.attribute) or []
            for index in range(len(held)) if element == "*" else (int(element),):
                if index < len(held):
                    held[index] = deepcopy(self._value)


def _elements(held: Any, field: FieldFacts, element: str | None) -> list[Any]:
    if held is None:
        return []
    if not field.is_array:
        return [held]
    return list(held if element == "*" else held[int(element or 0) :][:1])


def _steps(message: str, facts: StructFacts, version: int, path: str) -> Iterator[_Step]:
    parts = path.split(".")
    struct: StructFacts | None = facts
    for number, part in enumerate(parts, 1):
        found = _STEP.fullmatch(part)
        if found is None:
            raise UsageError(f"{path!r:.100} is no path such as topics[*].partitions[0].errorCode")
        name, element = found.groups()
        carried = [one for one in struct.fields if version in one.versions] if struct else []
        field = next((one for one in carried if one.name == name), None)
        where = ".".join(parts[: number - 1]) or message
        if field is None:
            names = ", ".join(one.name for one in carried) or "no fields"
            raise UsageError(f"{where} in version {version} has no {name}; it has {names}")
        if element is not None and not field.is_array:
            raise UsageError(f"{name} of {where} is no array")
        if element is None and field.is_array and number < len(parts):
            raise UsageError(f"{name} of {where} is an array: write {name}[*] or {name}[0]")
        yield _Step(field, element)
        struct = field.struct


def _code(path: str, name: str) -> int:
    try:
        return int(error_code(name))
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
