"""The values in effects: election states, destinations, slices of files, refusals."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import cast

from kraftwire.messages.fetch_response import FetchResponse
from kraftwire.messages.fetch_snapshot_response import FetchSnapshotResponse
from kraftwire.raft.voters import ReplicaKey
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.wire.fast import ZERO_UUID
from kraftwire.wire.message import Message


@dataclass(frozen=True, slots=True)
class ElectionState:
    """The contents of the quorum-state file for an epoch. -1 for no leader, None for no vote."""

    epoch: int = 0
    leader_id: int = -1
    voted: ReplicaKey | None = None


@dataclass(frozen=True, slots=True)
class Destination:
    """A node to send requests to.

    Ids below -1 are bootstrap servers, each with a separate connection (-2 is the first). The
    directory id is the zero uuid if it is unknown. `key` identifies the replica.
    """

    id: int
    host: str
    port: int
    directory_id: bytes = ZERO_UUID
    key: ReplicaKey = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", ReplicaKey(self.id, self.directory_id))

    @property
    def name(self) -> str:
        """The name of the node in messages."""
        return f"node {self.id}" if self.id >= 0 else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class LogSlice:
    """A part of the log: whole batches of one segment, from the one that contains `offset`.

    Units: at most `max_bytes`, but at least the first batch; nothing at or above `end_offset`.
    """

    offset: int
    max_bytes: int
    end_offset: int

    @staticmethod
    def put(message: Message, data: bytes) -> None:
        """Place the bytes in the only partition of a FetchResponse."""
        cast("FetchResponse", message).responses[0].partitions[0].records = data


@dataclass(frozen=True, slots=True)
class SnapshotSlice:
    """A part of a snapshot file: at most `max_bytes` from `position` on, cut anywhere."""

    id: OffsetAndEpoch
    position: int
    max_bytes: int

    @staticmethod
    def put(message: Message, data: bytes) -> None:
        """Place the bytes in the only partition of a FetchSnapshotResponse."""
        cast("FetchSnapshotResponse", message).topics[0].partitions[0].unaligned_records = data


class RefusalReason(StrEnum):
    """Why a leader does not accept records."""

    NOT_LEADER = "NotLeader"
    ILLEGAL_EPOCH = "IllegalEpoch"
    UNEXPECTED_END_OFFSET = "UnexpectedEndOffset"
    RECORD_BATCH_TOO_LARGE = "RecordBatchTooLarge"
    TOO_MANY_PENDING = "TooManyPending"
