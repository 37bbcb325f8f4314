"""The rows of the table connections."""

from __future__ import annotations

from collections.abc import Collection

from kraftwire.capture.connections.protocol_detection import end_name
from kraftwire.capture.framing.health import Health
from kraftwire.protocol.api_keys import ApiKey
from kraftwire.spark.captures.file_index import IndexedConnection
from kraftwire.spark.tables.columns import ends

# APIs whose request or response names the cluster (a Fetch between controllers does).
CLUSTER_APIS = frozenset(
    {
        ApiKey.FETCH,
        ApiKey.METADATA,
        ApiKey.VOTE,
        ApiKey.BEGIN_QUORUM_EPOCH,
        ApiKey.END_QUORUM_EPOCH,
        ApiKey.FETCH_SNAPSHOT,
        ApiKey.DESCRIBE_CLUSTER,
        ApiKey.BROKER_REGISTRATION,
        ApiKey.ADD_RAFT_VOTER,
        ApiKey.REMOVE_RAFT_VOTER,
        ApiKey.UPDATE_RAFT_VOTER,
    }
)


class Connection:
    """A connection, as seen in its packets and frames: a row of connections.

    `file` and `position` are those of its first packet; `protocol` is kafka, tls or other. Units:
    `kafka`, `tls`, `other`, `duplicates` and `undecoded` are bytes of payload, each in one of these
    places; `gap_bytes` were never captured.
    """

    def __init__(self, number: int, indexed: IndexedConnection) -> None:
        self.number = number
        self.indexed = indexed
        self.name = _name(indexed)
        self.file = ""
        self.position = 0
        self.protocol = "other"
        self.frames = 0
        self.software: str | None = None
        self.tls_name: str | None = None
        self.tls_version: str | None = None
        self.mechanism: str | None = None
        self.principal: str | None = None
        self.closed_by: str | None = None
        self.closed_ns: int | None = None
        self.is_reset: bool | None = None
        self.cluster: str | None = None
        self.kafka = self.tls = self.other = self.duplicates = self.undecoded = 0
        self.gap_bytes = 0
        self.copied_packets = 0

    @property
    def payload(self) -> tuple[int, int]:
        """Bytes of payload from client and server, copies included."""
        key = self.indexed.key
        size = (len(key) - 4) // 2
        is_first_client = end_name(key[:size], key[-4:-2]) == ends(self.name)[0]
        first, second = self.indexed.payload
        return (first, second) if is_first_client else (second, first)

    def finish(self, health: Health) -> None:
        """Add the totals of its decoding."""
        counts = health.bytes
        self.kafka, self.tls, self.other = counts.frames, counts.tls, counts.other
        self.duplicates, self.undecoded = counts.duplicates, counts.undecoded
        self.gap_bytes = health.missing_bytes
        self.copied_packets = health.copies
        for tls in (*health.tls, *health.decrypted):
            self.tls_version = tls.version or None
            if tls.certificate_name and self.mechanism is None:
                self.principal = f"User:{tls.certificate_name}"
        if health.kafka_connections:
            self.protocol = "kafka"
        elif health.tls_connections:
            self.protocol = "tls"
            self.name = health.tls[0].connection
            self.tls_name = next((tls.server_name for tls in health.tls if tls.server_name), None)


def _name(indexed: IndexedConnection) -> str:
    """Return client and server: by the SYN if it was captured, else the larger port is the
    client's.
    """
    key = indexed.key
    size = (len(key) - 4) // 2
    first = end_name(key[:size], key[-4:-2])
    second = end_name(key[size : 2 * size], key[-2:])
    is_first = indexed.is_first_client
    if is_first is None:
        is_first = key[-4:-2] >= key[-2:]
    return f"{first}-{second}" if is_first else f"{second}-{first}"


def may_be_called(indexed: IndexedConnection, names: Collection[str]) -> bool:
    """Whether the connection may have one of these names, in either direction."""
    size = (len(indexed.key) - 4) // 2
    first = end_name(indexed.key[:size], indexed.key[-4:-2])
    second = end_name(indexed.key[size : 2 * size], indexed.key[-2:])
    return f"{first}-{second}" in names or f"{second}-{first}" in names
