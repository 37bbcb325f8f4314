"""The port of state machines, which follow a replicated log and are rebuilt from its snapshots.

A state machine gets the committed batches with their exact offsets, each once and in log order.
When the log no longer holds what it needs, it loads a snapshot in place of everything below the
snapshot's end. Its state is frozen when a snapshot is due, and it learns who leads.

Calls never overlap. `apply`, `freeze` and `leadership` come from the thread that also votes and
fetches, so they must not wait: `apply` gets a bounded piece of the log at a time. `load`, and the
iteration over what `freeze` returned, happen in a worker thread and may take as long as they need.
An exception from a state machine ends the replica, unless the method's description says otherwise.
So a committed record that `apply` cannot process ends every replica, at every start: check a value
before appending it.

Source: KIP-595, KIP-630; Kafka's `RaftClient.Listener`; R-LIS-1 to R-LIS-6.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, runtime_checkable

from kraftwire.records.batch import RecordBatch
from kraftwire.records.offsets import OffsetAndEpoch


class SnapshotReader(Protocol):
    """A snapshot that is being loaded; its batches are read one at a time."""

    @property
    def id(self) -> OffsetAndEpoch:
        """The end offset of the snapshot, and the epoch of its last record."""

    @property
    def timestamp(self) -> int:
        """The time of the last record that the snapshot contains. Milliseconds since the epoch."""

    def __iter__(self) -> Iterator[RecordBatch]:
        """Iterate once over the batches of the state machine's records, in order.

        Their offsets start at 0 and are unrelated to those of the log. Raises: StorageError for a
        damaged file.
        """


@runtime_checkable
class StateMachine(Protocol):
    """Follows a replicated log."""

    def apply(self, batches: Sequence[RecordBatch]) -> None:
        """Apply one or more committed batches, control batches included."""

    def load(self, snapshot: SnapshotReader) -> None:
        """Replace the state with that of a snapshot.

        Runs in a worker thread while others may read the state: put the new one in its place at the
        end. It may end early, with an error from the iteration, when the replica is stopped.
        """

    def freeze(self) -> Iterable[bytes]:
        """Return the current state for a snapshot, as the values of records.

        The values are iterated over later, in a worker thread, while `apply` continues: that must
        not change them. `load` gets them back in its batches. Raises, here or while they are
        iterated over: KraftwireError if this state cannot be written; then there is no snapshot,
        and the log says why.
        """

    def leadership(self, leader_id: int, epoch: int, end_offset: int) -> None:
        """Record the leader; -1 if there is none.

        If this replica leads, everything before `end_offset` has been applied, and records that it
        appends with this epoch at that offset directly follow its state. Called again whenever
        the leader or the epoch changes, so a leader learns of the end of its leadership from the
        next call.
        """
