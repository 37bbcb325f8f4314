"""Checks logs in a timeless cluster: S5-S16, based only on facts.

Written independently of the simulator's histories, so that a mistake in one shows in the other. The
replicas that a commit needs follow from a model of the voter set of every log.
"""

from __future__ import annotations

from collections.abc import Iterable
from zlib import crc32

from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.sim import words
from kraftwire.sim.timeless import facts
from kraftwire.sim.timeless.entries import Entry, record_values
from kraftwire.sim.timeless.shelves import Shelf
from kraftwire.sim.violation import Violation
from kraftwire.sim.voters import Voters, matches

__all__ = ["Logs"]


class Logs:
    """All that was written anywhere, and the part that is committed.

    `written` has by base offset and epoch the batch and the epoch of the one before it; `sums` the
    state of a state machine at every committed offset.
    """

    __slots__ = ("commit_epochs", "committed", "places", "sums", "written")

    def __init__(self) -> None:
        self.committed: list[Entry] = []
        self.commit_epochs: list[int] = []
        self.places: dict[int, int] = {}
        self.sums: dict[int, int] = {0: 0}
        self.written: dict[tuple[int, int], tuple[Entry, int]] = {}

    def copy(self) -> Logs:
        """Return a copy."""
        made = object.__new__(Logs)
        for name in Logs.__slots__:
            setattr(made, name, getattr(self, name).copy())
        return made

    @property
    def frontier(self) -> int:
        """The offset below which everything is committed."""
        return self.committed[-1].end if self.committed else 0

    # Writing

    def appended(self, shelf: Shelf, fact: facts.Appended) -> None:
        """Batches at a log's end. S6, S13, S16."""
        own = shelf.key[0]
        for entry in fact.entries:
            before, end = shelf.last_epoch, shelf.end
            if entry.base != end or entry.end <= entry.base:
                raise Violation("S13", f"{own} appends {entry.base}-{entry.end} at {end}")
            if not before <= entry.epoch <= fact.epoch:
                raise Violation(
                    "S13", f"{own} in epoch {fact.epoch} appends {entry.epoch} after {before}"
                )
            if fact.is_leader and entry.epoch != fact.epoch:
                raise Violation("S13", f"leader {own} of {fact.epoch} writes {entry.epoch}")
            self._is_same(own, entry, before)
            if fact.is_leader and entry.voters is not None:
                self._changes_voters(shelf, entry)
            shelf.log.append(entry)
            shelf.observe(entry)

    def _is_same(self, own: int, entry: Entry, before: int) -> None:
        known = self.written.setdefault((entry.base, entry.epoch), (entry, before))
        if known[0] != entry:
            raise Violation(
                "S13",
                f"offset {entry.base} of epoch {entry.epoch} is two batches",
                f"written before: {words.batch(known[0].data)}",
                f"at {own}: {words.batch(entry.data)}",
            )
        if known[1] != before:
            raise Violation(
                "S6",
                f"logs with the same batch differ before it: {words.batch(entry.data)}",
                f"before it at {own}: epoch {before}",
                f"before it elsewhere: epoch {known[1]}",
            )

    def _changes_voters(self, shelf: Shelf, entry: Entry) -> None:
        """A leader writes a voter set. S16: one member differs, and all before is committed."""
        old, new = set(shelf.voters), set(entry.voters or ())
        offset, own = shelf.sets[-1][0], shelf.key[0]
        if not any(any(member[1]) for member in old):
            # The upgrade from kraft.version 0 names the directories of the same voters.
            old, new = {(one[0], b"") for one in old}, {(one[0], b"") for one in new}
        if len(old - new) > 1 or len(new - old) > 1:
            raise Violation(
                "S16",
                f"{own} changes more than one voter at once",
                f"in force: {words.voters(sorted(old))}",
                f"written: {words.voters(sorted(new))}",
            )
        if not new:
            raise Violation("S16", f"{own} writes a voter set of nobody")
        if old == new:
            return
        if len(old - new) == 1 and len(new - old) == 1:
            raise Violation("S16", f"{own} adds and removes a voter at once")
        if offset >= shelf.high_watermark:
            raise Violation("S16", f"{own} changes voters, the set at {offset} is not committed")
        if not self._has_committed(shelf, entry.epoch):
            raise Violation("S16", f"{own} changes voters, nothing of its epoch is committed")

    @staticmethod
    def _has_committed(shelf: Shelf, epoch: int) -> bool:
        """Whether a leader knows the first batch of its epoch to be committed."""
        if shelf.start.epoch == epoch:
            return True  # it is below the log's start, in a snapshot
        first = next((one for one in shelf.log if one.epoch == epoch), None)
        return first is not None and first.end <= shelf.high_watermark

    def truncated(self, shelf: Shelf, fact: facts.Truncated) -> None:
        """A log was truncated. S11: on behalf of the current leader, never what is committed."""
        own, end = shelf.key[0], fact.end
        if end < shelf.high_watermark:
            raise Violation("S11", f"{own} cuts to {end} below its {shelf.high_watermark}")
        if fact.ordered_by != fact.epoch:
            raise Violation(
                "S11", f"{own} in epoch {fact.epoch} cuts by order of {fact.ordered_by}"
            )
        if end < shelf.start.offset:
            raise Violation("S11", f"{own} cuts to {end} below the start {shelf.start.offset}")
        self._check_droppable(shelf, end, fact.epoch)
        shelf.cut(end)
        if shelf.end != end:
            raise Violation("S13", f"{own} cuts at {end}, inside of the batch after {shelf.end}")
        shelf.durable = end

    def _check_droppable(self, shelf: Shelf, end: int, epoch: int) -> None:
        """What a replica drops is not committed, as far as its epoch can know. S11."""
        for entry in shelf.log:
            place = self.places.get(entry.base)
            if entry.end <= end or place is None or self.committed[place] != entry:
                continue
            if self.commit_epochs[place] <= epoch:
                raise Violation(
                    "S11",
                    f"{shelf.key[0]} in epoch {epoch} drops committed {entry.base}",
                    f"committed in epoch {self.commit_epochs[place]}: {words.batch(entry.data)}",
                    f"node {shelf.key[0]} keeps what is below {end}",
                )

    def flushed(self, shelf: Shelf, fact: facts.Flushed) -> None:
        """A log is durable up to an offset."""
        shelf.durable = max(shelf.durable, fact.end)

    def started(self, shelf: Shelf, fact: facts.Started) -> None:
        """A run began. S9, S12: nothing that was durable is missing, nothing new is there."""
        own, count = shelf.key[0], len(fact.entries)
        known = [one for one in shelf.log if one.base >= fact.start.offset]
        if list(fact.entries) != known[:count] and shelf.log:
            first = next((at for at, one in enumerate(fact.entries) if one not in known), 0)
            raise Violation(
                "S13",
                f"{own} finds a log that it did not write",
                f"found: {words.batch(fact.entries[first].data)}",
                f"written: {words.batch(known[first].data) if first < len(known) else 'nothing'}",
            )
        end = fact.entries[-1].end if fact.entries else fact.start.offset
        if fact.start.offset > shelf.start.offset:
            # A snapshot was ahead of the log: what it does not cover was never committed.
            self._check_droppable(shelf, end, fact.election.epoch)
        elif end < shelf.durable:
            raise Violation("S12", f"{own} lost what was durable, from {end} on")
        shelf.load(fact.covered, fact.voters, fact.version)
        shelf.restart(fact.start, fact.entries, fact.covered)

    # Committing

    def advanced(self, shelf: Shelf, fact: facts.Advanced) -> None:
        """A high watermark. S7-S10."""
        own, offset = shelf.key[0], fact.offset
        if offset < shelf.high_watermark:
            raise Violation("S8", f"{own} lowers its {shelf.high_watermark} to {offset}")
        if offset > shelf.end:
            raise Violation("S8", f"{own} has high watermark {offset}, log end {shelf.end}")
        known, shelf.high_watermark = shelf.high_watermark, offset
        new = [one for one in shelf.log if known < one.end <= offset]
        if new and new[-1].end != offset:
            raise Violation("S8", f"{own} has high watermark {offset} inside of a batch")
        for entry in new:
            place = self.places.get(entry.base)
            if place is not None and self.committed[place] != entry:
                raise Violation(
                    "S7",
                    f"{own} takes other records at {entry.base} for committed",
                    f"committed: {words.batch(self.committed[place].data)}",
                    f"at {own}: {words.batch(entry.data)}",
                )
            if place is None and fact.leader_epoch < 0:
                raise Violation(
                    "S8",
                    f"{own} knows {offset}, committed is {self.frontier}",
                    f"at node {own}: {words.batch(entry.data)}",
                    f"committed: up to {self.frontier}",
                )
        if fact.leader_epoch >= 0 and offset > self.frontier:
            self._commit(shelf, [one for one in new if one.base >= self.frontier], fact)

    def _commit(self, shelf: Shelf, new: list[Entry], fact: facts.Advanced) -> None:
        own = shelf.key[0]
        if not new or new[0].base != self.frontier:
            raise Violation("S7", f"{own} commits up to {fact.offset} after {self.frontier}")
        if new[-1].epoch != fact.leader_epoch:
            raise Violation(
                "S10",
                f"{own} commits through a batch of an older epoch",
                f"leader {own} of epoch {fact.leader_epoch}, high watermark {fact.offset}",
                f"last committed batch: {words.batch(new[-1].data)}",
            )
        for entry in new:
            self.places[entry.base] = len(self.committed)
            self.committed.append(entry)
            self.commit_epochs.append(fact.leader_epoch)
            self.sums[entry.end] = crc32(entry.data, self.sums[entry.base])

    def durable_on(self, shelves: Iterable[Shelf], shelf: Shelf) -> None:
        """What a leader has just committed is durable on a majority of its voters. S9, S17."""
        last = self.committed[-1]
        holding = [
            one.key for one in shelves if one.durable >= last.end and self._has(one, last)
        ]
        members = [m for m in shelf.voters if any(matches(m, key) for key in holding)]
        if 2 * len(members) <= len(shelf.voters):
            raise Violation(
                "S9",
                f"{shelf.key[0]} commits what a minority has: {words.batch(last.data)}",
                f"voters in force at {shelf.key[0]}: {words.voters(shelf.voters)}",
                f"of these have it durably: {words.voters(members)}",
            )

    @staticmethod
    def _has(shelf: Shelf, entry: Entry) -> bool:
        return entry.end <= shelf.start.offset or shelf.holds(entry)

    def elected(self, shelf: Shelf, epoch: int) -> None:
        """A replica leads. S5: it has all that was committed in older epochs."""
        for place in range(len(self.committed) - 1, -1, -1):
            if self.commit_epochs[place] < epoch:
                entry = self.committed[place]
                if not self._has(shelf, entry):
                    raise Violation(
                        "S5",
                        f"{shelf.key[0]} leads epoch {epoch} without all that is committed",
                        f"committed: {words.batch(entry.data)}",
                        f"its log ends at {shelf.end} with epoch {shelf.last_epoch}",
                    )
                return

    def acked(self, shelf: Shelf, fact: facts.Acked) -> None:
        """A client was told. S12: its records are what is committed there."""
        place = self.places.get(fact.base)
        values: list[bytes] = []
        epoch = -1
        offset = fact.base
        if place is None:
            place = next((at for at, e in enumerate(self.committed) if e.base < offset < e.end), -1)
        if place >= 0:
            entry = self.committed[place]
            epoch = entry.epoch
            values = record_values(entry)[offset - entry.base :][: len(fact.values)]
        if epoch != fact.epoch or tuple(values) != fact.values:
            found = ", ".join(map(words.value, values)) or "nothing"
            raise Violation(
                "S12",
                f"{shelf.key[0]} acknowledged what is not committed at {offset}",
                f"acknowledged: epoch {fact.epoch} ({', '.join(map(words.value, fact.values))})",
                f"committed: epoch {epoch} ({found})",
            )

    # Snapshots and state machines

    def snapshot_stored(self, shelf: Shelf, fact: facts.SnapshotStored) -> None:
        """A snapshot got its name. S14: it is the sum of what is committed, with its voters."""
        self._check_content(shelf, fact.id, fact.state, (fact.voters, fact.version))

    def _check_content(
        self,
        shelf: Shelf,
        snapshot: OffsetAndEpoch,
        state: tuple[int, int] | None,
        control: tuple[Voters | None, int | None],
    ) -> None:
        own, offset = shelf.key[0], snapshot.offset
        if offset > self.frontier or offset not in self.sums:
            raise Violation("S14", f"{own} has snapshot {snapshot}, committed is {self.frontier}")
        before = next((one for one in reversed(self.committed) if one.end <= offset), None)
        if before is None or before.epoch != snapshot.epoch:
            raise Violation("S14", f"{own} has snapshot {snapshot} of another epoch")
        if state != (offset, self.sums[offset]):
            raise Violation("S14", f"{own} has snapshot {snapshot} of what was not committed")
        voters, version = self._control_at(offset)
        if (version and control[1] != version) or (voters is not None and control[0] != voters):
            raise Violation(
                "S16",
                f"{own} has snapshot {snapshot} with other voters than are in force there",
                f"in the snapshot: {words.voters(control[0] or ())}",
                f"in force: {words.voters(voters or ())}",
            )

    def _control_at(self, offset: int) -> tuple[Voters | None, int | None]:
        """Voters and version that the committed log has set below an offset."""
        voters: Voters | None = None
        version: int | None = None
        for entry in self.committed:
            if entry.end <= offset:
                voters = entry.voters if entry.voters is not None else voters
                version = entry.version if entry.version is not None else version
        return voters, version

    def reset(self, shelf: Shelf, fact: facts.Reset) -> None:
        """A log was emptied to a snapshot. S11, S14."""
        if fact.state is None:
            raise Violation("S14", f"{shelf.key[0]} starts at {fact.start}, and has no snapshot")
        self._check_content(shelf, fact.start, fact.state, (fact.voters, fact.version))
        self._check_droppable(shelf, fact.start.offset, fact.epoch)
        shelf.log.clear()
        shelf.start = fact.start
        shelf.durable = fact.start.offset
        shelf.high_watermark = max(shelf.high_watermark, fact.start.offset)
        shelf.load(fact.start.offset, fact.voters, fact.version)

    def prefix_dropped(self, shelf: Shelf, fact: facts.PrefixDropped) -> None:
        """A log starts later. S14: at a stored snapshot, and nothing that is not committed."""
        own, start = shelf.key[0], fact.start
        if not fact.has_snapshot:
            raise Violation("S14", f"{own} starts at {start.offset} without a snapshot there")
        if start.offset > max(shelf.high_watermark, shelf.start.offset):
            raise Violation("S14", f"{own} drops up to {start} above {shelf.high_watermark}")
        if start.offset < shelf.start.offset:
            raise Violation("S14", f"{own} moves its start back to {start}")
        shelf.log = [one for one in shelf.log if one.end > start.offset]
        shelf.start = start

    def delivered(self, shelf: Shelf, fact: facts.Delivered) -> None:
        """A state machine got batches. S15: all of them, once, in order; S7: the committed ones."""
        own, at = shelf.key[0], shelf.consumed
        if fact.start != at:
            raise Violation("S15", f"{own} delivers from {fact.start} on, consumed is {at}")
        if not fact.entries:
            raise Violation("S15", f"{own} delivers nothing at {at}")
        for entry in fact.entries:
            if entry.base != at:
                raise Violation("S15", f"{own} delivers {entry.base} after {at}")
            place = self.places.get(entry.base)
            if place is None or self.committed[place] != entry:
                known = "nothing" if place is None else words.batch(self.committed[place].data)
                raise Violation(
                    "S7",
                    f"{own} delivers {entry.base}, which is not committed",
                    f"delivered: {words.batch(entry.data)}",
                    f"committed there: {known}",
                )
            at = entry.end
        shelf.consumed = at

    def loaded(self, shelf: Shelf, fact: facts.Loaded) -> None:
        """A state machine loaded a snapshot. S14, S15."""
        own = shelf.key[0]
        if fact.role == "leader" and fact.before >= shelf.start.offset:
            raise Violation("S15", f"leader {own} loads snapshot {fact.id} at {fact.before}")
        if fact.id.offset <= fact.before:
            raise Violation("S15", f"{own} goes back from {fact.before} to {fact.id}")
        if fact.state != (fact.id.offset, self.sums.get(fact.id.offset)):
            raise Violation("S14", f"{own} loads {fact.id} of what was not committed")
        shelf.consumed = fact.id.offset

    def told(self, shelf: Shelf, fact: facts.Told) -> None:
        """A state machine heard who leads. S15: itself only once it has everything before."""
        own, at = shelf.key[0], (fact.epoch, fact.leader_id)
        if at <= shelf.fired:
            raise Violation("S15", f"{own} is told {at} after {shelf.fired}")
        shelf.fired = at
        if fact.leader_id != own:
            return
        first = next((one.end for one in shelf.log if one.epoch == fact.epoch), shelf.end + 1)
        if fact.consumed < first:
            raise Violation("S15", f"{own} is told to lead at {fact.consumed} before {first}")
        if fact.end_offset < shelf.end:
            raise Violation("S15", f"{own} is told to append at {fact.end_offset}: {shelf.end}")

