"""A response that the capture lost is not one that the server never sent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kraftwire.capture.capture import Capture
from kraftwire.decode.exchange import exchanges
from tests.engine.captures import same_frames
from tests.support.captures.builder import (
    ACK,
    FIN,
    RST,
    Segment,
    Session,
    decode,
    pcap_of,
    request,
    response,
)
from tests.support.commands.run import run_kraftwire

# Metadata v1: the request for all topics, and an answer without any.
_ALL_TOPICS, _METADATA = b"\xff" * 4, bytes(12)
_SIZE = 4 + len(_METADATA)


def _session(count: int = 2) -> Session:
    session = Session().open()
    for number in range(count):
        session.client(request(number, _ALL_TOPICS)).server(response(number, _METADATA))
    return session


def _write(folder: Path, session: Session, *gone: int) -> Path:
    """A capture without some of the packets, by their places."""
    path = folder / "lost.pcap"
    places = {at % len(session.segments) for at in gone}
    kept = [each for at, each in enumerate(session.segments) if at not in places]
    path.write_bytes(pcap_of(kept))
    return path


def _lost(path: Path) -> list[tuple[int, int] | None]:
    """What is known of the responses that are missing; both engines must know the same."""
    same_frames(path.read_bytes())
    found = [each for each in exchanges(Capture(path)) if each.response is None]
    return [each.request.request.lost for each in found]  # type: ignore[union-attr]


def test_an_acknowledged_response_was_sent(tmp_path: Path) -> None:
    """The client's last packet says that it came, whether or not the connection ends."""
    assert _lost(_write(tmp_path, _session().ack(by_client=True), -2)) == [(1, _SIZE)]
    assert _lost(_write(tmp_path, _session().close(), -3, -1)) == [(1, _SIZE)]
    assert _lost(_write(tmp_path, _session().close().ack(by_client=True), -4, -2)) == [(1, _SIZE)]
    midstream = _session()
    del midstream.segments[:3]
    assert _lost(_write(tmp_path, midstream.ack(by_client=True), -2)) == [(1, _SIZE)]


def test_later_bytes_of_the_server_follow_a_lost_response(tmp_path: Path) -> None:
    """At once or at the end of the connection; those of several are not told apart."""
    assert _lost(_write(tmp_path, _session().close(), -3)) == [(1, _SIZE)]
    assert _lost(_write(tmp_path, _session(9), 6)) == [(1, _SIZE)]
    session = Session().open().client(request(0, _ALL_TOPICS)).server(response(0, _METADATA))
    for number in (1, 2, 3):
        session.client(request(number, _ALL_TOPICS))
    for number in (1, 2, 3):
        session.server(response(number, _METADATA))
    assert _lost(_write(tmp_path, session.ack(by_client=True), 8, 9)) == [(2, 2 * _SIZE)] * 2
    assert _lost(_write(tmp_path, session, 8, 9, 10)) == [(3, 3 * _SIZE)] * 3


def test_a_later_response_shows_that_those_before_it_were_sent(tmp_path: Path) -> None:
    """Also at the start of a connection, where it is not known how many bytes are missing."""
    assert _lost(_write(tmp_path, _session(3), 1, 4)) == [(1, 0)]
    path = _write(tmp_path, _session(4), 1, 4, 6)
    assert _lost(path) == [(2, 0)] * 2
    assert run_kraftwire("decode", str(path)).out.count("[response not captured, one of 2]") == 2


def test_a_lost_request_hides_no_response_that_is_lost_after_it(tmp_path: Path) -> None:
    """Responses wait while requests are missing, each with the loss before it."""
    path = _write(tmp_path, _session(5), 5, 8)
    assert _lost(path) == [(1, _SIZE)]
    frames, capture = decode(path, path.read_bytes())
    answers = [each for each in frames if not each.is_request]
    found = {f.correlation_id: [each[0] for each in f.packet_findings] for f in answers}
    assert found == {0: [], 1: ["unmatched-response"], 3: ["gap", "responses-lost"], 4: []}
    assert (capture.health.lost_responses, capture.health.unanswered_requests) == (1, 0)


@pytest.mark.parametrize("close", [False, True])
def test_what_was_not_sent_is_not_lost(close: bool, tmp_path: Path) -> None:
    """A server that stops answers nothing, whether or not its end is in the capture."""
    session = _session().client(request(7, _ALL_TOPICS))
    if close:
        session.close().ack(by_client=True).ack(by_client=False)
    path = _write(tmp_path, session)
    assert _lost(path) == [None]
    _, capture = decode(path, path.read_bytes())
    assert (capture.health.unanswered_requests, capture.health.is_undecoded) == (1, False)
    if close:  # only the acknowledgement of the server's end is there
        assert _lost(_write(tmp_path, session, -3)) == [None]


def test_a_server_that_was_not_recorded_is_not_silent(tmp_path: Path) -> None:
    """Of a mirror port that is set up for one direction, the client's packets say that it spoke."""
    session = _session(3).ack(by_client=True)
    session.segments = [each for each in session.segments if each.source == session.client_end]
    path = _write(tmp_path, session)
    assert _lost(path) == [(3, 3 * _SIZE)] * 3
    _, capture = decode(path, path.read_bytes())
    assert (capture.health.lost_responses, capture.health.unanswered_requests) == (3, 0)


def test_a_reset_upon_a_packet_that_is_missing_shows_a_lost_response(tmp_path: Path) -> None:
    """A client that has closed refuses what still comes; how much that was is not known."""
    session = _session().client(request(7, _ALL_TOPICS))
    session._add(True, FIN | ACK, b"")
    session.server(response(7, _METADATA))
    last = session.segments[-1]
    session.segments.append(Segment(last.time_ns + 1, last.target, last.source, last.ack, 0, RST))
    assert _lost(_write(tmp_path, session)) == []
    path = _write(tmp_path, session, -2)
    assert _lost(path) == [(1, 0)]
    done = run_kraftwire("decode", str(path))
    assert done.code == 3
    assert done.out.splitlines()[-1].endswith("[response not captured]")
    # A reset of its own accord has an acknowledgement.
    assert _lost(_write(tmp_path, _session().client(request(7, _ALL_TOPICS)).reset())) == [None]


def test_lines_and_totals_blame_the_capture(tmp_path: Path) -> None:
    """In each output, and by the exit code."""
    path = str(_write(tmp_path, _session().ack(by_client=True), -2))
    done = run_kraftwire("decode", path)
    assert done.code == 3
    assert done.out.splitlines()[-1].endswith(f"[response not captured, {_SIZE} bytes]")
    assert "responses not captured 1, gaps 1, bytes missing 20" in done.err
    assert "without response" not in done.err
    assert f"response not captured, {_SIZE} bytes" in run_kraftwire("decode", "-v", path).out
    assert "(answer not captured)" in run_kraftwire("stats", path).out
    (row,) = json.loads(run_kraftwire("stats", "--json", path).out)["exchanges"]
    assert (row["responses"], row["withoutResponse"], row["lostResponses"]) == (1, 0, 1)
    path = str(_write(tmp_path, _session().client(request(7, _ALL_TOPICS))))
    assert run_kraftwire("decode", path).out.splitlines()[-1].endswith("[no response]")
