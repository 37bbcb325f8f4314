"""Compares lines of `kraftwire decode` with what `kafka-dump-log` prints, number by number.

Knows where the two differ on purpose: the tool spells types of metadata records in capitals and
those of coordinator records as numbers, shortens the names of control records, decodes what
classic consumers put into their group's metadata, and names states of transactions from 4.4 on.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from typing import Any

from kraftwire import messages
from tests.support.kafka.dump_log import DumpedBatch, DumpedFile, DumpedRecord

_SAME = (
    "baseOffset", "lastOffset", "count", "baseSequence", "lastSequence", "producerId",
    "producerEpoch", "partitionLeaderEpoch", "isTransactional", "isControl", "deleteHorizonMs",
    "position", "size", "magic", "crc",
)  # fmt: skip
_CONTROL = {
    "LeaderChange:": "LeaderChangeMessage",
    "KRaftVersion": "KRaftVersionRecord",
    "KRaftVoters": "VotersRecord",
    "SnapshotHeader": "SnapshotHeaderRecord",
    "SnapshotFooter": "SnapshotFooterRecord",
}
# By number. Source: Kafka's `TransactionState`.
_STATES = (
    "Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead",
    "PrepareEpochFence",
)  # fmt: skip
_CLASSIC = {
    "subscription": "ConsumerProtocolSubscription",
    "assignment": "ConsumerProtocolAssignment",
}

Json = dict[str, Any]


def compare_file(lines: list[Json], dumped: DumpedFile, family: str | None) -> None:
    """Raises: AssertionError naming batch or record where the two differ."""
    assert len(lines) == len(dumped.batches), dumped.name
    for line, batch in zip(lines, dumped.batches, strict=True):
        where = f"{dumped.name} position {line['position']}"
        assert _header(line) == _dumped_header(batch), where
        for record, expected in zip(line["records"], batch.records, strict=True):
            at = f"{where} offset {expected.offset}"
            assert _plain(record, line) == _dumped_plain(expected), at
            _compare_text(record, expected, line, family, at)


def compare_entries(lines: list[Json], dumped: DumpedFile) -> None:
    """The entries of an index, or the producers of a snapshot."""
    if dumped.name.endswith(".snapshot"):
        (line,) = lines
        assert list(map(_producer, line["data"]["producerEntries"])) == dumped.entries
        return
    found = [
        {key: value for key, value in line.items() if key not in ("file", "entry")}
        for line in lines
    ]
    assert found == dumped.entries, dumped.name


def _header(line: Json) -> Json:
    return {key: line[key] for key in _SAME} | {
        "compresscodec": line["compression"],
        "isvalid": line["isValid"],
        line["timestampType"]: line["maxTimestamp"],
    }


def _dumped_header(batch: DumpedBatch) -> Json:
    return batch.fields


def _plain(record: Json, line: Json) -> tuple[Any, ...]:
    distance = record["offset"] - line["baseOffset"]
    sequence = line["baseSequence"] + distance if line["baseSequence"] >= 0 else -1
    return (
        record["offset"],
        record["timestamp"],
        _size(record["key"]),
        _size(record["value"]),
        sequence,
        [header["key"] for header in record["headers"]],
    )


def _dumped_plain(record: DumpedRecord) -> tuple[Any, ...]:
    return (
        record.offset,
        record.timestamp,
        record.key_size,
        record.value_size,
        record.sequence,
        record.header_keys,
    )


def _size(field: str | None) -> int:
    return -1 if field is None else len(b64decode(field))


def _compare_text(
    record: Json, dumped: DumpedRecord, line: Json, family: str | None, at: str
) -> None:
    if line["isControl"]:
        assert _control(record) == _dumped_control(dumped.text), at
    elif family is None:
        assert record["decoded"] is None, at
        text = _as_text(record)
        assert text is None or text == dumped.text, at
    elif family == "metadata":
        _, payload = dumped.decoded
        assert _metadata(record["decoded"]) == payload, at
    else:
        _compare_coordinator(record["decoded"], dumped, family, at)


def _as_text(record: Json) -> str | None:
    """Key and payload as the tool's string decoder shows them; None if they are not text."""
    parts = []
    for label, field in (("key", record["key"]), ("payload", record["value"])):
        if field is None:
            continue
        try:
            parts.append(f"{label}: {b64decode(field).decode()}")
        except UnicodeDecodeError:
            # Java and Python put different numbers of replacement characters there.
            return None
    return " ".join(parts)


def _control(record: Json) -> tuple[str, Json]:
    decoded = record["decoded"]
    if decoded["type"] == "EndTxnMarker":
        end = {0: "ABORT", 1: "COMMIT"}[b64decode(record["key"])[-1]]
        return end, {"coordinatorEpoch": decoded["data"]["coordinatorEpoch"]}
    return decoded["type"], decoded["data"]


def _dumped_control(text: str) -> tuple[str, Json]:
    if match := re.fullmatch(r"endTxnMarker: (\w+) coordinatorEpoch: (-?\d+)", text):
        return match[1], {"coordinatorEpoch": int(match[2])}
    label, _, body = text.partition(" ")
    return _CONTROL[label], json.loads(body)


def _metadata(decoded: Json) -> Json:
    words = re.findall(r"[A-Z][a-z]*(?:[A-Z]+(?![a-z]))?", decoded["type"])
    return {**decoded, "type": "_".join(words).upper()}


def _compare_coordinator(decoded: Json, dumped: DumpedRecord, family: str, at: str) -> None:
    key, payload = dumped.decoded
    key_name, _ = messages.COORDINATOR_RECORDS[family][int(key["type"])]
    assert decoded["type"] == key_name.removesuffix("Key"), at
    assert decoded["data"]["key"] == key["data"], at
    if payload is None:
        assert decoded["version"] is None, at
        assert decoded["data"]["value"] is None, at
        return
    assert str(decoded["version"]) == payload["version"], at
    expected = dict(payload["data"])
    if (state := expected.get("transactionStatus")) in _STATES:
        expected["transactionStatus"] = _STATES.index(state)
    assert _unpacked(decoded["type"], decoded["data"]["value"]) == expected, at


def _unpacked(type_name: str, value: Json) -> Json:
    """A group's metadata with its members' bytes decoded, where the tool does that."""
    if type_name != "GroupMetadata" or value["protocolType"] != "consumer":
        return value
    return {**value, "members": [_member(member) for member in value["members"]]}


def _member(member: Json) -> Json:
    return member | {key: _classic(name, member[key]) for key, name in _CLASSIC.items()}


def _classic(name: str, field: str) -> Any:
    data = b64decode(field)
    if not data:
        return field
    version = int.from_bytes(data[:2], "big")
    message, _ = messages.find(name).decode(data, version, 2)
    return message.to_json(version)


def _producer(entry: Json) -> Json:
    """A producer's entry under the tool's names, with the numbers that it derives."""
    last_sequence, delta = entry["lastSequence"], entry["offsetDelta"]
    current = entry["currentTxnFirstOffset"]
    return {
        "producerId": entry["producerId"],
        "producerEpoch": entry["epoch"],
        "coordinatorEpoch": entry["coordinatorEpoch"],
        "currentTxnFirstOffset": None if current < 0 else current,
        "lastTimestamp": entry["timestamp"],
        "firstSequence": last_sequence - delta,
        "lastSequence": last_sequence,
        "lastOffset": entry["lastOffset"],
        "offsetDelta": delta,
        "timestamp": entry["timestamp"],
    }
