"""Captures through both engines: as they are, damaged, on other links and in another format."""

from __future__ import annotations

import lzma
import random
import struct
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from typing import Any

from kraftwire import engine
from kraftwire.capture.capture import Capture
from kraftwire.capture.framing.frames import RawFrame
from tests.support.captures.decoded import golden

__all__ = ["FORMS", "damaged", "same_frames", "same_index"]

_HEAD = 24
_ETHERNET = 14
# Where the TCP header of a packet is.
_TCP = 16 + 14 + 20
_PACKETS = 400


def _seen(frame: RawFrame) -> list[Any]:
    values = [getattr(frame, name) for name in RawFrame.__slots__ if name != "request"]
    request = frame.request
    if request is None:
        return [type(frame), *values]
    names = [name for name in type(request).__slots__ if name != "skipped"]
    skipped = [each.correlation_id for each in request.skipped]
    return [type(frame), *values, *[getattr(request, name) for name in names], skipped]


def _read(*pieces: bytes) -> list[Any]:
    capture = Capture(iter(pieces), name="x.pcap")
    frames = [_seen(frame) for frame in capture]
    return [*frames, repr(capture.health), list(capture._recent.packets)]


def same_frames(*pieces: bytes) -> list[Any]:
    """The contents of a capture, which must be the same with both engines."""
    before = engine.name()
    found = []
    try:
        for each in engine.available():
            engine.use(each)
            found.append(_read(*pieces))
    finally:
        engine.use(before)
    assert found[0] == found[1]
    return found[0]


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


def damaged(source: random.Random) -> bytes:
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


def _packets(data: bytes) -> Iterable[tuple[bytes, bytes]]:
    """The time of each packet as in its record, and its bytes."""
    at = _HEAD
    while at < len(data):
        size = int.from_bytes(data[at + 8 : at + 12], "little")
        yield data[at : at + 8], data[at + 16 : at + 16 + size]
        at += 16 + size


def _with_link(data: bytes, link: int, change: Callable[[bytes], bytes]) -> bytes:
    """The capture on another link."""
    parts = [data[:20], struct.pack("<I", link)]
    for time, packet in _packets(data):
        changed = change(packet)
        parts += time, struct.pack("<II", len(changed), len(changed)), changed
    return b"".join(parts)


def _ipv6(packet: bytes) -> bytes:
    """The same segment in IPv6."""
    header, ip = packet[:12], packet[_ETHERNET:]
    total = int.from_bytes(ip[2:4], "big")
    addresses = bytes(12) + ip[12:16] + bytes(12) + ip[16:20]
    length = struct.pack(">IHBB", 6 << 28, total - 20, ip[9], 64)
    return header + b"\x86\xdd" + length + addresses + ip[20:]


def _as_blocks(data: bytes, tick: int = 6) -> bytes:
    """The capture as pcapng, with time stamps of a resolution, and an interface without packets."""
    section = struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)
    options = struct.pack("<HHB3xI", 9, 1, tick, 0)
    interface = struct.pack("<IIHHI", 1, 20 + len(options), 1, 0, 0) + options
    interface += struct.pack("<I", 20 + len(options))
    parts = [section, interface, interface]
    for time, packet in _packets(data):
        seconds, micros = struct.unpack("<II", time)
        ticks = (seconds * 10**6 + micros) * 10 ** (tick - 6)
        body = packet + bytes(-len(packet) % 4)
        size = 32 + len(body)
        head = (6, size, 1, ticks >> 32, ticks & 0xFFFFFFFF, len(packet), len(packet))
        parts += struct.pack("<7I", *head), body, struct.pack("<I", size)
    return b"".join(parts)


FORMS: dict[str, Callable[[bytes], bytes]] = {
    "Linux cooked": lambda data: _with_link(data, 113, lambda each: bytes(2) + each),
    "Linux cooked 2": lambda data: _with_link(
        data, 276, lambda each: each[12:14] + bytes(18) + each[_ETHERNET:]
    ),
    "loopback": lambda data: _with_link(data, 0, lambda each: b"\x02\0\0\0" + each[_ETHERNET:]),
    "raw IP": lambda data: _with_link(data, 101, lambda each: each[_ETHERNET:]),
    "IPv6": lambda data: _with_link(data, 1, _ipv6),
    "pcapng": _as_blocks,
    "pcapng in nanoseconds": lambda data: _as_blocks(data, 9),
}


def same_index(path: str) -> Any:
    """The index of a capture for Spark, which must be the same with both engines."""
    from kraftwire.spark.captures.packet_index import index_capture

    before = engine.name()
    found = []
    try:
        for each in engine.available():
            engine.use(each)
            found.append(index_capture(path))
    finally:
        engine.use(before)
    assert _with_runs(found[0]) == _with_runs(found[1])
    return found[0]


def _with_runs(index: Any) -> Any:
    """An index that can be compared."""
    runs = [
        (each.numbers.tolist(), each.starts.tolist(), each.sizes.tolist()) for each in index.runs
    ]
    return replace(index, runs=runs)
