"""The fast path for packets in order finds what the loop for all packets finds."""

from __future__ import annotations

import lzma
import random
import struct
from functools import cache
from typing import Any

import pytest

from kraftwire.capture.capture import Capture
from kraftwire.capture.connections.in_order import InOrderPackets
from kraftwire.capture.framing.frames import Frame
from tests.fuzz.outcome import seed
from tests.support.captures import GOLDEN, golden

_HEAD = 24
# Where the TCP header of a packet is. What a lower header says, the fast path does not ask where
# the sequence number proves what the packet is.
_TCP = 16 + 14 + 20
_PACKETS = 400
_ROUNDS = 60


def _seen(frame: Frame) -> list[Any]:
    values = [getattr(frame, name) for name in Frame.__slots__ if name != "request"]
    request = frame.request
    return [*values, None if request is None else (request.client_id, request.time_ns)]


def _read(*pieces: bytes) -> list[Any]:
    capture = Capture(iter(pieces), name="x.pcap")
    frames = [_seen(frame) for frame in capture]
    return [*frames, repr(capture.health), list(capture._recent.packets)]


def _same_frames(*pieces: bytes) -> list[Any]:
    """The contents of a capture, which must be the same with and without the fast path."""
    found = _read(*pieces)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(InOrderPackets, "follow", lambda *arguments: (arguments[2], 0))
        patch.setattr(InOrderPackets, "take", lambda *_: False)
        assert _read(*pieces) == found
    return found


@cache
def _recording() -> tuple[bytes, list[bytes]]:
    """The header of a capture, and the records of its packets."""
    data = lzma.decompress(golden("quorum").read_bytes())
    at, records = _HEAD, []
    while at < len(data) and len(records) < _PACKETS:
        size = 16 + int.from_bytes(data[at + 8 : at + 12], "little")
        records.append(data[at : at + size])
        at += size
    return data[:_HEAD], records


def _harmed(record: bytes, source: random.Random) -> bytes:
    """A packet with a changed byte in TCP, cut off in the capture, or with a wrong length."""
    kind = source.randrange(3)
    harmed = bytearray(record)
    if kind == 0:
        harmed[source.randrange(_TCP, min(len(harmed), 74))] ^= 1 << source.randrange(8)
    elif kind == 1:
        harmed = harmed[: source.randrange(16, len(harmed))]
        harmed[8:12] = struct.pack("<I", len(harmed) - 16)
    else:
        harmed[8 + source.randrange(8)] ^= 1 << source.randrange(8)
    return bytes(harmed)


def _damaged(source: random.Random) -> bytes:
    """A capture with packets that are lost, repeated, in another order, cut or changed."""
    head, records = _recording()
    changed = list(records)
    for _ in range(source.randrange(1, 6)):
        at = source.randrange(len(changed) - 1)
        match source.randrange(4):
            case 0:
                del changed[at]
            case 1:
                changed.insert(at, changed[source.randrange(len(changed))])
            case 2:
                changed[at], changed[at + 1] = changed[at + 1], changed[at]
            case _:
                changed[at] = _harmed(changed[at], source)
    return head + b"".join(changed)


@pytest.mark.parametrize("name", GOLDEN)
def test_captures_mean_the_same_without_the_fast_path(name: str) -> None:
    """In one piece, and in pieces that end anywhere."""
    data = lzma.decompress(golden(name).read_bytes())
    *seen, _ = _same_frames(data)
    cuts = sorted(random.Random(seed()).sample(range(len(data)), 30))
    pieces = [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]
    assert _same_frames(*pieces)[:-1] == seen


def test_damaged_captures_mean_the_same_without_the_fast_path() -> None:
    """Packets that are lost, repeated, in another order, cut or changed."""
    source = random.Random(seed())
    for _ in range(_ROUNDS):
        _same_frames(_damaged(source))
