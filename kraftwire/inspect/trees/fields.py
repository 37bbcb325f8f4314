"""The lines of a tree straight from a message: as `tree` shows them, but without the JSON form.

Owns the fast path for ordinary bodies, which most are. A plan per struct, version and depth has the
names and indents ready; the lines of repeated values are kept. Messages that hold secrets or other
messages take the slow path, as these are found in the JSON form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any

from kraftwire.decode.body.frame import DecodedFrame
from kraftwire.decode.body.nested import is_plain
from kraftwire.decode.body.records import FieldBatches
from kraftwire.decode.body.topics import TopicNames
from kraftwire.decode.text import count_text
from kraftwire.inspect.values import plain_value_text, uuid_text
from kraftwire.wire.facts import FieldFacts, StructFacts
from kraftwire.wire.sizes import fresh_default, is_optional_struct

__all__ = ["NUMBERS_SHOWN", "STEP", "STRUCTS_SHOWN", "FieldLines"]

STEP = "  "
STRUCTS_SHOWN = 5
NUMBERS_SHOWN = 12

# The number of lines that are kept for a field, and the longest text that is kept.
_KEPT_MAX = 1000
_KEPT_TEXT_MAX = 64
# The same for runs of fields.
_RUNS_KEPT_MAX = 200
_RUN_TEXT_MAX = 1000
_SIMPLE = frozenset({"bool", "int8", "int16", "int32", "int64", "uint16", "uint32", "string"})

_Lines = list[str]
# Adds the lines of a field of a struct.
_Step = Callable[[Any, _Lines], None]
_Text = Callable[[Any], str]


class FieldLines:
    """Makes the lines of bodies.

    `batch` returns the lines of a record batch in its JSON form, with an indent.
    """

    def __init__(
        self, topics: TopicNames, batch: Callable[[dict[str, Any], str], Iterator[str]]
    ) -> None:
        self._topics = topics
        self._batch = batch
        self._plans: dict[tuple[type, int, str], list[_Step]] = {}
        self._fields: dict[tuple[int, str], FieldBatches] = {}

    def lines(self, decoded: DecodedFrame, indent: str) -> list[str] | None:
        """Return the lines of a frame's body; None if it has to take the slow path."""
        payload = decoded.payload
        body = payload.body
        if body is None or not is_plain(body.NAME):
            return None
        if decoded.view.has_records:
            self._fields = {
                (id(each.where.holder), each.where.attribute): each for each in decoded.batches
            }
        out: _Lines = []
        for step in self._plan(body.facts().root, payload.body_version, indent):
            step(body, out)
        return out

    # -- plans ---------------------------------------------------------------------------------

    def _plan(self, struct: StructFacts, version: int, indent: str) -> list[_Step]:
        key = struct.cls, version, indent
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = list(self._steps(struct, version, indent))
        return plan

    def _steps(self, struct: StructFacts, version: int, indent: str) -> Iterator[_Step]:
        """Yield the steps of a struct: one for each run of simple fields; tagged fields last."""
        present = [each for each in struct.fields if version in each.versions]
        run: list[FieldFacts] = []
        for each in present:
            if version in each.tagged:
                continue
            if each.type in _SIMPLE and not each.is_array:
                run.append(each)
                continue
            if run:
                yield self._run(run, indent)
                run = []
            yield self._step(each, version, indent)
        if run:
            yield self._run(run, indent)
        for each in present:
            if version in each.tagged:
                yield _unless_default(each, self._step(each, version, indent))

    def _run(self, fields: list[FieldFacts], indent: str) -> _Step:
        """Return the step that makes the lines of a run of simple fields."""
        makers = [_kept(f"{indent}{each.name}: ", self._text(each)) for each in fields]
        if len(fields) == 1:
            one, get_one = makers[0], attrgetter(fields[0].attribute)
            return lambda value, out: out.append(one(get_one(value)))
        get = attrgetter(*[each.attribute for each in fields])
        kept: dict[tuple[Any, ...], _Lines] = {}

        def step(value: Any, out: _Lines) -> None:
            held = get(value)
            lines = kept.get(held)
            if lines is None:
                lines = [make(each) for make, each in zip(makers, held, strict=True)]
                if len(kept) >= _RUNS_KEPT_MAX:
                    kept.clear()
                if sum(map(len, lines)) <= _RUN_TEXT_MAX:
                    kept[held] = lines
            out += lines

        return step

    def _step(self, facts: FieldFacts, version: int, indent: str) -> _Step:
        if facts.type == "records":
            return self._records(facts, indent)
        if facts.is_array and facts.struct is not None:
            return self._structs(facts, facts.struct, version, indent)
        if facts.is_array:
            return self._values(facts, indent)
        if facts.struct is not None:
            return self._struct(facts, facts.struct, version, indent)
        get, text, head = attrgetter(facts.attribute), self._text(facts), f"{indent}{facts.name}: "
        return lambda value, out: out.append(head + text(get(value)))

    def _struct(
        self, facts: FieldFacts, struct: StructFacts, version: int, indent: str
    ) -> _Step:
        steps = self._plan(struct, version, indent + STEP)
        get = attrgetter(facts.attribute)

        def step(value: Any, out: _Lines) -> None:
            held = get(value)
            if held is None:
                out.append(f"{indent}{facts.name}: null")
                return
            out.append(f"{indent}{facts.name}")
            for each in steps:
                each(held, out)

        return step

    def _structs(
        self, facts: FieldFacts, struct: StructFacts, version: int, indent: str
    ) -> _Step:
        steps = self._plan(struct, version, indent + STEP + STEP)
        get, head = attrgetter(facts.attribute), f"{indent}{facts.name}: "
        heads = [f"{indent}{STEP}[{index}]" for index in range(STRUCTS_SHOWN)]

        def step(value: Any, out: _Lines) -> None:
            held = get(value)
            if held is None:
                out.append(f"{head}null")
                return
            out.append(f"{head}{len(held)}")
            for above, element in zip(heads, held, strict=False):
                out.append(above)
                for each in steps:
                    each(element, out)
            if len(held) > STRUCTS_SHOWN:
                out.append(f"{indent}{STEP}... {len(held) - STRUCTS_SHOWN} more, -vv shows all")

        return step

    def _values(self, facts: FieldFacts, indent: str) -> _Step:
        get, text, head = attrgetter(facts.attribute), self._text(facts), f"{indent}{facts.name}: "

        def step(value: Any, out: _Lines) -> None:
            held = get(value)
            if held is None:
                out.append(f"{head}null")
                return
            texts = ", ".join(map(text, held[:NUMBERS_SHOWN]))
            more = len(held) - NUMBERS_SHOWN
            out.append(f"{head}[{texts}{f', ... {more} more' if more > 0 else ''}]")

        return step

    def _records(self, facts: FieldFacts, indent: str) -> _Step:
        get, head = attrgetter(facts.attribute), f"{indent}{facts.name}: "
        nothing = f"{head}{count_text(0, 'batch')}"

        def step(value: Any, out: _Lines) -> None:
            held = get(value)
            if not held:
                out.append(f"{head}null" if held is None else nothing)
                return
            batches = self._fields[id(value), facts.attribute].batches or []
            out.append(f"{head}{count_text(len(batches), 'batch')}")
            for each in batches:
                out += self._batch(each, indent + STEP)

        return step

    def _text(self, facts: FieldFacts) -> _Text:
        if facts.type == "uuid":
            return self._topic_text if facts.name == "topicId" else uuid_text
        return lambda value: plain_value_text(facts, value)

    def _topic_text(self, value: bytes) -> str:
        """Return a topic's id with its name, which a later frame may bring."""
        name = self._topics.name(None, value)
        return f"{uuid_text(value)} ({name})" if name else uuid_text(value)


def _unless_default(facts: FieldFacts, step: _Step) -> _Step:
    """Return a step that leaves out a tagged field at its default, as in JSON."""
    get = attrgetter(facts.attribute)
    is_optional = is_optional_struct(facts) and facts.struct is not None
    default = facts.struct.cls() if is_optional and facts.struct else fresh_default(facts)

    def other(value: Any, out: _Lines) -> None:
        held = get(value)
        if held != default and not (held is None and facts.default is None):
            step(value, out)

    return other


def _kept(head: str, text: _Text) -> _Text:
    """Return a function that makes a line from a value, and keeps the lines of repeated values."""
    lines: dict[Any, str] = {}
    find = lines.get

    def line(value: Any) -> str:
        made = find(value)
        if made is None:
            made = head + text(value)
            if value.__class__ is not str or len(value) <= _KEPT_TEXT_MAX:
                if len(lines) >= _KEPT_MAX:
                    lines.clear()
                lines[value] = made
        return made

    return line
