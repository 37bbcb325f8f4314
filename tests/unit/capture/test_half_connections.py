"""Captures that hold one direction of a connection only, or no more than its last response."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftwire.capture.capture import Capture
from kraftwire.decode.exchange import exchanges
from kraftwire.messages.heartbeat_response import HeartbeatResponse
from kraftwire.wire.frame import frame
from tests.engine.captures import same_frames
from tests.support.captures.builder import Session, pcap_of
from tests.support.captures.decoded import decode
from tests.support.captures.payloads import request


def _request(correlation_id: int) -> bytes:
    body = {"groupId": "g", "generationId": 1, "memberId": "m"}
    return request("Heartbeat", 1, body, correlation_id)


def _response(correlation_id: int, *, size: int = 0) -> bytes:
    body = HeartbeatResponse(throttle_time_ms=0).encode(1) + b"\x07" * size
    return frame(correlation_id.to_bytes(4, "big") + body)


def _write(path: Path, session: Session, keep: str = "both") -> Path:
    """Write the packets of one side, or of both."""
    end = {"client": session.client_end, "server": session.server_end}.get(keep)
    kept = [each for each in session.segments if end in (None, each.source)]
    file = path / "half.pcap"
    file.write_bytes(pcap_of(kept))
    return file


def test_a_server_alone_is_worth_its_responses(tmp_path: Path) -> None:
    """A mirror port that is set up for one direction: what was asked is not guessed."""
    session = Session().open()
    for number in (1, 0, 7, 8):
        session.client(frame(_request(number)))
        session.server(_response(number))
    found = decode(_write(tmp_path, session, "server"))
    lines = found.lines
    assert [each["correlationId"] for each in lines] == [1, 0, 7, 8]
    assert {(each["direction"], each["apiKey"], each["latencyMs"]) for each in lines} == {
        ("response", None, None)
    }
    assert [each["id"] for each in lines[0]["findings"]] == ["unmatched-response"]
    (health,) = found.totals.captures.values()
    assert (health.kafka_connections, health.unmatched_responses) == (1, 4)


def test_a_client_alone_is_worth_its_requests(tmp_path: Path) -> None:
    """The other half."""
    session = Session().open()
    for number in range(3):
        session.client(frame(_request(number)))
        session.server(_response(number))
    lines = decode(_write(tmp_path, session, "client")).lines
    assert [(each["apiName"], each["latencyMs"]) for each in lines] == [("Heartbeat", None)] * 3


def test_the_last_response_of_a_connection_from_before_the_capture_is_shown(
    tmp_path: Path,
) -> None:
    """It was asked for before, and then the connection closes."""
    session = Session()
    session.server(_response(4711))
    session.close()
    found = decode(_write(tmp_path, session))
    (line,) = found.lines
    assert (line["direction"], line["correlationId"], line["size"]) == ("response", 4711, 10)
    assert found.totals.exit_code == 0


def test_a_long_flow_of_responses_is_read_as_it_comes(tmp_path: Path) -> None:
    """Memory does not grow with the capture of one direction."""
    session = Session().open()
    for number in range(400):
        session.server(_response(number, size=1000))
    found = decode(_write(tmp_path, session, "server"))
    assert [each["correlationId"] for each in found.lines] == list(range(400))


@pytest.mark.parametrize(
    "payloads",
    [
        pytest.param([b"HTTP/1.1 200 OK\r\n\r\n"], id="HTTP"),
        pytest.param([frame(b"\0\0\0\1") + b"\xff"], id="a rest that is no response"),
        pytest.param([frame((2**31 + 5).to_bytes(4, "big") + b"x")], id="a negative id"),
        pytest.param(
            [
                frame(number.to_bytes(4, "big") + (2**33 + number).to_bytes(8, "big") + bytes(8))
                for number in (1, 2, 3)
            ],
            id="ZooKeeper",
        ),
    ],
)
def test_a_server_of_another_protocol_is_left_alone(tmp_path: Path, payloads: list[bytes]) -> None:
    """Few bytes have to be right for a response."""
    session = Session().open()
    for payload in payloads:
        session.server(payload)
    assert decode(_write(tmp_path, session, "server")).lines == []


@pytest.mark.parametrize("before", [b"", b"x" * 700])
def test_a_response_to_an_earlier_request_is_shown_without_any_later_one(
    before: bytes, tmp_path: Path
) -> None:
    """As of a long poll: the next request gets its response only after the capture.

    Bytes `before` are the end of a response that began before the capture.
    """
    session = Session()
    for payload in filter(None, (before, _response(4711, size=2000), _response(4712))):
        session.server(payload)
    session.client(frame(_request(4713)))
    path = _write(tmp_path, session)
    same_frames(path.read_bytes())
    lines = decode(path).lines
    answers = [each for each in lines if each["direction"] == "response"]
    assert [each["correlationId"] for each in answers] == [4711, 4712]
    assert [(each["apiKey"], each["size"]) for each in answers] == [(None, 2010), (None, 10)]
    assert all(each["findings"][-1]["id"] == "request-before-capture" for each in answers)
    found = [each for each in exchanges(Capture(path)) if each.request is None]
    assert [each.correlation_id for each in found] == [4711, 4712]


def test_other_bytes_before_the_first_request_are_no_response(tmp_path: Path) -> None:
    """Only the end of a response was captured."""
    session = Session().server(_response(4711, size=2000)[600:]).client(frame(_request(4713)))
    (line,) = decode(_write(tmp_path, session)).lines
    assert line["direction"] == "request"
