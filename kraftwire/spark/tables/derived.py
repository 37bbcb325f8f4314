"""The tables that are made from other tables, in Spark."""

from __future__ import annotations

from kraftwire.spark.tables.columns import CLUSTER, EVIDENCE, Column, Table, partition

CLUSTERS = Table(
    "clusters",
    "Which cluster a server in a capture belongs to, or a file of a log directory.",
    (
        Column("file", "string", "path of the input file"),
        Column("server", "string", "address of the server, null for a file of a log directory"),
        Column("cluster", "string", "cluster id"),
    ),
)

RAFT_TIMELINE = Table(
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
        *EVIDENCE,
    ),
)

REPLICA_LAG = Table(
    "replica_lag",
    "How far a replica was behind its leader in one second.",
    (
        Column("bucket", "timestamp", "start of the second"),
        CLUSTER,
        *partition(),
        Column("replica_id", "int", "the replica"),
        Column("lag_max", "bigint", "largest lag, records"),
        Column("behind_ms", "double", "time since it was last caught up"),
        Column("fetches", "bigint", "Fetches in this second"),
    ),
)

GROUP_LAG = Table(
    "group_lag",
    "How far a group was behind the end of a partition in one second.",
    (
        Column("bucket", "timestamp", "start of the second"),
        CLUSTER,
        Column("group_id", "string", "the group"),
        *partition(),
        Column("committed", "bigint", "committed offset"),
        Column("end_offset", "bigint", "high watermark seen last"),
        Column("lag", "bigint", "records"),
        Column("behind_ms", "double", "age of the oldest record not committed, where known"),
    ),
)

GROUPS = Table(
    "groups",
    "A rebalance of a group.",
    (
        CLUSTER,
        Column("group_id", "string", "the group"),
        Column("protocol", "string", "classic, consumer, share or streams"),
        Column("generation", "int", "generation or epoch it ended with"),
        Column("start", "timestamp", "first request of it"),
        Column("end", "timestamp", "last answer of it"),
        Column("members", "int", "members that took part"),
        Column("reason", "string", "what began it, where known"),
        *EVIDENCE,
    ),
)

PARTITIONS = Table(
    "partitions",
    "A partition: what was produced to it and fetched from it.",
    (
        CLUSTER,
        *partition(),
        Column("leader", "string", "server that answered last"),
        Column("leader_epoch", "int", "latest leader epoch"),
        Column("produced_bytes", "bigint", "bytes of batches produced"),
        Column("produced_records", "bigint", "records produced"),
        Column("fetched_bytes", "bigint", "bytes of batches fetched"),
        Column("high_watermark", "bigint", "highest high watermark seen"),
        Column("share", "double", "its share of the bytes produced to its topic"),
    ),
)

ANOMALIES = Table(
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
        *EVIDENCE,
    ),
)
