"""TCP reassembly: order, copies, overlaps, holes, and the ends of connections."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from kraftwire.capture.framing.frames import RawFrame
from kraftwire.capture.framing.health import Health
from kraftwire.capture.tcp import Flow
from tests.support.captures.builder import (
    FIN,
    MILLISECOND,
    START_NS,
    Segment,
    Session,
    decode_segments,
    request,
    response,
)


def _exchanges(session: Session, count: int, *, size: int = 3000, first: int = 1) -> Session:
    """Requests of three packets and short responses, each acknowledged."""
    for number in range(first, first + count):
        session.client(request(number, bytes([number % 251]) * size)).ack(by_client=False)
        session.server(response(number, b"done")).ack(by_client=True)
    return session


def _shown(frames: list[RawFrame]) -> list[tuple[str, int | None, int, bytes]]:
    return [(f.direction, f.correlation_id, f.size, f.data) for f in frames]


def _payloads(session: Session, *, of_client: bool) -> list[int]:
    """Positions of the segments with payload of one side."""
    source = session.client_end if of_client else session.server_end
    return [i for i, s in enumerate(session.segments) if s.payload and s.source == source]


def test_copies_and_disorder_change_nothing(tmp_path: Path) -> None:
    """Captures at several points, and several queues of one network card."""
    session = _exchanges(Session().open(), 20).close()
    plain, _ = decode_segments(tmp_path, session.segments)
    source = random.Random(7)
    segments = list(session.segments)
    for at in range(4, len(segments) - 4):
        if source.random() < 0.2:
            segments[at], segments[at + 1] = segments[at + 1], segments[at]
        if source.random() < 0.1:
            segments.insert(at + source.randrange(3), segments[at])
    # The queues stamped them as they were read: by time they are in order.
    segments = [replace(each, time_ns=START_NS + at) for at, each in enumerate(segments)]
    frames, capture = decode_segments(tmp_path, segments)
    assert sorted(_shown(frames)) == sorted(_shown(plain))
    assert capture.health.undecoded_bytes == 0
    assert capture.health.retransmissions > 0
    assert capture.health.out_of_order > 0


def test_overlapping_segments_give_each_byte_once(tmp_path: Path) -> None:
    """A retransmission may begin before and end after what was received."""
    data = request(1, bytes(range(256)) * 4)
    session = Session().open().client(data)
    whole = session.segments.pop()
    pieces = [(0, 300), (100, 350), (340, 345), (345, 900), (0, 1000), (990, len(data))]
    session.segments += [whole.cut(start, end) for start, end in pieces]
    frames, capture = decode_segments(tmp_path, session.segments)
    assert [frame.data for frame in frames] == [data[4:]]
    assert capture.health.overlaps == 4


def test_held_segments_that_overlap_give_each_byte_once(tmp_path: Path) -> None:
    """The same after a hole, where they wait together."""
    data = request(1, bytes(range(256)) * 4)
    session = Session().open().client(data)
    whole = session.segments.pop()
    pieces = [(500, 900), (200, 600), (850, len(data)), (0, 250)]
    session.segments += [whole.cut(start, end) for start, end in pieces]
    frames, _ = decode_segments(tmp_path, session.segments)
    assert [frame.data for frame in frames] == [data[4:]]


@pytest.mark.parametrize("start", [0xFFFFFFFF - 2000, 0xFFFFFFFE, 0xFFFFFFFF, 0x7FFFFFF0])
def test_sequence_numbers_wrap_around(tmp_path: Path, start: int) -> None:
    """A connection reaches the end of the numbers every four gigabytes."""
    session = Session(client_seq=start, server_seq=start).open()
    _exchanges(session, 3)
    middle = _payloads(session, of_client=True)[1]
    segments = list(session.segments)
    segments[middle], segments[middle + 1] = segments[middle + 1], segments[middle]
    frames, capture = decode_segments(tmp_path, segments)
    assert len(frames) == 6
    assert capture.health.undecoded_bytes == 0


def test_a_retransmission_fills_a_hole_however_late_it_comes(tmp_path: Path) -> None:
    """The network lost the packet, and the capture shows the receiver asking for it."""
    session = Session().open()
    session.client(request(1, b"a" * 5000)).ack(by_client=False)
    lost = session.segments.pop(4)
    session.segments.pop()
    asking = Segment(0, session.server_end, session.client_end, session.server_seq, lost.seq, 16)
    for number in range(60):
        session.segments.append(replace(asking, time_ns=session.now_ns + number * MILLISECOND))
    late = session.now_ns + 5_000 * MILLISECOND
    session.segments.append(replace(lost, time_ns=late))
    frames, capture = decode_segments(tmp_path, session.segments)
    assert [frame.missing for frame in frames] == [()]
    assert capture.health.gaps == 0


def test_a_hole_that_the_receiver_acknowledged_is_given_up(tmp_path: Path) -> None:
    """Nobody will send those bytes again: the capture lost them, and later frames need not wait."""
    session = _exchanges(Session().open(), 30)
    lost = session.segments.pop(_payloads(session, of_client=True)[1])
    frames, capture = decode_segments(tmp_path, session.segments)
    assert len(frames) == 60
    partial = next(frame for frame in frames if frame.missing)
    assert partial.correlation_id == 1
    assert partial.missing == ((1444, len(lost.payload)),)
    assert frames.index(partial) < 20
    assert partial.data[1444 : 1444 + len(lost.payload)] == bytes(len(lost.payload))
    assert partial.data[1444 + len(lost.payload) :] == b"\x01" * (3016 - 1444 - len(lost.payload))
    assert ("gap", 1444, "", f"{len(lost.payload)} bytes are missing") in partial.packet_findings
    assert capture.health.missing_bytes == len(lost.payload)


def test_a_hole_is_given_up_after_a_while_if_nobody_acknowledges(tmp_path: Path) -> None:
    """A capture of only one direction has no acknowledgements."""
    session = Session(has_acks=False).open()
    for number in range(1, 12):
        session.client(request(number, b"a" * 2000))
        session.now_ns += 500 * MILLISECOND
    only = [s for s in session.segments if s.source == session.client_end]
    del only[5]
    frames, _ = decode_segments(tmp_path, only)
    assert [frame.correlation_id for frame in frames] == list(range(1, 12))
    assert [bool(frame.missing) for frame in frames] == [False, True] + [False] * 9


def test_an_answer_shows_that_a_request_is_lost(tmp_path: Path) -> None:
    """Without acknowledgements, a response to what follows the hole proves the same."""
    session = Session(has_acks=False).open()
    for number in range(1, 40):
        session.client(request(number, b"a" * 2000)).server(response(number))
    del session.segments[_payloads(session, of_client=True)[3]]
    frames, _ = decode_segments(tmp_path, session.segments)
    assert len(frames) == 78
    assert sum(bool(frame.missing) for frame in frames) == 1
    assert all(frame.api_key == 3 for frame in frames)


def test_too_many_bytes_after_a_hole_end_the_waiting(tmp_path: Path) -> None:
    """Memory is bounded even without any other sign."""
    session = Session(has_acks=False).open()
    session.client(request(1, bytes(3_000_000)), mss=32_000)
    del session.segments[10]
    session.client(request(2))
    frames, _ = decode_segments(tmp_path, session.segments)
    assert [(frame.correlation_id, len(frame.missing)) for frame in frames] == [(1, 1), (2, 0)]


def test_the_end_of_the_capture_gives_up_holes(tmp_path: Path) -> None:
    """What waits after them is still decoded."""
    session = Session().open().client(request(1, b"a" * 2000)).client(request(2))
    del session.segments[4]
    frames, _ = decode_segments(tmp_path, session.segments)
    assert [(frame.correlation_id, frame.size) for frame in frames] == [(1, 2016), (2, 16)]


def test_data_after_a_reset_still_counts(tmp_path: Path) -> None:
    """A capture may show the reset before the data that was sent before it."""
    session = Session().open().client(request(1)).server(response(1)).reset()
    segments = session.segments
    segments[-1], segments[-2] = segments[-2], segments[-1]
    frames, _ = decode_segments(tmp_path, segments)
    assert [frame.direction for frame in frames] == ["request", "response"]


def test_a_reused_port_is_a_new_connection(tmp_path: Path) -> None:
    """Clients reuse a port after a regular end, or without one."""
    first = _exchanges(Session().open(), 2).close()
    second = Session(client_seq=70_000, server_seq=1, now_ns=first.now_ns).open()
    _exchanges(second, 2)
    third = Session(client_seq=8_000_000, server_seq=2, now_ns=second.now_ns).open()
    _exchanges(third, 2)
    frames, capture = decode_segments(tmp_path, first.segments + second.segments + third.segments)
    assert [f.correlation_id for f in frames if f.is_request] == [1, 2] * 3
    assert capture.health.connections == 3
    assert capture.health.undecoded_bytes == 0


def test_late_copies_after_the_end_are_not_a_new_connection(tmp_path: Path) -> None:
    """Otherwise they would look like the middle of one, and their frames like new ones."""
    session = _exchanges(Session().open(), 3).close()
    copies = [s for s in session.segments if s.payload]
    frames, capture = decode_segments(tmp_path, session.segments + copies)
    assert len(frames) == 6
    assert capture.health.connections == 1


def test_repeated_handshakes_are_one_connection(tmp_path: Path) -> None:
    """SYN and SYN-ACK are sent again when they are lost."""
    session = Session().open()
    session.segments = session.segments[:2] * 3 + session.segments[2:]
    _exchanges(session, 1)
    frames, capture = decode_segments(tmp_path, session.segments)
    assert len(frames) == 2
    assert capture.health.connections == 1


def test_a_frame_cut_by_the_end_of_the_capture_is_a_finding_only(tmp_path: Path) -> None:
    """Nothing that was captured is lost; the exit code stays 0."""
    session = Session().open().client(request(1, b"a" * 2000))
    session.segments.pop()
    frames, capture = decode_segments(tmp_path, session.segments)
    assert frames[0].packet_findings == [
        ("cut-by-capture-end", 1444, "", "572 of 2016 bytes are missing")
    ]
    assert frames[0].missing == ((1444, 572),)
    assert frames[0].time_ns == session.segments[-1].time_ns
    assert not frames[0].is_undecoded
    assert not capture.health.is_undecoded


def test_a_frame_cut_by_the_end_of_its_connection_is_a_loss(tmp_path: Path) -> None:
    """The client died while it was sending."""
    session = Session().open().client(request(1, b"a" * 2000))
    session.client_seq -= len(session.segments.pop().payload)
    session.close()
    frames, capture = decode_segments(tmp_path, session.segments)
    assert frames[0].packet_findings[0][0] == "cut-by-close"
    assert frames[0].is_undecoded
    assert capture.health.is_undecoded


def test_a_hole_before_the_end_of_a_connection_is_noticed(tmp_path: Path) -> None:
    """The FIN has the number of the last byte, so a lost tail is noticed."""
    session = Session().open().client(request(1, b"a" * 2000))
    session.segments.pop()
    session.close()
    frames, capture = decode_segments(tmp_path, session.segments)
    assert frames[0].missing == ((1444, 572),)
    assert capture.health.missing_bytes == 572


def test_a_fin_with_data_delivers_the_data(tmp_path: Path) -> None:
    """The last bytes and the end may share a packet."""
    session = Session().open().client(request(1)).server(response(1))
    last = session.segments[-1]
    session.segments[-1] = replace(last, flags=last.flags | FIN)
    frames, _ = decode_segments(tmp_path, session.segments)
    assert len(frames) == 2


def test_a_keep_alive_probe_is_not_data(tmp_path: Path) -> None:
    """It repeats the byte before the next one, or sends a zero in its place."""
    session = _exchanges(Session().open(), 1)
    probe = Segment(
        session.now_ns, session.client_end, session.server_end, session.client_seq - 1, 0, 16, b"\0"
    )
    session.segments.append(probe)
    _exchanges(session, 1, first=2)
    frames, capture = decode_segments(tmp_path, session.segments)
    assert len(frames) == 4
    assert capture.health.undecoded_bytes == 0


def test_what_is_far_off_counts_from_the_next_byte() -> None:
    """Also after many bytes in the fast path, which moves only its own number."""
    flow = Flow(Health())
    flow.next_seq = 1000
    flow.enter_fast_path()
    flow.fast_seq += 200 * 1024 * 1024
    assert not flow.is_far_off(flow.fast_seq - 1448)
    assert flow.is_far_off(1000)
