"""The fast path to the tree of a body ends where the slow one does."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest

from kraftwire.decode.body.frame import DecodedFrame
from kraftwire.inspect.bytes.frame_spans import frame_spans
from kraftwire.inspect.trees.fields import FieldLines
from kraftwire.inspect.trees.tree import Tree, TreeWriter
from tests.support.captures import decoded_frames

GOLDEN = Path(__file__).parents[2] / "golden" / "captures"


def _long_way(frame: DecodedFrame) -> list[str]:
    writer = TreeWriter(StringIO(), topics=frame.settings.topics)
    return list(writer._long_way(frame))


@pytest.mark.parametrize("name", ["quorum", "clients", "sasl"])
def test_trees_are_the_same_by_either_way(name: str) -> None:
    """Or the fast path leaves the frame to the slow one, for example if it may hold secrets."""
    frames = decoded_frames(GOLDEN / f"{name}.pcap.xz")
    topics = frames[0].settings.topics
    fields = FieldLines(topics, Tree(topics).batch)
    short = 0
    for frame in frames:
        if frame.is_token:
            continue
        lines = fields.lines(frame, "    ")
        if lines is not None:
            short += 1
            assert lines == _long_way(frame)
    assert short > len(frames) // 3


def test_a_field_called_size_is_named_as_itself() -> None:
    """The sizes of tagged fields have the same name."""
    frames = decoded_frames(GOLDEN / "quorum.pcap.xz")
    (frame, *_) = [
        each for each in frames if each.api_name == "FetchSnapshot" and not each.frame.is_request
    ]
    paths = [each.path for each in frame_spans(frame, frame.settings.topics)]
    assert "topics[0].partitions[0].size" in paths
    assert not [path for path in paths if path.endswith("size.size")]
