"""The slow reader: follows a schema's facts, and says where and why bytes are wrong.

It also annotates fields with their byte ranges. Without annotations it reads many elements at once:
these functions read the valid elements and stop at the first invalid one; the reader then continues
there and reports what is wrong.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

from kraftwire.errors import UsageError, WireError
from kraftwire.limits import (
    ELEMENT_BYTES_MIN,
    ELEMENT_FREE_COUNT,
    STRING_SIZE_MAX,
    TAGS_FREE_COUNT,
)
from kraftwire.wire.facts import FieldFacts, MessageFacts, StructFacts
from kraftwire.wire.fast import Numbers, Packer
from kraftwire.wire.sizes import FIXED_CODES, FIXED_SIZES, fresh_default, min_struct_size
from kraftwire.wire.varint import read_uvarint

# The type of the annotation of a tagged field that no schema has.
UNKNOWN_TAG = "unknown tagged field"

_ONE_BYTE_SIZE_MAX = 127

_NUMBERS = {name: Numbers(code[1:]) for name, code in FIXED_CODES.items() if name != "uuid"}


@dataclass(slots=True)
class Annotation:
    """A field, or part of one, and the bytes ``[start, end)`` it was read from.

    `value` is set on leaves only; `type` is the schema's, or length, tag, count; `path` is
    in the names of the JSON form.
    """

    path: str
    name: str
    type: str
    start: int
    end: int = 0
    value: Any = None
    children: list[Annotation] = field(default_factory=list)


def read_message(
    facts: MessageFacts, buf: bytes, version: int, offset: int = 0
) -> tuple[Any, int]:
    """Decode a message; return it and the position after it.

    Raises: WireError naming field path, offset, what was expected and found.
    """
    reader = _Reader(facts, buf, version, offset)
    return reader.struct(facts.root), reader.position


class PartialError(WireError):
    """An incomplete message; `partial` is the tree of what was read before the error."""

    def __init__(self, error: WireError, partial: Annotation) -> None:
        super().__init__(
            error.problem, message=error.message, version=error.version, path=error.path,
            offset=error.offset, expected=error.expected, found=error.found,
        )  # fmt: skip
        self.partial = partial


def annotate(
    facts: MessageFacts, buf: bytes | memoryview, version: int, offset: int = 0,
    *, most: int = 1 << 62,
) -> tuple[Annotation, int]:  # fmt: skip
    """Decode into a tree of at most `most` annotations; return it and the position after it.

    Raises: PartialError where `read_message` raises WireError or there are more, with the tree.
    """
    if isinstance(version, bool) or version not in facts.versions:
        raise UsageError(f"{facts.name} has versions {facts.versions}, not {version!r}")
    root = Annotation("", facts.name, facts.kind, offset)
    reader = _Reader(facts, bytes(buf), version, offset, tree=root, left=most)
    try:
        reader.struct(facts.root)
    except WireError as error:
        raise PartialError(error, root) from error
    finally:
        root.end = reader.position
    return root, reader.position


class _Reader:
    def __init__(
        self, facts: MessageFacts, buf: bytes, version: int, offset: int,
        *, tree: Annotation | None = None, left: int = 0,
    ) -> None:  # fmt: skip
        self.facts = facts
        self.buf = buf
        self.version = version
        self.position = offset
        self.path: list[str | int] = []
        self.left = left
        self.budget = ELEMENT_FREE_COUNT + (len(buf) - offset) // ELEMENT_BYTES_MIN
        self.node = tree
        self.plans: dict[Any, _StructPlan] = {}

    # -- errors and annotations ------------------------------------------------------------

    def path_text(self) -> str:
        text = ""
        for part in self.path:
            text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
        return text

    def fail(self, problem: str, *, at: int, expected: str = "", found: str = "") -> WireError:
        return WireError(
            problem,
            message=self.facts.name,
            version=self.version,
            path=self.path_text(),
            offset=at,
            expected=expected,
            found=found,
        )

    def open(self, name: str, type_text: str) -> Annotation | None:
        if self.node is None:
            return None
        child = Annotation(self.path_text(), name, type_text, self.position)
        self.node.children.append(child)
        self.left -= 1
        if self.left < 0:
            raise self.fail("more fields than are taken apart", at=self.position)
        parent, self.node = self.node, child
        return parent

    def close(self, parent: Annotation | None, value: Any = None) -> None:
        if self.node is not None and parent is not None:
            self.node.end = self.position
            if not self.node.children or self.node.type in ("string", "bytes", "records"):
                self.node.value = value
            self.node = parent

    # -- bytes -------------------------------------------------------------------------------

    def take(self, size: int, what: str) -> bytes:
        start = self.position
        left = len(self.buf) - start
        if size > left:
            raise self.fail(
                f"need {size} bytes for {what} at offset {start}, have {max(left, 0)}",
                at=start,
                expected=f"{size} bytes",
                found=f"{max(left, 0)}",
            )
        self.position = start + size
        return self.buf[start : self.position]

    def fixed(self, type_name: str) -> Any:
        data = self.take(FIXED_SIZES[type_name], type_name)
        return data if type_name == "uuid" else struct.unpack(FIXED_CODES[type_name], data)[0]

    def uvarint(self, what: str) -> int:
        parent = self.open(what, "unsigned varint")
        try:
            value, self.position = read_uvarint(self.buf, self.position)
        except WireError as error:
            raise self.fail(
                f"{what}: {error.problem}",
                at=self.position,
                expected=error.expected,
                found=error.found,
            ) from None
        self.close(parent, value)
        return value

    def length(self, facts: FieldFacts, *, bits: int) -> int:
        """Read the length before a value, -1 for null."""
        start = self.position
        if self.version in facts.flexible:
            value = self.uvarint("length") - 1
        else:
            parent = self.open("length", f"int{bits}")
            value = self.fixed(f"int{bits}")
            self.close(parent, value)
        if value < 0 and self.version not in facts.nullable:
            raise self.fail(
                "null where the version allows none",
                at=start,
                expected="a length of 0 or more",
                found=str(value),
            )
        return max(value, -1)

    # -- values ------------------------------------------------------------------------------

    def plan(self, facts: StructFacts) -> _StructPlan:
        plan = self.plans.get(facts.cls)
        if plan is None:
            is_flexible = self.version in self.facts.flexible
            plan = self.plans[facts.cls] = _StructPlan(facts, self.version, is_flexible)
        return plan

    def struct(self, facts: StructFacts) -> Any:
        plan = self.plan(facts)
        value = object.__new__(plan.cls)
        for fields, unpack, size in plan.steps:
            if unpack and self.node is None and size <= len(self.buf) - self.position:
                for each, held in zip(fields, unpack(self.buf, self.position), strict=True):
                    setattr(value, each.attribute, held)
                self.position += size
                continue
            for each in fields:
                self.path.append(each.name)
                setattr(value, each.attribute, self.field(each))
                self.path.pop()
        for each in plan.missing:
            setattr(value, each.attribute, fresh_default(each))
        value.unknown_tagged_fields = None
        if self.version in self.facts.flexible:
            self.tags(value, plan.tagged)
        return value

    def tags(self, value: Any, known: dict[int, FieldFacts]) -> None:
        if self.node is None and self.buf[self.position : self.position + 1] == b"\0":
            self.position += 1
            return
        count = self.uvarint("tagged fields")
        limit = TAGS_FREE_COUNT + (len(self.buf) - self.position) // 8
        if count > max(limit, _ONE_BYTE_SIZE_MAX):
            raise self.fail(
                "too many tagged fields for the bytes left",
                at=self.position,
                expected=f"at most {limit}",
                found=str(count),
            )
        unknown: dict[int, bytes] = {}
        while count:
            if self.node is None:
                done, self.position = _read_tags(self.buf, self.position, count, known, unknown)
                count -= done
            if count:
                self.tag(value, known, unknown)
                count -= 1
        if unknown:
            value.unknown_tagged_fields = unknown

    def tag(self, value: Any, known: dict[int, FieldFacts], unknown: dict[int, bytes]) -> None:
        tag = self.uvarint("tag")
        size = self.uvarint("size")
        start = self.position
        facts = known.get(tag)
        self.path.append(facts.name if facts else f"tag {tag}")
        if size > len(self.buf) - start:
            self.take(size, "a tagged field")
        if facts is None:
            parent = self.open(f"tag {tag}", UNKNOWN_TAG)
            unknown[tag] = self.take(size, "a tagged field")
            self.close(parent, unknown[tag])
        else:
            setattr(value, facts.attribute, self.field(facts))
            if self.position != start + size:
                raise self.fail(
                    "a tagged field is not as long as it says",
                    at=start,
                    expected=f"{size} bytes",
                    found=str(self.position - start),
                )
        self.path.pop()

    def field(self, facts: FieldFacts) -> Any:
        parent = self.open(facts.name, facts.type_text)
        if facts.is_array:
            value = self.array(facts)
        elif facts.struct:
            value = self.nested(facts)
        else:
            value = self.element(facts, nullable=True)
        self.close(parent, value)
        return value

    def nested(self, facts: FieldFacts) -> Any:
        if self.version in facts.nullable and self.is_null_struct(facts):
            return None
        return self.one_struct(facts)

    def is_null_struct(self, facts: FieldFacts) -> bool:
        if self.version in facts.tagged:
            return self.uvarint("present") == 0
        parent = self.open("present", "int8")
        marker = self.fixed("int8")
        self.close(parent, marker)
        return bool(marker < 0)

    def one_struct(self, facts: FieldFacts) -> Any:
        assert facts.struct is not None
        # A single struct counts against the budget like an array of one.
        self.spend(1, facts)
        return self.struct(facts.struct)

    def element(self, facts: FieldFacts, *, nullable: bool) -> Any:
        if facts.type in FIXED_SIZES:
            return self.fixed(facts.type)
        bits = 16 if facts.type == "string" else 32
        start = self.position
        size = self.length(facts, bits=bits)
        if size < 0:
            if nullable:
                return None
            raise self.fail("null element in an array", at=start)
        if facts.type == "string":
            return self.string(size)
        data = self.take(size, facts.type)
        return memoryview(self.buf)[self.position - size : self.position] if (
            facts.type == "records"
        ) else data

    def string(self, size: int) -> str:
        if size > STRING_SIZE_MAX:
            raise self.fail(
                "string too long",
                at=self.position,
                expected=f"at most {STRING_SIZE_MAX} bytes",
                found=str(size),
            )
        start = self.position
        data = self.take(size, "string")
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise self.fail(
                "the string is not UTF-8",
                at=start + error.start,
                expected="UTF-8",
                found=f"0x{data[error.start : error.end].hex()}",
            ) from None

    def array(self, facts: FieldFacts) -> Any:
        start = self.position
        count = self.length(facts, bits=32)
        if count < 0:
            return None
        least = self.least(facts)
        left = len(self.buf) - self.position
        # A plausible count is followed, which finds the exact field at which the bytes end.
        if count > left:
            raise self.fail(
                f"an array of {count} elements needs {count * least} bytes at offset "
                f"{self.position}, have {left}",
                at=start,
                expected=f"at most {left // least} elements",
                found=str(count),
            )
        if facts.struct:
            self.spend(count, facts)
        done: list[Any] = []
        if self.node is None:
            is_compact = self.version in facts.flexible
            done, self.position = _read_elements(
                facts.type, self.buf, self.position, count, compact=is_compact
            )
        return done + [self.array_element(facts, index) for index in range(len(done), count)]

    def array_element(self, facts: FieldFacts, index: int) -> Any:
        self.path.append(index)
        parent = self.open(f"[{index}]", facts.type)
        value = self.struct(facts.struct) if facts.struct else self.element(facts, nullable=False)
        self.close(parent, value)
        self.path.pop()
        return value

    def least(self, facts: FieldFacts) -> int:
        """Return the smallest size of an element, never 0."""
        if facts.struct:
            return max(1, self.struct_size(facts.struct))
        if facts.type in FIXED_SIZES:
            return FIXED_SIZES[facts.type]
        return 1 if self.version in facts.flexible else 2 if facts.type == "string" else 4

    def struct_size(self, facts: StructFacts) -> int:
        return self.plan(facts).size_min

    def spend(self, count: int, facts: FieldFacts) -> None:
        assert facts.struct is not None
        if self.struct_size(facts.struct) >= ELEMENT_BYTES_MIN:
            return
        if count > self.budget:
            raise self.fail(
                "too many small elements for the size of the message",
                at=self.position,
                expected=f"at most {self.budget} more",
                found=str(count),
            )
        self.budget -= count


class _StructPlan:
    """How to read a struct in one version; made once for all its objects in a message.

    `steps` are the fields in wire order: either neighbours of fixed size, with the function that
    unpacks them and their size, or one field of variable size. `missing` are fields that are
    absent or tagged.
    """

    __slots__ = ("cls", "missing", "size_min", "steps", "tagged")

    def __init__(self, facts: StructFacts, version: int, is_flexible: bool) -> None:
        self.cls = facts.cls
        self.size_min = min_struct_size(facts, version, is_flexible)
        self.missing: list[FieldFacts] = []
        self.tagged: dict[int, FieldFacts] = {}
        self.steps: list[tuple[list[FieldFacts], Any, int]] = []
        fixed: list[FieldFacts] = []
        for each in facts.fields:
            if version in each.tagged or version not in each.versions:
                self.missing.append(each)
                if version in each.versions:
                    self.tagged[each.tag] = each
            elif each.type in FIXED_SIZES and not each.is_array:
                fixed.append(each)
            else:
                self._close(fixed)
                self.steps.append(([each], None, 0))
                fixed = []
        self._close(fixed)

    def _close(self, fixed: list[FieldFacts]) -> None:
        if fixed:
            packer = Packer(">" + "".join(FIXED_CODES[each.type][1:] for each in fixed))
            self.steps.append((fixed, packer.unpack_from, packer.size))


def _read_elements(
    type_name: str, buf: bytes, position: int, count: int, *, compact: bool
) -> tuple[list[Any], int]:
    """Return the valid elements among the first `count` of an array, and the position after them.

    Arrays of structs are left to the reader, and so are arrays of bytes, which Kafka never uses.
    """
    if type_name in FIXED_SIZES:
        return _numbers(type_name, buf, position, count)
    if type_name == "string":
        return _strings(buf, position, count, compact)
    return [], position


def _numbers(type_name: str, buf: bytes, position: int, count: int) -> tuple[list[Any], int]:
    size = FIXED_SIZES[type_name]
    count = min(count, (len(buf) - position) // size)
    end = position + size * count
    if type_name == "uuid":
        return [buf[at : at + size] for at in range(position, end, size)], end
    return [*_NUMBERS[type_name].unpack[count](buf, position)], end


def _strings(buf: bytes, position: int, count: int, compact: bool) -> tuple[list[str], int]:
    out: list[str] = []
    limit = len(buf)
    try:
        for _ in range(count):
            n = buf[position]
            if not compact:
                n = (n << 8) + buf[position + 1] + 1
                start = position + 2
            elif n < 128:
                start = position + 1
            else:
                n, start = read_uvarint(buf, position)
            end = start + n - 1
            if not 0 < n <= STRING_SIZE_MAX + 1 or end > limit:
                break
            out.append(buf[start:end].decode())
            position = end
    except (IndexError, UnicodeDecodeError, WireError):
        pass  # the reader will report this element
    return out, position


def _read_tags(
    buf: bytes, position: int, count: int, known: dict[int, Any], out: dict[int, bytes]
) -> tuple[int, int]:
    """Put unknown tagged fields into `out`, up to one that is known or incomplete.

    Return how many of `count` were read, and the position after them.
    """
    limit = len(buf)
    done = 0
    try:
        for done in range(count):  # noqa: B007
            tag = buf[position]
            start = position + 1
            if tag > 127:
                tag, start = read_uvarint(buf, position)
            size = buf[start]
            start += 1
            if size > 127:
                size, start = read_uvarint(buf, start - 1)
            end = start + size
            if tag in known or end > limit:
                break
            out[tag] = buf[start:end]
            position = end
        else:
            done = count
    except (IndexError, WireError):
        pass  # the reader will report this tagged field
    return done, position
