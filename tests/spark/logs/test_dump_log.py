"""Tables of log directories hold what `kafka-dump-log` has printed of them, number by number."""

from __future__ import annotations

import json
import struct
import tarfile
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="needs the extra spark")

from kraftwire.spark.logs import LogOptions, decode_tables
from tests.support.captures.decoded import shared
from tests.support.kafka import dump_log
from tests.support.kafka.dump_compare import compare_file
from tests.support.kafka.dump_log import DumpedFile

ROOT = Path(__file__).resolve().parents[3]
GOLDEN = ROOT / "tests" / "golden" / "logs"
# Dump text -> family of records that its decoder reads.
GOLDEN_TEXTS = {
    "metadata": "metadata", "snapshots": "metadata", "group": "group",
    "transaction": "transaction", "share": "share", "records": None,
}  # fmt: skip
SHARED_TEXTS = {
    "metadata_c3": "metadata", "snapshots_c3": "metadata", "consumer_offsets": "group",
    "txn_state": "transaction", "share_state": "share",
}  # fmt: skip
# What no table has.
UNTOLD = ("lastSequence", "deleteHorizonMs", "magic")
TYPES = ("CreateTime", "LogAppendTime")
Row = dict[str, Any]


@pytest.fixture(scope="module")
def whole_cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log directories of four controllers and a broker."""
    folder = tmp_path_factory.mktemp("logs")
    with tarfile.open(shared("logs", "kafka-4.3.1-logs.tar.xz")) as tar:
        tar.extractall(folder, filter="data")
    return folder


def _lines(path: Path, dumped: DumpedFile) -> Iterator[Row]:
    """The rows of a file's tables as lines of the decode tool, other columns unchanged."""
    options = LogOptions(show_secrets=True)
    made = decode_tables(path, records=True, options=options)
    tables = {name: table.to_pylist() for name, table in made.items()}
    assert tables["bad_input"] == []
    decoded = {row["offset"]: row for row in tables["metadata_records"]}
    records: dict[int, list[Row]] = {}
    for row in tables["records"]:
        records.setdefault(row["position"], []).append(row)
    for batch, told in zip(tables["batches"], dumped.batches, strict=True):
        rows = records[batch["position"]]
        (kind,) = {row["timestampType"] for row in rows}
        yield {
            **{key: told.fields[key] for key in UNTOLD},
            "position": batch["position"], "baseOffset": batch["base_offset"],
            "lastOffset": batch["last_offset"], "count": batch["count"], "size": batch["size"],
            "baseSequence": batch["base_sequence"], "producerId": batch["producer_id"],
            "producerEpoch": batch["producer_epoch"], "compression": batch["codec"],
            "partitionLeaderEpoch": batch["leader_epoch"], "crc": batch["crc"],
            "isTransactional": batch["is_transactional"], "isControl": batch["is_control"],
            "isValid": batch["is_valid"], "timestampType": TYPES[kind],
            "maxTimestamp": _ms(batch["max_timestamp"]),
            "records": [_record(row, decoded.get(row["offset"])) for row in rows],
        }  # fmt: skip


def _record(row: Row, decoded: Row | None) -> Row:
    if decoded is None and row["is_control"]:
        # The end of a transaction in a user's topic, which is not in metadata_records.
        version, epoch = struct.unpack(">hi", row["value"])
        data = json.dumps({"coordinatorEpoch": epoch})
        decoded = {"type": "EndTxnMarker", "version": version, "data": data}
    return {
        "offset": row["offset"],
        "timestamp": _ms(row["timestamp"]),
        "key": _text(row["key"]),
        "value": _text(row["value"]),
        "headers": row["headers"],
        "decoded": decoded
        and {**{key: decoded[key] for key in ("type", "version")}, "data": _data(decoded)},
    }


def _data(decoded: Row) -> Row:
    data: Row = json.loads(decoded["data"])
    data.pop("controlType", None)
    return data


def _ms(moment: Any) -> int:
    return round(moment.timestamp() * 1000)


def _text(value: bytes | None) -> str | None:
    return None if value is None else b64encode(value).decode()


@pytest.mark.parametrize("name", sorted(GOLDEN_TEXTS))
def test_tables_of_golden_segments_equal_the_dump(name: str) -> None:
    """Batches, records and the meaning of Kafka's own records."""
    for dumped in dump_log.read(GOLDEN / "dump-log" / f"{name}.txt.xz").values():
        compare_file(list(_lines(GOLDEN / dumped.name, dumped)), dumped, GOLDEN_TEXTS[name])


@pytest.mark.parametrize("name", sorted(SHARED_TEXTS))
def test_tables_of_a_whole_cluster_equal_the_dump(whole_cluster: Path, name: str) -> None:
    """A thousand batches of metadata and every kind of coordinator record."""
    files = dump_log.read(shared("logs", "dump-log", f"{name}.txt.xz"))
    assert files
    for dumped in files.values():
        path = whole_cluster / dumped.name.removeprefix("logs/")
        compare_file(list(_lines(path, dumped)), dumped, SHARED_TEXTS[name])
