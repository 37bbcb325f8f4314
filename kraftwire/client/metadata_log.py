"""Reads a quorum's metadata log: finds the leader, fetches up to the high watermark, FetchSnapshot.

The leader does not track these Fetches, as they do not come from a replica. It returns records
beyond the high watermark, so uncommitted ones are cut off here. Every Fetch states the epoch of the
record before its offset; a leader whose log differs reports that, and reading stops with an error.

Source: R-FET-7, R-FET-12; KIP-595, KIP-630.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Self, TypeVar

from kraftwire.client.cluster import is_temporary, refusal
from kraftwire.client.security import Given, client_security
from kraftwire.client.sync import Admin, BlockingConnection
from kraftwire.errors import ApiError, LogMovedError, WireError
from kraftwire.messages import fetch_request, fetch_snapshot_request
from kraftwire.messages.fetch_request import FetchRequest
from kraftwire.messages.fetch_response import FetchResponse, PartitionData
from kraftwire.messages.fetch_snapshot_request import FetchSnapshotRequest
from kraftwire.messages.fetch_snapshot_response import FetchSnapshotResponse
from kraftwire.protocol.endpoint import Address
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.topic_names import METADATA_TOPIC, METADATA_TOPIC_ID
from kraftwire.records.reader import Batch, read_batches

_Result = TypeVar("_Result")
_FETCH_BYTES = 8 * 1024 * 1024
_SNAPSHOT_BYTES = 4 * 1024 * 1024
_TIMEOUT_S = 10.0
_PAUSE_S = 0.2

# How long a quorum may be without a leader.
PATIENCE_S = 60.0

# The leader has changed, or this node does not know yet that it leads.
_MOVED = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.LEADER_NOT_AVAILABLE,
        # Kafka's controllers return this until they have read their metadata.version.
        ErrorCode.UNSUPPORTED_VERSION,
    }
)


class Position(NamedTuple):
    """Where reading continues: an offset, and the epoch of the record before it (0 at offset 0)."""

    epoch: int
    next_offset: int


class SnapshotId(NamedTuple):
    """A snapshot: the offset after the last record it covers, and that record's epoch."""

    end_offset: int
    epoch: int

    @property
    def file_name(self) -> str:
        """Return the name of its file."""
        return f"{self.end_offset:020}-{self.epoch:010}.checkpoint"


@dataclass(frozen=True, slots=True)
class Fetched:
    """A response to a Fetch; `snapshot` is set if the log no longer has the offset."""

    high_watermark: int
    log_start_offset: int
    snapshot: SnapshotId | None
    records: bytes


class _BehindError(ApiError):
    """The leader's epoch is earlier than that of records already read."""

    def __init__(self, epoch: int, position: Position) -> None:
        self.final = LogMovedError(
            f"the quorum is in epoch {epoch}, and offset {position.next_offset} was read in epoch "
            f"{position.epoch}: this is another quorum, or one that lost its log",
            file=METADATA_TOPIC,
        )
        super().__init__(ErrorCode.FENCED_LEADER_EPOCH, str(self.final))


@dataclass(slots=True)
class _Leader:
    connection: BlockingConnection
    epoch: int


class QuorumReader:
    """Reads from the leader of a quorum, and follows a change of leader.

    `bootstrap` are addresses of controllers, comma-separated; `security` has Kafka's client
    properties. Order: ``with``, or `close` at the end. Raises: LogMovedError if the log is not the
    one that was read before; ApiError REQUEST_TIMED_OUT if no leader is found within `patience_s`
    seconds, a minute by default; SecurityError, and UsageError for properties that cannot be used.
    """

    def __init__(
        self,
        bootstrap: str,
        *,
        client_id: str = "kraftwire",
        patience_s: float = PATIENCE_S,
        security: Given = None,
    ) -> None:
        self._bootstrap = bootstrap
        self._patience_s = patience_s
        self._client_id = client_id
        self._security = client_security(security)
        self._leader: _Leader | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        if self._leader is not None:
            self._leader.connection.close()
            self._leader = None

    def high_watermark(self, position: Position) -> int:
        """Return the end of the committed log, -1 if the leader does not know it yet.

        Raises: LogMovedError unless the log still has the record before the position.
        """
        return self.fetch(position, bytes_max=1).high_watermark

    def begin(self) -> tuple[Position, SnapshotId | None]:
        """Return where the log can be read from, and the snapshot to read first if that is not 0.
        """
        found = self._fetch(Position(0, 0), 1)
        # The snapshot written by formatting covers no part of the log.
        if found.snapshot is None or found.snapshot.end_offset == 0:
            return Position(0, 0), None
        return Position(found.snapshot.epoch, found.snapshot.end_offset), found.snapshot

    def epoch_before(self, offset: int) -> int:
        """Return the epoch of the record before a committed offset; 0 before offset 0."""
        if offset == 0:
            return 0
        while True:
            # A leader has records of its epoch, so its log holds this offset whatever the epoch.
            found = self._fetch(Position(self._epoch(), offset - 1), 1)
            if found.snapshot is not None:
                raise _offset_gone(offset - 1, found)
            for batch in read_batches(found.records):
                if batch.last_offset >= offset - 1:
                    return batch.partition_leader_epoch
            time.sleep(_PAUSE_S)

    def fetch(self, position: Position, bytes_max: int = _FETCH_BYTES) -> Fetched:
        """Fetch the records from a position on, also beyond the high watermark.

        Raises: LogMovedError if the log diverges before the position or begins after it.
        """
        found = self._fetch(position, bytes_max)
        if found.snapshot is not None:
            raise _offset_gone(position.next_offset, found)
        return found

    def batches(self, start: Position, end: Position) -> Iterator[tuple[bytes, Batch]]:
        """Yield the batches that hold the records from `start` up to `end`, which is committed.

        Each comes with its buffer. Raises: LogMovedError, also if the last record is not of the
        epoch in `end`.
        """
        position = start
        while position.next_offset < end.next_offset:
            found = self.fetch(position)
            count = 0
            for batch in read_batches(found.records):
                if batch.last_offset < position.next_offset:
                    continue
                if batch.base_offset >= end.next_offset:
                    break
                batch.ensure_valid()
                position = Position(batch.partition_leader_epoch, batch.last_offset + 1)
                yield found.records, batch
                count += 1
            if not count:
                time.sleep(_PAUSE_S)
        if position.next_offset > start.next_offset and position.epoch != end.epoch:
            raise LogMovedError(
                f"the record before offset {end.next_offset} is of epoch {position.epoch}, not "
                f"{end.epoch} as before: the quorum has lost committed records",
                file=METADATA_TOPIC,
            )

    def snapshot(self, id: SnapshotId) -> bytes:
        """Return the bytes of a snapshot. Raises: LogMovedError if the leader no longer has it."""
        parts: list[bytes] = []
        size = 0
        while True:
            part, whole = self._until_done(lambda at=size: self._snapshot_part(id, at))  # type: ignore[misc]
            parts.append(part)
            size += len(part)
            if size >= whole or not part:
                return b"".join(parts)

    def _snapshot_part(self, id: SnapshotId, position: int) -> tuple[bytes, int]:
        leader = self._connected()
        partition = fetch_snapshot_request.PartitionSnapshot(
            current_leader_epoch=leader.epoch,
            snapshot_id=fetch_snapshot_request.SnapshotId(end_offset=id.end_offset, epoch=id.epoch),
            position=position,
        )
        topic = fetch_snapshot_request.TopicSnapshot(name=METADATA_TOPIC, partitions=[partition])
        request = FetchSnapshotRequest(replica_id=-1, max_bytes=_SNAPSHOT_BYTES, topics=[topic])
        response = leader.connection.request(request)
        assert isinstance(response, FetchSnapshotResponse)
        self._ensure_no_error(response.error_code)
        found = response.topics[0].partitions[0]
        if found.error_code == ErrorCode.SNAPSHOT_NOT_FOUND:
            raise LogMovedError(
                "the leader no longer has this snapshot; start again", file=id.file_name
            )
        self._ensure_no_error(found.error_code)
        return bytes(found.unaligned_records), found.size

    def _fetch(self, position: Position, bytes_max: int) -> Fetched:
        return self._until_done(lambda: self._fetch_once(position, bytes_max))

    def _fetch_once(self, position: Position, bytes_max: int) -> Fetched:
        leader = self._connected()
        if position.epoch > leader.epoch:
            raise _BehindError(leader.epoch, position)
        partition = fetch_request.FetchPartition(
            current_leader_epoch=leader.epoch,
            fetch_offset=position.next_offset,
            last_fetched_epoch=position.epoch,
            partition_max_bytes=bytes_max,
        )
        topic = fetch_request.FetchTopic(
            topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition]
        )
        request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=bytes_max, topics=[topic])
        response = leader.connection.request(request)
        assert isinstance(response, FetchResponse)
        self._ensure_no_error(response.error_code)
        found = _partition(response)
        self._ensure_no_error(found.error_code)
        diverging = found.diverging_epoch
        if diverging is not None and diverging.epoch >= 0:
            raise LogMovedError(
                f"the quorum's log ends epoch {diverging.epoch} at offset {diverging.end_offset}, "
                f"so it was truncated before offset {position.next_offset} (epoch "
                f"{position.epoch}), which was read as committed",
                file=METADATA_TOPIC,
            )
        id = found.snapshot_id
        has_snapshot = id is not None and id.end_offset >= 0 and id.epoch >= 0
        return Fetched(
            found.high_watermark,
            found.log_start_offset,
            SnapshotId(id.end_offset, id.epoch) if id is not None and has_snapshot else None,
            bytes(found.records or b""),
        )

    def _ensure_no_error(self, code: int) -> None:
        if code != ErrorCode.NONE:
            raise refusal(code, None)

    def _epoch(self) -> int:
        return self._until_done(lambda: self._connected().epoch)

    def _until_done(self, attempt: Callable[[], _Result]) -> _Result:
        """Retry until it succeeds, fails for good, or the time is up."""
        deadline = time.monotonic() + self._patience_s
        while True:
            try:
                return attempt()
            except (ApiError, WireError) as error:
                self.close()
                may_pass = is_temporary(error) or getattr(error, "code", None) in _MOVED
                if not may_pass or time.monotonic() > deadline:
                    raise getattr(error, "final", error) from None
            time.sleep(_PAUSE_S)

    def _connected(self) -> _Leader:
        if self._leader is None:
            address, epoch = self._find_leader()
            connection = BlockingConnection(
                address,
                client_id=self._client_id,
                timeout_s=_TIMEOUT_S,
                security=self._security,
            )
            self._leader = _Leader(connection, epoch)
        return self._leader

    def _find_leader(self) -> tuple[Address, int]:
        """Return address and epoch of the leader."""
        admin = Admin(
            bootstrap_controllers=self._bootstrap,
            client_id=self._client_id,
            timeout_s=self._patience_s,
            security=self._security,
        )
        quorum = admin.describe_quorum()
        # The addresses are those of the listener of this connection, unlike the voters' endpoints.
        node = admin.describe_cluster().node(quorum.leader_id)
        if node is not None:
            return (node.host, node.port), quorum.leader_epoch
        endpoints = quorum.endpoints.get(quorum.leader_id)
        if not endpoints:
            raise refusal(ErrorCode.LEADER_NOT_AVAILABLE, None)
        return (endpoints[0].host, endpoints[0].port), quorum.leader_epoch


def _partition(response: FetchResponse) -> PartitionData:
    for topic in response.responses:
        for partition in topic.partitions:
            return partition
    raise refusal(ErrorCode.UNKNOWN_SERVER_ERROR, "the response lacks the metadata log")


def _offset_gone(offset: int, found: Fetched) -> LogMovedError:
    id = found.snapshot
    where = f"; its snapshot ends at {id.end_offset}" if id else ""
    return LogMovedError(
        f"the log now begins at {found.log_start_offset}{where}, so records from offset "
        f"{offset} on are gone; start again from the snapshot",
        file=METADATA_TOPIC,
    )
