"""What the checks know of one replica: its log, its vote, its voter sets.

An independent model, built only from events; the replica's own view is compared with it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from kraftwire.raft.effects import ElectionState
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.sim.checks.entries import Entry
from kraftwire.sim.checks.voters import Key, Voters, is_member


class ReplicaModel:
    """One replica.

    `durable` is an offset; `sets` and `versions` are by offset, ascending; those at -1 come from
    the configuration. `removed_at` is the offset of the set that removed this replica while it ran,
    None if there is none.
    """

    __slots__ = (
        "consumed",
        "durable",
        "fired",
        "high_watermark",
        "key",
        "log",
        "removed_at",
        "sets",
        "start",
        "stored",
        "versions",
    )

    def __init__(self, key: Key, static: Voters) -> None:
        self.key = key
        self.start = OffsetAndEpoch(0, 0)
        self.log: list[Entry] = []
        self.durable = 0
        self.high_watermark = -1
        self.stored = ElectionState()
        self.sets: list[tuple[int, Voters]] = [(-1, static)]
        self.versions: list[tuple[int, int]] = [(-1, 0)]
        self.removed_at: int | None = None
        self.consumed = 0
        self.fired: tuple[int, int] = (0, -1)

    @property
    def end(self) -> int:
        """The log end offset."""
        return self.log[-1].end if self.log else self.start.offset

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record."""
        return self.log[-1].epoch if self.log else self.start.epoch

    @property
    def voters(self) -> Voters:
        """The current voter set: the latest in the log."""
        return self.sets[-1][1]

    @property
    def version(self) -> int:
        """The current kraft.version."""
        return self.versions[-1][1]

    @property
    def last(self) -> tuple[int, int]:
        """Epoch and end offset of the log, which votes compare."""
        return self.last_epoch, self.end

    def is_voter(self) -> bool:
        """Whether this replica is in the set that it believes to be in force."""
        return is_member(self.voters, self.key)

    def may_stand(self) -> bool:
        """Whether this replica may stand for election: a voter, or one whose removal is in its log
        and not known to be committed."""
        if self.is_voter():
            return True
        where, before = self.sets[-1][0], self.sets[-2:-1]
        is_open = where >= self.high_watermark
        return is_open and any(is_member(voters, self.key) for _, voters in before)

    def is_durable(self, entry: Entry) -> bool:
        """Return whether an entry is durable, in the log or below its start."""
        if self.durable < entry.end:
            return False
        return entry.end <= self.start.offset or self.has(entry)

    def has(self, entry: Entry) -> bool:
        """Return whether an entry is in the log."""
        place = bisect_left(self.log, (entry.base,))
        return place < len(self.log) and self.log[place] == entry

    def above(self, offset: int, end: int) -> tuple[Entry, ...]:
        """Return the batches that end above an offset, up to another."""
        found = []
        for entry in reversed(self.log):
            if entry.end <= offset:
                break
            if entry.end <= end:
                found.append(entry)
        return tuple(reversed(found))

    def observe(self, entry: Entry) -> None:
        """Adopt the voters and version that a batch at the log's end sets."""
        if entry.voters is not None:
            before = self.sets[-1][0] if self.is_voter() else -1
            self.sets.append((entry.voters_offset, entry.voters))
            self._note_removal(before)
        if entry.version is not None:
            self.versions.append((entry.base, entry.version))

    def load(self, offset: int, voters: Voters | None, version: int | None) -> None:
        """Start from a snapshot that ends at an offset."""
        static, before = self.sets[0], self.sets[-1][0] if self.is_voter() else -1
        self.sets, self.versions = [static], [(-1, 0)]
        if voters is not None:
            self.sets.append((offset - 1, voters))
            self._note_removal(before)
        if version is not None:
            self.versions.append((offset - 1, version))

    def _note_removal(self, before: int) -> None:
        """Compare the newest set with one at `before` that had this replica, -1 for none.

        Configured voters have no directory ids: a log that names others has removed none of them.
        """
        where = self.sets[-1][0]
        if self.is_voter():
            self.removed_at = None
        elif 0 <= before < where:
            self.removed_at = where

    def cut(self, end: int) -> None:
        """Drop what was set at or after an offset."""
        if self.removed_at is not None and self.removed_at >= end:
            self.removed_at = None
        while self.log and self.log[-1].end > end:
            self.log.pop()
        while len(self.sets) > 1 and self.sets[-1][0] >= end:
            self.sets.pop()
        while len(self.versions) > 1 and self.versions[-1][0] >= end:
            self.versions.pop()

    def restart(self, start: OffsetAndEpoch, entries: Sequence[Entry], covered: int) -> None:
        """Replace the log with the one found at a start; all of it is durable.

        `covered` is the end of the newest snapshot.
        """
        self.start = start
        self.log = list(entries)
        self.durable = self.end
        self.high_watermark = -1
        self.consumed = 0
        self.fired = (0, -1)
        for entry in entries:
            if entry.base >= covered:
                self.observe(entry)
        self.removed_at = None
