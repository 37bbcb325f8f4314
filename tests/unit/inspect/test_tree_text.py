"""The text of a tree that is made straight from bytes is that of the tree."""

from __future__ import annotations

import random
from io import StringIO
from pathlib import Path

import pytest

from kraftwire.decode.body.frame import DecodedFrame
from kraftwire.decode.body.records import Settings
from kraftwire.decode.body.topics import TopicNames
from kraftwire.inspect.trees.tree import TreeWriter
from kraftwire.messages.metadata_response import MetadataResponse, MetadataResponseTopic
from kraftwire.printable import printable_lines
from tests.support.captures import decoded_frames
from tests.support.vectors import vectors
from tests.unit.inspect.short_frames import damaged, decoded, of_vector, rpc_vectors

GOLDEN = Path(__file__).parents[2] / "golden" / "captures"
SEED = 20_261


def _writer(topics: TopicNames | None = None) -> TreeWriter:
    return TreeWriter(StringIO(), topics=topics or TopicNames())


def _assert_is_the_tree(text: str, frame: DecodedFrame) -> None:
    """The tree has nothing that the text lacks."""
    assert frame.findings == []
    assert frame.error_codes == []
    writer = _writer(frame.settings.topics)
    assert text == printable_lines(list(writer._long_way(frame)))


@pytest.mark.parametrize(
    ("name", "at_least"), [("quorum.pcap", 0.6), ("clients.pcap", 0.4), ("groups.pcapng", 0.7)]
)
def test_frames_of_captures(name: str, at_least: float) -> None:
    """Most of them take this path."""
    frames = decoded_frames(GOLDEN / f"{name}.xz")
    writer = _writer(frames[0].settings.topics)
    short = 0
    for frame in frames:
        text = writer.frame_text(frame.frame)
        if text is not None:
            short += 1
            _assert_is_the_tree(text, frame)
    assert short > at_least * len(frames)


def test_messages_of_all_versions() -> None:
    """Those without findings."""
    writer = _writer()
    short = 0
    for vector in rpc_vectors():
        frame = of_vector(vector)
        text = writer.frame_text(frame)
        if text is not None:
            short += 1
            _assert_is_the_tree(text, decoded(frame))
    assert short > 900


def test_damaged_messages() -> None:
    """What it still accepts has no errors, for example if a number became another one."""
    print(f"seed {SEED}")
    chance = random.Random(SEED)
    writer = _writer()
    short = 0
    for vector in rpc_vectors():
        frame = of_vector(vector, damaged(vector.data, chance))
        text = writer.frame_text(frame)
        if text is not None:
            short += 1
            _assert_is_the_tree(text, decoded(frame))
    assert short > 100


@pytest.mark.parametrize(
    ("tags", "is_taken"),
    [
        ("00", True),
        ("0100020161", False),  # clusterId "", with a length that is too large
        ("01000100", False),  # clusterId null, its default, which Kafka leaves out
        ("0100020261", True),  # clusterId "a"
        ("0100830002" + "61", False),  # a size that takes more bytes than it needs
        ("020002026100" + "020261", False),  # clusterId twice
        ("0105020261", False),  # a tag that the schema lacks
        ("010a", False),  # cut
    ],
)
def test_tagged_fields_are_as_kafka_writes_them(tags: str, is_taken: bool) -> None:
    """Everything else is for the decoder that explains."""
    (vector, *_) = [each for each in vectors()["FetchRequest"] if each.version == 17]
    body = bytes(21) + bytes.fromhex("010101") + bytes.fromhex(tags)
    frame = of_vector(vector, body)
    text = _writer().frame_text(frame)
    assert (text is not None) == is_taken
    if text is not None:
        _assert_is_the_tree(text, decoded(frame))


def test_errors_are_for_the_way_that_names_them() -> None:
    """The line above the fields of a response names its errors."""
    (vector, *_) = [each for each in vectors()["HeartbeatResponse"] if each.version == 0]
    sound = of_vector(vector, bytes.fromhex("0000"))
    assert _writer().frame_text(sound) == "    errorCode: 0 NONE\n"
    assert _writer().frame_text(of_vector(vector, bytes.fromhex("001b"))) is None


def test_names_that_are_learned_later_appear_in_texts_of_the_same_bytes() -> None:
    """A text is kept only until a topic's name is learned."""
    topics = Settings().topics
    writer = _writer(topics)
    topic = bytes(range(16))
    (vector, *_) = [each for each in vectors()["FetchRequest"] if each.version == 17]
    body = bytes(21) + b"\x02" + topic + b"\x01\x00" + b"\x01\x01\x00"
    frame = of_vector(vector, body)
    before = writer.frame_text(frame)
    named = MetadataResponseTopic(name="orders", topic_id=topic)
    topics.learn(MetadataResponse(topics=[named]), 12)
    after = writer.frame_text(frame)
    assert before is not None
    assert after is not None
    assert "(orders)" in after
    assert "(orders)" not in before


def test_text_that_would_control_a_terminal_is_escaped() -> None:
    """As everywhere, but here when a text is made, not when it is written."""
    (vector, *_) = [each for each in vectors()["FindCoordinatorRequest"] if each.version == 0]
    text = _writer().frame_text(of_vector(vector, b"\x00\x03a\x1bb"))
    assert text == '    key: "a\\u001bb"\n'
