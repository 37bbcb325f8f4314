"""The shortcut for messages that differ in offsets gives what the decoder gives, or nothing."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("pyarrow", reason="needs the extra spark")

from kraftwire.capture.capture import Capture
from kraftwire.capture.framing.frames import Frame
from kraftwire.decode.body.quick import quick_body
from kraftwire.spark.captures.templates import Templates
from tests.support.captures import golden

FETCH = 1


def _fetches() -> list[Frame]:
    return [frame for frame in Capture(golden("quorum")) if frame.api_key == FETCH]


def _changed(frame: Frame, data: bytes) -> Frame:
    made = Frame()
    for name in Frame.__slots__:
        if hasattr(frame, name):
            setattr(made, name, getattr(frame, name))
    made.data = data
    return made


def test_the_shortcut_gives_what_the_decoder_gives() -> None:
    """Every field of every message, and often enough to pay."""
    templates = Templates()
    hits = 0
    for frame in _fetches():
        body = quick_body(frame)
        found = templates.find(frame)
        if found is not None:
            hits += 1
            assert found[0] == body, frame
        elif body is not None:
            templates.learn(frame, body, frame.api_version or 0)
    assert hits > 20


@pytest.mark.parametrize("seed", range(3))
def test_a_byte_that_differs_is_never_overlooked(seed: int) -> None:
    """Whichever byte is damaged: the same message as from the decoder, or none."""
    generator = random.Random(seed)
    templates = Templates()
    for frame in _fetches():
        body = quick_body(frame)
        if body is not None:
            templates.learn(frame, body, frame.api_version or 0)
    answered = 0
    for frame in generator.sample(_fetches(), 40):
        for _ in range(30):
            data = bytearray(frame.data)
            data[generator.randrange(len(data))] ^= 1 << generator.randrange(8)
            wrong = _changed(frame, bytes(data))
            found = templates.find(wrong)
            if found is not None:
                answered += 1
                assert found[0] == quick_body(wrong)
    assert answered


def test_bodies_of_a_template_are_separate_objects() -> None:
    """Several are in use at once, until their responses come."""
    templates = Templates()
    first = next(f for f in _fetches() if f.is_request and quick_body(f) is not None)
    for _ in range(2):
        templates.learn(first, quick_body(first), first.api_version or 0)
    one, other = templates.find(first), templates.find(first)
    assert one is not None
    assert other is not None
    one[0].topics[0].partitions[0].fetch_offset = 7
    assert other[0] == quick_body(first)
