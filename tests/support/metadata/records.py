"""Batches of a metadata log as a controller writes them, for tests that Kafka reads."""

from __future__ import annotations

from collections.abc import Sequence

from kraftwire.log.metadata_log import MetadataLog
from kraftwire.messages.begin_transaction_record import BeginTransactionRecord
from kraftwire.messages.end_transaction_record import EndTransactionRecord
from kraftwire.messages.feature_level_record import FeatureLevelRecord
from kraftwire.messages.leader_change_message import LeaderChangeMessage, Voter
from kraftwire.messages.no_op_record import NoOpRecord
from kraftwire.records.builder import BatchHeader, build_columns
from kraftwire.records.control import ControlType, control_key, control_value
from kraftwire.records.metadata import encode_metadata
from kraftwire.wire.message import Message

# The features that a new cluster of Kafka 4.3 begins with.
FEATURES = {
    "metadata.version": 30,
    "eligible.leader.replicas.version": 1,
    "group.version": 1,
    "share.version": 1,
    "streams.version": 1,
    "transaction.version": 2,
}


class LogWriter:
    """Appends to a log as its leader in one epoch. `now_ms` advances with each batch."""

    def __init__(self, log: MetadataLog, epoch: int, now_ms: int) -> None:
        self._log = log
        self._epoch = epoch
        self.now_ms = now_ms

    def _append(self, keys: Sequence[bytes | None], values: Sequence[bytes]) -> None:
        base = self._log.end_offset
        header = BatchHeader(
            base_offset=base,
            partition_leader_epoch=self._epoch,
            is_control=keys[0] is not None,
        )
        data = build_columns([self.now_ms] * len(values), keys, values, header=header)
        self._log.append(data, base, base + len(values))
        self.now_ms += 7

    def leader_change(self, leader_id: int, voters: Sequence[int]) -> None:
        """The control record that begins an epoch."""
        message = LeaderChangeMessage(
            version=0,
            leader_id=leader_id,
            voters=[Voter(voter_id=voter) for voter in voters],
            granting_voters=[Voter(voter_id=leader_id)],
        )
        self._append([control_key(ControlType.LEADER_CHANGE)], [control_value(message)])

    def bootstrap(self) -> None:
        """The transaction that a new cluster's first active controller writes."""
        records: list[Message] = [BeginTransactionRecord(name="Bootstrap records")]
        records += [
            FeatureLevelRecord(name=name, feature_level=level) for name, level in FEATURES.items()
        ]
        records.append(EndTransactionRecord())
        self._append([None] * len(records), [encode_metadata(record, 0) for record in records])

    def no_ops(self, batches: int, count: int = 1) -> None:
        """Batches of records that change nothing."""
        value = encode_metadata(NoOpRecord(), 0)
        for _ in range(batches):
            self._append([None] * count, [value] * count)
