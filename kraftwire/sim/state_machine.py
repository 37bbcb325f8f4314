"""The state machine of a simulated node, and the check of its snapshots.

Its state is a digest of all batches that it has applied. So a snapshot can be checked against what
was committed, and the state does not grow: S14.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kraftwire.records.batch import RecordBatch
from kraftwire.replica.state_machine import SnapshotReader
from kraftwire.sim.check_logs import LogChecks
from kraftwire.sim.coverage import Coverage
from kraftwire.sim.invariants import Violation
from kraftwire.sim.replica_log import digest

# The most records in a snapshot, and the padding of each: a few fetches for a follower.
_RECORDS_MAX = 12
_RECORD_BYTES = 150


class Digest:
    """Follows a log. `applied` is the end of what it has."""

    def __init__(self, node: int, log_checks: LogChecks, coverage: Coverage) -> None:
        self.applied = 0
        self._node = node
        self._log_checks = log_checks
        self._coverage = coverage
        self._state = b""

    def apply(self, batches: Sequence[RecordBatch]) -> None:
        """Apply batches, which must be the committed ones."""
        data = [bytes(batch.raw) for batch in batches]
        end = batches[-1].last_offset + 1
        self.applied = self._log_checks.delivered(self.applied, end, b"".join(data))
        for raw in data:
            self._state = digest(self._state, raw)

    def load(self, snapshot: SnapshotReader) -> None:
        """Load a snapshot, which must hold what was committed up to its end."""
        values = [record.value or b"" for batch in snapshot for record in batch.records()]
        end = snapshot.id.offset
        if end <= self.applied:
            raise Violation("S15", f"{self._node} goes back from {self.applied} to snapshot {end}")
        check_snapshot(self._node, end, values, self._log_checks)
        self._state = values[0][: len(values[0]) - _RECORD_BYTES]
        self.applied = end
        self._coverage.hit("snapshot loaded")

    def freeze(self) -> Iterable[bytes]:
        """The state, in a few records."""
        return _values(self.applied, self._state)

    def leadership(self, leader_id: int, epoch: int, end_offset: int) -> None:
        """Ignore it: calls are checked elsewhere."""


def _values(offset: int, state: bytes) -> list[bytes]:
    return [state + bytes(_RECORD_BYTES)] * (1 + offset % _RECORDS_MAX)


def check_snapshot(node: int, offset: int, values: list[bytes], log_checks: LogChecks) -> None:
    """A snapshot has records with these values. S14: it holds what was committed up to its end."""
    if values != _values(offset, log_checks.digest_at(offset)):
        raise Violation("S14", f"a snapshot of {node} up to {offset} is not what was committed")
