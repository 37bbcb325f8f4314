"""Typed tables of captures hold what the decode tool shows of each frame."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="needs the extra spark")

from kraftwire.spark.captures import decode_tables
from kraftwire.spark.captures import rows as typed
from kraftwire.spark.tables.apis import TYPED_TABLES, typed_table
from tests.support.captures.decoded import GOLDEN, decode, golden


def _rows(path: Path) -> dict[str, list[dict[str, Any]]]:
    made = decode_tables(path, tables=list(TYPED_TABLES))
    assert all(made[name].schema == typed_table(name).arrow for name in TYPED_TABLES)
    return {name: table.to_pylist() for name, table in made.items()}


@pytest.mark.parametrize("name", GOLDEN)
def test_there_is_a_row_for_every_whole_frame(name: str) -> None:
    """The row has its evidence, in the table of its message."""
    found = Counter(
        (
            table, row["connection"], row["correlation_id"], row["api_version"],
            row["time_ns"] / 1_000_000_000,
        )
        for table, rows in _rows(golden(name)).items()
        for row in rows
    )  # fmt: skip
    names = {message: table for table, message in TYPED_TABLES.items()}
    wanted = Counter(
        (
            names[line["apiName"] + line["direction"].capitalize()], line["connection"],
            line["correlationId"], line["apiVersion"], line["time"],
        )
        for line in decode(golden(name), detail="full").lines
        if line.get("body") is not None and line["apiName"]
    )  # fmt: skip
    assert found == wanted
    assert found


def test_fields_are_those_of_the_message() -> None:
    """Votes of the golden quorum, field by field, and the place of each frame."""
    path = golden("quorum")
    everything = decode_tables(path, tables=["vote_request", "frames", "exchanges"])
    rows = everything["vote_request"].to_pylist()
    lines = [
        line for line in decode(path, detail="full").lines
        if line["apiName"] == "Vote" and line["direction"] == "request"
    ]  # fmt: skip
    assert len(rows) == len(lines) > 0
    by_id = {(line["connection"], line["correlationId"]): line["body"] for line in lines}
    for row in rows:
        body = by_id[row["connection"], row["correlation_id"]]
        assert row["cluster_id"] == body["clusterId"]
        asked, told = row["topics"][0], body["topics"][0]
        assert asked["topic_name"] == told["topicName"]
        names = {each.replace("_", ""): each for each in asked["partitions"][0]}
        for name, value in told["partitions"][0].items():
            assert asked["partitions"][0][names[name.lower()]] == value
    frames = {(each["file"], each["position"]) for each in everything["frames"].to_pylist()}
    begun = {(each["file"], each["position"]) for each in everything["exchanges"].to_pylist()}
    places = {(row["file"], row["position"]) for row in rows}
    assert places <= frames & begun


def test_rows_leave_memory_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages hold on to the bytes of their frames, so they go to Arrow early."""
    path = golden("quorum")
    whole = decode_tables(path, tables=["fetch_response"])["fetch_response"]
    assert whole["throttle_time_ms"].num_chunks == 1
    monkeypatch.setattr(typed, "_HELD_BYTES_MAX", 2_000)
    cut = decode_tables(path, tables=["fetch_response"])["fetch_response"]
    assert cut["throttle_time_ms"].num_chunks > 3
    assert cut.to_pylist() == whole.to_pylist()


def test_nothing_typed_is_made_unless_it_is_asked_for() -> None:
    """Most runs do without, and should not pay for it."""
    made = decode_tables(golden("quorum"))
    assert not set(made) & set(TYPED_TABLES)
