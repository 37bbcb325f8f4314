"""Plans of the engine that write messages as JSON, straight from their bytes.

A plan is made from a message's facts when a version is first used; `kraftwire/engine/json_plan.c`
is the counterpart. It writes the same text as `wire.json_form`; where it cannot decide, it leaves
the message to that module.
"""

from __future__ import annotations

import json

from kraftwire import engine
from kraftwire.limits import STRING_SIZE_MAX
from kraftwire.wire.sizes import min_struct_size
from kraftwire.wire.writer import default_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kraftwire.wire.facts import FieldFacts, MessageFacts, StructFacts

_NO_TOPIC, _TOPIC_NAME, _TOPIC_ID = range(3)
_RECORDS = "records"


def json_plan(facts: MessageFacts, version: int) -> Any:
    """Return the engine's plan for a version of a message; None if there is none."""
    shapes = None if engine.core is None else describe_json(facts, version)
    return None if shapes is None else engine.core.JsonPlan(shapes, STRING_SIZE_MAX)


def describe_json(facts: MessageFacts, version: int) -> tuple[tuple[Any, ...], ...] | None:
    """Describe a version in the form of the engine: structs, inner ones first.

    A struct is whether it has tagged fields, its least size, its weight, and two groups of fields:
    in wire order, and tagged in order of tags. None if the order of bytes is not that of JSON, or
    JSON has numbers with fractions, which Python writes.
    """
    describer = _Describer(facts, version)
    describer.add(facts.root)
    return tuple(describer.shapes) if describer.is_possible else None


class _Describer:
    """Describes the structs of one version of a message, each once."""

    def __init__(self, facts: MessageFacts, version: int) -> None:
        self.shapes: list[tuple[Any, ...]] = []
        self.is_possible = True
        self._numbers: dict[str, int] = {}
        self._facts = facts
        self._version = version
        self._is_flexible = version in facts.flexible

    def add(self, facts: StructFacts) -> int:
        """Append a struct after those that it holds, unless it was added; returns its number."""
        if facts.name in self._numbers:
            return self._numbers[facts.name]
        version = self._version
        present = [each for each in facts.fields if version in each.versions]
        fields = [(each, self._field(each)) for each in present]
        tagged = [(each.tag, field) for each, field in fields if version in each.tagged]
        in_order = sorted(tagged, key=lambda pair: pair[0])
        self.is_possible &= in_order == tagged and self._names_topic_first(present)
        self.shapes.append(
            (
                self._is_flexible,
                min_struct_size(facts, version, self._is_flexible),
                1 + len(facts.cls.__slots__),
                tuple(field for each, field in fields if version not in each.tagged),
                tuple(field for _, field in tagged),
            )
        )
        self._numbers[facts.name] = len(self.shapes) - 1
        return self._numbers[facts.name]

    def _names_topic_first(self, fields: list[FieldFacts]) -> bool:
        """Whether the topic is known before the records that belong to it are there."""
        topics = [at for at, each in enumerate(fields) if each.names_topic]
        held = [at for at, each in enumerate(fields) if each.struct or each.type == _RECORDS]
        is_tagged = any(self._version in fields[at].tagged for at in topics)
        return not topics or not held or (topics[-1] < held[0] and not is_tagged)

    def _field(self, facts: FieldFacts) -> tuple[Any, ...]:
        version = self._version
        is_tagged = version in facts.tagged
        is_many_records = facts.type == _RECORDS and (facts.is_array or is_tagged)
        self.is_possible &= facts.type != "float64" and not is_many_records
        return (
            f"{json.dumps(facts.name)}:".encode("ascii"),
            "struct" if facts.struct else facts.type,
            facts.is_array,
            version in facts.flexible,
            version in facts.nullable,
            is_tagged,
            max(facts.tag, 0),
            _topic_kind(facts),
            default_bytes(self._facts, facts, version) if is_tagged else None,
            self.add(facts.struct) if facts.struct else -1,
        )


def _topic_kind(facts: FieldFacts) -> int:
    if facts.is_array or not facts.names_topic:
        return _NO_TOPIC
    return {"string": _TOPIC_NAME, "uuid": _TOPIC_ID}.get(facts.type, _NO_TOPIC)
