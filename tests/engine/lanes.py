"""A capture most of whose packets the engine takes, whole and damaged, read by both engines."""

from __future__ import annotations

import lzma
import random
import struct
from collections import Counter
from functools import cache
from typing import Any

from kraftwire import engine
from kraftwire.capture.capture import Capture
from kraftwire.capture.framing.frames import Frame
from kraftwire.wire.engines import use
from tests.support.captures import golden

__all__ = ["same_frames", "search_lane"]

_HEAD = 24
_PACKETS = 400


def _seen(frame: Frame) -> list[Any]:
    values = [getattr(frame, name) for name in Frame.__slots__ if name != "request"]
    request = frame.request
    return [*values, None if request is None else (request.client_id, request.time_ns)]


def same_frames(*pieces: bytes) -> list[Any]:
    """The contents of a capture, which must be the same with both engines."""
    found = []
    before = engine.name()
    try:
        for name in (engine.C, engine.PYTHON):
            use(name)
            capture = Capture(iter(pieces), name="x.pcap")
            frames = [_seen(frame) for frame in capture]
            found.append([*frames, repr(capture.health), list(capture._history.packets)])
    finally:
        use(before)
    assert found[0] == found[1]
    return found[0]


@cache
def _recording() -> tuple[bytes, list[bytes]]:
    """The header of a capture, and the records of its packets."""
    data = lzma.decompress(golden("quorum").read_bytes())
    return data[:_HEAD], _records(data)[:_PACKETS]


def _records(data: bytes) -> list[bytes]:
    at, records = _HEAD, []
    while at < len(data):
        size = 16 + int.from_bytes(data[at + 8 : at + 12], "little")
        records.append(data[at : at + size])
        at += size
    return records


def _harmed(record: bytes, source: random.Random) -> bytes:
    """A packet with a changed byte, cut off in the capture, or with a wrong length."""
    kind = source.randrange(3)
    harmed = bytearray(record)
    if kind == 0:
        harmed[source.randrange(16, min(len(harmed), 74))] ^= 1 << source.randrange(8)
    elif kind == 1:
        harmed = harmed[: source.randrange(16, len(harmed))]
        harmed[8:12] = struct.pack("<I", len(harmed) - 16)
    else:
        harmed[8 + source.randrange(8)] ^= 1 << source.randrange(8)
    return bytes(harmed)


def search_lane(source: random.Random) -> Counter[str]:
    """Compare once, on packets that are lost, repeated, in another order, cut or changed.

    Returns counts as `search_messages` does. Raises: AssertionError if the engines differ.
    """
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
    same_frames(head + b"".join(changed))
    return Counter({"lane captures": 1})
