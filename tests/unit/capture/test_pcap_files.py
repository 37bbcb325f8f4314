"""Capture files: formats, byte orders, resolutions of time, compression, damage."""

from __future__ import annotations

import gzip
import lzma
import os
import random
import struct
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from io import RawIOBase
from pathlib import Path

import cramjam
import pytest

from kraftwire.capture.capture import Capture
from kraftwire.capture.framing.frames import RawFrame
from kraftwire.capture.packets.source import CaptureSource
from kraftwire.capture.packets.unpacking import WINDOW_BYTES_FREE
from kraftwire.errors import StorageError
from tests.support.captures.builder import (
    START_NS,
    Session,
    block,
    decode,
    ethernet,
    interface,
    ip_packet,
    packet_block,
    pcap,
    pcap_of,
    request,
    response,
    section,
)

# A frame that is there comes within milliseconds.
_SECONDS_MAX = 60.0


def _session() -> Session:
    return Session().open().client(request(1, b"abc")).server(response(1, b"def"))


def _packets(session: Session) -> list[tuple[int, bytes]]:
    return [(s.time_ns, ethernet(ip_packet(s))) for s in session.segments]


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("nanoseconds", [False, True])
def test_pcap_is_read_in_both_byte_orders_and_units(
    tmp_path: Path, order: str, nanoseconds: bool
) -> None:
    """Captures travel between machines, and newer tools write nanoseconds."""
    packets = [(time_ns + 789, packet) for time_ns, packet in _packets(_session())]
    content = pcap(packets, order=order, nanoseconds=nanoseconds)
    frames, capture = decode(tmp_path / "a.pcap", content)
    assert [frame.direction for frame in frames] == ["request", "response"]
    expected = packets[3][0] if nanoseconds else packets[3][0] // 1000 * 1000
    assert frames[0].time_ns == expected
    assert frames[1].latency_ms == 1.0
    assert capture.health.packets == 5
    assert capture.health.problem == ""


def test_the_time_is_the_double_nearest_to_the_time_stamp(tmp_path: Path) -> None:
    """Adding seconds and microseconds as floats would print digits that the capture lacks."""
    session = _session()
    packets = [(1_795_206_424_830_001_000, packet) for _, packet in _packets(session)]
    frames, _ = decode(tmp_path / "a.pcap", pcap(packets))
    assert repr(frames[0].time) == "1795206424.830001"


def test_the_upper_bits_of_the_link_type_are_ignored(tmp_path: Path) -> None:
    """They hold the length of the frame check sequence."""
    content = pcap(_packets(_session()), link=1 | 0x5400_0000)
    assert len(decode(tmp_path / "a.pcap", content)[0]) == 2


@pytest.mark.parametrize("order", ["<", ">"])
def test_pcapng_is_read_in_both_byte_orders(tmp_path: Path, order: str) -> None:
    """The byte order belongs to the section, the unit of time to the interface."""
    content = section(order=order) + interface(order=order)
    for time_ns, packet in _packets(_session()):
        content += packet_block(packet, time_ns // 1000, order=order)
    frames, _ = decode(tmp_path / "a.pcapng", content)
    assert [frame.time_ns for frame in frames] == [START_NS + 3_000_000, START_NS + 4_000_000]


@pytest.mark.parametrize(
    ("resolution", "ticks_per_second"), [(9, 10**9), (3, 10**3), (0x80 | 20, 2**20), (10, 10**10)]
)
def test_pcapng_has_times_of_any_resolution(
    tmp_path: Path, resolution: int, ticks_per_second: int
) -> None:
    """Powers of ten and of two, finer and coarser than nanoseconds."""
    content = section() + interface(options=[(9, bytes([resolution]))])
    for _, packet in _packets(_session()):
        content += packet_block(packet, 1_700_000_000 * ticks_per_second + ticks_per_second // 2)
    frames, _ = decode(tmp_path / "a.pcapng", content)
    assert frames[0].time == 1_700_000_000.5


def test_pcapng_times_may_have_an_offset(tmp_path: Path) -> None:
    """if_tsoffset is in seconds and may be negative."""
    content = section() + interface(options=[(14, struct.pack("<q", -100))])
    for time_ns, packet in _packets(_session()):
        content += packet_block(packet, time_ns // 1000)
    frames, _ = decode(tmp_path / "a.pcapng", content)
    assert frames[0].time_ns == START_NS + 3_000_000 - 100 * 1_000_000_000


def test_pcapng_may_mix_interfaces_and_sections(tmp_path: Path) -> None:
    """Merged captures have several of both, with different links and byte orders."""
    segments = _session().segments
    content = section() + interface(link=101) + interface(link=1)
    for index, segment in enumerate(segments[:3]):
        packet = ip_packet(segment)
        packet = packet if index % 2 == 0 else ethernet(packet)
        content += packet_block(packet, segment.time_ns // 1000, interface_id=index % 2)
    content += section(order=">") + interface(link=101, order=">")
    for segment in segments[3:]:
        content += packet_block(ip_packet(segment), segment.time_ns // 1000, order=">")
    frames, _ = decode(tmp_path / "a.pcapng", content)
    assert [frame.correlation_id for frame in frames] == [1, 1]


def test_pcapng_has_old_and_simple_packets_and_other_blocks(tmp_path: Path) -> None:
    """A simple packet has no time: that of the packet before it is used."""
    packets = _packets(_session())
    content = section() + interface() + block(4, b"names") + block(0x0BAD, b"\xff" * 40)
    for time_ns, packet in packets[:4]:
        ticks = time_ns // 1000
        head = (0, 0, ticks >> 32, ticks & 0xFFFFFFFF, len(packet), len(packet))
        content += block(2, struct.pack("<HHIIII", *head) + packet)
    content += block(3, struct.pack("<I", len(packets[4][1])) + packets[4][1])
    frames, _ = decode(tmp_path / "a.pcapng", content)
    assert [frame.time_ns for frame in frames] == [packets[3][0], packets[3][0]]


@pytest.mark.parametrize("form", ["pcap", "pcapng"])
def test_a_file_that_ends_inside_a_packet_is_read_up_to_there(tmp_path: Path, form: str) -> None:
    """A capture of a machine that crashed, or one that is still being copied."""
    packets = _packets(_session())
    content = pcap(packets)
    if form == "pcapng":
        content = section() + interface()
        content += b"".join(packet_block(p, t // 1000) for t, p in packets)
    frames, capture = decode(tmp_path / "a", content[:-5])
    assert [frame.direction for frame in frames] == ["request"]
    assert "ends inside" in capture.health.problem
    assert not capture.health.is_damaged


@pytest.mark.parametrize("form", ["pcap", "pcapng"])
def test_an_impossible_length_ends_the_reading(tmp_path: Path, form: str) -> None:
    """Everything after it would be guesswork, and allocating its size would be harmful."""
    packets = _packets(_session())
    content = pcap(packets) + struct.pack("<IIII", 0, 0, 0x7FFFFFFF, 60)
    if form == "pcapng":
        content = section() + interface()
        content += b"".join(packet_block(p, t // 1000) for t, p in packets)
        content += struct.pack("<II", 6, 0x7FFFFFFC) + bytes(8)
    frames, capture = decode(tmp_path / "a", content)
    assert len(frames) == 2
    assert "cannot be" in capture.health.problem
    assert capture.health.is_damaged


def test_a_file_that_is_not_a_capture_is_refused(tmp_path: Path) -> None:
    """Nothing is decoded from a wrong file, and the message says what was expected."""
    with pytest.raises(StorageError, match="expected the magic number"):
        decode(tmp_path / "a.pcap", b"#!/bin/sh\necho this is a script\n")
    with pytest.raises(StorageError, match="cannot open"):
        Capture(str(tmp_path / "missing.pcap"))


def _zstd(content: bytes) -> bytes:
    return bytes(cramjam.zstd.compress(content))


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, _zstd])
def test_compressed_captures_are_unpacked_on_the_way(tmp_path: Path, pack: object) -> None:
    """They are recognised by their first bytes, whatever their names."""
    content = pcap_of(_session().segments)
    frames, capture = decode(tmp_path / "a", pack(content))  # type: ignore[operator]
    assert [frame.data[4:] for frame in frames][1:] == [b"def"]
    assert capture.health.problem == ""


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, _zstd])
def test_a_cut_compressed_file_says_so(tmp_path: Path, pack: object) -> None:
    """Otherwise the end of the file would look like the end of the traffic."""
    session = Session().open()
    for number in range(600):
        session.client(request(number, random.Random(number).randbytes(1000)))
    packed = pack(pcap_of(session.segments))  # type: ignore[operator]
    frames, capture = decode(tmp_path / "a", packed[: len(packed) * 3 // 4])
    assert 100 < len(frames) < 600
    assert "the packed file is cut off" in capture.health.problem
    assert not capture.health.is_damaged


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, _zstd])
def test_a_damaged_compressed_file_is_not_taken_for_a_cut_one(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    """What is cut off was never there; what is damaged was, and is lost."""
    session = Session().open()
    for number in range(600):
        session.client(request(number, random.Random(number).randbytes(1000)))
    packed = bytearray(pack(pcap_of(session.segments)))
    packed[-1000:] = b"\xff" * 1000
    frames, capture = decode(tmp_path / "a", bytes(packed))
    assert len(frames) > 100
    assert capture.health.is_damaged
    assert "cut off" not in capture.health.problem


def test_several_compressed_members_are_one_capture(tmp_path: Path) -> None:
    """Tools append to compressed files, and `cat a.gz b.gz` is common."""
    content = pcap_of(_session().segments)
    frames, _ = decode(tmp_path / "a", gzip.compress(content[:100]) + gzip.compress(content[100:]))
    assert len(frames) == 2


def _next_direction(capture: Iterator[RawFrame], writer: RawIOBase) -> str:
    """The direction of the next frame; fails if the frame waits for more than was written."""
    with ThreadPoolExecutor(1) as other:
        frame = other.submit(next, capture)
        try:
            return frame.result(_SECONDS_MAX).direction
        except TimeoutError:
            writer.close()  # ends the read that waits
            raise


def test_a_live_zstd_capture_is_decoded_as_it_comes() -> None:
    """The first frame does not wait for the rest of the file."""
    packed = _zstd(pcap_of(_session().segments)) + _zstd(b"")
    source, target = os.pipe()
    with open(source, "rb"), open(target, "wb", buffering=0) as writer:
        writer.write(packed[:-1])
        capture = iter(Capture(f"/dev/fd/{source}"))
        assert _next_direction(capture, writer) == "request"
        writer.write(packed[-1:])


def test_the_end_of_a_zstd_capture_may_be_read_twice(tmp_path: Path) -> None:
    """The second time, it was taken for a cut frame."""
    path = tmp_path / "a"
    path.write_bytes(_zstd(b"x" * 1000))
    with CaptureSource(str(path)) as source:
        assert source.read_exactly(2000) == b"x" * 1000
        assert source.read() == source.read() == b""
        assert source.problem == ""


@pytest.mark.parametrize("window_log", [25, 27])
def test_a_large_zstd_window_is_allowed_until_it_is_filled(
    tmp_path: Path, window_log: int
) -> None:
    """Blocks of 128 KiB of one byte take four bytes each; the window would keep them all."""
    path = tmp_path / "a"
    path.write_bytes(_zeros(window_log, blocks=10))
    with CaptureSource(str(path)) as source:
        assert len(source.read(10 << 17)) == 10 << 17
        assert source.problem == ""
    path.write_bytes(_zeros(10, blocks=1, block_size=1024) + _zeros(window_log, blocks=1000))
    with CaptureSource(str(path)) as source:
        source.read_on()
        assert source.size < WINDOW_BYTES_FREE + (1 << 20)
        assert "takes too much memory for its size" in source.problem


def test_a_zstd_window_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    """In the first frame when the file is opened, in a later frame when it is reached."""
    path = tmp_path / "a"
    path.write_bytes(_zeros(28, blocks=1))
    with pytest.raises(StorageError, match="cannot open: it claims a window that is too large"):
        CaptureSource(str(path))
    path.write_bytes(_zeros(10, blocks=1, block_size=1024) + _zeros(28, blocks=1))
    with CaptureSource(str(path)) as source:
        assert source.read_exactly(2000) == bytes(1024)
        assert source.read() == b""
        assert source.problem.startswith("cannot read on: it claims a window that is too large")
        assert source.is_damaged


def _zeros(window_log: int, *, blocks: int, block_size: int = 1 << 17) -> bytes:
    """A zstd frame of this many blocks that repeat one byte."""
    block = (block_size << 3 | 2).to_bytes(3, "little") + b"\0"
    last = (block_size << 3 | 3).to_bytes(3, "little") + b"\0"
    return bytes.fromhex("28b52ffd00") + bytes([window_log - 10 << 3]) + block * (blocks - 1) + last


def test_a_live_capture_is_decoded_as_it_comes() -> None:
    """`tcpdump -U -w - | kraftwire decode -` shows a frame when its last packet is there."""
    content = pcap_of(_session().segments)
    source, target = os.pipe()
    with open(source, "rb"), open(target, "wb", buffering=0) as writer:
        writer.write(content[:30])
        capture = iter(Capture(f"/dev/fd/{source}"))
        writer.write(content[30:-7])
        assert _next_direction(capture, writer) == "request"
        writer.write(content[-7:])
        assert _next_direction(capture, writer) == "response"
