"""Finding frames again: starts in the middle, lost borders, false leads; TLS; bounded memory."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from kraftwire.capture import capture as capture_module
from kraftwire.capture.capture import Capture
from kraftwire.capture.framing import frames as frames_module
from kraftwire.capture.framing.frames import CAPTURE_FINDINGS, FINDINGS_MAX
from tests.support.captures.builder import (
    FIN,
    SYN,
    Session,
    decode_segments,
    pcap_of,
    request,
    response,
)
from tests.support.captures.decoded import shared


def _ping_pong(session: Session, numbers: range, *, size: int = 40) -> Session:
    for number in numbers:
        session.client(request(number, b"q" * size)).server(response(number, b"r" * size))
    return session


def _without(session: Session, *positions: int) -> list[int]:
    """Remove segments, later ones first."""
    for position in sorted(positions, reverse=True):
        del session.segments[position]
    return list(positions)


def test_a_connection_that_was_open_before_is_picked_up(tmp_path: Path) -> None:
    """Most captures begin while clients are connected; clusters are not restarted for them."""
    session = _ping_pong(Session(), range(5, 9))
    frames, capture = decode_segments(tmp_path, session.segments)
    assert [f.correlation_id for f in frames if f.is_request] == [5, 6, 7, 8]
    assert len(frames) == 8
    assert frames[0].packet_findings[0][0] == "midstream-start"
    assert frames[0].connection == "10.0.0.1:40000-10.0.0.2:9092"
    assert capture.health.midstream_connections == 1
    assert not capture.health.is_undecoded


def test_the_first_packet_may_be_the_servers(tmp_path: Path) -> None:
    """Which end is the client shows in who sends requests."""
    session = _ping_pong(Session(), range(5, 9))
    del session.segments[0]
    frames, _ = decode_segments(tmp_path, session.segments)
    assert {f.connection for f in frames} == {"10.0.0.1:40000-10.0.0.2:9092"}
    # The first response has whole frames up to one whose request is known, so it is one.
    responses = [(f.correlation_id, f.api_key) for f in frames if not f.is_request]
    assert responses == [(5, None), (6, 3), (7, 3), (8, 3)]


@pytest.mark.parametrize("begin", range(1, 12))
def test_what_was_requested_before_the_capture_is_not_a_loss(tmp_path: Path, begin: int) -> None:
    """Every packet of a connection in use is a place where a capture may begin."""
    session = Session()
    for number in range(5, 9):  # three requests are in flight at any time
        session.client(request(number, b"q" * 40))
    for number in range(9, 16):
        session.server(response(number - 4, b"r" * 40)).client(request(number, b"q" * 40))
    for number in range(12, 16):
        session.server(response(number, b"r" * 40))
    frames, capture = decode_segments(tmp_path, session.segments[begin:])
    answers = [f for f in frames if not f.is_request]
    early = [f for f in answers if f.api_key is None]
    asked = [f.correlation_id for f in frames if f.is_request]
    assert [f.correlation_id for f in early if f.correlation_id in asked] == []
    assert answers[: len(early)] == early
    ids = [{each[0] for each in f.packet_findings} for f in early]
    assert all(each <= {"request-before-capture", "midstream-start"} for each in ids)
    assert capture.health.early_responses == len(early)
    assert (capture.health.unmatched_responses, capture.health.undecoded_bytes) == (0, 0)


def test_a_request_that_is_lost_later_is_a_loss(tmp_path: Path) -> None:
    """Only what comes before the first exchange was requested before the capture."""
    session = _ping_pong(Session(), range(5, 30))
    del session.segments[20]
    frames, capture = decode_segments(tmp_path, session.segments)
    lost = [f for f in frames if not f.is_request and f.api_key is None]
    assert [f.correlation_id for f in lost] == [15]
    assert "unmatched-response" in {each[0] for each in lost[0].packet_findings}
    assert (capture.health.early_responses, capture.health.unmatched_responses) == (0, 1)
    assert capture.health.is_undecoded


def test_one_direction_alone_is_picked_up_at_the_second_request(tmp_path: Path) -> None:
    """Without responses, the next header has to confirm the first one."""
    session = Session()
    for number in range(5, 9):
        session.client(request(number))
    frames, _ = decode_segments(tmp_path, session.segments)
    assert [f.correlation_id for f in frames] == [5, 6, 7, 8]


def test_a_capture_may_begin_inside_a_long_request(tmp_path: Path) -> None:
    """The rest of that request belongs to no frame; what follows does."""
    session = Session().client(request(5, bytes(range(256)) * 100))
    _ping_pong(session, range(6, 9))
    frames, capture = decode_segments(tmp_path, session.segments[4:])
    assert [f.correlation_id for f in frames if f.is_request] == [6, 7, 8]
    ids = [each[0] for each in frames[0].packet_findings]
    assert ids == ["midstream-start", "cut-by-capture-start"]
    assert not frames[0].is_undecoded
    assert not capture.health.is_undecoded
    assert capture.health.skipped_bytes == 25_616 - 4 * 1448 + 0 * capture.health.packets + 4


def test_requests_are_found_again_after_a_lost_border(tmp_path: Path) -> None:
    """The hole holds the end of one request and the start of the next."""
    session = Session().open()
    stream = b"".join(request(n, bytes([n]) * 1000) for n in range(20))
    session.client(stream)
    session.segments.pop(3 + 2)
    for number in range(20):
        session.server(response(number))
    frames, capture = decode_segments(tmp_path, session.segments)
    requests = [f for f in frames if f.is_request]
    lost = set(range(20)) - {f.correlation_id for f in requests}
    assert lost == {3, 4}
    behind = next(f for f in requests if f.correlation_id == 5)
    assert {finding[0] for finding in behind.packet_findings} == {"gap", "resync"}
    assert [f.correlation_id for f in requests if f.missing] == [2]
    assert len([f for f in frames if not f.is_request]) == 20
    assert capture.health.resyncs == 1


def test_responses_are_found_again_by_the_ids_that_are_waited_for(tmp_path: Path) -> None:
    """A response has no distinctive header to recognise it by."""
    session = Session().open()
    session.client(b"".join(request(n) for n in range(100, 120)))
    session.server(b"".join(response(n, bytes([n]) * 1000) for n in range(100, 120)))
    first = next(i for i, s in enumerate(session.segments) if s.source[1] == 9092 and s.payload)
    session.segments.pop(first + 2)
    frames, _ = decode_segments(tmp_path, session.segments)
    answers = [f for f in frames if not f.is_request]
    assert {f.correlation_id for f in answers} == set(range(100, 120)) - {103, 104}
    assert all(f.api_key == 3 for f in answers)


def test_a_frame_inside_a_payload_is_not_a_frame(tmp_path: Path) -> None:
    """Topics may carry recorded Kafka traffic; the lengths around it say that it is data."""
    inner = b"".join(request(n, client_id="other") for n in range(50))
    session = Session().open()
    for number in range(6):
        session.client(request(number, inner, key=0, version=9))
        session.server(response(number, inner))
    frames, _ = decode_segments(tmp_path, session.segments)
    assert len(frames) == 12


def test_a_recorded_request_in_the_rest_of_a_lost_one_is_not_believed(tmp_path: Path) -> None:
    """After a hole, the connection's own client id and the next correlation ids are needed."""
    inner = b"".join(request(n, client_id="other") for n in range(200))
    session = Session().open()
    for number in range(300, 320):
        session.client(request(number, inner)).server(response(number))
    session.segments.pop(3 + 10 * 4 - 4)
    frames, _ = decode_segments(tmp_path, session.segments)
    assert {f.request.client_id for f in frames if f.is_request and f.request} == {"tester"}


def test_a_length_above_a_mebibyte_needs_confirmation(tmp_path: Path) -> None:
    """A wrong one would swallow everything that follows."""
    session = Session()
    bogus = struct.pack(">ihhih", 5_000_000, 3, 1, 77, 6) + b"tester"
    session.client(bogus)
    _ping_pong(session, range(5, 9))
    frames, _ = decode_segments(tmp_path, session.segments)
    assert [f.correlation_id for f in frames if f.is_request] == [5, 6, 7, 8]


def test_garbage_in_the_middle_is_skipped(tmp_path: Path) -> None:
    """Bytes that are not a frame, without any hole: a client with a bug, or a damaged capture."""
    session = _ping_pong(Session().open(), range(3))
    session.client(b"\xff" * 100)
    _ping_pong(session, range(3, 6))
    frames, capture = decode_segments(tmp_path, session.segments)
    assert [f.correlation_id for f in frames if f.is_request] == list(range(6))
    after = next(f for f in frames if f.correlation_id == 3)
    assert ("resync", None, "", "100 bytes were skipped") in after.packet_findings
    assert capture.health.skipped_bytes == 100


def test_responses_that_match_nothing_after_a_loss_are_not_invented(tmp_path: Path) -> None:
    """Bytes that were cut by a wrong length look like responses, too."""
    session = _ping_pong(Session().open(), range(3))
    session.server(b"\xff" * 20 + bytes([0, 0, 0, 6, 1, 2, 3, 4, 5, 6]) * 30)
    frames, capture = decode_segments(tmp_path, session.segments)
    assert len(frames) == 6
    assert capture.health.is_undecoded


def test_tls_connections_are_named_and_counted() -> None:
    """Their bytes stay encrypted, but the reader should learn why."""
    capture = Capture(str(shared("captures", "d_tls.pcapng.xz")))
    assert list(capture) == []
    assert capture.health.tls_connections == 8
    assert [each.version for each in capture.health.tls] == ["TLSv1.3"] * 4 + ["TLSv1.2"] * 4
    assert all(each.client_bytes and each.server_bytes for each in capture.health.tls)
    assert not capture.health.is_undecoded


def _hello(kind: int, extensions: bytes) -> bytes:
    middle = bytes(32) + b"\0" + (b"\0\x02\x13\x01\x01\0" if kind == 1 else b"\x13\x01\0")
    body = b"\x03\x03" + middle + struct.pack(">H", len(extensions)) + extensions
    shake = bytes([kind]) + len(body).to_bytes(3, "big") + body
    return b"\x16\x03\x01" + struct.pack(">H", len(shake)) + shake


def test_tls_tells_server_name_and_version(tmp_path: Path) -> None:
    """The name is the client's; TLS 1.3 hides the version in an extension of the server."""
    name = b"kafka.example.org"
    entry = struct.pack(">HBH", len(name) + 3, 0, len(name)) + name
    session = Session().open()
    session.client(_hello(1, struct.pack(">HH", 0, len(entry)) + entry), mss=40)
    session.server(_hello(2, struct.pack(">HHH", 43, 2, 0x0304)))
    session.client(b"\x17\x03\x03\0\x10" + bytes(16))
    _, capture = decode_segments(tmp_path, session.close().segments)
    (summary,) = capture.health.tls
    assert (summary.server_name, summary.version) == ("kafka.example.org", "TLSv1.3")
    assert summary.connection == "10.0.0.1:40000-10.0.0.2:9092"
    assert summary.client_bytes == session.client_seq - 1000 - 2


def test_tls_that_began_before_the_capture_is_recognised(tmp_path: Path) -> None:
    """Application data has a record header as well."""
    session = Session().server(b"\x17\x03\x03\0\x10" + bytes(16)).client(b"\x17\x03\x03\0\x10")
    frames, capture = decode_segments(tmp_path, session.segments)
    assert frames == []
    assert [each.connection for each in capture.health.tls] == ["10.0.0.1:40000-10.0.0.2:9092"]


@pytest.mark.parametrize("data", [b"\x16\x03\x01\0\x05\x01\0\0\x01\0", b"\x16\x03\x01\0\x02\x02\0"])
def test_broken_hellos_are_survived(tmp_path: Path, data: bytes) -> None:
    """A hello that ends before its fields do has no name or version."""
    _, capture = decode_segments(tmp_path, Session().open().client(data).server(data).segments)
    assert capture.health.tls[0].version == ""


def test_unfinished_frames_share_a_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a frame that does not fit, the first packet is kept, and the next frame is found."""
    monkeypatch.setattr(frames_module, "BUFFERED_BYTES_MAX", 100_000)
    session = Session().open()
    session.client(request(1, b"a" * 200_000) + request(2)).server(response(1) + response(2))
    frames, capture = decode_segments(tmp_path, session.segments)
    assert [(f.correlation_id, f.size) for f in frames] == [(1, 200_016), (2, 16), (1, 4), (2, 4)]
    assert frames[0].missing == ((1444, 198_572),)
    assert len(frames[0].data) == 1444
    assert frames[0].is_undecoded
    assert capture.health.undecoded_bytes == 198_572


def test_the_budget_is_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any number of long frames passes, one after the other."""
    monkeypatch.setattr(frames_module, "BUFFERED_BYTES_MAX", 100_000)
    session = Session().open()
    for number in range(5):
        session.client(request(number, b"a" * 90_000)).server(response(number))
    frames, _ = decode_segments(tmp_path, session.segments)
    assert len(frames) == 10
    assert not any(f.missing for f in frames)


def test_a_scan_of_ports_does_not_fill_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Connections without data are dropped first, and closed ones are forgotten."""
    monkeypatch.setattr(capture_module, "CONNECTIONS_MAX", 50)
    monkeypatch.setattr(capture_module, "CLOSED_CONNECTIONS_MAX", 10)
    kafka = Session().open().client(request(1))
    segments = list(kafka.segments)
    for port in range(1, 500):
        scan = Session(server_end=("10.0.0.9", port), now_ns=kafka.now_ns).open()
        segments += scan.segments
    kafka.segments.clear()
    segments += kafka.server(response(1)).segments
    (tmp_path / "a.pcap").write_bytes(pcap_of(segments))
    capture = Capture(str(tmp_path / "a.pcap"))
    assert [f.api_key for f in capture] == [3, 3]
    assert len(capture._flows) <= 2 * (50 + 10)


def test_a_frame_has_no_more_findings_than_people_read(tmp_path: Path) -> None:
    """A capture may consist of gaps, each a few bytes where it is packed; all are counted."""
    session = Session().open().client(request(1, bytes(8000)), mss=20)
    frames, capture = decode_segments(tmp_path, session.server(response(1)).segments, snap=70)
    assert capture.health.gaps > FINDINGS_MAX
    assert len(frames[0].packet_findings) == FINDINGS_MAX
    assert sum(size for _, size in frames[0].missing) == capture.health.missing_bytes


def test_every_finding_is_documented(tmp_path: Path) -> None:
    """The ids are an interface; this capture provokes most of them."""
    session = _ping_pong(Session(), range(5, 40), size=2000)
    segments = [s for i, s in enumerate(session.segments) if i % 17 != 11]
    frames, _ = decode_segments(tmp_path, segments[1:-1], snap=1400)
    ids = {finding[0] for frame in frames for finding in frame.packet_findings}
    assert ids <= set(CAPTURE_FINDINGS)
    assert len(ids) >= 5


def test_hostile_flags_and_numbers_are_survived(tmp_path: Path) -> None:
    """Packets that no TCP would send are ignored; they do not raise an error."""
    session = _ping_pong(Session().open(), range(3))
    base = session.segments[3]
    odd = []
    for flags in (SYN | FIN, 0, 0xFF, SYN | 4):
        for seq in (0, base.seq + 10_000, base.seq - 10_000, 0xFFFFFFFF, 0x80000000 + base.seq):
            time_ns = session.segments[5].time_ns
            odd.append(base.__class__(time_ns, base.source, base.target, seq, 0, flags, b"x" * 20))
    frames, capture = decode_segments(
        tmp_path, session.segments[:6] + odd + session.segments[6:]
    )
    # A SYN may begin another connection, so one response is lost; nothing is invented.
    told = [(frame.direction, frame.correlation_id) for frame in frames]
    assert told[:3] == [("request", 0), ("response", 0), ("request", 1)]
    assert told[3:] == [("request", 2), ("response", 2)]
    assert capture.health.packets == len(session.segments) + len(odd)
    assert not capture.health.is_damaged
