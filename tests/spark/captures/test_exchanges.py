"""Requests that wait for responses which never come."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="needs the extra spark")

from kraftwire.messages.heartbeat_request import HeartbeatRequest
from kraftwire.protocol.payloads import RequestHeader, encode_request
from kraftwire.spark.captures import decode_tables, tables
from tests.support.captures.builder import Session, pcap_of, request, response

HEARTBEAT, VERSION = 12, 4


def _requests(path: Path, count: int, group_size: int = 5) -> list[int | None]:
    """The correlation ids of the exchanges of a capture of requests alone, in order of rows."""
    session = Session().open()
    for number in range(count):
        body = HeartbeatRequest(group_id="g" * group_size, member_id=f"m{number}")
        header = RequestHeader(
            request_api_key=HEARTBEAT, request_api_version=VERSION, correlation_id=number,
            client_id="client",
        )  # fmt: skip
        frame = encode_request(header, body)
        session.client(len(frame).to_bytes(4) + frame)
    path.write_bytes(pcap_of(session.segments))
    rows = decode_tables(path, tables=("exchanges",))["exchanges"].to_pylist()
    assert all(row["response_size"] is None for row in rows)
    return [row["correlation_id"] for row in rows]


@pytest.mark.parametrize("size", [5, 3_000, 30_000])
def test_a_capture_of_requests_alone_is_not_held_in_memory(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every request gives its row once, in order, however few may wait; one always may."""
    monkeypatch.setattr(tables, "PENDING_BYTES_MAX", 10_000)
    assert _requests(tmp_path / "c.pcap", 40, size) == list(range(40))


def test_a_response_that_the_capture_lost_is_a_finding(tmp_path: Path) -> None:
    """The server is not to blame for it; a request that it left alone has no finding."""
    session = Session().open()
    for number in range(2):
        session.client(request(number, b"\xff" * 4)).server(response(number, bytes(12)))
    session.client(request(2, b"\xff" * 4)).ack(by_client=True)
    del session.segments[6]
    (tmp_path / "c.pcap").write_bytes(pcap_of(session.segments))
    rows = decode_tables(tmp_path / "c.pcap", tables=("exchanges",))["exchanges"].to_pylist()
    found = {row["correlation_id"]: [each["id"] for each in row["findings"]] for row in rows}
    assert found == {0: [], 1: ["response-not-captured"], 2: ["response-not-captured"]}


def test_a_direction_that_is_behind_is_sorted(tmp_path: Path) -> None:
    """As where the directions were recorded apart; and the report has the way out."""
    session = Session().open()
    for number in range(200):
        session.client(request(number, b"\xff" * 4)).server(response(number, bytes(12)))
    server_first = sorted(session.segments, key=lambda each: each.source == session.client_end)
    (tmp_path / "c.pcap").write_bytes(pcap_of(server_first))
    found = decode_tables(tmp_path / "c.pcap", tables=("exchanges", "bad_input"))
    rows = found["exchanges"].to_pylist()
    assert len(rows) == 200
    assert {(row["response_size"], row["latency_ns"]) for row in rows} == {(16, 1_000_000)}
    (row,) = found["bad_input"].to_pylist()
    assert row["id"] == "packets-out-of-order"
    assert "reordercap" in row["detail"]


def test_a_response_to_a_request_from_before_the_capture_is_a_row(tmp_path: Path) -> None:
    """What is known: its size and its correlation id."""
    session = Session().server(response(6, bytes(12))).client(request(7, b"\xff" * 4))
    (tmp_path / "c.pcap").write_bytes(pcap_of(session.segments))
    rows = decode_tables(tmp_path / "c.pcap", tables=("exchanges",))["exchanges"].to_pylist()
    found = {row["correlation_id"]: (row["api_key"], row["response_size"]) for row in rows}
    assert found == {6: (None, 16), 7: (3, None)}
