"""Every table with a fixed schema. The tables by API are made from the message schemas."""

from __future__ import annotations

from collections.abc import Mapping

from kraftwire.spark.tables.columns import Column, Table

__all__ = ["TABLES"]

_EVIDENCE = (
    Column("file", "string", "path of the input file"),
    Column("position", "bigint", "byte position in the file, unpacked"),
)
_TIME = (
    Column("time", "timestamp", "time of the last packet"),
    Column("time_ns", "bigint", "the same, nanoseconds since the epoch"),
)
_API = (
    Column("api_key", "smallint", "number of the API"),
    Column("api_name", "string", "name of the API"),
    Column("api_version", "smallint", "version of the request"),
    Column("correlation_id", "int", "correlation id"),
    Column("client_id", "string", "client id of the request"),
)
_PARTITION = (
    Column("topic", "string", "name of the topic, where known"),
    Column("topic_id", "string", "id of the topic, url-safe base64, where known"),
    Column("partition", "int", "number of the partition"),
)

_CLUSTER = Column("cluster", "string", "cluster id, null if unknown")

_FRAMES = Table(
    "frames",
    "A request or a response in a capture.",
    (
        *_EVIDENCE,
        Column(
            "end_position", "bigint",
            "position after the packet that completed it, in its file: in a rotated capture it may "
            "be a later one",
        ),
        Column("connection", "string", "client:port-server:port"),
        Column("direction", "string", "request or response"),
        *_TIME,
        *_API,
        Column("size", "int", "declared length in bytes"),
        Column("remaining", "int", "bytes that no field accounts for"),
        Column("findings", "array<finding>", "what is odd about it"),
    ),
)

_RESPONSE_FILE = Column(
    "response_file", "string", "file of the response: in a rotated capture it may be a later one"
)

_EXCHANGES = Table(
    "exchanges",
    "A request with its response, where both were captured.",
    (
        *_EVIDENCE,
        _RESPONSE_FILE,
        Column("response_position", "bigint", "where in it the response begins"),
        Column("connection", "string", "client:port-server:port"),
        Column("client", "string", "address of the client"),
        Column("server", "string", "address of the server"),
        *_TIME,
        *_API,
        Column("request_size", "int", "declared length of the request"),
        Column("response_size", "int", "declared length of the response"),
        Column("latency_ns", "bigint", "from the request's last packet to the response's"),
        Column("wait_ns", "bigint", "for a Fetch: the part that it may have waited for data"),
        Column("service_ns", "bigint", "latency without that wait"),
        Column("error_codes", "array<smallint>", "distinct error codes, none left out"),
        Column("errors", "array<string>", "their names"),
        Column("topics", "array<topic>", "partitions that the request names"),
        Column("findings", "array<finding>", "of both frames"),
    ),
)

_CONNECTIONS = Table(
    "connections",
    "A TCP connection of a capture.",
    (
        *_EVIDENCE,
        Column("connection", "string", "client:port-server:port"),
        Column("client", "string", "address of the client"),
        Column("server", "string", "address of the server"),
        Column("first_time", "timestamp", "its first packet"),
        Column("last_time", "timestamp", "its last packet"),
        Column("protocol", "string", "kafka, tls or other"),
        Column("client_bytes", "bigint", "payload bytes from the client, copies included"),
        Column("server_bytes", "bigint", "payload bytes from the server, copies included"),
        Column("frames", "bigint", "frames found"),
        Column("packets", "bigint", "packets"),
        Column("retransmitted", "bigint", "payload bytes that were sent again"),
        Column("gap_bytes", "bigint", "payload bytes that were never captured"),
        Column("round_trip_ns", "bigint", "SYN to SYN-ACK, null if not captured"),
        Column("tls_name", "string", "server name of a TLS connection"),
        Column("software", "string", "name and version that the client states"),
        Column("closed_by", "string", "client, server or null"),
        Column("closed_ns", "bigint", "the first FIN or RST, nanoseconds since the epoch"),
        Column("is_reset", "boolean", "whether that was an RST"),
        Column("cluster", "string", "cluster id, where frames of the recording tell it"),
    ),
)

_BATCHES = Table(
    "batches",
    "A record batch, of a log, a snapshot or a frame.",
    (
        *_EVIDENCE,
        *_PARTITION,
        Column("source", "string", "wire, log or snapshot"),
        Column("base_offset", "bigint", "offset of the first record"),
        Column("last_offset", "bigint", "offset of the last record"),
        Column("leader_epoch", "int", "partition leader epoch"),
        Column("count", "int", "number of records"),
        Column("size", "int", "size in bytes, header included"),
        Column("codec", "string", "none, gzip, snappy, lz4 or zstd"),
        Column("crc", "bigint", "stored CRC"),
        Column("is_valid", "boolean", "whether the CRC agrees"),
        Column("is_control", "boolean", "a control batch"),
        Column("is_transactional", "boolean", "part of a transaction"),
        Column("producer_id", "bigint", "producer id, -1 for none"),
        Column("producer_epoch", "smallint", "producer epoch"),
        Column("base_sequence", "int", "sequence of the first record"),
        Column("max_timestamp", "timestamp", "largest timestamp of its records"),
    ),
)

_RECORDS = Table(
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
        *_EVIDENCE,
    ),
)

_METADATA_RECORDS = Table(
    "metadata_records",
    "A record of the metadata log, of consumer offsets, transactions or share groups, decoded.",
    (
        *_EVIDENCE,
        *_PARTITION,
        Column("offset", "bigint", "offset"),
        Column("epoch", "int", "leader epoch of the batch"),
        Column("time", "timestamp", "timestamp of the record"),
        Column("type", "string", "name of the record's schema"),
        Column("version", "smallint", "version of the value"),
        Column("data", "string", "key and value as JSON, as Kafka's converters print them"),
    ),
)

_QUORUM_OBSERVATIONS = Table(
    "quorum_observations",
    "What one Fetch or DescribeQuorum reports about a replica of the metadata log.",
    (
        *_EVIDENCE,
        *_TIME,
        Column("cluster", "string", "cluster id"),
        Column("replica_id", "int", "the replica"),
        Column("leader_id", "int", "the leader that answered"),
        Column("leader_epoch", "int", "leader epoch"),
        Column("fetch_offset", "bigint", "offset that the replica asked for"),
        Column("log_end_offset", "bigint", "log end offset of the leader, where known"),
        Column("high_watermark", "bigint", "high watermark in the answer"),
        Column("last_fetch", "timestamp", "time of its last Fetch"),
        Column("last_caught_up", "timestamp", "by KIP-836: when it last had all the leader had"),
        Column("source", "string", "fetch or describe-quorum"),
    ),
)

_CLUSTERS = Table(
    "clusters",
    "Which cluster a server in a capture belongs to, or a file of a log directory.",
    (
        Column("file", "string", "path of the input file"),
        Column("server", "string", "address of the server, null for a file of a log directory"),
        Column("cluster", "string", "cluster id"),
    ),
)

_RAFT_TIMELINE = Table(
    "raft_timeline",
    "An event in the life of a quorum, as the decode tool reports it.",
    (
        Column("time", "timestamp", "when"),
        Column("time_ns", "bigint", "the same, nanoseconds since the epoch"),
        Column("cluster", "string", "cluster id"),
        Column("kind", "string", "kind of event"),
        Column("epoch", "int", "leader epoch"),
        Column("node", "string", "the node concerned"),
        Column("text", "string", "what happened, in words"),
        Column("details", "string", "its fields as JSON"),
        *_EVIDENCE,
    ),
)

_REPLICA_LAG = Table(
    "replica_lag",
    "How far a replica was behind its leader in one second.",
    (
        Column("bucket", "timestamp", "start of the second"),
        _CLUSTER,
        *_PARTITION,
        Column("replica_id", "int", "the replica"),
        Column("lag_max", "bigint", "largest lag, records"),
        Column("behind_ms", "double", "time since it was last caught up"),
        Column("fetches", "bigint", "Fetches in this second"),
    ),
)

_GROUP_LAG = Table(
    "group_lag",
    "How far a group was behind the end of a partition in one second.",
    (
        Column("bucket", "timestamp", "start of the second"),
        _CLUSTER,
        Column("group_id", "string", "the group"),
        *_PARTITION,
        Column("committed", "bigint", "committed offset"),
        Column("end_offset", "bigint", "high watermark seen last"),
        Column("lag", "bigint", "records"),
        Column("behind_ms", "double", "age of the oldest record not committed, where known"),
    ),
)

_GROUPS = Table(
    "groups",
    "A rebalance of a group.",
    (
        _CLUSTER,
        Column("group_id", "string", "the group"),
        Column("protocol", "string", "classic, consumer, share or streams"),
        Column("generation", "int", "generation or epoch it ended with"),
        Column("start", "timestamp", "first request of it"),
        Column("end", "timestamp", "last answer of it"),
        Column("members", "int", "members that took part"),
        Column("reason", "string", "what began it, where known"),
        *_EVIDENCE,
    ),
)

_PARTITIONS = Table(
    "partitions",
    "A partition: what was produced to it and fetched from it.",
    (
        _CLUSTER,
        *_PARTITION,
        Column("leader", "string", "server that answered last"),
        Column("leader_epoch", "int", "latest leader epoch"),
        Column("produced_bytes", "bigint", "bytes of batches produced"),
        Column("produced_records", "bigint", "records produced"),
        Column("fetched_bytes", "bigint", "bytes of batches fetched"),
        Column("high_watermark", "bigint", "highest high watermark seen"),
        Column("share", "double", "its share of the bytes produced to its topic"),
    ),
)

_ANOMALIES = Table(
    "anomalies",
    "Something that should be looked at.",
    (
        Column("rule", "string", "id of the rule"),
        Column("severity", "string", "error, warning or info"),
        Column("time", "timestamp", "when it began"),
        Column("end_time", "timestamp", "when it ended, null for a moment"),
        Column("cluster", "string", "cluster id, of rules about quorums, logs and groups"),
        Column("epoch", "int", "leader epoch, where it concerns one"),
        Column("node", "string", "node, client or partition"),
        Column("detail", "string", "what was seen"),
        *_EVIDENCE,
    ),
)

_BAD_INPUT = Table(
    "bad_input",
    "Bytes that could not be decoded.",
    (
        *_EVIDENCE,
        Column("length", "bigint", "how many bytes"),
        Column("stage", "string", "file, packet, stream, frame, body, batch or record"),
        Column("id", "string", "id of the finding"),
        Column("detail", "string", "what was found, what was expected"),
        Column("first_bytes", "binary", "up to 32 of them"),
    ),
)

_FILES = Table(
    "files",
    "An input file and how its bytes were classified.",
    (
        Column("file", "string", "path"),
        Column("size", "bigint", "bytes, unpacked"),
        Column(
            "kind", "string",
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

_PARTITION_TRAFFIC = Table(
    "partition_traffic",
    "What one Produce or Fetch did to one partition.",
    (
        *_EVIDENCE,
        *_TIME,
        Column("kind", "string", "produce, fetch or replica-fetch"),
        Column("api_version", "smallint", "version of the request"),
        Column("client_id", "string", "client id of the request"),
        Column("server", "string", "address of the server"),
        *_PARTITION,
        Column("replica_id", "int", "the replica that fetches, -1 for clients"),
        Column("offset", "bigint", "base offset in the response; for a Fetch the fetch offset"),
        Column("bytes", "bigint", "bytes of record batches"),
        Column("records", "bigint", "records in whole batches"),
        Column("high_watermark", "bigint", "high watermark in the answer"),
        Column("log_end_offset", "bigint", "least log end offset of the leader, where known"),
        Column("leader_epoch", "int", "leader epoch, where known"),
        Column("error_code", "smallint", "error code of the partition, null without an answer"),
        Column("error", "string", "its name"),
        Column("first_timestamp", "timestamp", "timestamp of the first record"),
    ),
)

_WHOLE_EXCHANGE = (
    *_EVIDENCE,
    _RESPONSE_FILE,
    Column("response_position", "bigint", "where in it the response begins"),
    *_TIME,
    Column("connection", "string", "client:port-server:port"),
    Column("api_key", "smallint", "number of the API"),
    Column("api_version", "smallint", "version of the request"),
    Column("correlation_id", "int", "correlation id"),
    Column("client_id", "string", "client id of the request"),
    Column("latency_ns", "bigint", "from the request's last packet to the response's"),
)
_PAYLOADS = (
    Column("request", "binary", "header and body; no records, secrets as zeros"),
    Column("response", "binary", "the same of the response"),
)

_RAFT_EXCHANGES = Table(
    "raft_exchanges",
    "A whole exchange of a quorum, for the timeline.",
    (*_WHOLE_EXCHANGE, Column("cluster", "string", "cluster id, where known"), *_PAYLOADS),
)

_GROUP_EXCHANGES = Table(
    "group_exchanges",
    "A whole exchange of a group, for rebalances and lag.",
    (*_WHOLE_EXCHANGE, *_PAYLOADS),
)

TABLES: Mapping[str, Table] = {
    table.name: table
    for table in (
        _FRAMES,
        _EXCHANGES,
        _CONNECTIONS,
        _BATCHES,
        _RECORDS,
        _METADATA_RECORDS,
        _QUORUM_OBSERVATIONS,
        _CLUSTERS,
        _RAFT_TIMELINE,
        _REPLICA_LAG,
        _GROUP_LAG,
        _GROUPS,
        _PARTITIONS,
        _ANOMALIES,
        _BAD_INPUT,
        _FILES,
        _PARTITION_TRAFFIC,
        _RAFT_EXCHANGES,
        _GROUP_EXCHANGES,
    )
}
