"""Hostile messages: what they announce costs nothing, what they contain costs in proportion.

A frame of a few kilobytes must not occupy gigabytes, and an element of a few bytes may become a
Python object of a few hundred but not more.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from itertools import islice
from typing import Any

from kraftwire.errors import WireError
from kraftwire.limits import ELEMENT_BYTES_MIN, ELEMENT_FREE_COUNT
from kraftwire.wire.facts import FieldFacts, StructFacts
from kraftwire.wire.message import Message
from kraftwire.wire.plans import python_decoder
from kraftwire.wire.reader import Annotation, annotate
from kraftwire.wire.writer import _Writer
from tests.fuzz.outcome import naming, samples
from tests.support.commands.memory import SPARE

# A struct of many empty arrays is the largest object that eight bytes on the wire can become. A
# tenth of both stays unused.
RATIO_MAX = SPARE * 64
FREE_BYTES = SPARE * 64 * 1024

COUNTS_MAX = 8
ELEMENTS = 300
MANY_ELEMENTS = 3 * ELEMENT_FREE_COUNT
UNKNOWN_TAGS = 2000
# The budget of elements is one mechanism; a few messages of different shape show that it works.
TINY_ELEMENTS = ("AlterClientQuotasRequest", "ElectLeadersRequest", "DescribeProducersRequest")

HUGE_COMPACT = (bytes.fromhex("ffffffff07"), bytes.fromhex("ffffffff0f"))
HUGE_PLAIN = {2: bytes.fromhex("7fff"), 4: bytes.fromhex("7fffffff")}

_ELEMENTS = {
    "bool": True,
    "bytes": b"ab",
    "int8": 1,
    "int16": 700,
    "int32": 70_000,
    "int64": 1 << 40,
    "string": "ab",
    "uuid": bytes(range(16)),
}

Path = tuple[FieldFacts, ...]


def _encoded(message: Message, version: int) -> bytes:
    """The bytes of a message that `encode` refuses, because nobody decodes them."""
    writer = _Writer(message.facts(), version)
    writer.struct(message.facts().root, message)
    return bytes(writer.out)


def _peak(cls: type[Message], version: int, data: bytes) -> int:
    """Bytes that decoding occupies at most, the result included."""
    python_decoder(cls, version)  # built once for each version, not for each message
    tracemalloc.start()
    try:
        kept = cls.decode(data, version)
    except WireError:
        kept = None
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    del kept
    return peak


def _counts(node: Annotation) -> Iterator[Annotation]:
    """The lengths and counts of a message: every number that announces something."""
    if node.type == "unsigned varint" or node.name == "length":
        yield node
    for child in node.children:
        yield from _counts(child)


def _arrays(facts: StructFacts, version: int, path: Path = ()) -> Iterator[Path]:
    """Every array field of a message, as the fields that lead to it."""
    for field in facts.fields:
        if version not in field.versions:
            continue
        if field.is_array:
            yield (*path, field)
        if field.struct:
            yield from _arrays(field.struct, version, (*path, field))


def _element(field: FieldFacts) -> Any:
    return field.struct.cls() if field.struct else _ELEMENTS[field.type]


def _with_elements(cls: type[Message], path: Path, count: int) -> Message:
    """A message whose only content is one array of small elements."""
    message = cls()
    owner: Any = message
    for field in path[:-1]:
        inner = _element(field)
        setattr(owner, field.attribute, [inner] if field.is_array else inner)
        owner = inner
    setattr(owner, path[-1].attribute, [_element(path[-1]) for _ in range(count)])
    return message


def _newest() -> dict[type[Message], int]:
    return {cls: max(v for c, v, _ in samples() if c is cls) for cls, _, _ in samples()}


def test_announcing_much_costs_nothing() -> None:
    """Lengths and counts of every message, one after the other, claim two thousand million."""
    for cls, version, data in samples():
        root, _ = annotate(cls.facts(), data, version)
        for number, node in enumerate(islice(_counts(root), COUNTS_MAX)):
            if node.type == "unsigned varint":
                huge = HUGE_COMPACT[number % len(HUGE_COMPACT)]
            else:
                huge = HUGE_PLAIN[node.end - node.start]
            hostile = data[: node.start] + huge + data[node.end :]
            with naming(cls, version, hostile):
                assert _peak(cls, version, hostile) <= RATIO_MAX * len(data) + FREE_BYTES


def test_elements_cost_in_proportion_to_their_bytes() -> None:
    """With many small elements a decoder's objects are larger than the bytes."""
    for cls, version in _newest().items():
        for path in _arrays(cls.facts().root, version):
            data = _with_elements(cls, path, ELEMENTS).encode(version)
            with naming(cls, version, data[:80]):
                peak = _peak(cls, version, data)
                assert peak <= RATIO_MAX * len(data) + FREE_BYTES, f"{peak} bytes for {len(data)}"


def test_tiny_elements_are_limited_by_the_size_of_the_message() -> None:
    """Structs of two or three bytes are refused before they are built once there are too many."""
    newest = {cls.NAME: (cls, version) for cls, version in _newest().items()}
    for name in TINY_ELEMENTS:
        cls, version = newest[name]
        path = next(p for p in _arrays(cls.facts().root, version) if p[-1].struct)
        data = _encoded(_with_elements(cls, path, MANY_ELEMENTS), version)
        assert len(data) < MANY_ELEMENTS * ELEMENT_BYTES_MIN
        with naming(cls, version, data[:80]):
            assert _peak(cls, version, data) < len(data)


def test_unknown_tagged_fields_are_limited_by_the_size_of_the_message() -> None:
    """Two bytes on the wire make an entry of a dictionary and an object of bytes."""
    for cls, version in _newest().items():
        if version not in cls.facts().flexible:
            continue
        message: Any = cls()
        # Nothing but tags: three bytes each, fewer than an entry of a dictionary by far.
        message.unknown_tagged_fields = {1000 + tag: b"" for tag in range(UNKNOWN_TAGS)}
        data = _encoded(message, version)
        with naming(cls, version, data[:80]):
            assert _peak(cls, version, data) <= RATIO_MAX * len(data) + FREE_BYTES
