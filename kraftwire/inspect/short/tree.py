"""The text of a tree straight from the bytes of a body: that of `fields`, without the message.

Owns the fastest path, for sound bodies (see `body.sound`) of ordinary frames without errors, which
are most frames of a capture. A plan for each struct, version and depth reads and checks its bytes
and has the names and indents of its lines ready; the texts of repeated bytes are kept.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from kraftwire.capture.framing.frames import Frame
from kraftwire.decode.body.nested import is_plain
from kraftwire.decode.body.quick import find_way
from kraftwire.decode.body.sound import (
    UNSOUND,
    UnsoundError,
    body_start,
    compact_length,
)
from kraftwire.decode.body.topics import TopicNames
from kraftwire.decode.text import count_text
from kraftwire.inspect.short.fields import (
    KEPT_MAX,
    KEPT_TEXT_MAX,
    Step,
    blob_step,
    has_topic_id,
    keep,
    null_line,
    read_length,
    run_step,
    string_step,
    values_step,
)
from kraftwire.inspect.trees.fields import STEP, STRUCTS_SHOWN
from kraftwire.inspect.values import uuid_text
from kraftwire.printable import printable
from kraftwire.wire.facts import FieldFacts, MessageFacts, StructFacts
from kraftwire.wire.sizes import FIXED_SIZES, in_runs, tagged_fields
from kraftwire.wire.writer import default_bytes

__all__ = ["RecordsText", "TreeTexts"]

# Bodies above these limits take slower paths: the size in bytes, and the structs of an array.
_SIZE_MAX = 64 * 1024
_STRUCTS_MAX = 64

# The largest size of records whose text is kept, and the number of texts kept for bodies.
_KEPT_RECORDS_MAX = 1000
_BODIES_KEPT_MAX = 1000

# Messages with records that this path can take: a topic's fields come before its records.
_HAVE_RECORDS = frozenset({"FetchResponse", "ProduceRequest"})

_INDENT = "    "
_INT = struct.Struct(">i").unpack_from

# Returns the text of records, from the rest of their field's line on. Arguments: field, topic,
# bytes, and the indent of the lines. Raises: UnsoundError if the records have findings.
RecordsText = Callable[[FieldFacts, str | None, bytes, str], str]


@dataclass(slots=True)
class _Way:
    """The steps that read bodies of an API and version, and the texts of bodies that may repeat."""

    has_tags: bool
    steps: list[Step]
    kept: dict[bytes, str] = field(default_factory=dict)


class TreeTexts:
    """Makes the texts of bodies. They are printable and end with a line end."""

    def __init__(self, topics: TopicNames, records: RecordsText) -> None:
        """Begin without plans. `records` returns the text of fields that hold batches."""
        self._topics = topics
        self._changes = topics.changes
        self._records_text = records
        # The topic whose fields are being read, by name or by id.
        self._held_name: str | None = None
        self._held_id: bytes | None = None
        # The message for which steps are being made.
        self._message: MessageFacts
        self._has_records = False
        self._ways: dict[tuple[bool, int | None, int | None], _Way | None] = {}
        self._plans: dict[tuple[type, int, str], list[Step]] = {}

    def text(self, frame: Frame) -> str | None:
        """Return the text of a frame's body; None if it has to take another path."""
        data = frame.data
        if frame.findings or frame.missing or len(data) != frame.size or len(data) > _SIZE_MAX:
            return None
        key = frame.direction == "request", frame.api_key, frame.api_version
        try:
            way = self._ways[key]
        except KeyError:
            way = self._ways[key] = self._find(*key)
        if way is None:
            return None
        if self._topics.changes != self._changes:
            self._forget()
        try:
            at = body_start(data, is_request=key[0], has_tags=way.has_tags)
            body = data[at:]
            text = way.kept.get(body)
            if text is not None:
                return text
            out: list[str] = []
            at = 0
            self._held_name = self._held_id = None
            for step in way.steps:
                at = step(body, at, out)
        except UNSOUND:
            return None
        if at != len(body):
            return None
        text = "".join(out)
        keep(way.kept, body, text, _BODIES_KEPT_MAX)
        return text

    def _forget(self) -> None:
        """Forget the texts of bodies: newly known names of topics belong in them."""
        self._changes = self._topics.changes
        for way in self._ways.values():
            if way is not None:
                way.kept.clear()

    def _find(self, is_request: bool, key: int | None, version: int | None) -> _Way | None:
        way = find_way(is_request, key, version)
        if way is None or version is None:
            return None
        cls, has_tags = way
        if not is_plain(cls.NAME):
            return None
        facts = cls.facts()
        self._message = facts
        self._has_records = cls.NAME in _HAVE_RECORDS
        try:
            steps = self._plan(facts.root, version, version in facts.flexible, _INDENT)
        except UnsoundError:
            return None
        return _Way(has_tags, steps)

    # -- plans ---------------------------------------------------------------------------------

    def _plan(
        self, facts: StructFacts, version: int, is_flexible: bool, indent: str
    ) -> list[Step]:
        key = facts.cls, version, indent
        plan = self._plans.get(key)
        if plan is None:
            plan = list(self._steps(facts, version, is_flexible, indent))
            self._plans[key] = plan
        return plan

    def _steps(
        self, facts: StructFacts, version: int, is_flexible: bool, indent: str
    ) -> Iterator[Step]:
        for each in in_runs(facts, version, apart="topicId"):
            if isinstance(each, list):
                yield run_step(each, indent)
            else:
                yield self._field(each, version, is_flexible, indent)
        if is_flexible:
            yield self._tags(tagged_fields(facts, version), version, indent)

    def _field(
        self, facts: FieldFacts, version: int, is_flexible: bool, indent: str
    ) -> Step:
        is_compact = version in facts.flexible
        is_nullable = version in facts.nullable
        if facts.is_array:
            if facts.struct is not None:
                return self._structs(facts, version, is_flexible, indent)
            return values_step(facts, indent, is_compact=is_compact, is_nullable=is_nullable)
        if facts.struct is not None:
            return self._struct(facts, facts.struct, version, is_flexible, indent)
        if facts.type == "uuid":
            return self._topic_id(facts, indent)
        if facts.type in FIXED_SIZES:
            return run_step([facts], indent)
        if facts.type == "string":
            step = string_step(facts, indent, is_compact=is_compact, is_nullable=is_nullable)
            is_topic = self._has_records and facts.entity_type == "topicName"
            return self._noting_topic(step, is_compact=is_compact) if is_topic else step
        if facts.type == "records" and self._has_records:
            return self._records(facts, indent, is_compact=is_compact, is_nullable=is_nullable)
        return blob_step(facts, indent, is_compact=is_compact, is_nullable=is_nullable)

    def _topic_id(self, facts: FieldFacts, indent: str) -> Step:
        """Return the step that prints a topic's id with its name, which a later frame may bring."""
        name_of = self._topics.name
        head = f"{indent}{facts.name}: "

        def step(data: bytes, at: int, out: list[str]) -> int:
            self._held_id = value = data[at : at + 16]
            name = name_of(None, value)
            remark = f" ({printable(name)})" if name else ""
            out.append(f"{head}{uuid_text(value)}{remark}\n")
            return at + 16

        return step

    def _noting_topic(self, read: Step, *, is_compact: bool) -> Step:
        """Return a step that also keeps a topic's name, for the records that follow."""

        def step(data: bytes, at: int, out: list[str]) -> int:
            end = read(data, at, out)
            self._held_name = data[at + (1 if is_compact else 2) : end].decode()
            return end

        return step

    def _records(
        self, facts: FieldFacts, indent: str, *, is_compact: bool, is_nullable: bool
    ) -> Step:
        head, deeper = f"{indent}{facts.name}: ", indent + STEP
        nothing = f"{head}{count_text(0, 'batch')}\n"
        kept: dict[tuple[str | None, bytes], str] = {}

        def step(data: bytes, at: int, out: list[str]) -> int:
            size, at = read_length(data, at, is_compact=is_compact)
            if size <= 0:
                out.append(nothing if not size else null_line(head, size, is_nullable=is_nullable))
                return at
            end = at + size
            held = data[at:end]
            key = self._topics.name(self._held_name, self._held_id), held
            text = kept.get(key)
            if text is None:
                text = head + self._records_text(facts, *key, deeper)
                if size <= _KEPT_RECORDS_MAX and len(text) <= KEPT_TEXT_MAX:
                    if len(kept) >= KEPT_MAX:
                        kept.clear()
                    kept[key] = text
            out.append(text)
            return end

        return step

    def _struct(
        self,
        facts: FieldFacts,
        inner: StructFacts,
        version: int,
        is_flexible: bool,
        indent: str,
    ) -> Step:
        is_nullable, is_tagged = version in facts.nullable, version in facts.tagged
        if is_nullable and is_tagged:
            raise UnsoundError
        steps = self._plan(inner, version, is_flexible, indent + STEP)
        head = f"{indent}{facts.name}\n"
        nothing = f"{indent}{facts.name}: null\n"

        def step(data: bytes, at: int, out: list[str]) -> int:
            if is_nullable:
                mark = data[at]
                at += 1
                if mark != 1:
                    if mark != 0xFF:
                        raise UnsoundError
                    out.append(nothing)
                    return at
            out.append(head)
            for each in steps:
                at = each(data, at, out)
            return at

        return step

    def _structs(
        self, facts: FieldFacts, version: int, is_flexible: bool, indent: str
    ) -> Step:
        assert facts.struct is not None
        is_compact, is_nullable = version in facts.flexible, version in facts.nullable
        steps = self._plan(facts.struct, version, is_flexible, indent + STEP + STEP)
        head = f"{indent}{facts.name}: "
        marks = [f"{indent}{STEP}[{index}]\n" for index in range(STRUCTS_SHOWN)]
        none = f"{head}0\n"

        def step(data: bytes, at: int, out: list[str]) -> int:
            if is_compact:
                count = data[at] - 1
                at += 1
            else:
                (count,) = _INT(data, at)
                at += 4
            if not count:
                out.append(none)
                return at
            if count < 0:
                out.append(null_line(head, count, is_nullable=is_nullable))
                return at
            if count > _STRUCTS_MAX:
                raise UnsoundError
            out.append(f"{head}{count}\n")
            for mark in marks[:count]:
                out.append(mark)
                for each in steps:
                    at = each(data, at, out)
            if count > STRUCTS_SHOWN:
                out.append(f"{indent}{STEP}... {count - STRUCTS_SHOWN} more, -vv shows all\n")
                unseen: list[str] = []
                for _ in range(count - STRUCTS_SHOWN):
                    for each in steps:
                        at = each(data, at, unseen)
            return at

        return step

    def _tags(self, fields: list[FieldFacts], version: int, indent: str) -> Step:
        """Return the step that prints tagged fields.

        They are in the order of their tags, and are shown in the order of the schema.
        """
        known = {each.tag: self._tag(each, version, indent) for each in fields}
        order = [each.tag for each in fields]

        def step(data: bytes, at: int, out: list[str]) -> int:
            count = data[at]
            at += 1
            if not count:
                return at
            texts: dict[int, str] = {}
            last = -1
            for _ in range(count):
                tag = data[at]
                if not last < tag < 0x80:
                    raise UnsoundError
                last = tag
                size, at = compact_length(data, at + 1)
                end = at + size + 1
                if tag not in known:
                    raise UnsoundError
                texts[tag] = known[tag](data[at:end])
                at = end
            out += [texts[tag] for tag in order if tag in texts]
            return at

        return step

    def _tag(self, facts: FieldFacts, version: int, indent: str) -> Callable[[bytes], str]:
        """Return a function that makes the text of a tagged field from its bytes.

        It raises UnsoundError for the default value, as Kafka leaves out such fields.
        """
        read = self._field(facts, version, True, indent)
        default = default_bytes(self._message, facts, version)
        is_kept = not has_topic_id(facts)
        kept: dict[bytes, str] = {}

        def text(data: bytes) -> str:
            made = kept.get(data)
            if made is None:
                if data == default:
                    raise UnsoundError
                out: list[str] = []
                if read(data, 0, out) != len(data):
                    raise UnsoundError
                made = "".join(out)
                if is_kept:
                    keep(kept, data, made, KEPT_MAX)
            return made

        return text
