"""Where the bytes of captures are: positions of frames, and sums in which no byte is lost.

The packets are walked a second time here, by a reader that knows nothing of the decoder's.
"""

from __future__ import annotations

import lzma
import random
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from kraftwire.capture.capture import Capture
from kraftwire.capture.framing.frames import RawFrame
from tests.support.captures.builder import Session, pcap_of, request, response
from tests.support.captures.damage import damage, recut, segments_of
from tests.support.captures.decoded import GOLDEN, ROOT, golden, shared

CAPTURES = sorted((ROOT / "tests" / "golden" / "captures").glob("*.pcap*.xz"))
SHARED = (
    "a_hard.pcap.xz",
    "a_kraft_quorum.pcapng.xz",
    "b_hard_mid.pcap.xz",
    "d_tls.pcapng.xz",
    "e_sasl.pcapng.xz",
)
_SECTION = b"\x0a\x0d\x0d\x0a"
_PACKET_BLOCK = 6
_IPV4, _TCP = b"\x08\x00", 6


def _records(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Start of a packet's record, of the packet, and end of the record; little-endian files."""
    at = 24
    while not data.startswith(_SECTION) and at + 16 <= len(data):
        (size,) = struct.unpack_from("<I", data, at + 8)
        yield at, at + 16, at + 16 + size
        at += 16 + size
    at = 0
    while data.startswith(_SECTION) and at + 12 <= len(data):
        kind, size = struct.unpack_from("<II", data, at)
        if kind == _PACKET_BLOCK:
            yield at, at + 28, at + size
        at += size


def _payload_size(data: bytes, packet: int, end: int) -> int:
    """Captured TCP payload of an IPv4 packet over Ethernet; 0 if there is none, or it is cut."""
    ip = packet + 14
    if data[packet + 12 : ip] != _IPV4 or data[ip + 9] != _TCP or end > len(data):
        return 0
    tcp = ip + 4 * (data[ip] & 15)
    begin = tcp + 4 * (data[tcp + 12] >> 4)
    total = int.from_bytes(data[ip + 2 : ip + 4], "big") or end - ip
    return max(0, min(ip + total, end) - begin)


def _check_sums(capture: Capture, frames: list[RawFrame], data: bytes) -> None:
    counts = capture.health.bytes
    assert counts.file == len(data)
    assert counts.unaccounted == 0
    held = sum(4 + f.size - sum(size for _, size in f.missing) for f in frames)
    assert counts.frames == held
    places = (counts.frames, counts.tls, counts.other, counts.duplicates, counts.undecoded)
    assert sum(places) + counts.headers == len(data)
    assert min(*places, counts.headers) >= 0


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name)
def test_every_byte_of_a_capture_is_in_one_place(path: Path) -> None:
    """Wrong sums mean that traffic was silently dropped."""
    data = lzma.decompress(path.read_bytes())
    capture = Capture(path)
    _check_sums(capture, list(capture), data)
    payload = sum(_payload_size(data, packet, end) for _, packet, end in _records(data))
    assert capture.health.bytes.payload == payload


@pytest.mark.parametrize("name", SHARED)
def test_every_byte_of_a_large_capture_is_in_one_place(name: str) -> None:
    """Damage, encryption and half-open connections in traffic of real servers."""
    path = shared("captures", name)
    capture = Capture(path)
    _check_sums(capture, list(capture), lzma.decompress(path.read_bytes()))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", GOLDEN)
def test_every_byte_of_a_damaged_capture_is_in_one_place(name: str, seed: int) -> None:
    """Packets twice, late, missing and cut short; the capture begins and ends anywhere."""
    segments = list(recut(segments_of(golden(name))))
    source = random.Random(seed)
    start, cut = source.randrange(len(segments) // 2), source.randrange(100)
    data = damage(segments[start if seed % 2 else 0 :], seed)
    data = data[: len(data) - cut]
    capture = Capture(data)
    _check_sums(capture, list(capture), data)


@pytest.mark.parametrize("name", GOLDEN)
def test_every_byte_after_damage_of_the_file_is_in_one_place(name: str) -> None:
    """Nothing is decoded after an impossible packet header, and the bytes are still counted."""
    data = bytearray(lzma.decompress(golden(name).read_bytes()))
    records = list(_records(bytes(data)))
    at = records[len(records) // 2][0]
    data[at + 8 : at + 12] = b"\xff" * 4
    capture = Capture(bytes(data))
    _check_sums(capture, list(capture), bytes(data))
    assert capture.health.is_damaged


def test_other_protocols_and_late_copies_have_their_places() -> None:
    """A web server and a packet sent again are not a loss of Kafka traffic."""
    web = Session(client_end=("10.0.0.1", 40001), server_end=("10.0.0.2", 80)).open()
    web.client(b"GET / HTTP/1.1\r\n\r\n").server(b"HTTP/1.1 200 OK\r\n\r\n")
    session = Session().open().client(request(1, b"body")).server(response(1, b"answer"))
    sent = next(each for each in session.segments if each.payload)
    data = pcap_of([*web.segments, *session.segments, sent])
    capture = Capture(data)
    _check_sums(capture, list(capture), data)
    assert capture.health.bytes.other == 18 + 19
    assert capture.health.bytes.duplicates == len(sent.payload)


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name)
def test_positions_lead_to_the_packets_of_a_frame(path: Path) -> None:
    """Evidence is shown by position: the packet there must hold the frame's first byte."""
    data = lzma.decompress(path.read_bytes())
    ends = {begin: end for begin, _, end in _records(data)}
    begins = {end: begin for begin, end in ends.items()}
    frames = list(Capture(path))
    for frame in frames:
        first = data[frame.position : ends[frame.position]]
        last = data[begins[frame.end_position] : frame.end_position]
        whole = frame.size.to_bytes(4, "big") + frame.data
        assert frame.position < frame.end_position
        if frame.end_position == ends[frame.position]:
            assert whole in first
        else:
            assert whole[:4] in first
            assert frame.data[-4:] in last
    identities = {(f.connection, f.direction, f.position, f.correlation_id) for f in frames}
    assert len(identities) == len(frames)


def test_positions_count_in_the_file_of_a_series(tmp_path: Path) -> None:
    """A frame across the border of two files begins in one and ends in the other."""
    session = Session().open().client(request(1, b"x" * 5000)).server(response(1, b"answer"))
    middle = [n for n, each in enumerate(session.segments) if each.payload][1]
    first, second = tmp_path / "1.pcap", tmp_path / "2.pcap"
    first.write_bytes(pcap_of(session.segments[:middle]))
    second.write_bytes(pcap_of(session.segments[middle:]))
    asked, answered = Capture(first, second)
    assert (asked.file, asked.end_file) == (str(first), str(second))
    assert asked.position == [begin for begin, *_ in _records(first.read_bytes())][-1]
    assert asked.end_position in {end for *_, end in _records(second.read_bytes())}
    assert (answered.file, answered.end_file) == (str(second), str(second))
    assert answered.request is not None
    assert answered.request.position == asked.position


def test_pieces_say_where_their_packets_are() -> None:
    """A caller that picks packets from a file wants frames that point into that file."""
    data = lzma.decompress(golden("quorum").read_bytes())
    whole = list(Capture(data))
    connection = whole[len(whole) // 2].connection
    ports = {int(end.rpartition(":")[2]) for end in connection.split("-")}
    pieces = [(0, data[:24])]
    for begin, packet, end in _records(data):
        if set(struct.unpack_from(">HH", data, packet + 34)) == ports:
            pieces.append((begin, data[begin:end]))
    frames = list(Capture(pieces))
    expected = [frame for frame in whole if frame.connection == connection]
    assert [(f.position, f.end_position, f.data) for f in frames] == [
        (f.position, f.end_position, f.data) for f in expected
    ]
