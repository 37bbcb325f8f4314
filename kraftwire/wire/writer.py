"""The slow writer: encodes by a schema's facts and says which field does not fit, and why.

Encoding falls back to it when a generated writer fails. Where both succeed, their bytes are equal.
"""

from __future__ import annotations

import struct

from kraftwire.errors import WireError
from kraftwire.limits import STRING_SIZE_MAX, TAGS_FREE_COUNT
from kraftwire.wire.facts import FieldFacts, MessageFacts, StructFacts
from kraftwire.wire.sizes import (
    FIXED_CODES,
    count_check,
    fresh_default,
    is_at_default,
    is_optional_struct,
)
from kraftwire.wire.varint import uvarint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_BYTES = (bytes, bytearray, memoryview)


def write_message(facts: MessageFacts, message: Any, version: int) -> bytes:
    """Encode a message. Raises: WireError naming the field path, what was expected and found.

    More small structs or tagged fields than decoders accept are an error, too.
    """
    writer = _Writer(facts, version)
    writer.struct(facts.root, message)
    data = bytes(writer.out)
    if writer.has_many_tags or count_check(facts, version)(message, len(data)):
        _check_decodes(facts, data, version)
    return data


def default_bytes(facts: MessageFacts, field: FieldFacts, version: int) -> bytes:
    """Return the bytes of a tagged field at its default, which are never on the wire."""
    return _Writer(facts, version).apart(field, fresh_default(field))


def _check_decodes(facts: MessageFacts, data: bytes, version: int) -> None:
    """Decode the bytes again, so that the decoder reports any limit that they exceed."""
    from kraftwire.wire.reader import read_message

    try:
        read_message(facts, data, version, 0)
    except WireError as error:
        raise WireError(
            f"decoders refuse this message: {error.problem}",
            message=facts.name,
            version=version,
            path=error.path,
            expected=error.expected,
            found=error.found,
        ) from None


class _Writer:
    def __init__(self, facts: MessageFacts, version: int) -> None:
        self.facts = facts
        self.version = version
        self.out = bytearray()
        self.path: list[str | int] = []
        self.has_many_tags = False

    def fail(self, problem: str, *, expected: str = "", value: Any = None) -> WireError:
        text = ""
        for part in self.path:
            text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
        found = _described(value) if expected else ""
        return WireError(
            problem,
            message=self.facts.name,
            version=self.version,
            path=text,
            expected=expected,
            found=found,
        )

    def struct(self, facts: StructFacts, value: Any) -> None:
        if value.__class__ is not facts.cls:
            raise self.fail("wrong type", expected=facts.name, value=value)
        tags: dict[int, bytes] = {}
        for each in facts.fields:
            self.path.append(each.name)
            held = self.attribute(value, each)
            if self.version not in each.versions:
                if not each.is_ignorable and not is_at_default(each, held):
                    raise self.fail(
                        f"version {self.version} cannot carry the field (it has "
                        f"{each.versions})",
                        expected=f"the default {each.default!r}",
                        value=held,
                    )
            elif self.version not in each.tagged:
                self.field(each, held)
            elif not is_at_default(each, held):
                tags[each.tag] = self.apart(each, held)
            self.path.pop()
        self.tags(tags, value.unknown_tagged_fields)

    def attribute(self, value: Any, facts: FieldFacts) -> Any:
        try:
            return getattr(value, facts.attribute)
        except AttributeError:
            raise self.fail("the attribute was deleted") from None

    def apart(self, facts: FieldFacts, value: Any) -> bytes:
        """Encode one tagged field into a separate buffer."""
        outer, self.out = self.out, bytearray()
        self.field(facts, value)
        inner, self.out = self.out, outer
        return bytes(inner)

    def tags(self, known: dict[int, bytes], unknown: dict[int, bytes] | None) -> None:
        if self.version not in self.facts.flexible:
            if unknown:
                raise self.fail(
                    "a version without tagged fields cannot carry unknown ones",
                    expected="none",
                    value=unknown,
                )
            return
        if unknown is not None and not isinstance(unknown, dict):
            raise self.fail("bad unknown tagged fields", expected="a dict or None", value=unknown)
        tags = dict(known)
        for tag, data in (unknown or {}).items():
            is_int = isinstance(tag, int) and not isinstance(tag, bool)
            is_tag = is_int and 0 <= tag < 2**32 and tag not in known
            if not is_tag or not isinstance(data, _BYTES):
                raise self.fail(
                    "bad unknown tagged field",
                    expected="a free tag of 0 or more, with bytes",
                    value=(tag, data),
                )
            tags[tag] = bytes(data)
        self.has_many_tags |= len(tags) > TAGS_FREE_COUNT
        self.out += uvarint(len(tags))
        for tag in sorted(tags):
            self.out += uvarint(tag) + uvarint(len(tags[tag])) + tags[tag]

    def field(self, facts: FieldFacts, value: Any) -> None:
        if facts.is_array:
            self.array(facts, value)
        elif facts.struct:
            self.nested(facts, value)
        else:
            self.element(facts, value, nullable=self.version in facts.nullable)

    def nested(self, facts: FieldFacts, value: Any) -> None:
        assert facts.struct is not None
        if self.version in facts.nullable:
            null = b"\x00" if self.version in facts.tagged else b"\xff"
            self.out += null if value is None else b"\x01"
            if value is None:
                return
        if value is None and is_optional_struct(facts):
            value = facts.struct.cls()
        self.struct(facts.struct, value)

    def array(self, facts: FieldFacts, value: Any) -> None:
        if value is None and self.version in facts.nullable:
            self.length(facts, -1, bits=32)
            return
        if not isinstance(value, list | tuple):
            raise self.fail("wrong type", expected=f"a list of {facts.type}", value=value)
        self.length(facts, len(value), bits=32)
        for index, item in enumerate(value):
            self.path.append(index)
            if facts.struct:
                self.struct(facts.struct, item)
            else:
                self.element(facts, item, nullable=False)
            self.path.pop()

    def length(self, facts: FieldFacts, size: int, *, bits: int) -> None:
        if self.version in facts.flexible:
            self.out += uvarint(size + 1)
        else:
            self.out += size.to_bytes(bits // 8, "big", signed=True)

    def element(self, facts: FieldFacts, value: Any, *, nullable: bool) -> None:
        if facts.type in FIXED_CODES:
            self.fixed(facts, value)
            return
        bits = 16 if facts.type == "string" else 32
        if value is None and nullable:
            self.length(facts, -1, bits=bits)
            return
        data = self.string(value) if facts.type == "string" else self.blob(facts, value)
        self.length(facts, len(data), bits=bits)
        self.out += data

    def fixed(self, facts: FieldFacts, value: Any) -> None:
        if facts.type == "uuid" and (not isinstance(value, _BYTES) or len(value) != 16):
            raise self.fail("wrong value", expected="16 bytes", value=value)
        # To `struct` anything is true or false; 0 and 1 are refused as well, like "no" and None.
        if facts.type == "bool" and value.__class__ is not bool:
            raise self.fail("wrong value", expected="bool", value=value)
        try:
            self.out += struct.pack(FIXED_CODES[facts.type], value)
        except (struct.error, OverflowError, TypeError):
            raise self.fail("wrong value", expected=facts.type, value=value) from None

    def string(self, value: Any) -> bytes:
        if not isinstance(value, str):
            raise self.fail("wrong type", expected="str", value=value)
        try:
            data = value.encode()
        except UnicodeEncodeError:
            raise self.fail("not encodable", expected="UTF-8 text", value=value) from None
        if len(data) > STRING_SIZE_MAX:
            raise self.fail(
                f"string of {len(data)} bytes",
                expected=f"at most {STRING_SIZE_MAX} bytes",
                value=value,
            )
        return data

    def blob(self, facts: FieldFacts, value: Any) -> bytes:
        if not isinstance(value, _BYTES):
            raise self.fail("wrong type", expected=facts.type, value=value)
        return bytes(value)


def _described(value: Any) -> str:
    # For bytes only the length matters; as text they would be four times as long.
    if isinstance(value, _BYTES):
        return f"{type(value).__name__} of length {memoryview(value).nbytes}"
    return f"{type(value).__name__} {value!r:.60}"
