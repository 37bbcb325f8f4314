"""Packets that wait behind a hole: which of them come again, and what very many of them cost."""

from __future__ import annotations

import sys
from random import Random

from kraftwire.capture.framing.health import Health
from kraftwire.capture.packets.links import Segment
from kraftwire.capture.packets.packet import Stamp
from kraftwire.capture.tcp import Flow
from tests.support.messages.random_messages import fresh_seed

_BEGIN = 0xFFFFFF00  # sequence numbers begin again at 0


class _Stream:
    """The bytes of a direction, in order."""

    def __init__(self) -> None:
        self.bytes = bytearray()

    def feed(self, data: bytes, start: int, end: int, stamp: Stamp, /) -> None:
        """Take bytes of a packet."""
        del stamp
        self.bytes += data[start:end]

    def skip(self, count: int, stamp: Stamp, truncated: bool, /) -> None:
        """Nothing is lost here."""
        raise AssertionError((count, stamp, truncated))

    def on_conflict(self, count: int, /) -> None:
        """Nothing differs here."""
        raise AssertionError(count)


def _flow() -> tuple[Flow, _Stream]:
    flow, stream = Flow(Health()), _Stream()
    flow.sink, flow.feed, flow.next_seq = stream, stream.feed, _BEGIN
    return flow, stream


def _segment(offset: int, data: bytes) -> Segment:
    seq = (_BEGIN + offset) & 0xFFFFFFFF
    return Segment((0, 0, 0), b"", seq, 0, 16, data, 0, len(data), 0)


def test_a_packet_that_overlaps_one_behind_a_hole_is_noticed() -> None:
    """As a search through all of them would; where very many begin before it, it may be noticed
    without need. The stream is the same in any order."""
    seed = fresh_seed()
    print(f"KRAFTWIRE_SEED={seed}")
    source = Random(seed)
    whole = source.randbytes(700)
    for longest in (1, 3, 50):
        flow, stream = _flow()
        pieces: list[tuple[int, int]] = []
        for number in range(400):
            start = source.randrange(1, 699)
            size = min(source.randint(1, longest) if number % 40 else 200, 700 - start)
            seq = (_BEGIN + start) & 0xFFFFFFFF
            overlaps = any(a < start + size and start < a + n for a, n in pieces)
            said = flow.is_repeated(seq, size)
            assert said or not overlaps
            if number < 60:
                assert said is overlaps
            flow.accept(_segment(start, whole[start : start + size]), number)
            pieces.append((start, size))
        flow.accept(_segment(0, whole), 500)
        assert bytes(stream.bytes) == whole


def _calls(count: int) -> int:
    """How many calls it takes to put this many packets of one byte in order, last one first."""
    flow, stream = _flow()
    calls = 0

    def note(*_: object) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(note)
    try:
        for offset in reversed(range(count)):
            flow.is_repeated((_BEGIN + offset) & 0xFFFFFFFF, 1)
            flow.accept(_segment(offset, b"x"), count - offset)
    finally:
        sys.setprofile(None)
    assert len(stream.bytes) == count
    return calls


def test_very_many_packets_behind_a_hole_cost_little() -> None:
    """All were looked at for each: 600 KB kept a decoder busy for a quarter of a minute."""
    assert _calls(2000) < 3 * _calls(1000)
