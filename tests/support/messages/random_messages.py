"""Random messages, made from the facts that the generated modules carry.

Owns the choice of values: extremes, defaults, nulls, lengths that need a second and a third
length byte, text beyond ASCII, tagged fields present and absent, unknown tagged fields.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from typing import Any

from kraftwire.wire.facts import FieldFacts, StructFacts
from kraftwire.wire.message import Message, Struct

SEED_VARIABLE = "KRAFTWIRE_SEED"

_LETTERS = ["a", "Z", "0", "-", "_", ".", " ", '"', "\\", "\0", "é", "λ", "漢", "😀"]
_FLOATS = [0.0, -0.0, 1.0, -1.5, 1e-300, 1.7976931348623157e308, 5e-324, 0.1, 123456789.125]
_INTEGER_BITS = {
    "int8": (8, True),
    "int16": (16, True),
    "uint16": (16, False),
    "int32": (32, True),
    "uint32": (32, False),
    "int64": (64, True),
}
_UNKNOWN_TAG_MIN = 100  # above every tag that a schema uses


def fresh_seed() -> int:
    """The seed of this run: the value of KRAFTWIRE_SEED to replay one, otherwise a new one."""
    given = os.environ.get(SEED_VARIABLE)
    return int(given) if given else random.SystemRandom().getrandbits(32)


def random_message(
    message: type[Message],
    version: int,
    source: random.Random,
    *,
    unknown_tags: bool = False,
    foreign_versions: range = range(0),
    letters: Sequence[str] = _LETTERS,
) -> Message:
    """A message with random values in every field that the version carries; text of `letters`.

    Some fields that only one of `foreign_versions` carries have values too.
    """
    facts = message.facts()
    maker = _Maker(version, source)
    maker.has_unknown_tags = unknown_tags and version in facts.flexible
    maker.foreign_versions = foreign_versions
    maker.letters = letters
    made: Message = maker.struct(facts.root)
    return made


class _Maker:
    """Makes the parts of one message."""

    has_unknown_tags = False
    foreign_versions = range(0)
    letters: Sequence[str] = _LETTERS

    def __init__(self, version: int, source: random.Random) -> None:
        self.version = version
        self.source = source

    def struct(self, facts: StructFacts) -> Any:
        made: Struct = facts.cls()
        for field in facts.fields:
            if self.is_filled(field):
                setattr(made, field.attribute, self.value(field))
        if self.has_unknown_tags and self.source.random() < 0.6:
            # Every struct class of a schema with flexible versions has the attribute.
            made.unknown_tagged_fields = self.tags()  # type: ignore[attr-defined]
        return made

    def is_filled(self, field: FieldFacts) -> bool:
        """Whether to give a field a random value; a tagged one may keep its default."""
        if self.version not in field.versions:
            is_known = any(version in field.versions for version in self.foreign_versions)
            return is_known and self.source.random() < 0.2
        return self.version not in field.tagged or self.source.random() < 0.7

    def value(self, field: FieldFacts) -> Any:
        is_foreign = self.version not in field.versions
        nullable = field.versions.low if is_foreign else self.version
        if nullable in field.nullable and self.source.random() < 0.25:
            return None
        if field.is_array:
            return [self.element(field) for _ in range(self.array_length(field))]
        return self.element(field)

    def element(self, field: FieldFacts) -> Any:
        if field.struct is not None:
            return self.struct(field.struct)
        if field.type in _INTEGER_BITS:
            return self.integer(*_INTEGER_BITS[field.type])
        makers: dict[str, Callable[[], Any]] = {
            "bool": lambda: self.source.random() < 0.5,
            "float64": lambda: self.source.choice(_FLOATS),
            "uuid": lambda: self.source.choice([bytes(16), self.source.randbytes(16)]),
            "string": self.text,
            "bytes": lambda: self.source.randbytes(self.length()),
            "records": lambda: self.source.randbytes(self.length()),
        }
        return makers[field.type]()

    def integer(self, bits: int, is_signed: bool) -> int:
        """Extremes, small numbers (most defaults are among them) and any number."""
        low, high = (-1 << bits - 1, (1 << bits - 1) - 1) if is_signed else (0, (1 << bits) - 1)
        small = self.source.randint(max(low, -1), 2)
        return self.source.choice([low, high, small, small, self.source.randint(low, high)])

    def text(self) -> str:
        return "".join(self.source.choices(self.letters, k=self.length()))

    def tags(self) -> dict[int, bytes]:
        return {
            _UNKNOWN_TAG_MIN + self.source.getrandbits(self.source.randint(1, 27)): (
                self.source.randbytes(self.length())
            )
            for _ in range(self.source.randint(1, 3))
        }

    def array_length(self, field: FieldFacts) -> int:
        # 130 elements need a second length byte; only cheap elements come in such numbers.
        is_long = field.struct is None and self.source.random() < 0.03
        return 130 if is_long else self.source.randint(0, 3)

    def length(self) -> int:
        """Mostly short; sometimes long enough for a second or a third length byte."""
        choice = self.source.randrange(400)
        if choice == 0:
            return 11_500
        return self.source.randint(100, 300) if choice < 12 else self.source.randint(0, 7)
