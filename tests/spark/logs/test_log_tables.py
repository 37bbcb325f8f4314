"""Segments and snapshots as tables: equal to the decode tool's lines, every byte accounted for."""

from __future__ import annotations

import base64
import json
import lzma
import random
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow")

from kraftwire.decode.files import FileOptions, FileReport, decode_file
from kraftwire.records import BatchHeader, Record, build_batch
from kraftwire.spark.logs import LogOptions, decode_tables, plan
from kraftwire.spark.tables import TABLES
from tests.hostile.test_bombs import _RECORD, _batch
from tests.spark.logs.log_files import FILES, GOLDEN, damaged, user_segment
from tests.support.metadata.odd import odd_log
from tests.unit.records.test_legacy import message

SEED = 20_11


def rows(table: Any) -> list[dict[str, Any]]:
    """The rows of a table as Python values."""
    found: list[dict[str, Any]] = table.to_pylist()
    return found


def test_a_file_of_another_tool_is_named_with_the_way_out(tmp_path: Path) -> None:
    """As decode does; other files beside the data are none of our business."""
    for name, head, way in (
        ("list.csv", b'"No.","Time","Source"\n', "tshark -w FILE"),
        ("a.snoop", b"snoop\0\0\0\0\0\0\2", "editcap -F pcapng"),
        ("notes.txt", b"hello", ""),
        ("server.properties", b"broker.id=0\n", ""),
    ):
        path = tmp_path / name
        path.write_bytes(head)
        tables = decode_tables(path)
        told = [(row["id"], way in row["detail"]) for row in rows(tables["bad_input"])]
        assert told == ([("unknown-file", True)] if way else [])
        assert_conserved(tables, len(head))


def test_a_segment_of_tiered_storage_keeps_its_topic(tmp_path: Path) -> None:
    """The name of the object has the topic's id as well."""
    folder = tmp_path / "orders-MWJ6FHTfRYy67jzwZdeqSQ" / "3"
    path = folder / f"{'0' * 20}-tqimKeZwStOEOwRzT3L5oQ.log"
    path.parent.mkdir(parents=True)
    path.write_bytes((GOLDEN / "broker/tombs-0/00000000000000000000.log").read_bytes())
    found = {
        (row["topic"], row["topic_id"], row["partition"])
        for row in rows(decode_tables(path)["batches"])
    }
    assert found == {("orders", "MWJ6FHTfRYy67jzwZdeqSQ", 3)}


def assert_conserved(tables: dict[str, Any], size: int) -> None:
    """Every byte of the file is counted once, and the sums are those of the rows."""
    (file,) = rows(tables["files"])
    parts = ("kafka_bytes", "header_bytes", "bad_bytes", "other_bytes")
    assert sum(file[part] for part in parts) == file["size"] == size
    assert file["bad_bytes"] == sum(row["length"] for row in rows(tables["bad_input"]))


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_tables_say_what_the_decode_tool_says(path: Path) -> None:
    """Batches, records and meanings of real files, with Kafka's own JSON."""
    tables = decode_tables(path, records=True)
    for name, table in tables.items():
        assert table.schema == TABLES[name].arrow
    lines = [line.json for line in decode_file(path, FileOptions(), FileReport())]
    assert_conserved(tables, path.stat().st_size)
    assert [
        (row["position"], row["base_offset"], row["last_offset"], row["count"], row["crc"],
         row["is_valid"], row["codec"], row["is_control"], row["leader_epoch"], row["size"])
        for row in rows(tables["batches"])
    ] == [
        (line["position"], line["baseOffset"], line["lastOffset"], line["count"], line["crc"],
         line["isValid"], line["compression"], line["isControl"], line["partitionLeaderEpoch"],
         line["size"])
        for line in lines
    ]  # fmt: skip
    records = [record for line in lines for record in line["records"]]
    assert [(row["offset"], text(row["value"])) for row in rows(tables["records"])] == [
        (record["offset"], record["value"]) for record in records
    ]
    decoded = [record["decoded"] for record in records if record["decoded"]]
    meanings = rows(tables["metadata_records"])
    if meanings:
        assert [(row["type"], row["version"]) for row in meanings] == [
            (one["type"], one["version"]) for one in decoded
        ]
        data = [json.loads(row["data"]) for row in meanings]
        for one, row in zip(data, meanings, strict=True):
            if row["type"] == "EndTxnMarker":
                assert one.pop("controlType") in ("COMMIT", "ABORT")
        assert data == [one["data"] for one in decoded]


def text(value: bytes | None) -> str | None:
    """A value as the decode tool prints it."""
    if value is None or value == b"[redacted]":
        return None if value is None else value.decode()
    return base64.b64encode(value).decode()


def test_internal_topics_have_meanings() -> None:
    """All families are among the files, and users' topics have no meaning."""
    topics = {}
    for path in FILES:
        for row in rows(decode_tables(path)["metadata_records"]):
            topics.setdefault(row["topic"], set()).add(row["type"])
    assert topics.keys() == {
        "__cluster_metadata", "__consumer_offsets", "__transaction_state", "__share_group_state",
        "__remote_log_metadata",
    }  # fmt: skip
    assert {"TopicRecord", "LeaderChangeMessage", "SnapshotFooterRecord"} <= topics[
        "__cluster_metadata"
    ]
    assert "OffsetCommit" in topics["__consumer_offsets"]


def test_metadata_records_of_any_values_have_rows(tmp_path: Path) -> None:
    """With JSON that is JSON, also for numbers that have none there."""

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    path = folder / f"{0:020}.log"
    for seed in range(30):
        path.write_bytes(odd_log(seed, 60))
        found = rows(decode_tables(path)["metadata_records"])
        assert len(found) >= 60
        for row in found:
            json.loads(row["data"], parse_constant=refuse)


def test_secrets_are_hidden(tmp_path: Path) -> None:
    """In JSON and in the bytes of records; shown if asked."""
    from kraftwire.messages.config_record import ConfigRecord
    from kraftwire.records.metadata import encode_metadata

    secret = ConfigRecord(
        resource_type=2, resource_name="t", name="ssl.key.password", value="hush"
    )
    plain = ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value="hush")
    values = [encode_metadata(one, 0) for one in (secret, plain)]
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    path = folder / f"{0:020}.log"
    path.write_bytes(build_batch([Record(i, 0, None, one) for i, one in enumerate(values)]))
    tables = decode_tables(path, records=True)
    assert tables["records"]["value"].to_pylist() == [b"[redacted]", values[1]]
    data = [json.loads(one)["value"] for one in tables["metadata_records"]["data"].to_pylist()]
    assert data == ["[redacted]", "hush"]
    shown = decode_tables(path, records=True, options=LogOptions(show_secrets=True))
    assert shown["records"]["value"].to_pylist()[0] == values[0]


@pytest.mark.parametrize("seed", range(40))
def test_damage_is_reported_and_every_byte_counted(tmp_path: Path, seed: int) -> None:
    """Flipped bytes, holes, garbage, cuts: as the scan reports them, in any split, in any chunk."""
    source = random.Random(SEED + seed)
    path = user_segment(tmp_path, damaged(source, user_bytes(source)))
    size = path.stat().st_size
    whole = decode_tables(path, records=True)
    assert_conserved(whole, size)
    report = FileReport()
    lines = [line.json for line in decode_file(path, FileOptions(), report)]
    assert [row["position"] for row in rows(whole["batches"])] == [
        line["position"] for line in lines
    ]
    about_bytes = {"batch-crc", "batch-cut", "garbage", "hole", "wrong-length"}
    for id in about_bytes:
        found = [row for row in rows(whole["bad_input"]) if row["id"] == id]
        assert len(found) == report.findings[id]
    ranges = plan(path, split=source.choice([500, 3000, 20_000]))
    assert [start for start, _ in ranges] == [0, *(end for _, end in ranges[:-1])]
    small = LogOptions(chunk_bytes=source.choice([100, 1000, 5000]))
    parts = [
        decode_tables(path, records=True, start=start, end=end, options=small)
        for start, end in ranges
    ]
    for name in ("batches", "records", "bad_input"):
        assert [row for part in parts for row in rows(part[name])] == rows(whole[name])
    for part, (start, end) in zip(parts, ranges, strict=True):
        assert_conserved(part, end - start)


def user_bytes(source: random.Random) -> bytes:
    """Batches of a user's topic; some records hold a whole batch, which no split may fall for."""
    inner = build_batch([Record(5, 0, b"inside", b"x" * 50)])
    parts, offset = [], 0
    for _ in range(source.randrange(10, 60)):
        count = source.randrange(1, 12)
        rows = [
            Record(offset + i, 0, None, source.choice([inner, source.randbytes(40)]))
            for i in range(count)
        ]
        codec = source.choice(["none", "none", "none", "lz4"])
        parts.append(build_batch(rows, BatchHeader(compression=codec)))
        offset += count
    return b"".join(parts)


def test_sound_files_are_split(tmp_path: Path) -> None:
    """In ranges of about the requested size."""
    path = user_segment(tmp_path, user_bytes(random.Random(SEED)))
    ranges = plan(path, split=2000)
    assert len(ranges) > path.stat().st_size // 4000
    assert ranges[0][0] == 0
    assert ranges[-1][1] == path.stat().st_size


def test_a_preallocated_tail_is_not_bad_input(tmp_path: Path) -> None:
    """Zeros to the end are headers of the file, and nothing is wrong with them."""
    data = build_batch([Record(0, 0, None, b"v")])
    tables = decode_tables(user_segment(tmp_path, data + bytes(5000)))
    (file,) = rows(tables["files"])
    assert (file["kafka_bytes"], file["header_bytes"]) == (len(data), 5000)
    assert not rows(tables["bad_input"])


def test_old_magics(tmp_path: Path) -> None:
    """Messages have rows as batches of one."""
    data = message(3, b"v", key=b"k") + message(4, None, magic=0)
    tables = decode_tables(user_segment(tmp_path, data), records=True)
    assert tables["records"]["offset"].to_pylist() == [3, 4]
    assert tables["records"]["key"].to_pylist() == [b"k", None]
    assert tables["batches"]["count"].to_pylist() == [1, 1]
    assert_conserved(tables, len(data))


def test_records_that_fit_no_schema(tmp_path: Path) -> None:
    """The batch counts as bad once; the other records are there."""
    folder = tmp_path / "__consumer_offsets-3"
    folder.mkdir()
    path = folder / f"{0:020}.log"
    good = Record(0, 0, b"\x00\x02\x00\x01g", None)
    bad = [Record(index, 0, b"\x7f\xff", b"x") for index in (1, 2)]
    path.write_bytes(build_batch([good, *bad]))
    tables = decode_tables(path)
    assert tables["metadata_records"]["type"].to_pylist() == ["GroupMetadata"]
    (row,) = rows(tables["bad_input"])
    assert (row["stage"], row["id"]) == ("record", "record-undecoded")
    assert_conserved(tables, path.stat().st_size)


def test_other_files_have_a_row_in_files_only(tmp_path: Path) -> None:
    """Indexes, state files, unknown ones, and a path that leads nowhere."""
    for path in (GOLDEN / "broker" / "meta.properties", *GOLDEN.rglob("*.timeindex")):
        tables = decode_tables(path, records=True)
        assert_conserved(tables, path.stat().st_size)
        assert not any(len(table) for name, table in tables.items() if name != "files")
    tables = decode_tables(tmp_path / "missing.log")
    assert_conserved(tables, 0)
    (row,) = rows(tables["bad_input"])
    assert row["id"] == "unreadable-file"


def test_compressed_files_are_unpacked(tmp_path: Path) -> None:
    """Sizes and positions are those of the unpacked bytes, and there is one range."""
    data = user_bytes(random.Random(SEED))
    path = tmp_path / f"{0:020}.log.xz"
    path.write_bytes(lzma.compress(data))
    tables = decode_tables(path, records=True)
    assert_conserved(tables, len(data))
    assert plan(path, split=1000) == [(0, len(data))]


def test_a_bomb_counts_as_bad_as_a_whole(tmp_path: Path) -> None:
    """Under the id that `kraftwire decode` uses for it."""
    sound = build_batch([Record(0, 0, None, b"v")])
    bomb = _batch(4, _RECORD * 2_300_000, 2_300_000, 1)
    path = tmp_path / "events-0" / f"{0:020}.log"
    path.parent.mkdir()
    path.write_bytes(sound + bomb)
    tables = decode_tables(path, records=True)
    assert tables["records"]["offset"].to_pylist() == [0]
    (row,) = tables["bad_input"].to_pylist()
    assert (row["id"], row["position"], row["length"]) == ("batch-bomb", len(sound), len(bomb))
    (file,) = tables["files"].to_pylist()
    assert (file["kafka_bytes"], file["bad_bytes"]) == (len(sound), len(bomb))


@pytest.mark.slow
def test_a_long_batch_is_bad_once(tmp_path: Path) -> None:
    """Its records are in several tables; their damage counts once."""
    path = tmp_path / "__transaction_state-0" / f"{0:020}.log"
    path.parent.mkdir()
    data = build_batch([Record(each, 0, b"\x00\x07", b"\x00") for each in range(70_000)])
    path.write_bytes(data)
    tables = decode_tables(path, records=True)
    assert len(tables["records"]) == 70_000
    (row,) = tables["bad_input"].to_pylist()
    assert (row["id"], row["length"]) == ("record-undecoded", len(data))
    assert tables["files"]["kafka_bytes"].to_pylist() == [0]


def test_only_columns_that_are_wanted_are_made(tmp_path: Path) -> None:
    """In the order of the table."""
    path = tmp_path / "events-0" / f"{0:020}.log"
    path.parent.mkdir()
    path.write_bytes(build_batch([Record(3, 9, b"k", b"v")], BatchHeader(producer_id=5)))
    every = decode_tables(path, records=True)["records"]
    for names in (["value"], ["offset", "file"], ["timestampType", "producer_id", "position"]):
        options = LogOptions(columns=frozenset(names))
        some = decode_tables(path, records=True, options=options)["records"]
        assert some.column_names == names
        assert some == every.select(names)
