"""The input of a Raft core at startup: the log as found on disk.

From then on the core tracks the log itself, with every `AppendToLog` and `TruncateLog` that it
emits; it never reads files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kraftwire.raft.effects import ElectionState
from kraftwire.records.offsets import OffsetAndEpoch


@dataclass(frozen=True, slots=True)
class StoredSnapshot:
    """A snapshot file. `control` is its first control batch (header, version, voters), which only
    the newest one needs. Units: bytes."""

    id: OffsetAndEpoch
    size: int
    control: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogImage:
    """A log at startup, all of it durable.

    `batches` are the base offset and leader epoch of every batch in order; `control` are (base
    offset, bytes) of the control batches among them; `snapshots` are ascending, the bootstrap
    checkpoint 0-0 included. `newest_timestamp` is the largest of all batches, -1 without any.
    """

    start_offset: int = 0
    end_offset: int = 0
    batches: Sequence[OffsetAndEpoch] = ()
    control: Sequence[tuple[int, bytes]] = ()
    snapshots: Sequence[StoredSnapshot] = ()
    newest_timestamp: int = -1


@dataclass(frozen=True, slots=True)
class StoredState:
    """Everything that a replica remembers across a restart."""

    election: ElectionState = field(default_factory=ElectionState)
    log: LogImage = field(default_factory=LogImage)
