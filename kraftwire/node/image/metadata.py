"""The image of the committed metadata records: how far it is, what it says, what it lacks.

Owns the replay and nothing else: no decision is taken here, and records that are unknown or
damaged are noted, never fatal. They leave the image incomplete, until a snapshot of somebody else
replaces it: an incomplete image goes on to be looked at, and refuses to be written.

Source: Kafka's `MetadataBatchLoader` (transactions) and `MetadataImage`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable

from kraftwire.errors import WireError
from kraftwire.node.image.cluster import BrokerImage, ControllerImage
from kraftwire.node.image.state import (
    BROKER_RESOURCE,
    METADATA_VERSION,
    IncompleteImageError,
    MetadataState,
)
from kraftwire.records.batch import RecordBatch
from kraftwire.records.metadata import decode_metadata, encode_metadata
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.wire.message import Message

__all__ = ["CLUSTER_ID_CONFIG", "METADATA_VERSION", "MetadataImage"]

# Where a quorum that was started without a formatted directory keeps its cluster id: a broker
# configuration that is the default of all brokers, which Java stores without knowing its name.
CLUSTER_ID_CONFIG = "kraftwire.cluster.id"

_BEGIN = "BeginTransactionRecord"
_END = "EndTransactionRecord"
_ABORT = "AbortTransactionRecord"


class MetadataImage:
    """The state after the records so far.

    Shape: `next_offset` and `epoch` say how far; `counts` has the number of records by schema name.
    A transaction counts when it ends; `transaction_offset` is where an open one began, else -1.
    `problem` says why the image is incomplete, with the first of `problem_count` reasons; it is
    empty if the image is complete.
    """

    def __init__(self) -> None:
        """Nothing has been replayed yet."""
        self.next_offset = 0
        self.epoch = 0
        self.counts: Counter[str] = Counter()
        self.problem = ""
        self.problem_count = 0
        self.transaction_offset = -1
        self._state = MetadataState()
        self._pending: list[tuple[int, Message, bytes]] = []
        self._epochs: list[int] = []
        self._epoch_starts: list[int] = []

    @classmethod
    def load(cls, snapshot: OffsetAndEpoch, batches: Iterable[RecordBatch]) -> MetadataImage:
        """The image that a snapshot holds. Shape: control batches are passed over.

        Takes long for a large one, and touches no other image: a thread may do it.
        """
        image = cls()
        image.next_offset = snapshot.offset
        for batch in batches:
            if not batch.is_control:
                # All of it is as of the snapshot's last offset; what stands in a file counts anew.
                image._replay_records(batch, at=snapshot.offset - 1)
        image.epoch = snapshot.epoch
        image._epochs, image._epoch_starts = [snapshot.epoch], [snapshot.offset]
        return image

    def freeze(self) -> Iterable[bytes]:
        """The values of a snapshot's records, in Kafka's order.

        The state is that of now, however late and in whichever thread they are asked for.

        Raises: IncompleteImageError if a snapshot of this image would lose something; while the
        values are read, WireError for a record that the finalized level cannot carry.
        """
        if self.problem:
            raise IncompleteImageError(f"the image is incomplete: {self.problem}")
        if self.transaction_offset >= 0:
            raise IncompleteImageError(
                f"the transaction that began at offset {self.transaction_offset} is still open"
            )
        level = self.metadata_version
        if level is None:
            raise IncompleteImageError(f"no level of {METADATA_VERSION} is finalized yet")
        return self._state.kept.copy().in_order(level)

    @property
    def features(self) -> dict[str, int]:
        """The finalized levels by name, kraft.version apart."""
        return self._state.features

    @property
    def controllers(self) -> dict[int, ControllerImage]:
        """The registered controllers by id."""
        return self._state.controllers

    @property
    def brokers(self) -> dict[int, BrokerImage]:
        """The registered brokers by id."""
        return self._state.brokers

    @property
    def configs(self) -> dict[tuple[int, str], dict[str, str]]:
        """The configurations: values by name, by type and name of the resource."""
        return self._state.configs

    @property
    def highest_offset(self) -> int:
        """The offset of the last record, -1 if there is none."""
        return self.next_offset - 1

    @property
    def cluster_id(self) -> str | None:
        """The cluster's id, if the log tells it."""
        return self.configs.get((BROKER_RESOURCE, ""), {}).get(CLUSTER_ID_CONFIG)

    @property
    def metadata_version(self) -> int | None:
        """The finalized level of metadata.version, None before the bootstrap records."""
        return self.features.get(METADATA_VERSION)

    @property
    def alive_brokers(self) -> list[BrokerImage]:
        """The brokers that are not fenced, by id."""
        brokers = (self.brokers[key] for key in sorted(self.brokers))
        return [broker for broker in brokers if not broker.is_fenced]

    def epoch_end(self, epoch: int, high_watermark: int) -> tuple[int, int]:
        """The largest epoch not above the given one, and where it ends; (-1, -1) without one."""
        position = bisect_right(self._epochs, epoch)
        if not position:
            return -1, -1
        starts = self._epoch_starts
        end = starts[position] if position < len(starts) else high_watermark
        return self._epochs[position - 1], end

    def epoch_at(self, offset: int) -> int:
        """The leader epoch of an offset, -1 if none is known."""
        position = bisect_right(self._epoch_starts, offset)
        return self._epochs[position - 1] if position else -1

    def replay(self, batch: RecordBatch) -> None:
        """Take a committed batch. Order: batches as in the log; one seen before is passed over."""
        if batch.last_offset < self.next_offset:
            return
        self._note_epoch(batch)
        if not batch.is_control:
            self._replay_records(batch)
        self.next_offset = batch.last_offset + 1
        self.epoch = batch.partition_leader_epoch

    def _note_epoch(self, batch: RecordBatch) -> None:
        if not self._epochs or batch.partition_leader_epoch > self._epochs[-1]:
            self._epochs.append(batch.partition_leader_epoch)
            self._epoch_starts.append(batch.base_offset)

    def _replay_records(self, batch: RecordBatch, at: int | None = None) -> None:
        """Take the records of a batch. Shape: `at` is the offset that counts for all of them, by
        default each its own."""
        try:
            records = batch.records()
        except WireError as error:
            self._note_problem(f"the batch at offset {batch.base_offset} cannot be read: {error}")
            return
        for record in records:
            offset = record.offset if at is None else at
            try:
                self._take(offset, record.value)
            except (WireError, IncompleteImageError) as error:
                self._note_problem(f"the record at offset {offset}: {error}")

    def _note_problem(self, problem: str) -> None:
        self.problem = self.problem or problem
        self.problem_count += 1

    def _take(self, offset: int, value: bytes | None) -> None:
        """Apply a record, or keep it until its transaction ends (KIP-866)."""
        decoded = decode_metadata(value)
        name, message = decoded.type, decoded.message
        assert message is not None
        assert value is not None
        assert decoded.version is not None
        self.counts[name] += 1
        if value[1] != message.API_KEY or value[2] != decoded.version:
            value = encode_metadata(message, decoded.version)  # its frame took a detour
        if name == _BEGIN:
            self.transaction_offset = offset
            self._pending.clear()
        elif name in (_END, _ABORT):
            pending, self._pending = self._pending, []
            self.transaction_offset = -1
            if name == _END:
                self._end_transaction(pending)
        elif self.transaction_offset >= 0:
            self._pending.append((offset, message, value))
        else:
            self._state.apply(offset, message, value)

    def _end_transaction(self, pending: list[tuple[int, Message, bytes]]) -> None:
        for offset, message, value in pending:
            try:
                self._state.apply(offset, message, value)
            except IncompleteImageError as error:
                self._note_problem(f"the record at offset {offset}: {error}")
