"""The tables that are made from the frames of captures, row by row.

`cell` of a column takes a `TableFrame` for frames, a `TableExchange` for exchanges, and so on:
the classes in `kraftwire.spark.captures`.
"""

from __future__ import annotations

from functools import partial
from operator import attrgetter, itemgetter

from kraftwire.spark.tables.columns import (
    API,
    CONNECTION,
    EVIDENCE,
    TIME,
    Column,
    Table,
    client_of,
    error_text,
    error_texts,
    evidence,
    micros,
    of,
    partition,
    server_of,
)

# Of a row about a frame itself, and of one about an exchange.
_ALONE = partial(of, "")
_FIRST = partial(of, "first.")

FRAMES = Table(
    "frames",
    "A request or a response in a capture.",
    (
        *evidence(),
        Column(
            "end_position",
            "bigint",
            "position after the packet that completed it, in its file: in a rotated capture it may "
            "be a later one",
        ),
        *_ALONE(CONNECTION),
        Column("direction", "string", "request or response"),
        *_ALONE(*TIME, *API.values()),
        Column("size", "int", "declared length in bytes"),
        Column("remaining", "int", "bytes that no field accounts for"),
        Column("findings", "array<finding>", "what is odd about it", "finding_cells"),
    ),
)

_RESPONSE = (
    Column(
        "response_file",
        "string",
        "file of the response: in a rotated capture it may be a later one",
        "response_frame.file",
    ),
    Column(
        "response_position",
        "bigint",
        "where in it the response begins",
        "response_frame.position",
    ),
)
_LATENCY = Column(
    "latency_ns", "bigint", "from the request's last packet to the response's", "latency_ns"
)

EXCHANGES = Table(
    "exchanges",
    "A request with its response, where both were captured.",
    (
        *evidence("first."),
        *_RESPONSE,
        *_FIRST(CONNECTION),
        Column("client", "string", "address of the client", "first.connection", client_of),
        Column("server", "string", "address of the server", "first.connection", server_of),
        *_FIRST(*TIME, *API.values()),
        Column("request_size", "int", "declared length of the request", "request_frame.size"),
        Column("response_size", "int", "declared length of the response", "response_frame.size"),
        _LATENCY,
        Column("wait_ns", "bigint", "for a Fetch: the part that it may have waited for data"),
        Column("service_ns", "bigint", "latency without that wait"),
        Column("error_codes", "array<smallint>", "distinct error codes, none left out"),
        Column("errors", "array<string>", "their names", "error_codes", error_texts),
        Column("topics", "array<topic>", "partitions that the request names"),
        Column("findings", "array<finding>", "of both frames", "finding_cells"),
    ),
)

# Both tables are made from a `TableExchange`.
_WHOLE_EXCHANGE = (
    *evidence("first."),
    *_RESPONSE,
    *_FIRST(*TIME, CONNECTION),
    *_FIRST(*map(API.__getitem__, ("api_key", "api_version", "correlation_id", "client_id"))),
    _LATENCY,
)
_PAYLOADS = (
    Column(
        "request",
        "binary",
        "header and body; no records, secrets as zeros",
        "request",
        attrgetter("shown_bytes"),
    ),
    Column(
        "response",
        "binary",
        "the same of the response",
        "response",
        attrgetter("shown_bytes"),
    ),
)

RAFT_EXCHANGES = Table(
    "raft_exchanges",
    "A whole exchange of a quorum, for the timeline.",
    (*_WHOLE_EXCHANGE, Column("cluster", "string", "cluster id, where known"), *_PAYLOADS),
)

GROUP_EXCHANGES = Table(
    "group_exchanges",
    "A whole exchange of a group, for rebalances and lag.",
    (*_WHOLE_EXCHANGE, *_PAYLOADS),
)

CONNECTIONS = Table(
    "connections",
    "A TCP connection of a capture.",
    (
        *evidence(),
        Column("connection", "string", "client:port-server:port", "name"),
        Column("client", "string", "address of the client", "name", client_of),
        Column("server", "string", "address of the server", "name", server_of),
        Column("first_time", "timestamp", "its first packet", "indexed.first_ns", micros),
        Column("last_time", "timestamp", "its last packet", "indexed.last_ns", micros),
        Column("protocol", "string", "kafka, tls or other"),
        Column(
            "client_bytes",
            "bigint",
            "payload bytes from the client, copies included",
            "payload",
            itemgetter(0),
        ),
        Column(
            "server_bytes",
            "bigint",
            "payload bytes from the server, copies included",
            "payload",
            itemgetter(1),
        ),
        Column("frames", "bigint", "frames found"),
        Column("packets", "bigint", "packets", "indexed.packets"),
        Column("retransmitted", "bigint", "payload bytes that were sent again", "duplicates"),
        Column("gap_bytes", "bigint", "payload bytes that were never captured"),
        Column(
            "round_trip_ns",
            "bigint",
            "SYN to SYN-ACK, null if not captured",
            "indexed.round_trip_ns",
        ),
        Column("tls_name", "string", "server name of a TLS connection"),
        Column("software", "string", "name and version that the client states"),
        Column("closed_by", "string", "client, server or null"),
        Column("closed_ns", "bigint", "the first FIN or RST, nanoseconds since the epoch"),
        Column("is_reset", "boolean", "whether that was an RST"),
        Column("cluster", "string", "cluster id, where frames of the recording name it"),
        Column("tls_version", "string", "version of TLS that was agreed on, as TLSv1.3"),
        Column("mechanism", "string", "SASL mechanism"),
        Column(
            "principal",
            "string",
            "who logs in, else whom the client's certificate names, before mapping rules",
        ),
    ),
)

PARTITION_TRAFFIC = Table(
    "partition_traffic",
    "What one Produce or Fetch did to one partition.",
    (
        *EVIDENCE,
        *TIME,
        Column("kind", "string", "produce, fetch or replica-fetch"),
        API["api_version"],
        API["client_id"],
        Column("server", "string", "address of the server", "frame.connection", server_of),
        *partition(),
        Column("replica_id", "int", "the replica that fetches, -1 for clients"),
        Column("offset", "bigint", "base offset in the response; for a Fetch the fetch offset"),
        Column("bytes", "bigint", "bytes of record batches", "size"),
        Column("records", "bigint", "records in whole batches", "record_count"),
        Column("high_watermark", "bigint", "high watermark in the answer"),
        Column("log_end_offset", "bigint", "least log end offset of the leader, where known"),
        Column("leader_epoch", "int", "leader epoch, where known"),
        Column("error_code", "smallint", "error code of the partition, null without an answer"),
        Column("error", "string", "its name", "error_code", error_text),
        Column("first_timestamp", "timestamp", "timestamp of the first record"),
    ),
)

QUORUM_OBSERVATIONS = Table(
    "quorum_observations",
    "What one Fetch or DescribeQuorum reports about a replica of the metadata log.",
    (
        *EVIDENCE,
        Column("time", "timestamp", "time of the last packet", "time_ns", micros),
        Column("time_ns", "bigint", "the same, nanoseconds since the epoch"),
        Column("cluster", "string", "cluster id"),
        Column("replica_id", "int", "the replica"),
        Column("leader_id", "int", "the leader that answered"),
        Column("leader_epoch", "int", "leader epoch"),
        Column("fetch_offset", "bigint", "fetch offset of the replica"),
        Column("log_end_offset", "bigint", "log end offset of the leader, where known"),
        Column("high_watermark", "bigint", "high watermark in the answer"),
        Column(
            "last_fetch", "timestamp", "time of its last Fetch", "last_fetch_ns", micros
        ),
        Column(
            "last_caught_up",
            "timestamp",
            "by KIP-836: when it last had all the leader had",
            "last_caught_up_ns", micros,
        ),
        Column("source", "string", "fetch or describe-quorum"),
    ),
)
