"""APIs that no schema describes: vendors have their own, with keys of any size."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from kraftwire.decode.body.bodies import decode_payload
from tests.support.captures.builder import Session, decode_segments, request, response

KEYS = [200, 501, 10_000, 32_767]


def _session(key: int, client_id: str | None, *, mss: int = 1448) -> Session:
    session = Session().open()
    session.client(request(7, b"\0\0\0\0", client_id=client_id)).server(response(7, b"first"))
    session.client(request(8, b"ask", key=key, client_id=client_id), mss=mss)
    session.server(response(8, b"answer"), mss=mss)
    session.client(request(9, b"\0\0\0\0", client_id=client_id)).server(response(9, b"last"))
    return session


@pytest.mark.parametrize("client_id", ["tester", None], ids=["client id", "no client id"])
@pytest.mark.parametrize("key", KEYS)
def test_a_request_of_an_unknown_api_is_an_exchange(
    tmp_path: Path, key: int, client_id: str | None
) -> None:
    """With header, client and latency: framing that is intact is believed."""
    frames, capture = decode_segments(tmp_path, _session(key, client_id).segments)
    asked, answered = frames[2:4]
    assert (asked.api_key, asked.api_version, asked.correlation_id) == (key, 1, 8)
    assert asked.request is not None
    assert asked.request.client_id == client_id
    assert answered.request is asked.request
    assert answered.latency_ms is not None
    assert len(frames) == 6
    health = capture.health
    assert (health.resyncs, health.skipped_bytes, health.unmatched_responses) == (0, 0, 0)


@pytest.mark.parametrize("mss", range(1, 24))
def test_its_header_may_come_in_pieces(tmp_path: Path, mss: int) -> None:
    """The client id is in a later packet than the length."""
    frames, capture = decode_segments(tmp_path, _session(10_000, "tester", mss=mss).segments)
    assert [frame.api_key for frame in frames] == [3, 3, 10_000, 10_000, 3, 3]
    assert capture.health.skipped_bytes == 0


@pytest.mark.parametrize("mss", [1448, 5], ids=["at once", "in pieces"])
@pytest.mark.parametrize(("key", "version"), [(12_345, 0), (600, 3), (32_767, 9)])
def test_a_connection_may_begin_with_an_unknown_api(
    tmp_path: Path, key: int, version: int, mss: int
) -> None:
    """A vendor's brokers need not ask for ApiVersions: an answer with the same id tells enough."""
    session = Session().open()
    session.client(request(5, b"ask", key=key, version=version, client_id="broker-1"), mss=mss)
    session.server(response(5, b"answer"), mss=mss)
    session.client(request(6, b"more", key=key, version=version, client_id="broker-1"), mss=mss)
    session.server(response(6, b"answer"), mss=mss)
    frames, capture = decode_segments(tmp_path, session.segments)
    assert [(frame.api_key, frame.correlation_id) for frame in frames] == [
        (key, 5), (key, 5), (key, 6), (key, 6),
    ]  # fmt: skip
    assert all(frame.request and frame.request.client_id == "broker-1" for frame in frames)
    assert (capture.health.resyncs, capture.health.skipped_bytes) == (0, 0)


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        (request(5, b"ask", key=12_345, client_id="b"), response(6, b"answer")),
        (request(5, b"ask", key=12_345, client_id="b"), b"HTTP/1.1 400 Bad Request\r\n\r\n"),
        (request(5, b"ask", key=12_345, client_id=None), response(5, b"answer")),
        (request(5, b"ask", key=12_345, client_id="\0\1"), response(5, b"answer")),
        (request(5, b"ask", key=12_345, client_id="b"), b""),
    ],
    ids=["another id", "http", "no client id", "unprintable", "no answer"],
)
def test_an_unknown_beginning_is_another_protocol(
    tmp_path: Path, asked: bytes, answered: bytes
) -> None:
    """Without an answer that fits, so few bytes prove nothing."""
    session = Session().open().client(asked).server(answered).client(b"rest").close()
    frames, capture = decode_segments(tmp_path, session.segments)
    assert not frames
    assert capture.health.other_connections == 1


def test_other_bytes_are_no_request(tmp_path: Path) -> None:
    """After damage, bytes that look like a length and an unknown API must not be believed."""
    rng = random.Random(4)
    for _ in range(50):
        session = Session().open()
        session.client(request(7, b"\0\0\0\0")).server(response(7, b"first"))
        noise = (40).to_bytes(4, "big") + rng.randbytes(40)
        session.client(noise)
        session.client(request(9, b"\0\0\0\0")).server(response(9, b"last"))
        frames, _ = decode_segments(tmp_path, session.segments)
        assert {frame.api_key for frame in frames} <= {3, None}


@pytest.mark.parametrize("body", [b"\0tagged", b"abcd", b""])
def test_either_header_of_an_unknown_api_is_read(body: bytes) -> None:
    """A vendor's API need not be flexible: the finding is about the API, not about its header."""
    for data, is_request in ((request(5, body, key=12_345), True), (response(5, body), False)):
        api = None if is_request else (12_345, 1)
        payload = decode_payload(data[4:], is_request=is_request, api=api)
        assert [finding.id for finding in payload.findings] == ["unknown-api"]
