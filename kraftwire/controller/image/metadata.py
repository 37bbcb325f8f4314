"""The image of the committed metadata records: its offset, its state, its problems.

Records are replayed without decisions; unknown or damaged ones are noted and never fatal. They
leave the image incomplete until another node's snapshot replaces it. An incomplete image stays in
use, but cannot be written to a snapshot.

Source: Kafka's `MetadataBatchLoader` (transactions) and `MetadataImage`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable

from kraftwire.controller.check import Contradiction, MetadataCheck
from kraftwire.controller.image.cluster import BrokerImage, ControllerImage
from kraftwire.controller.image.state import IncompleteImageError, MetadataState
from kraftwire.controller.image.topics import TopicsImage
from kraftwire.controller.record_effects import Family
from kraftwire.controller.versions import METADATA_VERSION
from kraftwire.errors import WireError
from kraftwire.messages.client_quota_record import ClientQuotaRecord
from kraftwire.messages.delegation_token_record import DelegationTokenRecord
from kraftwire.messages.producer_ids_record import ProducerIdsRecord
from kraftwire.protocol.config_resources import BROKER_RESOURCE
from kraftwire.records.batch import RecordBatch
from kraftwire.records.limits import LogBudget
from kraftwire.records.metadata import decode_metadata, encode_metadata
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.security.acls import AclIndex
from kraftwire.security.decoys import ScramIndex
from kraftwire.wire.message import Message

# Where a quorum started without formatted directories keeps its cluster id: in a default
# configuration of all brokers, which Java stores without knowing its name.
CLUSTER_ID_CONFIG = "kraftwire.cluster.id"
# The secret of `security.decoys`, kept there too; Kafka hides the values of keys that it does not
# know.
DECOY_SECRET_CONFIG = "kraftwire.scram.decoy.secret"

_BEGIN = "BeginTransactionRecord"
_END = "EndTransactionRecord"
_ABORT = "AbortTransactionRecord"


class MetadataImage:
    """The state after the records so far.

    `next_offset` and `epoch` are the position in the log, `timestamp` that of the last batch, -1
    without one; `counts` has the number of records by schema name. A transaction counts when it
    ends; `transaction_offset` is where an open one began, else -1. `problem` is the first of
    `problem_count` reasons why the image is incomplete; empty if it is complete. `contradiction` is
    the first record that contradicts those before it, None without one.
    """

    def __init__(self, state: MetadataState | None = None) -> None:
        """`state` is an empty one, by default one that keeps what a node uses."""
        self.next_offset = 0
        self.epoch = 0
        self.timestamp = -1
        self.counts: Counter[str] = Counter()
        self.problem = ""
        self.problem_count = 0
        self.contradiction: Contradiction | None = None
        self.transaction_offset = -1
        self._check = MetadataCheck()
        self._budget = LogBudget()
        self._state = MetadataState() if state is None else state
        self._pending: list[tuple[int, Message, bytes]] = []
        self._epochs: list[int] = []
        self._epoch_starts: list[int] = []

    @classmethod
    def load(
        cls,
        snapshot: OffsetAndEpoch,
        batches: Iterable[RecordBatch],
        state: MetadataState | None = None,
    ) -> MetadataImage:
        """Build the image of a snapshot. Control batches are ignored.

        This takes long for a large snapshot and touches no other image, so it can run in a thread.
        """
        image = cls(state)
        image.next_offset = snapshot.offset
        image._check = MetadataCheck(in_snapshot=True)
        for batch in batches:
            image._check.begin_batch(batch.base_offset, batch.last_offset)
            image.timestamp = batch.max_timestamp
            if not batch.is_control:
                # All records count as of the snapshot's last offset; offsets in the file start at
                # 0.
                image._replay_records(batch, at=snapshot.offset - 1)
        image._check = image._check.after_snapshot(snapshot.offset)
        image.epoch = snapshot.epoch
        image._epochs, image._epoch_starts = [snapshot.epoch], [snapshot.offset]
        return image

    def freeze(self) -> Iterable[bytes]:
        """Return the values of a snapshot's records, in Kafka's order.

        They reflect the state at the time of the call, even if they are read later in another
        thread.

        Raises: IncompleteImageError if a snapshot of this image would lose something; while the
        values are read, WireError for a record that cannot be written at the finalized level.
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
        return self._state.records.copy().in_order(level)

    @property
    def features(self) -> dict[str, int]:
        """The finalized levels by name, except kraft.version."""
        return self._state.features

    @property
    def features_offset(self) -> int:
        """The offset of the record that changed a finalized level last, -1 without one."""
        return self._state.features_offset

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
    def acls(self) -> AclIndex:
        """The ACLs, arranged for decisions."""
        return self._state.acls

    @property
    def tokens(self) -> dict[str, DelegationTokenRecord]:
        """The delegation tokens by id; a new one is the last."""
        return self._state.tokens

    @property
    def scram(self) -> ScramIndex:
        """The users of SCRAM."""
        return self._state.scram

    def quota(self, entity: frozenset[tuple[str, str | None]], key: str) -> float | None:
        """Return a quota of an entity, whose parts are pairs of type and name; None without one."""
        value = self._state.records.get(Family.QUOTAS, (entity, key))
        record = None if value is None else decode_metadata(value).message
        return record.value if isinstance(record, ClientQuotaRecord) else None

    @property
    def next_producer_id(self) -> int:
        """The first producer id that no broker has been given."""
        value = self._state.records.get(Family.PRODUCER_IDS, None)
        record = None if value is None else decode_metadata(value).message
        return record.next_producer_id if isinstance(record, ProducerIdsRecord) else 0

    def topic_name(self, topic_id: bytes) -> str | None:
        """Return the name of a topic in the log, None for an unknown id."""
        return self.topics.names.get(topic_id)

    @property
    def topics(self) -> TopicsImage:
        """The topics and their partitions."""
        return self._state.topics

    @property
    def highest_offset(self) -> int:
        """The offset of the last record, -1 if there is none."""
        return self.next_offset - 1

    @property
    def cluster_id(self) -> str | None:
        """The cluster id, if the log holds it."""
        return self.configs.get((BROKER_RESOURCE, ""), {}).get(CLUSTER_ID_CONFIG)

    @property
    def decoy_secret(self) -> str | None:
        """The secret of the decoys of SCRAM, None if no controller has written one yet."""
        return self.configs.get((BROKER_RESOURCE, ""), {}).get(DECOY_SECRET_CONFIG)

    @property
    def metadata_version(self) -> int | None:
        """The finalized level of metadata.version, None before the bootstrap records."""
        return self.features.get(METADATA_VERSION)

    @property
    def alive_brokers(self) -> list[BrokerImage]:
        """The brokers that are not fenced, by id."""
        alive = self._state.alive
        return [alive[key] for key in sorted(alive)]

    @property
    def directories(self) -> dict[bytes, int]:
        """The registered log directories: ids of brokers by directory id."""
        return self._state.directories

    def epoch_end(self, epoch: int, high_watermark: int) -> tuple[int, int]:
        """Return the largest epoch not above the given one and its end offset, or (-1, -1)."""
        position = bisect_right(self._epochs, epoch)
        if not position:
            return -1, -1
        starts = self._epoch_starts
        end = starts[position] if position < len(starts) else high_watermark
        return self._epochs[position - 1], end

    def epoch_at(self, offset: int) -> int:
        """Return the leader epoch of an offset, -1 if unknown."""
        position = bisect_right(self._epoch_starts, offset)
        return self._epochs[position - 1] if position else -1

    def replay(self, batch: RecordBatch) -> None:
        """Replay a committed batch. Order: that of the log; a batch seen before is ignored."""
        if batch.last_offset < self.next_offset:
            return
        self._note_epoch(batch)
        self._check.begin_batch(batch.base_offset, batch.last_offset)
        if not batch.is_control:
            self._replay_records(batch)
        self.next_offset = batch.last_offset + 1
        self.epoch = batch.partition_leader_epoch
        self.timestamp = batch.max_timestamp

    def _note_epoch(self, batch: RecordBatch) -> None:
        if not self._epochs or batch.partition_leader_epoch > self._epochs[-1]:
            self._epochs.append(batch.partition_leader_epoch)
            self._epoch_starts.append(batch.base_offset)

    def _replay_records(self, batch: RecordBatch, at: int | None = None) -> None:
        """Replay the records of a batch. `at` overrides the offset of all of them."""
        try:
            batch.check_budget(self._budget)
            records = batch.records()
        except WireError as error:
            self._check.forget()
            self._note_problem(f"the batch at offset {batch.base_offset} cannot be read: {error}")
            return
        for record in records:
            offset = record.offset if at is None else at
            try:
                self._apply_or_hold(offset, record.value)
            except (WireError, IncompleteImageError) as error:
                self._note_problem(f"the record at offset {offset}: {error}")

    def _note_problem(self, problem: str) -> None:
        self.problem = self.problem or problem
        self.problem_count += 1

    def _apply_or_hold(self, offset: int, value: bytes | None) -> None:
        """Apply a record, or keep it until its transaction ends (KIP-866)."""
        try:
            decoded = decode_metadata(value)
        except WireError:
            self._check.forget()
            raise
        name, message = decoded.type, decoded.message
        assert message is not None
        assert value is not None
        assert decoded.version is not None
        self.counts[name] += 1
        contradiction = self._check.check_record(offset, message)
        if contradiction is not None:
            self.contradiction = self.contradiction or contradiction
            raise IncompleteImageError(f"{contradiction.record}, but {contradiction.state}")
        if value[1] != message.API_KEY or value[2] != decoded.version:
            value = encode_metadata(message, decoded.version)    # not minimally framed
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
