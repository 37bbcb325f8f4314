"""Checks the log of one replica: S8 to S16, based only on events."""

from __future__ import annotations

from kraftwire.messages.fetch_snapshot_response import FetchSnapshotResponse
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.sim import describe
from kraftwire.sim.checks import replica_events as did
from kraftwire.sim.checks.cluster_history import ClusterHistory
from kraftwire.sim.checks.entries import Entry
from kraftwire.sim.checks.replica_model import ReplicaModel
from kraftwire.sim.invariants import Violation


class LogChecks:
    """Checks the log of one replica; claims that concern others go to the history."""

    __slots__ = ("_history",)

    def __init__(self, history: ClusterHistory) -> None:
        self._history = history

    # Writing

    def on_appended(self, model: ReplicaModel, event: did.Appended) -> None:
        """Batches at a log's end. S6, S13, S16."""
        own = model.key[0]
        for entry in event.entries:
            before, end = model.last_epoch, model.end
            if entry.base != end or entry.end <= entry.base:
                raise Violation("S13", f"{own} appends {entry.base}-{entry.end} at {end}")
            if not before <= entry.epoch <= event.epoch:
                raise Violation(
                    "S13", f"{own} in epoch {event.epoch} appends {entry.epoch} after {before}"
                )
            if event.is_leader and entry.epoch != event.epoch:
                raise Violation("S13", f"leader {own} of {event.epoch} writes {entry.epoch}")
            self._history.writes(own, entry, before)
            if event.is_leader and entry.voters is not None:
                self._changes_voters(model, entry)
            model.log.append(entry)
            model.observe(entry)

    def _changes_voters(self, model: ReplicaModel, entry: Entry) -> None:
        """A leader writes a voter set. S16: one member differs, and all before is committed."""
        old, new = set(model.voters), set(entry.voters or ())
        offset, own = model.sets[-1][0], model.key[0]
        if not any(any(member[1]) for member in old):
            # The upgrade from kraft.version 0 names the directories of the same voters.
            old, new = {(one[0], b"") for one in old}, {(one[0], b"") for one in new}
        if len(old - new) > 1 or len(new - old) > 1:
            raise Violation(
                "S16",
                f"{own} changes more than one voter at once",
                f"in force: {describe.voters(sorted(old))}",
                f"written: {describe.voters(sorted(new))}",
            )
        if not new:
            raise Violation("S16", f"{own} writes a voter set of nobody")
        if old == new:
            return
        if len(old - new) == 1 and len(new - old) == 1:
            raise Violation("S16", f"{own} adds and removes a voter at once")
        if offset >= model.high_watermark:
            raise Violation("S16", f"{own} changes voters, the set at {offset} is not committed")
        if not self._has_committed(model, entry.epoch):
            raise Violation("S16", f"{own} changes voters, nothing of its epoch is committed")

    @staticmethod
    def _has_committed(model: ReplicaModel, epoch: int) -> bool:
        """Whether a leader knows the first batch of its epoch to be committed."""
        if model.start.epoch == epoch:
            return True  # it is below the log's start, in a snapshot
        first = next((one for one in model.log if one.epoch == epoch), None)
        return first is not None and first.end <= model.high_watermark

    def on_truncating(self, model: ReplicaModel, event: did.Truncating) -> None:
        """A log will be cut. S11: on behalf of the current leader, never what is committed."""
        own, end = model.key[0], event.end
        if end < model.high_watermark:
            raise Violation("S11", f"{own} cuts to {end} below its {model.high_watermark}")
        if event.ordered_by != event.epoch:
            raise Violation(
                "S11", f"{own} in epoch {event.epoch} cuts by order of {event.ordered_by}"
            )
        if end < model.start.offset:
            raise Violation("S11", f"{own} cuts to {end} below the start {model.start.offset}")
        self._drops(model, end, event.epoch)
        model.durable = min(model.durable, end)

    def on_truncated(self, model: ReplicaModel, event: did.Truncated) -> None:
        """A log was cut. S11: durably."""
        own, end = model.key[0], event.end
        if not event.is_durable:
            raise Violation("S11", f"{own} cuts to {end}, and a power loss would undo that")
        model.cut(end)
        if model.end != end:
            raise Violation("S13", f"{own} cuts at {end}, inside of the batch after {model.end}")
        model.durable = end

    def _drops(self, model: ReplicaModel, end: int, epoch: int) -> None:
        self._history.drops(model.key[0], epoch, end, model.above(end, model.end))

    def on_flushed(self, model: ReplicaModel, event: did.Flushed) -> None:
        """A log is durable up to an offset."""
        model.durable = max(model.durable, event.end)

    def on_started(self, model: ReplicaModel, event: did.Started) -> None:
        """A run began. S9, S12: nothing that was durable is missing, nothing new is there."""
        own, start = model.key[0], model.start.offset
        # A prefix that was dropped may be back: files are deleted later, and not all of it.
        older = tuple([one for one in event.entries if one.base < start])
        self._history.finds(own, older)
        found = event.entries[len(older) :]
        known = tuple([one for one in model.log if one.base >= event.start.offset])
        if found != known[: len(found)]:
            first = next((at for at, one in enumerate(found) if one not in known), 0)
            written = describe.batch(known[first].data) if first < len(known) else "nothing"
            raise Violation(
                "S13",
                f"{own} finds a log that it did not write",
                f"found: {describe.batch(found[first].data)}",
                f"written: {written}",
            )
        end = event.entries[-1].end if event.entries else event.start.offset
        if event.start.offset > model.start.offset:
            # A snapshot was ahead of the log: what it does not cover was never committed, unless it
            # was lost before it was durable.
            dropped = [one for one in model.log if end < one.end <= model.durable]
            self._history.drops(own, event.election.epoch, end, tuple(dropped))
        elif end < model.durable:
            raise Violation("S12", f"{own} lost what was durable, from {end} on")
        if not event.is_durable:
            raise Violation("S9", f"{own} continues with a log that is not durable")
        model.load(event.covered, event.voters, event.version)
        model.restart(event.start, event.entries, event.covered)

    # Committing

    def on_high_watermark_advanced(
        self, model: ReplicaModel, event: did.HighWatermarkAdvanced
    ) -> Entry | None:
        """A high watermark. S7-S10. Returns the last batch that this commits, None for none."""
        own, offset = model.key[0], event.offset
        if offset < model.high_watermark:
            raise Violation("S8", f"{own} lowers its {model.high_watermark} to {offset}")
        if offset > model.end:
            raise Violation("S8", f"{own} has high watermark {offset}, log end {model.end}")
        known, model.high_watermark = model.high_watermark, offset
        new = model.above(known, offset)
        if new and new[-1].end != offset:
            raise Violation("S8", f"{own} has high watermark {offset} inside of a batch")
        commits = self._history.advances(own, offset, event.leader_epoch, new)
        return new[-1] if commits else None

    def on_elected(self, model: ReplicaModel, event: did.Elected) -> None:
        """A replica leads. S1, S5, S17."""
        log = tuple(model.log)
        self._history.elected(model.key, event.epoch, model.voters, model.start.offset, log)

    def on_acknowledged(self, model: ReplicaModel, event: did.Acknowledged) -> None:
        """A client was told. S12."""
        self._history.acknowledges(model.key[0], *event)

    # Snapshots and state machines

    def on_snapshot_stored(self, model: ReplicaModel, event: did.SnapshotStored) -> None:
        """A snapshot got its name. S14: it is the sum of what is committed, with its voters."""
        control = event.voters, event.version or 0
        self._history.has_snapshot(model.key[0], event.id, event.state, control)

    def on_snapshot_served(self, model: ReplicaModel, response: FetchSnapshotResponse) -> None:
        """A part of a snapshot leaves. S14: it holds some of it."""
        for part in response.topics[0].partitions if response.topics else ():
            if part.error_code == ErrorCode.NONE and not part.unaligned_records:
                place = f"at {part.position} of {part.size}"
                raise Violation("S14", f"{model.key[0]} serves nothing of a snapshot {place}")

    def on_reset(self, model: ReplicaModel, event: did.Reset) -> None:
        """A log was emptied to a snapshot. S11, S14."""
        if event.state is None:
            raise Violation("S14", f"{model.key[0]} starts at {event.start}, and has no snapshot")
        control = event.voters, event.version or 0
        self._history.has_snapshot(model.key[0], event.start, event.state, control)
        self._drops(model, event.start.offset, event.epoch)
        model.log.clear()
        model.start = event.start
        model.durable = event.start.offset
        model.high_watermark = max(model.high_watermark, event.start.offset)
        model.load(event.start.offset, event.voters, event.version)

    def on_prefix_dropped(self, model: ReplicaModel, event: did.PrefixDropped) -> None:
        """A log starts later. S14: at a stored snapshot, and nothing that is not committed."""
        own, start = model.key[0], event.start
        if not event.has_snapshot:
            raise Violation("S14", f"{own} starts at {start.offset} without a snapshot there")
        if start.offset > max(model.high_watermark, model.start.offset):
            raise Violation("S14", f"{own} drops up to {start} above {model.high_watermark}")
        if start.offset < model.start.offset:
            raise Violation("S14", f"{own} moves its start back to {start}")
        model.log = [one for one in model.log if one.end > start.offset]
        model.start = start

    def on_delivered(self, model: ReplicaModel, event: did.Delivered) -> None:
        """A state machine got batches. S15: all of them, once, in order; S7: the committed ones."""
        own, at = model.key[0], model.consumed
        if event.start != at:
            raise Violation("S15", f"{own} delivers from {event.start} on, consumed is {at}")
        if not event.entries:
            raise Violation("S15", f"{own} delivers nothing at {at}")
        for entry in event.entries:
            if entry.base != at:
                raise Violation("S15", f"{own} delivers {entry.base} after {at}")
            self._history.delivers(own, entry)
            at = entry.end
        if at > max(model.high_watermark, model.start.offset):
            raise Violation(
                "S15",
                f"{own} delivers up to {at}, which it does not know to be committed",
                f"high watermark: {model.high_watermark}",
            )
        model.consumed = at

    def on_loaded(self, model: ReplicaModel, event: did.Loaded) -> None:
        """A state machine loaded a snapshot. S14, S15."""
        own = model.key[0]
        if event.role == "leader" and event.before >= model.start.offset:
            raise Violation("S15", f"leader {own} loads snapshot {event.id} at {event.before}")
        if event.id.offset <= event.before:
            raise Violation("S15", f"{own} goes back from {event.before} to {event.id}")
        self._history.loads(own, event.id, event.state)
        model.consumed = event.id.offset

    def on_leader_reported(self, model: ReplicaModel, event: did.LeaderReported) -> None:
        """A state machine heard who leads. S15: itself only once it has everything before."""
        own, at = model.key[0], (event.epoch, event.leader_id)
        if at <= model.fired:
            raise Violation("S15", f"{own} hears of leader {at} after {model.fired}")
        model.fired = at
        if event.leader_id != own:
            return
        first = next((one.end for one in model.log if one.epoch == event.epoch), model.end + 1)
        if event.consumed < first:
            raise Violation("S15", f"{own} leads at {event.consumed} before {first}")
        if event.end_offset < model.end:
            raise Violation("S15", f"{own} may append at {event.end_offset}: {model.end}")

