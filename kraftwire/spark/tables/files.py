"""The tables about input files, their batches and records, and what could not be decoded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kraftwire.capture.recorded import HostPair, Recorded
from kraftwire.spark.tables.columns import EVIDENCE, Column, Table, evidence, partition

BAD_INPUT = Table(
    "bad_input",
    "Bytes that could not be decoded.",
    (
        *evidence(),
        Column("length", "bigint", "how many bytes"),
        Column("stage", "string", "file, packet, stream, frame, body, batch or record"),
        Column("id", "string", "id of the finding"),
        Column("detail", "string", "what was found, what was expected"),
        Column("first_bytes", "binary", "up to 32 of them"),
    ),
)

class BadBytes(NamedTuple):
    """Bytes that could not be decoded: a row of bad_input."""

    file: str
    position: int
    length: int
    stage: str
    id: str
    detail: str
    first_bytes: bytes | None = None


FILES = Table(
    "files",
    "An input file and how its bytes were classified.",
    (
        Column("file", "string", "path"),
        Column("size", "bigint", "bytes, unpacked"),
        Column(
            "kind",
            "string",
            "capture, log, snapshot or another kind of file; bzip2 and lz4 are not unpacked",
        ),
        Column("kafka_bytes", "bigint", "payload of frames with their length prefixes, or batches"),
        Column("tls_bytes", "bigint", "payload of encrypted connections"),
        Column("other_bytes", "bigint", "payload of other protocols"),
        Column("duplicate_bytes", "bigint", "payload that was sent or captured again"),
        Column("header_bytes", "bigint", "headers of files, links, IP and TCP, other packets"),
        Column("bad_bytes", "bigint", "bytes in bad_input of the stages file, packet and stream"),
        Column(
            "copied_packets",
            "bigint",
            "packets that came before in other wrappings; they count once",
        ),
        Column(
            "translated_connections",
            "bigint",
            "connections that came before under another address; they count once",
        ),
        Column("cluster", "string", "cluster id, by the meta.properties of a log directory"),
        Column(
            "state",
            "string",
            "content as JSON, of quorum-state, leader-epoch-checkpoint and the flush mark; of "
            "meta.properties the ids, and as refusal why no node starts with that metadata log",
        ),
        Column(
            "recording", "string", "of a capture: the first file of its recording, which may have "
            "several",
        ),
        Column(
            "recorded",
            "array<span>",
            "of a capture: the times of its packets, without a pause in each, in nanoseconds since "
            "the epoch",
        ),
    ),
)


class FileBytes(NamedTuple):
    """An input file and how its bytes were classified: a row of files."""

    file: str
    size: int
    kind: str
    kafka_bytes: int = 0
    tls_bytes: int = 0
    other_bytes: int = 0
    duplicate_bytes: int = 0
    header_bytes: int = 0
    bad_bytes: int = 0
    copied_packets: int | None = None
    translated_connections: int | None = None
    cluster: str | None = None
    state: str | None = None
    recording: str | None = None
    recorded: list[tuple[int, int]] | None = None


BATCHES = Table(
    "batches",
    "A record batch, of a log, a snapshot or a frame.",
    (
        *EVIDENCE,
        *partition("field."),
        Column("source", "string", "wire, log or snapshot", "field.source"),
        Column("base_offset", "bigint", "offset of the first record", "batch.base_offset"),
        Column("last_offset", "bigint", "offset of the last record", "batch.last_offset"),
        Column("leader_epoch", "int", "partition leader epoch", "batch.partition_leader_epoch"),
        Column("count", "int", "number of records", "batch.count"),
        Column("size", "int", "size in bytes, header included", "batch.size"),
        Column("codec", "string", "none, gzip, snappy, lz4 or zstd", "batch.compression"),
        Column("crc", "bigint", "stored CRC", "batch.crc"),
        Column("is_valid", "boolean", "whether the CRC agrees"),
        Column("is_control", "boolean", "a control batch", "batch.is_control"),
        Column("is_transactional", "boolean", "part of a transaction", "batch.is_transactional"),
        Column("producer_id", "bigint", "producer id, -1 for none", "batch.producer_id"),
        Column("producer_epoch", "smallint", "producer epoch", "batch.producer_epoch"),
        Column("base_sequence", "int", "sequence of the first record", "batch.base_sequence"),
        Column("max_timestamp", "timestamp", "largest timestamp of its records"),
    ),
)

METADATA_RECORDS = Table(
    "metadata_records",
    "A record of the metadata log, of consumer offsets, transactions or share groups, decoded.",
    (
        *EVIDENCE,
        *partition("field."),
        Column("offset", "bigint", "offset", "record.offset"),
        Column("epoch", "int", "leader epoch of the batch", "record.epoch"),
        Column("time", "timestamp", "timestamp of the record"),
        Column("type", "string", "name of the record's schema", "record.type"),
        Column("version", "smallint", "version of the value", "record.version"),
        Column(
            "data",
            "string",
            "key and value as JSON, as Kafka's converters print them",
            "record.data",
        ),
    ),
)

RECORDS = Table(
    "records",
    "A record; the first columns are those of Spark's own Kafka source.",
    (
        Column("key", "binary", "key"),
        Column("value", "binary", "value"),
        Column("topic", "string", "topic"),
        Column("partition", "int", "partition"),
        Column("offset", "bigint", "offset"),
        Column("timestamp", "timestamp", "timestamp, milliseconds exact"),
        Column("timestampType", "int", "0 CreateTime, 1 LogAppendTime"),
        Column("headers", "array<header>", "headers"),
        Column("leader_epoch", "int", "partition leader epoch of the batch"),
        Column("producer_id", "bigint", "producer id of the batch"),
        Column("is_control", "boolean", "a control record"),
        *EVIDENCE,
    ),
)


def recorded_of(
    spans: Iterable[Mapping[str, int]], pairs: Iterable[HostPair] = ()
) -> Recorded:
    """Return the times of a recording, of values of the column `recorded`, and its hosts."""
    made = Recorded(pairs=set(pairs))
    for each in spans:
        made.note_run(each["first_ns"], each["last_ns"])
    return made
