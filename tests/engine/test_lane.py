"""Packets that the engine takes mean what they mean to Python."""

from __future__ import annotations

import lzma
import random
import struct
from collections import deque
from typing import Any

import pytest

from kraftwire import engine
from kraftwire.capture.tcp.streams import Flow
from tests.engine.lanes import same_frames, search_lane
from tests.fuzz.outcome import seed
from tests.support.captures import GOLDEN, golden

pytestmark = pytest.mark.skipif(
    engine.C not in engine.available(), reason="the engine in C was not built"
)

ROUNDS = 60


@pytest.mark.parametrize("name", GOLDEN)
def test_captures_mean_the_same_by_both_engines(name: str) -> None:
    """In one piece, and in pieces that end anywhere."""
    data = lzma.decompress(golden(name).read_bytes())
    *seen, _ = same_frames(data)
    cuts = sorted(random.Random(seed()).sample(range(len(data)), 30))
    pieces = [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]
    assert same_frames(*pieces)[:-1] == seen


def test_damaged_captures_mean_the_same_by_both_engines() -> None:
    """Packets that are lost, repeated, in another order, cut or changed."""
    source = random.Random(seed())
    for _ in range(ROUNDS):
        search_lane(source)


def _packet(seq: int, payload: bytes) -> bytes:
    total = 40 + len(payload)
    headers = (
        bytes(12) + b"\x08\x00\x45\x00" + struct.pack(">HIBBH", total, 0, 64, 6, 0) + bytes(8)
        + bytes(4) + struct.pack(">IIBBHI", seq, 0, 0x50, 16, 0, 0)
    )  # fmt: skip
    data = headers + payload
    return struct.pack("<IIII", 7, 5, len(data), len(data)) + data


def _lane(flow: object) -> tuple[Any, deque[Any]]:
    seen: deque[Any] = deque(maxlen=64)
    return engine.core.Lane(Flow, {bytes(12): flow}, seen.append, []), seen


def _flow(**fields: Any) -> Any:
    flow = Flow.__new__(Flow)
    for name, value in {"fast_seq": 5, "need": 10, "parts": [], "stamp": None, **fields}.items():
        setattr(flow, name, value)
    return flow


def test_bytes_in_order_are_kept_and_the_last_ones_fed() -> None:
    """The packet that completes a frame goes to the direction, where the frame is cut."""
    fed: list[Any] = []
    flow = _flow(feed=lambda *arguments: fed.append(arguments))
    lane, seen = _lane(flow)
    first, second, third = _packet(5, b"abcd"), _packet(9, b""), _packet(9, b"efghij")
    data = b"#" + first + second + third
    at, count = lane.follow(data, 1, 1000, 1000, 9)
    assert (at, count, lane.payload) == (len(data), 3, 10)
    assert (flow.fast_seq, flow.need, flow.parts) == (15, 6, [b"abcd"])
    assert flow.stamp == (7_000_005_000, 1001, 1001 + len(first))
    assert seen[0] == (
        7_000_005_000, 9, data, 17, len(first) - 16, len(first) - 16, 1000, 1, 1 + len(first)
    )  # fmt: skip
    assert len(seen) == 3
    begin = 1 + len(first) + len(second)
    stamp = 7_000_005_000, 1000 + begin, 1000 + len(data)
    assert fed == [(data, len(data) - 6, len(data), stamp)]


def test_no_packet_is_taken_while_many_frames_wait() -> None:
    """Memory then does not depend on how many frames a block of the file holds."""
    frames: list[Any] = []
    flow = _flow(need=0, feed=lambda *arguments: frames.append(arguments))
    lane = engine.core.Lane(Flow, {bytes(12): flow}, list[Any]().append, frames)
    data = b"".join(_packet(5 + at, b"x") for at in range(200))
    at, count = lane.follow(data, 0, 0, 1000, 1)
    assert count == len(frames) == 64
    frames.clear()
    assert lane.follow(data, at, 0, 1000, 1)[1] == 64


def test_what_fails_to_feed_ends_the_walk() -> None:
    """Python's errors are passed on."""

    def refuse(*_: object) -> None:
        raise KeyError("full")

    lane, _ = _lane(_flow(need=4, feed=refuse))
    with pytest.raises(KeyError, match="full"):
        lane.follow(_packet(5, b"abcd"), 0, 0, 1, 1)


def test_sequence_numbers_begin_again() -> None:
    """They are counted in 32 bits."""
    flow = _flow(fast_seq=2**32 - 2)
    lane, _ = _lane(flow)
    lane.follow(_packet(2**32 - 2, b"abcd"), 0, 0, 1, 1)
    assert flow.fast_seq == 2


class _Deaf(list[bytes]):
    """Pieces of a frame that is abandoned."""

    def append(self, _: bytes, /) -> None:
        """Forget a piece."""


@pytest.mark.parametrize(
    "flow",
    [
        _flow(fast_seq=-1),
        _flow(fast_seq=6),
        _flow(fast_seq=2**70),
        _flow(fast_seq="5"),
        _flow(need=4),
        _flow(need=0),
        _flow(need=-1),
        _flow(parts=_Deaf()),
        _flow(parts=None),
        Flow.__new__(Flow),
        object(),
    ],
)
def test_anything_unusual_is_left_to_python(flow: object) -> None:
    """A direction may be in any state, and the engine writes into its slots."""
    lane, seen = _lane(flow)
    assert lane.follow(_packet(5, b"abcd"), 0, 0, 1, 1) == (0, 0)
    assert not seen


def test_a_packet_that_is_cut_off_is_left_to_python() -> None:
    """Wherever it is cut, nothing after the end is read."""
    lane, seen = _lane(_flow())
    whole = _packet(5, b"abcd")
    for size in range(len(whole)):
        assert lane.follow(whole[:size], 0, 0, 1, 1) == (0, 0)
    assert not seen


def test_wrong_arguments_are_refused() -> None:
    """They are mistakes in our own code."""
    lane, _ = _lane(_flow())
    for wrong in ((b"x", 2, 0, 1, 1), (b"x", -1, 0, 1, 1), (b"x", 0, 0, 0, 1)):
        with pytest.raises(ValueError, match="no packet at this position"):
            lane.follow(*wrong)
    with pytest.raises(TypeError):
        lane.follow(bytearray(1), 0, 0, 1, 1)
    with pytest.raises(TypeError):
        lane.follow(b"x", 0, 0, 1, "1")
    with pytest.raises((TypeError, AttributeError)):
        engine.core.Lane(int, {}, print, [])


def test_what_fails_to_remember_ends_the_walk() -> None:
    """Python's errors are passed on."""

    def refuse(_: object) -> None:
        raise KeyError("full")

    lane = engine.core.Lane(Flow, {bytes(12): _flow()}, refuse, [])
    with pytest.raises(KeyError, match="full"):
        lane.follow(_packet(5, b"abcd"), 0, 0, 1, 1)
