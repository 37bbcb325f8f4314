"""The tables about input files and what could not be decoded in them."""

from __future__ import annotations

from kraftwire.spark.tables.columns import Column, Table
from kraftwire.spark.tables.shared_columns import evidence

__all__ = ["BAD_INPUT", "FILES"]

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
        Column("duplicate_bytes", "bigint", "payload that was sent again"),
        Column("header_bytes", "bigint", "headers of files, links, IP and TCP, other packets"),
        Column("bad_bytes", "bigint", "bytes in bad_input of the stages file, packet and stream"),
        Column("cluster", "string", "cluster id, by the meta.properties of a log directory"),
    ),
)
