"""What is learned across frames is a value: passed on, merged, used as a start."""

from __future__ import annotations

import pickle

from kraftwire.capture.capture import Capture
from kraftwire.capture.framing.frames import RawFrame
from kraftwire.decode.body.context import Memory
from kraftwire.decode.body.frame import FrameDecoder
from kraftwire.decode.body.records import Settings
from kraftwire.limits import CONTEXTS_MAX
from tests.support.captures.decoded import golden


def _frames() -> list[RawFrame]:
    return list(Capture(golden("clients")))


def _learned(frames: list[RawFrame], memory: Memory | None = None) -> Memory:
    decoder = FrameDecoder(Settings(), memory)
    for frame in frames:
        decoder.decode(frame)
    return decoder.memory


def test_a_run_learns_topics_and_groups() -> None:
    """These are what later frames need, whichever connection they are on."""
    memory = _learned(_frames())
    assert len(memory.topics.by_id()) > 1
    assert "consumer" in memory.protocol_types.values()


def test_a_memory_goes_through_pickle() -> None:
    """Workers get it as bytes."""
    memory = _learned(_frames())
    assert pickle.loads(pickle.dumps(memory)) == memory


def test_parts_know_together_what_the_whole_knows() -> None:
    """Connections that are decoded separately must not differ from a run over all of them."""
    frames = _frames()
    whole = _learned(frames)
    parts: dict[str, list[RawFrame]] = {}
    for frame in frames:
        parts.setdefault(frame.connection, []).append(frame)
    assert len(parts) > 1
    merged = Memory()
    for part in parts.values():
        merged.merge(_learned(part))
    assert merged == whole


def test_a_run_that_starts_from_a_memory_decodes_a_part_as_the_whole_does() -> None:
    """Names of topics come from other connections, and from later frames."""
    frames = _frames()
    memory = _learned(frames)
    whole = FrameDecoder(Settings(), memory.copy())
    expected = {id(each): whole.decode(each, 0).to_json() for each in frames}
    for name in {each.connection for each in frames}:
        part = FrameDecoder(Settings(), memory.copy())
        for each in frames:
            if each.connection == name:
                assert part.decode(each, 0).to_json() == expected[id(each)]


def test_a_copy_learns_on_its_own() -> None:
    """A run that starts from a memory does not change that of others."""
    memory = Memory()
    made = memory.copy()
    _learned(_frames(), made)
    assert memory == Memory() != made


def test_what_is_known_stays_and_a_merge_is_bounded() -> None:
    """The order of merging must not rename topics, nor let memory grow without bound."""
    one, other = Memory(), Memory()
    one.mechanisms["a"] = "PLAIN"
    other.mechanisms.update({"a": "GSSAPI", **{str(n): "PLAIN" for n in range(CONTEXTS_MAX)}})
    one.merge(other)
    assert one.mechanisms["a"] == "PLAIN"
    assert len(one.mechanisms) == CONTEXTS_MAX
