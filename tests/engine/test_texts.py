"""JSON that is written straight from bytes is that of the decoded message.

The engine writes it, and so do printers in Python, also where the engine was not built.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter

import pytest

from kraftwire import engine
from kraftwire.limits import ELEMENT_FREE_COUNT, STRING_SIZE_MAX
from kraftwire.messages import find
from kraftwire.messages.fetch_request import FetchRequest, ReplicaState
from kraftwire.messages.fetch_response import FetchResponse
from kraftwire.messages.vote_request import VoteRequest
from kraftwire.wire.json_plans import describe_json, engine_plan, json_plan, printer
from tests.engine.texts import compare_json, compare_json_batches, search_texts
from tests.fuzz.outcome import naming, seed
from tests.support.mutations import mutated
from tests.support.vectors import Vector, vectors

needs_c = pytest.mark.skipif(
    engine.C not in engine.available(), reason="the engine in C was not built"
)

ALL = set(engine.available())

CASES = 15_000


# What Python escapes with a letter: characters beyond ASCII, and controls.
_ESCAPED = re.compile(r'(?<!\\)(?:\\\\)*\\[^"\\]|\x7f')


def test_every_golden_message_is_written() -> None:
    """A message from a real peer that is decoded first takes ten times as long."""
    kept: Counter[str] = Counter()
    for vector in _golden():
        cls = find(vector.name)
        with naming(cls, vector.version, vector.data):
            kept_by = compare_json(cls, vector.version, vector.data)
            message, _ = cls.decode(vector.data, vector.version)
            text = json.dumps(message.to_json(vector.version))
            if describe_json(cls.facts(), vector.version) is None:
                assert not kept_by
                continue
            assert engine.PYTHON in kept_by, text
            assert kept_by == ALL or _ESCAPED.search(text), text
            kept.update(kept_by)
    assert all(kept[name] > 0.4 * len(_golden()) for name in ALL)


def test_damaged_golden_messages_are_written_as_they_are_decoded() -> None:
    """Or not at all: bytes that Kafka would not have written."""
    counts: Counter[str] = Counter()
    source = random.Random(seed())
    for vector in _golden():
        cls = find(vector.name)
        for _ in range(8):
            data = mutated(vector.data[:2000], source)
            with naming(cls, vector.version, data):
                counts.update(compare_json(cls, vector.version, data))
    assert all(counts[name] > len(_golden()) for name in ALL)


def test_no_beginning_of_a_golden_message_is_written() -> None:
    """Whatever the place at which it was cut."""
    for vector in _golden():
        cls = find(vector.name)
        plan = printer(cls.facts(), vector.version)
        size = len(vector.data)
        for end in range(0, size, 1 + size // 40):
            with naming(cls, vector.version, vector.data[:end]):
                assert plan is None or plan.write(vector.data[:end], 0, 10_000) is None


def _golden() -> list[Vector]:
    return [each for group in vectors().values() for each in group]


def test_all_write_the_same_texts() -> None:
    """Whole or damaged: any of them may give up, but never write differently."""
    counts: Counter[str] = Counter()
    number = seed()
    while counts["damaged texts"] < CASES:
        counts += search_texts(random.Random(number))
        number += 1
    # Figures that show that the search covers enough.
    for name in ALL:
        assert counts[f"texts {name} kept"] > 0.7 * counts["texts"]
        assert counts[f"damaged texts {name} kept"] > 0.1 * counts["damaged texts"]
        assert counts[f"heads {name} kept"] == counts["heads"]
        assert counts[f"damaged heads {name} kept"] > 0.1 * counts["damaged heads"]


@pytest.mark.parametrize(
    ("cluster_id", "tags", "kept"),
    [
        ("é", None, {engine.PYTHON}),
        ("\x7f", None, {engine.PYTHON}),
        ("line\n", None, {engine.PYTHON}),
        ("𝄞\0", None, {engine.PYTHON}),
        ("plain", {77: b"x"}, set()),
    ],
)
def test_the_engine_leaves_escapes_to_python_and_all_leave_findings(
    cluster_id: str, tags: dict[int, bytes] | None, kept: set[str]
) -> None:
    """In C there are no escapes but those of two letters."""
    message = VoteRequest(cluster_id=cluster_id)
    message.unknown_tagged_fields = tags
    assert compare_json(VoteRequest, 2, message.encode(2)) == kept


def test_a_tag_at_its_default_is_not_written() -> None:
    """Kafka does not write it, so a frame with one has a finding."""
    plain = FetchRequest().encode(15)
    told = FetchRequest(replica_state=ReplicaState(replica_id=3)).encode(15)
    assert compare_json(FetchRequest, 15, plain) == ALL
    assert compare_json(FetchRequest, 15, told) == ALL
    at_default = told.replace(bytes((0, 0, 0, 3)), b"\xff" * 4, 1)
    message, _ = FetchRequest.decode(at_default, 15)
    assert message.encode(15) != at_default
    assert not compare_json(FetchRequest, 15, at_default)


def test_a_message_of_many_values_is_not_written() -> None:
    """The decoder decides what is too much to show."""
    cls = find("MetadataRequest")
    topic = cls.facts().root.fields[0].struct
    assert topic is not None
    topics = [topic.cls(name="t") for _ in range(ELEMENT_FREE_COUNT // 2)]
    data = cls(topics=topics).encode(12)
    assert not compare_json(cls, 12, data)
    assert compare_json(cls, 12, cls(topics=topics[:100]).encode(12)) == ALL


def test_numbers_with_fractions_have_no_plan() -> None:
    """Their shortest text is found in one place."""
    cls = find("DescribeClientQuotasResponse")
    assert describe_json(cls.facts(), 1) is None
    assert json_plan(cls.facts(), 1) is None
    assert printer(cls.facts(), 1) is None


@needs_c
@pytest.mark.parametrize("place", [(0, 70), (1, 62), (-1, 61), (5, 2), (0, 0), (2**62, 2**63)])
def test_batches_outside_the_data_are_not_looked_at(place: tuple[int, int]) -> None:
    """The caller's numbers come from lengths that anybody may have written."""
    data = bytes(16) + b"\x02" + bytes(44)
    assert engine.core.json_batches(data, *place, b"") is None
    assert engine.core.json_batches(bytearray(data), 0, 61, b"") is None


def test_the_engine_leaves_a_last_offset_beyond_all_offsets_to_python() -> None:
    """Python's numbers are unbounded."""
    head = (2**63 - 1).to_bytes(8, "big") + (49).to_bytes(4, "big") + bytes(4) + b"\x02"
    for delta, kept in ((0, ALL), (1, {engine.PYTHON})):
        data = head + bytes(6) + delta.to_bytes(4, "big") + bytes(34)
        assert compare_json_batches(data) == kept


@needs_c
@pytest.mark.parametrize(
    "shapes",
    [
        (),
        (1,),
        ((),),
        ((True, 0, 0, (), ()),),
        ((True, 0, 1, (("x", "int8"),), ()),),
        ((True, 0, 1, ((b"x", "int9", 0, 0, 0, 0, 0, 0, None, -1),), ()),),
        ((True, 0, 1, ((b"x", "float64", 0, 0, 0, 0, 0, 0, None, -1),), ()),),
        ((True, 0, 1, ((b"x", "int8", 0, 0, 0, 0, 0, 2, None, -1),), ()),),
        ((True, 0, 1, ((b"x", "int8", 0, 0, 0, 1, 0, 0, None, -1),), ()),),
        ((True, 0, 1, ((b"x", "struct", 0, 0, 0, 0, 0, 0, None, 0),), ()),),
    ],
)
def test_a_wrong_description_is_refused(shapes: object) -> None:
    """The plan relies on the description alone, so it checks everything."""
    with pytest.raises((TypeError, ValueError)):
        engine.core.JsonPlan(shapes, STRING_SIZE_MAX)


@needs_c
def test_wrong_arguments_are_left_to_python() -> None:
    """As everywhere, there is no error text except for our own mistakes."""
    plan = engine_plan(FetchResponse.facts(), 12)
    data = FetchResponse().encode(12)
    assert plan.write(data, 0, 1000) is not None
    for wrong in ((bytearray(data), 0, 9), (data, -1, 9), (data, len(data) + 1, 9), (data, 0)):
        assert plan.write(*wrong) is None
    assert plan.write(data, 0, 0) is None
