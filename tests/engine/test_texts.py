"""JSON that the engine writes straight from bytes is that of the decoded message."""

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
from kraftwire.wire.json_form import describe_json, json_plan
from tests.engine.texts import compare_json, compare_json_batches, search_texts
from tests.fuzz.outcome import naming, seed
from tests.support.messages.mutations import mutated
from tests.support.messages.vectors import Vector, vectors

pytestmark = pytest.mark.skipif(
    engine.C not in engine.available(), reason="the engine in C was not built"
)

CASES = 15_000


# What Python escapes with a letter: characters beyond ASCII, and controls.
_ESCAPED = re.compile(r'(?<!\\)(?:\\\\)*\\[^"\\]|\x7f')


def test_every_golden_message_is_written() -> None:
    """A message from a real peer that is decoded first takes ten times as long."""
    kept = 0
    for vector in _golden():
        cls = find(vector.name)
        with naming(cls, vector.version, vector.data):
            is_kept = compare_json(cls, vector.version, vector.data)
            message, _ = cls.decode(vector.data, vector.version)
            text = json.dumps(message.to_json(vector.version))
            if describe_json(cls.facts(), vector.version) is None:
                assert not is_kept
                continue
            assert is_kept or _ESCAPED.search(text), text
            kept += is_kept
    assert kept > 0.4 * len(_golden())


def test_damaged_golden_messages_are_written_as_they_are_decoded() -> None:
    """Or not at all: bytes that Kafka would not have written."""
    kept = 0
    source = random.Random(seed())
    for vector in _golden():
        cls = find(vector.name)
        for _ in range(8):
            data = mutated(vector.data[:2000], source)
            with naming(cls, vector.version, data):
                kept += compare_json(cls, vector.version, data)
    assert kept > len(_golden())


def test_no_beginning_of_a_golden_message_is_written() -> None:
    """A message that was cut anywhere is left to Python."""
    for vector in _golden():
        cls = find(vector.name)
        plan = json_plan(cls.facts(), vector.version)
        size = len(vector.data)
        for end in range(0, size, 1 + size // 40):
            with naming(cls, vector.version, vector.data[:end]):
                assert plan is None or plan.write(vector.data[:end], 0, 10_000) is None


def _golden() -> list[Vector]:
    return [each for group in vectors().values() for each in group]


def test_the_engine_writes_the_texts_of_python() -> None:
    """Whole or damaged: it may fall back, but never write differently."""
    counts: Counter[str] = Counter()
    number = seed()
    while counts["damaged texts"] < CASES:
        counts += search_texts(random.Random(number))
        number += 1
    # Figures that show that the search covers enough.
    assert counts["texts kept"] > 0.7 * counts["texts"]
    assert counts["damaged texts kept"] > 0.1 * counts["damaged texts"]
    assert counts["heads kept"] == counts["heads"]
    assert counts["damaged heads kept"] > 0.1 * counts["damaged heads"]


@pytest.mark.parametrize(
    ("cluster_id", "tags"),
    [("é", None), ("\x7f", None), ("line\n", None), ("𝄞\0", None), ("plain", {77: b"x"})],
)
def test_the_engine_leaves_escapes_and_findings_to_python(
    cluster_id: str, tags: dict[int, bytes] | None
) -> None:
    """In C there are no escapes but those of two letters."""
    message = VoteRequest(cluster_id=cluster_id)
    message.unknown_tagged_fields = tags
    assert not compare_json(VoteRequest, 2, message.encode(2))


def test_a_tag_at_its_default_is_not_written() -> None:
    """Kafka does not write it, so a frame with one has a finding."""
    plain = FetchRequest().encode(15)
    data = FetchRequest(replica_state=ReplicaState(replica_id=3)).encode(15)
    assert compare_json(FetchRequest, 15, plain)
    assert compare_json(FetchRequest, 15, data)
    at_default = data.replace(bytes((0, 0, 0, 3)), b"\xff" * 4, 1)
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
    assert compare_json(cls, 12, cls(topics=topics[:100]).encode(12))


def test_numbers_with_fractions_have_no_plan() -> None:
    """Their shortest text is found in one place."""
    cls = find("DescribeClientQuotasResponse")
    assert describe_json(cls.facts(), 1) is None
    assert json_plan(cls.facts(), 1) is None


@pytest.mark.parametrize("place", [(0, 70), (1, 62), (-1, 61), (5, 2), (0, 0), (2**62, 2**63)])
def test_batches_outside_the_data_are_not_looked_at(place: tuple[int, int]) -> None:
    """The caller's numbers come from lengths that anybody may have written."""
    data = bytes(16) + b"\x02" + bytes(44)
    assert engine.core.json_batches(data, *place, b"") is None
    assert engine.core.json_batches(bytearray(data), 0, 61, b"") is None


def test_the_engine_leaves_a_last_offset_beyond_all_offsets_to_python() -> None:
    """Python's numbers are unbounded."""
    head = (2**63 - 1).to_bytes(8, "big") + (49).to_bytes(4, "big") + bytes(4) + b"\x02"
    for delta, is_kept in ((0, True), (1, False)):
        data = head + bytes(6) + delta.to_bytes(4, "big") + bytes(34)
        assert compare_json_batches(data) == is_kept


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


def test_wrong_arguments_are_left_to_python() -> None:
    """As everywhere, there is no error text except for our own mistakes."""
    plan = json_plan(FetchResponse.facts(), 12)
    data = FetchResponse().encode(12)
    assert plan.write(data, 0, 1000) is not None
    for wrong in ((bytearray(data), 0, 9), (data, -1, 9), (data, len(data) + 1, 9), (data, 0)):
        assert plan.write(*wrong) is None
    assert plan.write(data, 0, 0) is None
