"""Damaged frames: for any bytes the decode tool prints a line and no traceback."""

from __future__ import annotations

import json
import random
from functools import cache

import pytest

from kraftwire.capture.capture import Capture
from kraftwire.capture.framing.frames import RawFrame
from kraftwire.decode.body.frame import FrameDecoder
from kraftwire.decode.body.hidden_bytes import hidden_ranges
from kraftwire.decode.body.records import RecordsForm, Settings
from kraftwire.decode.jsonl import to_line
from tests.support.captures.decoded import GOLDEN, golden
from tests.support.messages.mutations import mutated

ROUNDS = 1500


@cache
def _frames() -> list[RawFrame]:
    return [frame for name in GOLDEN for frame in Capture(str(golden(name)))]


def _damaged(source: random.Random) -> RawFrame:
    """A frame with changed bytes, and sometimes with missing ones or an impossible version."""
    original = source.choice(_frames())
    frame = RawFrame()
    for name in RawFrame.__slots__:
        setattr(frame, name, getattr(original, name))
    frame.data = mutated(original.data, source)
    frame.size = len(frame.data)
    if source.random() < 0.3:
        cut = source.randrange(len(frame.data) + 1)
        frame.size += 5
        frame.missing = ((cut, frame.size - cut),)
    if frame.api_version is not None and source.random() < 0.2:
        frame.api_version = source.randrange(-2, 40)
    return frame


@pytest.mark.parametrize("seed", range(4))
def test_every_damaged_frame_gives_a_line(seed: int) -> None:
    """A capture holds other people's bytes; one bad frame must not end the run."""
    print(f"seed {seed}")
    source = random.Random(seed)
    for _ in range(ROUNDS // 4):
        frame = _damaged(source)
        form = RecordsForm(source.choice(("none", "summary", "full")), source.random() < 0.5)
        decoded = FrameDecoder(Settings(form)).decode(frame)
        line = json.loads(to_line(decoded.lazy_json()))
        assert 0 <= line["remaining"] <= frame.size
        if line["remaining"] and line["header"] is not None:
            assert line["findings"]
        for start, end in hidden_ranges(decoded):
            assert 0 <= start <= end <= len(frame.data)
        for each in line["findings"]:
            assert each["offset"] is None or 0 <= each["offset"] <= frame.size
        assert all(topic.name or topic.id for topic in decoded.topics)
        assert all(isinstance(name, str) for name in (*decoded.groups, *decoded.error_names))
