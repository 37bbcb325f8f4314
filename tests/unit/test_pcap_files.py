"""Capture files: formats, byte orders, resolutions of time, compression, damage."""

from __future__ import annotations

import gzip
import lzma
import os
import random
import struct
import threading
from collections.abc import Callable
from pathlib import Path

import cramjam
import pytest

from kraftwire.decode.pairing.conversations import Capture
from kraftwire.errors import StorageError
from tests.support.pcap_builder import (
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
    """A simple packet has no time: that of the packet before it stands in."""
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
    """Everything behind it would be guesswork, and allocating its size would be harmful."""
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


def test_what_is_no_capture_is_refused(tmp_path: Path) -> None:
    """Nothing is decoded from a wrong file, and the message says what was expected."""
    with pytest.raises(StorageError, match="expected the magic number"):
        decode(tmp_path / "a.pcap", b"#!/bin/sh\necho this is a script\n")
    with pytest.raises(StorageError, match="cannot open"):
        Capture(str(tmp_path / "missing.pcap"))


def _zstd(content: bytes) -> bytes:
    return bytes(cramjam.zstd.compress(content))


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, _zstd])
def test_compressed_captures_are_unpacked_on_the_way(tmp_path: Path, pack: object) -> None:
    """By their first bytes, whatever they are called."""
    content = pcap_of(_session().segments)
    frames, capture = decode(tmp_path / "a", pack(content))  # type: ignore[operator]
    assert [frame.data[4:] for frame in frames][1:] == [b"def"]
    assert capture.health.problem == ""


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, _zstd])
def test_a_cut_compressed_file_says_so(tmp_path: Path, pack: object) -> None:
    """Otherwise the end of the file would pass for the end of the traffic."""
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


def test_giving_up_a_zstd_capture_leaves_no_thread_behind(tmp_path: Path) -> None:
    """Whoever wants the first frame only must not pay for the rest."""
    session = Session().open()
    for number in range(2000):
        session.client(request(number, os.urandom(500)))
    path = tmp_path / "a"
    path.write_bytes(_zstd(pcap_of(session.segments)))
    before = set(threading.enumerate())
    frames = iter(Capture(str(path)))
    next(frames)
    started = set(threading.enumerate()) - before
    del frames
    for thread in started:
        thread.join(timeout=30)
    assert [thread for thread in started if thread.is_alive()] == []


def test_a_live_capture_is_decoded_as_it_comes() -> None:
    """`tcpdump -U -w - | kraftwire decode -` shows a frame when its last packet is there."""
    content = pcap_of(_session().segments)
    source, target = os.pipe()
    with open(source, "rb"), open(target, "wb", buffering=0) as writer:
        writer.write(content[:30])
        capture = iter(Capture(f"/dev/fd/{source}"))
        writer.write(content[30:-7])
        assert next(capture).direction == "request"
        writer.write(content[-7:])
        assert next(capture).direction == "response"
