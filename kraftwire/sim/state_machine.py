"""The state machine of a simulated node, whose snapshots can be checked.

Its state is a checksum of all batches that it has applied. So a snapshot can be compared with what
was committed, and the state does not grow: S14.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from kraftwire.records.batch import RecordBatch
from kraftwire.replica.state_machine import SnapshotReader
from kraftwire.sim.checks import replica_events as did
from kraftwire.sim.checks.entries import Applied, entries_of
from kraftwire.sim.coverage import Coverage

# The most records in a snapshot, and the size of the state in each and of its padding: a few
# fetches for a follower.
_RECORDS_MAX = 12
_STATE_BYTES = 16
_PADDING = bytes(150)


class Digest:
    """Follows a log, and reports what it is given. `role` returns the role of its node."""

    def __init__(
        self,
        report: Callable[[did.ReplicaEvent], None],
        role: Callable[[], str],
        coverage: Coverage,
    ) -> None:
        self._report = report
        self._role = role
        self._coverage = coverage
        self._state = Applied()

    @property
    def applied(self) -> int:
        """The end of what it has."""
        return self._state.offset

    def apply(self, batches: Sequence[RecordBatch]) -> None:
        """Apply batches, which must be the committed ones."""
        entries = entries_of(b"".join([batch.raw for batch in batches]))
        self._report(did.Delivered(self.applied, entries))
        for entry in entries:
            self._state.apply(entry)

    def load(self, snapshot: SnapshotReader) -> None:
        """Load a snapshot, which must hold what was committed up to its end."""
        state = state_in(snapshot)
        self._report(did.Loaded(snapshot.id, state, self.applied, self._role()))
        self._state = Applied(*state)
        self._coverage.hit("snapshot loaded")

    def freeze(self) -> Iterable[bytes]:
        """The state, in a few records."""
        return _values(self._state.offset, self._state.sum)

    def leadership(self, leader_id: int, epoch: int, end_offset: int) -> None:
        """Ignore it: calls are checked elsewhere."""


def _values(offset: int, total: int) -> list[bytes]:
    return [total.to_bytes(_STATE_BYTES) + _PADDING] * (1 + offset % _RECORDS_MAX)


def state_in(snapshot: SnapshotReader) -> tuple[int, int]:
    """Return the offset and checksum of the state in a snapshot; -1 for both if it is another."""
    values = [record.value or b"" for batch in snapshot for record in batch.records()]
    total = int.from_bytes(values[0][:_STATE_BYTES]) if values else 0
    offset = snapshot.id.offset
    return (offset, total) if values == _values(offset, total) else (-1, -1)
