"""TLS with known secrets: the traffic is decoded as if it were plain text."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import pytest

from kraftwire.capture.capture import Capture
from kraftwire.capture.framing.frames import RawFrame
from kraftwire.capture.tls import SUITES, KeyLog, Opener, read_hello
from kraftwire.errors import StorageError
from kraftwire.inspect.run.totals import Totals, summary
from tests.support.captures.builder import (
    Segment,
    block,
    ethernet,
    interface,
    ip_packet,
    packet_block,
    pcap_of,
    request,
    response,
    section,
)
from tests.support.captures.tls_session import TlsSession

CIPHERS = [
    None,
    "ECDHE-RSA-AES128-GCM-SHA256",
    "ECDHE-RSA-AES256-GCM-SHA384",
    "ECDHE-RSA-CHACHA20-POLY1305",
]
LONG = bytes(range(256)) * 300


def _talk(folder: Path, cipher: str | None) -> TlsSession:
    """Three requests, and responses of which the second is long."""
    talk = TlsSession(folder, cipher)
    for number, body in enumerate((b"", LONG, b"short")):
        talk.client(request(number, b"\0\0\0\0"))
        talk.server(response(number, body))
    return talk


def _frames(segments: list[Segment], keys: KeyLog | None) -> tuple[list[RawFrame], Capture]:
    capture = Capture([pcap_of(segments)], keys=keys)
    return list(capture), capture


def _payload_is_accounted(capture: Capture) -> bool:
    return capture.health.bytes.unaccounted == 0


@pytest.mark.parametrize("cipher", CIPHERS)
def test_what_is_sent_under_each_cipher_is_decoded(tmp_path: Path, cipher: str | None) -> None:
    """All requests and responses are there, with their bytes."""
    talk = _talk(tmp_path, cipher)
    frames, capture = _frames(talk.session.segments, KeyLog.read(str(talk.keylog)))
    said = [request(at, b"\0\0\0\0")[4:] for at in range(3)]
    answered = [response(at, body)[4:] for at, body in enumerate((b"", LONG, b"short"))]
    assert [each.data for each in frames if each.is_request] == said
    assert [each.data for each in frames if not each.is_request] == answered
    assert all(not each.packet_findings for each in frames)
    assert [each.latency_ms is not None for each in frames] == [False, True] * 3
    assert not capture.health.tls
    assert _payload_is_accounted(capture)


@pytest.mark.parametrize("cipher", CIPHERS)
@pytest.mark.parametrize("lost", [(14,), (14, 15), tuple(range(14, 42))])
def test_a_hole_costs_the_frame_that_it_is_in(
    tmp_path: Path, cipher: str | None, lost: tuple[int, ...]
) -> None:
    """The frames after it are found, and the one with the hole says what is missing."""
    talk = _talk(tmp_path, cipher)
    segments = talk.session.segments
    first = next(at for at, each in enumerate(segments) if len(each.payload) == 1448 and at > 12)
    kept = [each for at, each in enumerate(segments) if at - first not in lost]
    frames, capture = _frames(kept, KeyLog.read(str(talk.keylog)))
    responses = [each for each in frames if not each.is_request]
    assert [each.correlation_id for each in responses] == [0, 1, 2]
    assert responses[2].data == response(2, b"short")[4:]
    assert {found[0] for found in responses[1].packet_findings} == {"gap"}
    damaged = responses[1]
    whole = response(1, LONG)[4:]
    for start, size in damaged.missing:
        whole = whole[:start] + bytes(size) + whole[start + size :]
    assert damaged.data == whole[: len(damaged.data)]
    assert capture.health.is_undecoded
    assert capture.health.tls[0].damaged_records
    assert _payload_is_accounted(capture)


def test_a_record_that_was_changed_is_a_hole(tmp_path: Path) -> None:
    """Nothing is shown of a record whose tag is wrong."""
    talk = _talk(tmp_path, None)
    segments = talk.session.segments
    at = max(range(len(segments)), key=lambda each: len(segments[each].payload) == 1448)
    changed = bytearray(segments[at + 3].payload)
    changed[700] ^= 1
    segments[at + 3] = replace(segments[at + 3], payload=bytes(changed))
    frames, capture = _frames(segments, KeyLog.read(str(talk.keylog)))
    assert any(found[0] == "gap" for each in frames for found in each.packet_findings)
    assert frames[-1].data == response(2, b"short")[4:]
    assert _payload_is_accounted(capture)


def test_without_its_secrets_a_connection_stays_closed_and_says_why(tmp_path: Path) -> None:
    """A key log of other connections is not an error."""
    (tmp_path / "other").mkdir()
    talk, other = _talk(tmp_path, None), TlsSession(tmp_path / "other")
    frames, capture = _frames(talk.session.segments, KeyLog.read(str(other.keylog)))
    assert frames == []
    totals = Totals(captures={"a": capture.health})
    assert any("secrets are not among those that are known" in line for line in summary(totals))
    assert _payload_is_accounted(capture)


def test_a_recording_of_a_real_broker_is_decoded() -> None:
    """TLS 1.3 and 1.2, kafka-python and Kafka."""
    golden = Path(__file__).parents[2] / "golden" / "captures"
    capture = Capture(golden / "tls.pcap.xz", keys=KeyLog.read(str(golden / "tls.keylog")))
    frames = list(capture)
    assert [each.is_request for each in frames].count(True) == len(frames) / 2 == 10
    assert all(not each.packet_findings and each.request is not None for each in frames)
    assert _payload_is_accounted(capture)


def test_secrets_inside_a_capture_are_used(tmp_path: Path) -> None:
    """A pcapng file may carry its key log."""
    talk = _talk(tmp_path, None)
    lines = talk.keylog.read_bytes()
    padded = struct.pack("<II", 0x544C534B, len(lines)) + lines + bytes(-len(lines) % 4)
    blocks = [section(), interface(), block(10, padded)]
    for each in talk.session.segments:
        blocks.append(packet_block(ethernet(ip_packet(each)), each.time_ns))
    frames = list(Capture([b"".join(blocks)]))
    assert len(frames) == 6


def test_a_key_that_is_only_the_later_one_is_enough(tmp_path: Path) -> None:
    """Some logs lack the secrets of the handshake."""
    talk = _talk(tmp_path, None)
    lines = talk.keylog.read_bytes().splitlines()
    keys = KeyLog()
    keys.add_lines(line for line in lines if b"HANDSHAKE" not in line)
    frames, _ = _frames(talk.session.segments, keys)
    assert len(frames) == 6


def test_keys_follow_from_secrets_as_the_standard_shows() -> None:
    """RFC 8448, section 3: the record of the server's handshake opens with the keys of its secret;
    here, key and nonce.
    """
    secret = bytes.fromhex("b67b7d690cc16c4e75e54213cb2d37b4e9c912bcded9105d42befd59d391ad38")
    opener = Opener.of_secret(SUITES[0x1301], secret)
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    key, iv = "3fce516009c21727d0f2e4e86ee403bc", "5d313eb2671276ee13000b30"
    head = bytes.fromhex("1703030016")
    sealed = AESGCM(bytes.fromhex(key)).encrypt(bytes.fromhex(iv), b"hello\x16", head)
    assert opener.open(head, sealed, 0) == (0x16, b"hello")
    assert opener.open(head, sealed, 1) is None


@pytest.mark.parametrize("text", [b"", b"nothing\n", b"CLIENT_RANDOM 00 11\n", b"\xff" * 3000])
def test_a_file_without_secrets_is_refused(tmp_path: Path, text: bytes) -> None:
    """It names the file and what was expected."""
    path = tmp_path / "keys"
    path.write_bytes(text)
    with pytest.raises(StorageError, match="no secret"):
        KeyLog.read(str(path))


def test_a_connection_may_be_found_by_its_session(tmp_path: Path) -> None:
    """Some clients of TLS 1.2 log its id instead of their random."""
    talk = _talk(tmp_path, CIPHERS[1])
    answer = next(s for s in talk.session.segments if s.payload and s.source[1] == 9092)
    hello = read_hello(answer.payload[5:])
    assert hello is not None
    assert hello.session
    line = next(each for each in talk.keylog.read_text().splitlines() if "CLIENT_RANDOM" in each)
    master = line.split()[2]
    keys = KeyLog()
    assert keys.add_lines([f"RSA Session-ID:{'AB' * 32} Master-Key:{master}".encode()]) == 1
    assert _frames(talk.session.segments, keys)[0] == []
    line = f"RSA Session-ID:{hello.session.hex()} Master-Key:{master}"
    assert keys.add_lines([line.encode()]) == 1
    assert len(_frames(talk.session.segments, keys)[0]) == 6
    for wrong in ("RSA Session-ID: Master-Key:" + master, "RSA Session-ID:00 Master-Key:00"):
        assert keys.add_lines([wrong.encode()]) == 0
