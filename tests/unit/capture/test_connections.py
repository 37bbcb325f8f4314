"""Pairing of requests and responses, acks, SASL, and other protocols on the network."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from kraftwire.capture.capture import Capture
from kraftwire.capture.framing.frames import Ending
from tests.support.captures.builder import (
    Segment,
    Session,
    decode,
    decode_segments,
    ethernet,
    frame,
    ip_packet,
    pcap,
    pcap_of,
    request,
    response,
)

KERBEROS = b"\x60\x82\x02\x00\x06\x09\x2a\x86\x48\x86\xf7\x12\x01\x02\x02" + b"t" * 300


def test_a_response_has_api_version_and_latency_of_its_request(tmp_path: Path) -> None:
    """The response carries neither; both come from the request with the same correlation id."""
    session = Session().open()
    session.client(request(7, b"x" * 2000, key=52, version=2, client_id="raft-client-1"))
    session.server(response(7, b"y" * 3000))
    frames, capture = decode_segments(tmp_path, session.segments)
    asked, answered = frames
    assert (answered.api_key, answered.api_version, answered.correlation_id) == (52, 2, 7)
    assert asked.latency_ms is None
    assert answered.latency_ms == 3.0
    assert answered.request is asked.request
    assert answered.request is not None
    assert answered.request.client_id == "raft-client-1"
    assert answered.request.position == asked.position
    assert answered.size == len(answered.data) == 3004
    assert asked.connection == answered.connection == "10.0.0.1:40000-10.0.0.2:9092"
    assert capture.health.kafka_connections == 1


def test_pipelined_requests_are_answered_in_order(tmp_path: Path) -> None:
    """Producers send five requests before the first answer, in as few packets as possible."""
    session = Session().open()
    session.client(b"".join(request(n, key=n % 3) for n in range(5)))
    session.server(b"".join(response(n) for n in range(5)))
    frames, _ = decode_segments(tmp_path, session.segments)
    assert [(f.correlation_id, f.api_key) for f in frames[5:]] == [(n, n % 3) for n in range(5)]


@pytest.mark.parametrize("mss", [1, 3, 5, 13, 17])
def test_frames_may_be_split_anywhere(tmp_path: Path, mss: int) -> None:
    """Also inside lengths, headers and client ids."""
    session = Session().open()
    for number in range(3):
        session.client(request(number, b"x" * 30, client_id="äöü-client"), mss=mss)
        session.server(response(number, b"y" * 30), mss=mss)
    frames, capture = decode_segments(tmp_path, session.segments)
    assert [f.correlation_id for f in frames] == [0, 0, 1, 1, 2, 2]
    assert {f.request.client_id for f in frames if f.request} == {"äöü-client"}
    assert capture.health.undecoded_bytes == 0


def _produce(correlation_id: int, version: int, acks: int) -> bytes:
    """The start of a Produce request in each of its three layouts."""
    fields = struct.pack(">hi", acks, 30_000) + bytes(4)
    if version >= 9:
        fields = b"\x01\x07\x03abc" + b"\x05txn!" + fields
    elif version >= 3:
        fields = struct.pack(">h", 4) + b"txn!" + fields
    return request(correlation_id, fields, key=0, version=version)


@pytest.mark.parametrize("version", [0, 2, 3, 8, 9, 13])
def test_a_produce_request_without_acks_has_no_response(tmp_path: Path, version: int) -> None:
    """Otherwise the next response would look like a late one, and this request unanswered."""
    session = Session().open()
    session.client(_produce(1, version, 0) + _produce(2, version, 1) + _produce(3, version, -1))
    session.server(response(2) + response(3))
    frames, capture = decode_segments(tmp_path, session.segments)
    assert [f.correlation_id for f in frames] == [1, 2, 3, 2, 3]
    assert [f.request.has_response for f in frames[:3] if f.request] == [False, True, True]
    assert all(f.packet_findings == () for f in frames)
    assert capture.health.unanswered_requests == 0


@pytest.mark.parametrize("filling", [b"\x00", b"\xff"])
@pytest.mark.parametrize("version", [0, 3, 9])
def test_acks_are_read_from_the_request_alone(tmp_path: Path, version: int, filling: bytes) -> None:
    """A packet may end before the acks; the bytes after it in the capture say nothing of them."""
    for cut in range(1, len(_produce(0, version, 0))):
        session = Session().open()
        for number, acks in enumerate((1, 0, -1), start=1):
            whole = _produce(number, version, acks)
            session.client(whole[:cut]).client(whole[cut:])
            if acks:
                session.server(response(number))
        packets = ((s.time_ns, ethernet(ip_packet(s)) + 16 * filling) for s in session.segments)
        frames, capture = decode(tmp_path / "filled.pcap", pcap(packets))
        assert [f.correlation_id for f in frames] == [1, 1, 2, 3, 3], cut
        asked = [f.request for f in frames if f.is_request and f.request]
        assert [each.has_response for each in asked] == [True, False, True], cut
        assert {each.client_id for each in asked} == {"tester"}, cut
        assert all(f.packet_findings == () for f in frames), cut
        assert capture.health.unanswered_requests == 0, cut


def test_acks_that_were_not_captured_are_not_taken_for_none(tmp_path: Path) -> None:
    """Zeros stand in the place of missing bytes; the response shows that acks were asked for."""
    session = Session().open().client(request(1)).server(response(1))
    whole, at = _produce(2, 0, -1), 4 + 8 + 2 + len("tester")
    for part in (whole[:at], whole[at : at + 2], whole[at + 2 :]):
        session.client(part)
    session.server(response(2))
    del session.segments[-3]
    frames, capture = decode_segments(tmp_path, session.segments)
    assert [(f.correlation_id, f.api_key) for f in frames] == [(1, 3), (1, 3), (2, 0), (2, 0)]
    assert capture.health.unmatched_responses == 0


def test_a_client_id_is_read_from_the_request_alone(tmp_path: Path) -> None:
    """A packet may end inside it, and be followed by bytes that would complete another id."""
    whole = request(2, client_id="testen")
    session = Session().open().client(request(1, client_id="tester"))
    session.client(whole[:-1]).client(whole[-1:])
    packets = ((s.time_ns, ethernet(ip_packet(s)) + b"r") for s in session.segments)
    frames, _ = decode(tmp_path / "filled.pcap", pcap(packets))
    assert [f.request.client_id for f in frames if f.request] == ["tester", "testen"]


def test_a_null_transactional_id_takes_no_bytes(tmp_path: Path) -> None:
    """It is null in almost every real request."""
    session = Session().open()
    old = request(1, struct.pack(">hhi", -1, 0, 1) + bytes(4), key=0, version=7)
    new = request(2, b"\0\0" + struct.pack(">hi", 0, 1) + bytes(4), key=0, version=9)
    frames, _ = decode_segments(tmp_path, session.client(old + new).segments)
    assert [f.request.has_response for f in frames if f.request] == [False, False]


def test_acks_are_found_after_a_null_client_id(tmp_path: Path) -> None:
    """It has a length of -1 and no bytes, in the first request and in all others."""
    fields = struct.pack(">hhi", -1, 0, 1) + bytes(4)
    old = b"".join(request(at, fields, key=0, version=7, client_id=None) for at in (1, 2, 3))
    frames, _ = decode_segments(tmp_path, Session().open().client(old).segments)
    assert [f.request.has_response for f in frames if f.request] == [False, False, False]


def test_a_response_may_be_captured_before_its_request(tmp_path: Path) -> None:
    """A network card with several queues reorders packets of both directions."""
    session = Session().open()
    for number in range(4):
        session.client(request(number)).server(response(number))
    segments = session.segments
    for at in (3, 7):
        segments[at], segments[at + 1] = segments[at + 1], segments[at]
    frames, capture = decode_segments(tmp_path, segments)
    assert sorted((f.correlation_id, f.direction) for f in frames) == sorted(
        (n, d) for n in range(4) for d in ("request", "response")
    )
    assert all(f.api_key == 3 for f in frames)
    assert all(f.latency_ms == 1.0 for f in frames if not f.is_request)
    assert capture.health.unmatched_responses == 0


def test_a_response_whose_request_is_lost_has_no_api(tmp_path: Path) -> None:
    """Its size and id are certain, so it is shown; API and version would be a guess."""
    session = Session().open()
    for number in range(12):
        session.client(request(number)).server(response(number, b"body"))
    del session.segments[3 + 2 * 4]
    frames, capture = decode_segments(tmp_path, session.segments)
    lost = [f for f in frames if f.api_key is None]
    assert [(f.correlation_id, f.size, f.direction) for f in lost] == [(4, 8, "response")]
    assert lost[0].packet_findings[0][0] == "unmatched-response"
    assert (lost[0].request, lost[0].latency_ms) == (None, None)
    assert len(frames) == 23
    assert capture.health.unmatched_responses == 1


def test_a_lost_response_does_not_shift_the_others(tmp_path: Path) -> None:
    """The next response belongs to the next request, whatever happened to the one before."""
    session = Session().open()
    for number in range(30):
        session.client(request(number, key=number)).server(response(number, b"body"))
    del session.segments[4 + 2 * 4]
    frames, capture = decode_segments(tmp_path, session.segments)
    answers = [f for f in frames if not f.is_request]
    assert [f.api_key for f in answers] == [n for n in range(30) if n != 4]
    assert [f.packet_findings[-1][0] for f in answers if f.packet_findings] == ["responses-lost"]
    assert (capture.health.lost_responses, capture.health.unanswered_requests) == (1, 0)


def test_an_unknown_version_is_still_a_frame(tmp_path: Path) -> None:
    """Newer clients exist; the layer above reports what it cannot decode."""
    session = Session().open()
    session.client(request(1, key=18, version=9)).server(response(1))
    session.client(request(2, key=200, version=1)).server(response(2))
    frames, _ = decode_segments(tmp_path, session.segments)
    assert [(f.api_key, f.api_version) for f in frames] == [(18, 9), (18, 9), (200, 1), (200, 1)]


@pytest.mark.parametrize("version", [5, 20, 21, 50, 127, 1000, 32767])
def test_a_client_may_begin_with_any_version_of_api_versions(
    tmp_path: Path, version: int
) -> None:
    """A server that does not know the version answers in version 0, and the client asks again."""
    session = Session().open()
    session.client(request(0, b"\0\2a\2b\0", key=18, version=version))
    session.server(response(0, b"\0#" + bytes(4)))
    session.client(request(1)).server(response(1, bytes(9)))
    frames, capture = decode_segments(tmp_path, session.segments)
    assert [(f.api_key, f.api_version) for f in frames] == [(18, version)] * 2 + [(3, 1)] * 2
    assert capture.health.kafka_connections == 1


@pytest.mark.parametrize(
    ("key", "version", "client_id"),
    [(18, 1000, "a\x01b"), (18, -1, "tester"), (3, 1000, "tester"), (17, 50, "tester")],
)
def test_other_requests_of_far_versions_are_no_kafka(
    tmp_path: Path, key: int, version: int, client_id: str
) -> None:
    """The first bytes of another protocol must not look like a request."""
    session = Session().open()
    session.client(request(0, bytes(9), key=key, version=version, client_id=client_id))
    session.server(response(0, bytes(9)))
    frames, capture = decode_segments(tmp_path, session.segments)
    assert frames == []
    assert capture.health.kafka_connections == 0


def test_a_client_may_have_no_name(tmp_path: Path) -> None:
    """A null client id is legal."""
    session = Session().open()
    for number in range(3):
        session.client(request(number, client_id=None)).server(response(number))
    frames, _ = decode_segments(tmp_path, session.segments)
    assert len(frames) == 6
    assert frames[0].request is not None
    assert frames[0].request.client_id is None


def test_a_null_client_id_is_not_an_empty_one(tmp_path: Path) -> None:
    """Neither has bytes, and a proxy may send requests of several clients on one connection."""
    names = [None, "c", "", None, ""]
    session = Session().open()
    for number, name in enumerate(names):
        session.client(request(number, client_id=name)).server(response(number))
    frames, _ = decode_segments(tmp_path, session.segments)
    assert [f.request.client_id for f in frames if f.is_request and f.request] == names


def test_the_oldest_request_of_all_has_no_client_id(tmp_path: Path) -> None:
    """ControlledShutdown v0 has a special header: 8 bytes, then a broker id."""
    session = Session().open()
    session.client(frame(struct.pack(">hhii", 7, 0, 3, 1))).server(response(3))
    frames, _ = decode_segments(tmp_path, session.segments)
    assert [(f.api_key, f.api_version, f.correlation_id) for f in frames] == [(7, 0, 3)] * 2


def test_bare_sasl_tokens_follow_a_handshake_of_version_0(tmp_path: Path) -> None:
    """They have a length and nothing else, until the first request after them."""
    session = Session().open()
    session.client(request(1, b"\0\x05PLAIN", key=17, version=0))
    session.server(response(1, b"\0\0" + bytes(4)))
    session.client(frame(b"\0alice\0secret")).server(frame(b""))
    session.client(request(2)).server(response(2))
    frames, capture = decode_segments(tmp_path, session.segments)
    kinds = [(f.kind, f.direction, f.correlation_id) for f in frames]
    assert kinds == [
        ("rpc", "request", 1),
        ("rpc", "response", 1),
        ("sasl-token", "request", None),
        ("sasl-token", "response", None),
        ("rpc", "request", 2),
        ("rpc", "response", 2),
    ]
    assert frames[2].data == b"\0alice\0secret"
    assert (frames[3].data, frames[3].size, frames[3].latency_ms) == (b"", 0, 1.0)
    assert capture.health.undecoded_bytes == 0


def test_sasl_tokens_may_take_several_rounds_and_sizes(tmp_path: Path) -> None:
    """SCRAM takes two, GSSAPI three, and some tokens are shorter than a header, or long."""
    session = Session().open()
    session.client(request(1, b"\0\x06GSSAPI", key=17, version=0)).server(response(1, bytes(6)))
    rounds = [(KERBEROS * 9, b"\x60" * 2000), (b"", b"\x05\x04\x05"), (b"abc", b"")]
    for token, answer in rounds:
        session.client(frame(token)).server(frame(answer))
    session.client(request(2)).server(response(2))
    frames, capture = decode_segments(tmp_path, session.segments)
    tokens = [(f.data, g.data) for f, g in zip(frames[2:8:2], frames[3:8:2], strict=True)]
    assert tokens == rounds
    assert frames[-1].api_key == 3
    assert capture.health.undecoded_bytes == 0


def test_the_newer_handshake_wraps_its_tokens(tmp_path: Path) -> None:
    """After SaslHandshake v1, tokens are fields of SaslAuthenticate: bare bytes are damage."""
    session = Session().open()
    session.client(request(1, b"\0\x05PLAIN", key=17, version=1)).server(response(1, bytes(6)))
    session.client(frame(b"\0alice\0secret-secret"))
    frames, _ = decode_segments(tmp_path, session.segments)
    assert [f.kind for f in frames] == ["rpc", "rpc"]


def test_old_kerberos_clients_begin_with_a_token(tmp_path: Path) -> None:
    """Kafka 0.9 had no SaslHandshake at all."""
    session = Session().open().client(frame(KERBEROS)).server(frame(b"\x60" + b"u" * 99))
    session.client(request(1)).server(response(1))
    frames, _ = decode_segments(tmp_path, session.segments)
    assert [f.kind for f in frames] == ["sasl-token", "sasl-token", "rpc", "rpc"]


OTHERS = {
    "http": (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n" + bytes(5000)),
    "ssh": (b"SSH-2.0-OpenSSH_9.9\r\n", b"SSH-2.0-OpenSSH_9.9\r\n"),
    "postgres": (
        struct.pack(">iHH", 41, 3, 0) + b"user\0postgres\0database\0postgres\0\0",
        b"R\0\0\0\x08\0\0\0\0",
    ),
    "zookeeper": (
        struct.pack(">iiqiqi", 44, 0, 0, 30_000, 0, 16) + bytes(16),
        struct.pack(">iiiqi", 36, 0, 30_000, 99, 16) + bytes(16),
    ),
    "zeros": (bytes(4000), bytes(4000)),
}


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("port", [9092, 2181])
def test_other_protocols_are_left_alone(tmp_path: Path, name: str, port: int) -> None:
    """This holds for any port; a capture of a whole machine has all of them."""
    asked, answered = OTHERS[name]
    session = Session(server_end=("10.0.0.2", port)).open()
    session.client(asked).server(answered).close()
    frames, capture = decode_segments(tmp_path, session.segments)
    assert frames == []
    assert capture.health.other_connections == 1
    assert capture.health.undecoded_bytes == 0


def test_a_server_may_send_first_in_other_protocols(tmp_path: Path) -> None:
    """Kafka's server never does; its bytes wait until the client has sent something."""
    session = Session().open().server(b"220 mail.example.org ESMTP\r\n").client(b"EHLO me\r\n")
    frames, capture = decode_segments(tmp_path, session.segments)
    assert frames == []
    assert capture.health.other_connections == 1


def test_kafka_is_found_on_any_port(tmp_path: Path) -> None:
    """Listeners, test clusters and port forwarding use whatever is free."""
    segments: list[Segment] = []
    for port in (80, 443, 2181, 65535):
        session = Session(server_end=("10.0.0.2", port)).open()
        segments += session.client(request(1)).server(response(1)).segments
    frames, _ = decode_segments(tmp_path, segments)
    assert len(frames) == 8


def test_connections_that_say_nothing_are_not_counted_as_something(tmp_path: Path) -> None:
    """A refused connection is a SYN and a reset."""
    _, capture = decode_segments(tmp_path, Session().open().reset(by_client=False).segments)
    assert capture.health.other_connections == 0
    assert capture.health.connections == 1


def _twice(first: Session, *, server_seq: int = 5000) -> Session:
    """The same ends again, with the same initial sequence number of the client."""
    second = Session(now_ns=first.now_ns, server_seq=server_seq)
    second.open().client(request(9)).server(response(9)).close()
    second.segments[:0] = first.segments
    return second


@pytest.mark.parametrize("server_seq", [5000, 70_000])
@pytest.mark.parametrize("ending", ["close", "reset"])
def test_a_connection_may_come_back_with_the_same_sequence_numbers(
    tmp_path: Path, ending: str, server_seq: int
) -> None:
    """After its end it is a new one: emulators and load balancers count from the same start."""
    first = Session().open().client(request(1)).server(response(1))
    getattr(first, ending)()
    again = _twice(first, server_seq=server_seq)
    frames, capture = decode_segments(tmp_path, again.segments)
    assert [frame.correlation_id for frame in frames] == [1, 1, 9, 9]
    assert all(not frame.packet_findings for frame in frames)
    assert capture.health.kafka_connections == 2
    assert capture.health.retransmissions == 0


def test_a_connection_that_ended_unanswered_may_come_back(tmp_path: Path) -> None:
    """What the first left open must not hide the second."""
    first = Session().open().client(request(1)).server(response(1)).client(request(2)).close()
    frames, capture = decode_segments(tmp_path, _twice(first).segments)
    assert [frame.correlation_id for frame in frames] == [1, 1, 2, 9, 9]
    assert capture.health.unanswered_requests == 1


def test_a_handshake_that_is_sent_again_opens_nothing(tmp_path: Path) -> None:
    """Captures at bridges show packets twice."""
    session = Session().open()
    session.segments[1:1] = session.segments[:1]
    session.segments += session.segments[:3]
    session.client(request(1)).server(response(1)).close()
    frames, capture = decode_segments(tmp_path, session.segments)
    assert [frame.correlation_id for frame in frames] == [1, 1]
    assert capture.health.connections == 1


@pytest.mark.parametrize(
    ("ending", "is_by_client", "is_reset"),
    [("close", True, False), ("reset", True, True), ("server", False, True)],
)
def test_the_end_of_a_connection_is_reported_once(
    tmp_path: Path, ending: str, is_by_client: bool, is_reset: bool
) -> None:
    """The side whose packet came first ended it."""
    session = Session().open().client(request(1)).server(response(1))
    if ending == "close":
        session.close()
    else:
        session.reset(by_client=ending == "reset").reset()
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap_of(session.segments))
    told: list[Ending] = []
    frames = list(Capture(str(path), on_ending=told.append))
    (ended,) = told
    assert ended.connection == frames[0].connection
    assert (ended.is_by_client, ended.is_reset) == (is_by_client, is_reset)
    assert ended.time_ns > frames[-1].time_ns
