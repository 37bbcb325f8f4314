"""Real log directories compared with what kafka-dump-log prints for them."""

from __future__ import annotations

import json
import lzma
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kraftwire.records import Batch, Record, read_batches
from kraftwire.records.json_form import batch_to_json, decode_record
from kraftwire.records.messages import family_of_topic

LOGS = Path(__file__).resolve().parents[4] / "shared" / "logs"
ARCHIVE = LOGS / "kafka-4.3.1-logs.tar.xz"

pytestmark = pytest.mark.skipif(not ARCHIVE.exists(), reason="needs ../shared/logs")

BATCH = re.compile(
    r"baseOffset: (-?\d+) lastOffset: (-?\d+) count: (\d+) baseSequence: (-?\d+) "
    r"lastSequence: (-?\d+) producerId: (-?\d+) producerEpoch: (-?\d+) "
    r"partitionLeaderEpoch: (-?\d+) isTransactional: (\w+) isControl: (\w+) "
    r"deleteHorizonMs: OptionalLong\S+ position: (\d+) (\w+): (-?\d+) size: (\d+) "
    r"magic: (\d) compresscodec: (\w+) crc: (\d+) isvalid: (\w+)"
)
RECORD = re.compile(
    r"\| offset: (\d+) \w+: (-?\d+) keySize: (-?\d+) valueSize: (-?\d+) sequence: (-?\d+) "
    r"headerKeys: \[(.*?)\] ?(.*)"
)
END = re.compile(r"endTxnMarker: (\w+) coordinatorEpoch: (\d+)")
CONTROL = re.compile(r"(\w+):? (\{.*\})")


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    """Every segment and snapshot of the archive by its path."""
    with tarfile.open(ARCHIVE) as archive:
        return {
            member.name.removeprefix("./"): opened.read()
            for member in archive
            if member.name.endswith((".log", ".checkpoint"))
            and (opened := archive.extractfile(member))
        }


def dumps() -> Iterator[tuple[str, list[str]]]:
    """The files that kafka-dump-log printed, each with its lines."""
    for path in sorted((LOGS / "dump-log").glob("*.xz")):
        with lzma.open(path, "rt", encoding="utf-8") as text:
            parts = text.read().split("Dumping ")[1:]
        for part in parts:
            name, *lines = part.splitlines()
            if name.endswith((".log", ".checkpoint")):
                yield name.removeprefix("logs/"), lines


def printed(batch: Batch) -> tuple[str, ...]:
    """A batch as kafka-dump-log prints it."""
    fields = (
        batch.base_offset, batch.last_offset, batch.count, batch.base_sequence,
        batch.last_sequence, batch.producer_id, batch.producer_epoch,
        batch.partition_leader_epoch, batch.is_transactional, batch.is_control, batch.position,
        batch.timestamp_type, batch.max_timestamp, batch.size, batch.magic, batch.compression,
        batch.crc, batch.is_valid,
    )  # fmt: skip
    return tuple(str(f).lower() if isinstance(f, bool) else str(f) for f in fields)


def printed_record(record: Record) -> tuple[str, ...]:
    """A record as kafka-dump-log prints it, up to its payload."""
    sizes = [-1 if data is None else len(data) for data in (record.key, record.value)]
    keys = ",".join(key for key, _ in record.headers)
    return tuple(map(str, (record.offset, record.timestamp, *sizes, record.sequence, keys)))


def without_embedded(data: Any) -> Any:
    """Group metadata without the bytes that kafka-dump-log decodes and the converters do not."""
    for member in (data or {}).get("members") or []:
        member.pop("subscription", None)
        member.pop("assignment", None)
    return data


def assert_same_meaning(decoded: dict[str, Any], control_type: str | None, text: str) -> None:
    """Compare a decoded record with the payload that kafka-dump-log prints."""
    if match := END.match(text):
        assert (control_type, str(decoded["data"]["coordinatorEpoch"])) == match.groups()
    elif text.startswith("key: "):
        key, value = text.removeprefix("key: ").split(" payload: ")
        assert json.loads(key)["data"] == decoded["data"]["key"]
        if value == "<DELETE>":
            assert (decoded["version"], decoded["data"]["value"]) == (None, None)
        else:
            shown = json.loads(value)
            assert int(shown["version"]) == decoded["version"]
            assert without_embedded(shown["data"]) == without_embedded(decoded["data"]["value"])
    elif text.startswith("payload: "):
        shown = json.loads(text.removeprefix("payload: "))
        assert shown["type"].replace("_", "") == decoded["type"].upper()
        assert (shown["version"], shown["data"]) == (decoded["version"], decoded["data"])
    else:
        match = CONTROL.match(text)
        assert match is not None, text
        assert match[1].upper() == str(control_type).replace("_", "")
        assert json.loads(match[2]) == decoded["data"]


def test_batches_and_records_are_what_kafka_prints(files: dict[str, bytes]) -> None:
    """Offsets, timestamps, sequences, flags and CRCs of everything that was dumped."""
    batches = records = 0
    for name, lines in dumps():
        reader = read_batches(files[name])
        rows: Iterator[Record] = iter(())
        for line in lines:
            if match := BATCH.match(line):
                batch = next(reader)
                assert printed(batch) == match.groups()
                rows = iter(batch.records())
                batches += 1
            elif match := RECORD.match(line):
                assert printed_record(next(rows)) == match.groups()[:6]
                records += 1
        assert reader.remaining == 0
    assert (batches, records) == (1197, 1998)


def test_payloads_mean_what_kafka_prints(files: dict[str, bytes]) -> None:
    """Control, metadata and coordinator records of every kind in the logs."""
    types = set()
    for name, lines in dumps():
        family = family_of_topic(name.split("/")[-2].rpartition("-")[0])
        rows = iter(
            (decode_record(record, family, is_control=batch.is_control))
            for batch in read_batches(files[name])
            for record in batch.records()
        )
        for line in lines:
            if match := RECORD.match(line):
                decoded = next(rows)
                assert decoded is not None
                types.add(decoded.type)
                assert_same_meaning(decoded.to_json(), decoded.control_type, match[7])
    assert len(types) > 35


def test_every_batch_of_every_file_is_whole(files: dict[str, bytes]) -> None:
    """All codecs, transactions, stamped batches and headers, without a single error."""
    count = 0
    for name, data in files.items():
        family = family_of_topic(name.split("/")[-2].rpartition("-")[0])
        reader = read_batches(data)
        for batch in reader:
            rows = batch.records()
            assert len(rows) == batch.count
            assert rows == list(batch.iter_records())
            found, problems = batch_to_json(batch, family=family, records="summary")
            assert not problems, (name, batch.position)
            assert found["isValid"]
            count += 1
        assert reader.remaining == 0
    assert count == 4754
