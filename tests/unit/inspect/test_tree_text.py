"""The lines that are made from a message are those that are made from its JSON form."""

from __future__ import annotations

import random
from collections.abc import Iterable
from io import StringIO
from pathlib import Path

import pytest

from kraftwire.decode.body.frame import DecodedFrame
from kraftwire.decode.body.topics import TopicNames
from kraftwire.inspect.trees.tree import TreeWriter
from kraftwire.printable import printable_lines
from tests.support.captures import decoded_frames
from tests.unit.inspect.short_frames import damaged, decoded, of_vector, rpc_vectors

GOLDEN = Path(__file__).parents[2] / "golden" / "captures"
SEED = 20_261


def _count_same(frames: Iterable[DecodedFrame], topics: TopicNames) -> int:
    """Compare the frames whose lines are made from the message; returns how many these are."""
    writer = TreeWriter(StringIO(), topics=topics)
    count = 0
    for frame in frames:
        lines = None if frame.is_token else writer._fields.lines(frame, "    ")
        if lines is not None:
            count += 1
            assert printable_lines(lines) == printable_lines(list(writer._long_way(frame)))
    return count


@pytest.mark.parametrize(
    ("name", "at_least"), [("quorum.pcap", 0.6), ("clients.pcap", 0.4), ("groups.pcapng", 0.7)]
)
def test_frames_of_captures(name: str, at_least: float) -> None:
    """Most of them are shown by their messages."""
    frames = decoded_frames(GOLDEN / f"{name}.xz")
    assert _count_same(frames, frames[0].settings.topics) > at_least * len(frames)


def test_messages_of_all_versions() -> None:
    """Each with its golden values."""
    frames = [decoded(of_vector(vector)) for vector in rpc_vectors()]
    assert _count_same(frames, TopicNames()) > 900


def test_damaged_messages() -> None:
    """Those that can still be decoded, for example if a number became another one."""
    print(f"seed {SEED}")
    chance = random.Random(SEED)
    frames = [
        decoded(of_vector(vector, damaged(vector.data, chance))) for vector in rpc_vectors()
    ]
    assert _count_same(frames, TopicNames()) > 100
