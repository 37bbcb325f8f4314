"""A position in a replicated log: an offset and a leader epoch.

One type for what always travels together: the end of a log, the id of a snapshot, where an epoch
ends, the beginning of a batch. Source: Kafka's `OffsetAndEpoch`.
"""

from __future__ import annotations

from typing import NamedTuple


class OffsetAndEpoch(NamedTuple):
    """An offset and the leader epoch that goes with it.

    Of a log's end or a snapshot id, `offset` is exclusive and `epoch` that of the record before it;
    of a batch, both are its own. Order: by offset; votes compare with `is_newer_or_equal`.
    """

    offset: int
    epoch: int

    def is_newer_or_equal(self, other: OffsetAndEpoch) -> bool:
        """Whether a log that ends here is at least as new as another: the epoch decides first."""
        return self.rank >= other.rank

    @property
    def rank(self) -> tuple[int, int]:
        """What sorts ends of logs: the furthest is the largest."""
        return self.epoch, self.offset

    def __str__(self) -> str:
        return f"{self.offset}-{self.epoch}"


# The checkpoint that formatting writes: it is never announced, served or counted as a snapshot.
BOOTSTRAP_SNAPSHOT = OffsetAndEpoch(0, 0)
