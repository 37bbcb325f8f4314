"""The port of state machines: what follows a replicated log and is rebuilt from its snapshots.

A state machine is told the committed batches with their exact offsets, each once and in the order
of the log. When the log no longer holds what it needs, it loads a snapshot in place of everything
below the snapshot's end. It is asked for its state when a snapshot is to be written, and told who
leads.

Calls never overlap. `apply`, `freeze` and `leadership` come from the thread that also votes and
fetches, so they must not wait: `apply` gets a bounded piece of the log at a time. `load`, and the
iteration over what `freeze` returned, happen in a worker thread and may take as long as they need.
What a state machine raises ends the replica, except where a method says otherwise. So a committed
record that `apply` cannot take ends every replica, at every start anew: judge a value before it is
appended.

Source: KIP-595, KIP-630; Kafka's `RaftClient.Listener`; R-LIS-1 to R-LIS-6.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, runtime_checkable

from kraftwire.records.batch import RecordBatch
from kraftwire.records.offsets import OffsetAndEpoch

__all__ = ["SnapshotReader", "StateMachine"]


class SnapshotReader(Protocol):
    """A snapshot that is being loaded; its batches are read as they are asked for."""

    @property
    def id(self) -> OffsetAndEpoch:
        """The end offset of what the snapshot contains, and the epoch of its last record."""

    @property
    def timestamp(self) -> int:
        """The time of the last record that the snapshot contains. Milliseconds since the epoch."""

    def __iter__(self) -> Iterator[RecordBatch]:
        """The batches of the state machine's own records in order; once.

        Their offsets count from 0 and have nothing to do with those of the log.
        Raises: StorageError for a damaged file.
        """


@runtime_checkable
class StateMachine(Protocol):
    """Follows a replicated log."""

    def apply(self, batches: Sequence[RecordBatch]) -> None:
        """Take committed batches, never none; those with control records are among them."""

    def load(self, snapshot: SnapshotReader) -> None:
        """Replace the state by that of a snapshot.

        Runs in a worker thread while others may read the state: put the new one in its place at the
        end. It may end early, with an error from the iteration, when the replica is stopped.
        """

    def freeze(self) -> Iterable[bytes]:
        """The state as of now, as the values of records, for a snapshot.

        The values are iterated over later, in a worker thread, while `apply` goes on: they must not
        change by that. They come back in the batches that `load` gets. Raises, here or while they
        are iterated over: KraftwireError if this state cannot be written; then there is no
        snapshot, and the log says why.
        """

    def leadership(self, leader_id: int, epoch: int, end_offset: int) -> None:
        """Take note of who leads; -1 for nobody.

        If this replica leads, everything before `end_offset` has been applied, and records that
        it appends with this epoch at that offset follow directly on what it knows. Told again
        whenever leader or epoch change, so a leader hears of its end by being told another one.
        """
