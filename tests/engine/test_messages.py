"""What the engine makes of messages is what Python makes of them."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from kraftwire import engine
from kraftwire.messages import find
from kraftwire.wire.plans import describe
from tests.engine.search import search_messages
from tests.engine.twins import FellBack, compare_decoding, compare_encoding, plan_of
from tests.fuzz.outcome import naming, seed
from tests.support.messages.vectors import vectors

pytestmark = pytest.mark.skipif(
    engine.C not in engine.available(), reason="the engine in C was not built"
)

# `make proof` searches on.
CASES = 40_000


def test_the_engine_keeps_every_golden_message() -> None:
    """A message from a real peer that is left to Python takes five times as long."""
    for vector in (each for group in vectors().values() for each in group):
        cls = find(vector.name)
        with naming(cls, vector.version, vector.data):
            message = compare_decoding(cls, vector.version, vector.data)
            assert message is not None, "not decoded by the engine"
            assert compare_encoding(message, vector.version) == vector.data


def test_both_engines_agree_on_random_messages() -> None:
    """Whole, damaged or with odd values: the engine may fall back, but never decide differently."""
    counts: Counter[str] = Counter()
    number = seed()
    while counts["damaged"] < CASES:
        counts += search_messages(random.Random(number))
        number += 1
    # Figures that show that the search covers enough.
    assert counts["whole kept"] > 0.9 * counts["whole"]
    assert counts["damaged kept"] > 0.1 * counts["damaged"]
    assert counts["odd kept"] > 0.01 * counts["odd"]


def test_the_comparison_notices_a_plan_that_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that cannot fail proves nothing."""
    cls = find("VoteRequest")
    shapes = describe(cls.facts(), 2)

    def fall_back(*_: object) -> None:
        raise FellBack

    loose = engine.core.Plan(shapes, fall_back, fall_back, 100_000, 10_000, 8)
    monkeypatch.setattr("tests.engine.twins.plan_of", lambda *_: loose)
    with pytest.raises(AssertionError, match="only the engine writes it"):
        compare_encoding(cls(cluster_id="x" * 40_000), 2)


@pytest.mark.parametrize(
    "shapes",
    [
        (),
        (1,),
        ((),),
        ((int, True, True, 0, (), (), ()),),
        ((object, True, True, 0, (("x", "int8"),), (), ()),),
    ],
)
def test_a_wrong_description_is_refused(shapes: object) -> None:
    """The plan writes at offsets that the description leads to, so it checks everything."""
    with pytest.raises((TypeError, ValueError, AttributeError)):
        engine.core.Plan(shapes, None, None, 1, 1, 1)


def test_a_struct_that_holds_itself_is_refused() -> None:
    """The depth of a walk is the depth of the plan."""
    cls = find("VoteRequest")
    field = ("topics", "struct", True, True, False, False, False, False, False, 0, (), 0)
    shape = (cls, True, True, 1, (field,), (), ())
    with pytest.raises(ValueError, match="before those that hold it"):
        engine.core.Plan((shape,), None, None, 1, 1, 1)


def test_the_plan_falls_back_to_the_generated_functions() -> None:
    """They decide, with the arguments that the plan was given."""
    cls = find("VoteRequest")
    shapes = describe(cls.facts(), 2)
    calls: list[object] = []
    plan = engine.core.Plan(
        shapes, lambda *given: calls.append(given), lambda given: calls.append(given), 32767, 1, 1
    )
    plan.decode(b"\xff", 0, 7)
    plan.encode("no message")
    assert calls == [(b"\xff", 0, 7), "no message"]
    with pytest.raises(FellBack):
        plan_of(cls, 2).decode(bytearray(b"\0\0"), 0, 7)
