"""The tables of a capture equal the output of the decode tool and of Kafka's own readers."""

from __future__ import annotations

import json
import lzma
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow", reason="needs the extra spark")

from kraftwire.decode.body.records import batches_in  # noqa: E402
from kraftwire.decode.body.scan import records_fields  # noqa: E402
from kraftwire.spark.captures import decode_tables  # noqa: E402
from kraftwire.spark.captures.batches import fields_of  # noqa: E402
from kraftwire.spark.tables import TABLES  # noqa: E402
from tests.support.captures.decoded import GOLDEN, decode, decoded_frames, golden, shared  # noqa: E402

SHARED = ("a_kraft_quorum", "b_mixed_clients", "e_sasl")
DIRECTIONS = {"request": "Q", "response": "R"}
PASSWORDS = (b"admin-secret", b"alice-secret", b"carol-secret")
NOT_TOLD = "not-canonical"
Row = dict[str, Any]


def _capture(name: str) -> Path:
    return golden(name) if name in GOLDEN else shared("captures", f"{name}.pcapng.xz")


@cache
def _tables(path: Path) -> dict[str, list[Row]]:
    return {name: table.to_pylist() for name, table in decode_tables(str(path)).items()}


@cache
def _lines(path: Path) -> list[Row]:
    return decode(path, detail="full").lines


@pytest.mark.parametrize("name", [*GOLDEN, *SHARED])
def test_frames_are_those_of_the_decode_tool(name: str) -> None:
    """Two different answers to one question would be useless."""
    path = _capture(name)
    found = Counter(
        (
            f["connection"], f["direction"], f["api_key"], f["api_name"], f["api_version"],
            f["correlation_id"], f["size"], f["remaining"], f["time_ns"] / 1_000_000_000,
            json.dumps(f["findings"]),
        )
        for f in _tables(path)["frames"]
    )  # fmt: skip
    wanted = Counter(
        (
            f["connection"], f["direction"], f["apiKey"], f["apiName"], f["apiVersion"],
            f["correlationId"], f["size"], f["remaining"], f["time"],
            json.dumps([each for each in f["findings"] if each["id"] != NOT_TOLD]),
        )
        for f in _lines(path)
    )  # fmt: skip
    assert found == wanted


@pytest.mark.parametrize("name", SHARED)
def test_frames_are_those_of_kafkas_own_readers(name: str) -> None:
    """Kafka itself has read every frame of these captures."""
    expected = shared("captures", "expected", f"{name}.jsonl.xz")
    with lzma.open(expected) as lines:
        wanted = [
            (row["dir"], row["key"], row["version"], row["remaining"])
            for row in map(json.loads, lines)
            if row.get("key") is not None
        ]
    found = [
        (DIRECTIONS[f["direction"]], f["api_key"], f["api_version"], f["remaining"])
        for f in _tables(_capture(name))["frames"]
        if f["api_key"] is not None
    ]
    assert sorted(found) == sorted(wanted)


@pytest.mark.parametrize("name", [*GOLDEN, *SHARED])
def test_exchanges_pair_what_the_decode_tool_pairs(name: str) -> None:
    """Latency is that of the response, and every request is in exactly one exchange."""
    path = _capture(name)
    exchanges, lines = _tables(path)["exchanges"], _lines(path)
    latencies = sorted(e["latency_ns"] / 1e6 for e in exchanges if e["latency_ns"] is not None)
    wanted = sorted(f["latencyMs"] for f in lines if f["latencyMs"] is not None)
    assert latencies == pytest.approx(wanted)
    requests = [f for f in lines if f["direction"] == "request"]
    assert sum(e["request_size"] is not None for e in exchanges) == len(requests)
    assert all(0 <= e["service_ns"] <= e["latency_ns"] for e in exchanges if e["service_ns"])


@pytest.mark.parametrize("name", GOLDEN)
def test_batches_and_errors_are_those_of_the_bodies(name: str) -> None:
    """Nobody would notice what a table leaves out or adds."""
    path = golden(name)
    tables = _tables(path)
    frames = decoded_frames(path)
    wanted = [
        (of.topic, each["baseOffset"], each["size"], each["crc"], each["isValid"], each["count"])
        for frame in frames
        if frame.body is not None
        for of in batches_in(frame.body, frame.body_version, frame.settings, None)
        for each in of.batches or ()
    ]
    found = [
        (b["topic"], b["base_offset"], b["size"], b["crc"], b["is_valid"], b["count"])
        for b in tables["batches"]
    ]
    assert sorted(found) == sorted(wanted)
    codes = [code for frame in frames if not frame.is_request for code in frame.error_codes]
    assert sorted(code for e in tables["exchanges"] for code in e["error_codes"]) == sorted(codes)


def test_records_of_the_metadata_log_are_decoded() -> None:
    """A capture of controllers holds the history of the cluster."""
    rows = _tables(golden("quorum"))["metadata_records"]
    assert {"RegisterControllerRecord", "FeatureLevelRecord", "LeaderChangeMessage"} & {
        row["type"] for row in rows
    }
    assert {row["topic"] for row in rows} == {"__cluster_metadata"}
    assert all(json.loads(row["data"]) is not None for row in rows)


def test_payloads_of_quorums_decode_without_records() -> None:
    """The timeline of a quorum decodes these bytes, and needs no records in them."""
    from kraftwire.decode.body.bodies import decode_payload

    rows = _tables(golden("quorum"))["raft_exchanges"]
    assert {row["api_key"] for row in rows} >= {1, 18, 52}
    for row in rows:
        asked = decode_payload(row["request"], is_request=True)
        assert asked.body is not None
        assert (asked.api_key, asked.api_version) == (row["api_key"], row["api_version"])
        if row["response"] is None:
            continue
        api = row["api_key"], row["api_version"]
        answer = decode_payload(row["response"], is_request=False, api=api)
        assert answer.body is not None
        if row["api_key"] == 1:
            parts = [part for topic in answer.body.responses for part in topic.partitions]
            assert not any(part.records for part in parts)


def test_no_password_is_in_any_table() -> None:
    """A table is shown to more people than a capture."""
    raw = lzma.decompress(golden("sasl").read_bytes())
    assert any(secret in raw for secret in PASSWORDS)
    tables = decode_tables(str(golden("sasl")))
    for name, table in tables.items():
        text = repr(table.to_pylist()).encode()
        assert not any(secret in text for secret in PASSWORDS), name


def test_connections_tell_how_they_are_secured() -> None:
    """By the mechanisms and users of a recording, and the TLS versions of another one."""
    told = [(row["mechanism"], row["principal"]) for row in _tables(golden("sasl"))["connections"]]
    assert set(told) == {
        ("PLAIN", "User:admin"),
        ("SCRAM-SHA-256", "User:alice"),
        ("SCRAM-SHA-512", "User:carol"),
    }
    rows = _tables(golden("tls"))["connections"]
    assert {row["tls_version"] for row in rows} == {"TLSv1.2", "TLSv1.3"}
    assert {(row["mechanism"], row["principal"]) for row in rows} == {(None, None)}


@pytest.mark.parametrize("name", GOLDEN)
def test_schemas_are_those_of_the_documented_tables(name: str) -> None:
    """Spark refuses a batch that differs from the declared schema in anything."""
    for table, made in decode_tables(str(golden(name))).items():
        assert made.schema.equals(TABLES[table].arrow), table


@pytest.mark.parametrize("name", [*GOLDEN, *SHARED])
def test_fields_of_records_are_those_of_the_schema(name: str) -> None:
    """Fetch and Produce are looked through without their schemas, since most records are there."""
    for decoded in decoded_frames(_capture(name)):
        body, version = decoded.body, decoded.body_version
        if body is not None:
            found = fields_of(body, version)
            every = records_fields(body, version)
            wanted = [each for each in every if getattr(each.holder, each.attribute)]
            assert found == wanted
            assert [each.path for each in found] == [each.path for each in wanted]


def test_exchanges_name_the_partitions_of_produce() -> None:
    """They are called index there, and partition or partitionIndex elsewhere."""
    produced = [
        row
        for row in _tables(_capture("clients"))["exchanges"]
        if row["api_name"] == "Produce" and row["request_size"] is not None
    ]
    assert produced
    traffic: dict[int, set[int]] = {}
    for row in _tables(_capture("clients"))["partition_traffic"]:
        traffic.setdefault(row["position"], set()).add(row["partition"])
    for row in produced:
        assert {each["partition"] for each in row["topics"]} == traffic[row["position"]]
