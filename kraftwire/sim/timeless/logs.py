"""Checks the log of one replica: S8-S16, based only on facts.

Written independently of the simulator's histories, so that a mistake in one shows in the other. The
replicas that a commit needs follow from a model of the voter set of every log.
"""

from __future__ import annotations

from kraftwire.sim import words
from kraftwire.sim.timeless import facts
from kraftwire.sim.timeless.cluster_history import ClusterHistory
from kraftwire.sim.timeless.entries import Entry
from kraftwire.sim.timeless.shelves import Shelf
from kraftwire.sim.violation import Violation

__all__ = ["Logs"]


class Logs:
    """Checks the log of one replica; claims that concern others go to the history."""

    __slots__ = ("_history",)

    def __init__(self, history: ClusterHistory) -> None:
        self._history = history

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
            self._history.writes(own, entry, before)
            if fact.is_leader and entry.voters is not None:
                self._changes_voters(shelf, entry)
            shelf.log.append(entry)
            shelf.observe(entry)

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
        self._drops(shelf, end, fact.epoch)
        shelf.cut(end)
        if shelf.end != end:
            raise Violation("S13", f"{own} cuts at {end}, inside of the batch after {shelf.end}")
        shelf.durable = end

    def _drops(self, shelf: Shelf, end: int, epoch: int) -> None:
        dropped = tuple([entry for entry in shelf.log if entry.end > end])
        self._history.drops(shelf.key[0], epoch, end, dropped)

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
            self._drops(shelf, end, fact.election.epoch)
        elif end < shelf.durable:
            raise Violation("S12", f"{own} lost what was durable, from {end} on")
        shelf.load(fact.covered, fact.voters, fact.version)
        shelf.restart(fact.start, fact.entries, fact.covered)

    # Committing

    def advanced(self, shelf: Shelf, fact: facts.Advanced) -> Entry | None:
        """A high watermark. S7-S10. Returns the last batch that this commits, None for none."""
        own, offset = shelf.key[0], fact.offset
        if offset < shelf.high_watermark:
            raise Violation("S8", f"{own} lowers its {shelf.high_watermark} to {offset}")
        if offset > shelf.end:
            raise Violation("S8", f"{own} has high watermark {offset}, log end {shelf.end}")
        known, shelf.high_watermark = shelf.high_watermark, offset
        new = tuple([one for one in shelf.log if known < one.end <= offset])
        if new and new[-1].end != offset:
            raise Violation("S8", f"{own} has high watermark {offset} inside of a batch")
        commits = self._history.advances(own, offset, fact.leader_epoch, new)
        return new[-1] if commits else None

    def elected(self, shelf: Shelf, fact: facts.Elected) -> None:
        """A replica leads. S1, S5, S17."""
        log = tuple(shelf.log)
        self._history.elected(shelf.key, fact.epoch, shelf.voters, shelf.start.offset, log)

    def acked(self, shelf: Shelf, fact: facts.Acked) -> None:
        """A client was told. S12."""
        self._history.acknowledges(shelf.key[0], *fact)

    # Snapshots and state machines

    def snapshot_stored(self, shelf: Shelf, fact: facts.SnapshotStored) -> None:
        """A snapshot got its name. S14: it is the sum of what is committed, with its voters."""
        control = fact.voters, fact.version
        self._history.has_snapshot(shelf.key[0], fact.id, fact.state, control)

    def reset(self, shelf: Shelf, fact: facts.Reset) -> None:
        """A log was emptied to a snapshot. S11, S14."""
        if fact.state is None:
            raise Violation("S14", f"{shelf.key[0]} starts at {fact.start}, and has no snapshot")
        control = fact.voters, fact.version
        self._history.has_snapshot(shelf.key[0], fact.start, fact.state, control)
        self._drops(shelf, fact.start.offset, fact.epoch)
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
            self._history.delivers(own, entry)
            at = entry.end
        shelf.consumed = at

    def loaded(self, shelf: Shelf, fact: facts.Loaded) -> None:
        """A state machine loaded a snapshot. S14, S15."""
        own = shelf.key[0]
        if fact.role == "leader" and fact.before >= shelf.start.offset:
            raise Violation("S15", f"leader {own} loads snapshot {fact.id} at {fact.before}")
        if fact.id.offset <= fact.before:
            raise Violation("S15", f"{own} goes back from {fact.before} to {fact.id}")
        self._history.loads(own, fact.id, fact.state)
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

