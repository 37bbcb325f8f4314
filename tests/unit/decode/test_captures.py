"""Recorded captures compared with Kafka's own readers: every frame, field by field."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.captures.decoded import (
    GOLDEN,
    comparable,
    decode,
    expected,
    golden,
    shared,
)

FRAME_KEYS = [
    "file",
    "frame",
    "time",
    "connection",
    "direction",
    "apiKey",
    "apiName",
    "apiVersion",
    "correlationId",
    "size",
    "remaining",
    "latencyMs",
    "header",
    "body",
    "nested",
    "findings",
]
BATCH_KEYS = [
    "file",
    "position",
    "baseOffset",
    "lastOffset",
    "count",
    "baseSequence",
    "lastSequence",
    "producerId",
    "producerEpoch",
    "partitionLeaderEpoch",
    "isTransactional",
    "isControl",
    "deleteHorizonMs",
    "timestampType",
    "maxTimestamp",
    "size",
    "magic",
    "compression",
    "crc",
    "isValid",
    "records",
]
RECORD_KEYS = ["offset", "timestamp", "key", "value", "headers", "decoded"]


def _batches(body: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if isinstance(body, dict):
        for key, value in body.items():
            if key in ("records", "unalignedRecords") and value:
                found += value
            else:
                found += _batches(value)
    elif isinstance(body, list):
        for value in body:
            found += _batches(value)
    return found


@pytest.mark.parametrize("name", GOLDEN)
def test_every_frame_is_what_kafka_reads(name: str) -> None:
    """Header, body, version and leftover bytes, in order of completion."""
    path = golden(name)
    lines = decode(path, show_secrets=True).lines
    assert [comparable(line) for line in lines] == expected(path.with_name(f"{name}.jsonl.xz"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "count"), [("a_kraft_quorum", 13786), ("b_mixed_clients", 1700), ("e_sasl", 372)]
)
def test_every_frame_of_the_large_recordings_is_what_kafka_reads(name: str, count: int) -> None:
    """A whole cluster's life, 50 APIs of four clients, and logins."""
    path = shared("captures", f"{name}.pcapng.xz")
    decoded = decode(path, detail="none", show_secrets=True)
    lines = decoded.lines
    assert len(lines) == count
    rows = expected(shared("captures", "expected", f"{name}.jsonl.xz"))
    for line, row in zip(lines, rows, strict=True):
        assert comparable(line) == row, line["frame"]
    assert decoded.totals.exit_code == 0


@pytest.mark.parametrize("name", GOLDEN)
def test_lines_have_all_keys_in_the_same_order(name: str) -> None:
    """Programs rely on every key being there, null where nothing is known."""
    path = golden(name)
    lines = decode(path).lines
    connections: dict[str, int] = {}
    for number, line in enumerate(lines):
        assert list(line) == FRAME_KEYS
        assert line["frame"] == number
        assert line["file"] == str(path)
        assert isinstance(line["time"], float)
        assert line["direction"] in ("request", "response")
        assert (line["latencyMs"] is None) == (line["direction"] == "request")
        assert line["correlationId"] == line["header"]["correlationId"]
        connections[line["connection"]] = line["size"]
        for batch in _batches(line["body"]):
            assert list(batch) == BATCH_KEYS
            assert batch["file"] == str(path)
            for record in batch["records"]:
                assert list(record) == RECORD_KEYS
    assert all(name.count(":") == 2 and name.count("-") == 1 for name in connections)


def test_a_trailing_byte_is_a_finding_and_not_a_failure() -> None:
    """librdkafka really sends one after AlterUserScramCredentials."""
    decoded = decode(golden("clients"))
    (line,) = [line for line in decoded.lines if line["findings"]]
    assert line["remaining"] == 1
    assert [each["id"] for each in line["findings"]] == ["trailing-bytes"]
    assert decoded.totals.exit_code == 0


def test_envelopes_show_the_request_and_the_response_inside() -> None:
    """Brokers forward administrative requests; without this they would be opaque."""
    lines = [line for line in decode(golden("quorum")).lines if line["apiName"] == "Envelope"]
    assert lines
    for line in lines:
        if line["direction"] == "request":
            inner = line["nested"]["requestData"]
            assert line["nested"]["requestPrincipal"]["type"] == "DefaultPrincipalData"
            assert line["nested"]["clientHostAddress"] == {"address": "127.0.0.1"}
            assert inner["header"]["clientId"]
        else:
            inner = line["nested"]["responseData"]
        assert inner["remaining"] == 0
        assert inner["apiName"]
        assert inner["body"] is not None
    names = {line["nested"].get("requestData", {}).get("apiName") for line in lines}
    assert {"CreateTopics", "IncrementalAlterConfigs", "CreateAcls"} <= names


def test_metadata_records_in_fetches_are_decoded() -> None:
    """Fetch responses carry the metadata log and name its topic only by id."""
    types = {
        record["decoded"]["type"]
        for line in decode(golden("quorum")).lines
        for batch in _batches(line["body"])
        for record in batch["records"]
    }
    assert {"LeaderChangeMessage", "NoOpRecord"} <= types


def test_group_members_metadata_is_decoded() -> None:
    """Subscriptions and assignments matter when a group rebalances."""
    types: dict[str, set[str]] = {}
    for line in decode(golden("clients")).lines:
        for value in line["nested"].values():
            types.setdefault(line["apiName"], set()).add(value["type"])
    assert types == {
        "JoinGroup": {"ConsumerProtocolSubscription"},
        "SyncGroup": {"ConsumerProtocolAssignment"},
    }


@pytest.mark.parametrize("detail", ["none", "summary", "full"])
def test_each_detail_of_records_keeps_the_batches(detail: str) -> None:
    """Less detail means shorter lines, not other batches."""
    lines = decode(golden("clients"), detail=detail).lines
    batches = [batch for line in lines for batch in _batches(line["body"])]
    assert len(batches) > 2
    for batch in batches:
        assert list(batch) == BATCH_KEYS
        assert batch["isValid"]
        assert (batch["records"] is None) == (detail != "full")


def test_lines_are_ascii_without_spaces() -> None:
    """Every reader of lines agrees on where an ASCII line ends."""
    text = decode(golden("clients")).text
    assert text.isascii()
    first = text.splitlines()[0]
    assert json.dumps(json.loads(first), separators=(",", ":")).encode() == first
