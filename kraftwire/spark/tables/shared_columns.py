"""Columns that several tables have."""

from __future__ import annotations

from operator import attrgetter

from kraftwire.messages import API_NAMES
from kraftwire.spark.tables.cells import micros
from kraftwire.spark.tables.columns import Column

__all__ = ["API", "CLUSTER", "CONNECTION", "EVIDENCE", "TIME", "evidence", "partition"]


def evidence(of: str = "") -> tuple[Column, Column]:
    """Return the columns that say where a row comes from: what `of` names in a row knows it."""
    return (
        Column("file", "string", "path of the input file", f"{of}file"),
        Column("position", "bigint", "byte position in the file, unpacked", f"{of}position"),
    )


def partition(of: str = "") -> tuple[Column, Column, Column]:
    """Return the columns about a partition: what `of` names in a row knows it."""
    return (
        Column("topic", "string", "name of the topic, where known", f"{of}topic"),
        Column(
            "topic_id", "string", "id of the topic, url-safe base64, where known", f"{of}topic_id"
        ),
        Column("partition", "int", "number of the partition", f"{of}partition"),
    )


# Of rows about a frame.
EVIDENCE = evidence("frame.")
TIME = (
    Column("time", "timestamp", "time of the last packet", "frame.time_ns", micros),
    Column("time_ns", "bigint", "the same, nanoseconds since the epoch", "frame.time_ns"),
)
CONNECTION = Column("connection", "string", "client:port-server:port", "frame.connection")
API = {
    column.name: column
    for column in (
        Column("api_key", "smallint", "number of the API", "frame.api_key"),
        Column("api_name", "string", "name of the API", "frame.api_key", API_NAMES.get),
        Column("api_version", "smallint", "version of the request", "frame.api_version"),
        Column("correlation_id", "int", "correlation id", "frame.correlation_id"),
        Column(
            "client_id",
            "string",
            "client id of the request",
            "frame.request",
            attrgetter("client_id"),
        ),
    )
}

CLUSTER = Column("cluster", "string", "cluster id, null if unknown")
