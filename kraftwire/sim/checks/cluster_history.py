"""What all replicas of a cluster have made known: leaders, votes, written and committed batches.

Each method checks what one replica claims against everything known before, then adds it. Nothing
else of a replica is needed, so that the exhaustive search can check a claim against many histories.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Sequence
from itertools import pairwise
from zlib import crc32

from kraftwire.raft.effects import ElectionState
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.sim import describe
from kraftwire.sim.checks.entries import Entry, record_values
from kraftwire.sim.checks.voters import Key, Voters, is_member, matches, members
from kraftwire.sim.invariants import Violation


class ClusterHistory:
    """Checks S1, S3, S5 to S14, S16 to S18 and S21 across replicas.

    `acknowledged` is the end of what clients were told to be committed. `campaigns` are (candidate,
    epoch) of requests for votes; `known` the ids that were ever in a voter set; `leaders` are by
    epoch; `votes` by voter and epoch. `places` has the index in `committed` of every base offset,
    `sums` the state of a state machine at every committed offset; `sets` and `versions` are those
    that are committed, by offset, -1 for those at the beginning. `written` has by base offset and
    epoch the batch and the epoch of the one before it, `written_to` the end of every epoch.
    """

    __slots__ = (
        "acknowledged", "campaigns", "commit_epochs", "committed", "known", "leaders", "places",
        "sets", "sums", "versions", "votes", "written", "written_to",
    )  # fmt: skip

    def __init__(self, voters: Voters, version: int) -> None:
        """Start with what is in force before anything is written."""
        self.acknowledged = 0
        self.campaigns: set[tuple[int, int]] = set()
        self.known = {member[0] for member in voters}
        self.leaders: dict[int, int] = {}
        self.votes: dict[tuple[Key, int], int] = {}
        self.committed: list[Entry] = []
        self.commit_epochs: list[int] = []
        self.places: dict[int, int] = {}
        self.sets: list[tuple[int, Voters]] = [(-1, voters)]
        self.sums: dict[int, int] = {0: 0}
        self.versions: list[tuple[int, int]] = [(-1, version)]
        self.written: dict[tuple[int, int], tuple[Entry, int]] = {}
        self.written_to: dict[int, int] = {}

    def copy(self) -> ClusterHistory:
        """Return a copy."""
        made = object.__new__(ClusterHistory)
        made.acknowledged = self.acknowledged
        for name in ClusterHistory.__slots__[1:]:
            setattr(made, name, getattr(self, name).copy())
        return made

    def forget_decided_votes(self) -> None:
        """Forget the votes of epochs whose leader is known."""
        self.votes = {at: vote for at, vote in self.votes.items() if at[1] not in self.leaders}

    def key(self) -> Hashable:
        """Return a value that is equal for histories with the same leaders, votes and commits."""
        return (
            tuple(sorted(self.leaders.items())),
            tuple(sorted(self.votes.items())),
            tuple(self.committed),
            tuple(self.commit_epochs),
        )

    @property
    def frontier(self) -> int:
        """The offset below which everything is committed."""
        return self.committed[-1].end if self.committed else 0

    @property
    def voters(self) -> Voters:
        """The newest committed voter set."""
        return self.sets[-1][1]

    @property
    def version(self) -> int:
        """The newest committed kraft.version."""
        return self.versions[-1][1]

    def at(self, offset: int) -> tuple[Voters | None, int]:
        """Return what a snapshot up to an offset must have: the committed voter set, None before
        kraft.version 1, and kraft.version."""
        version = next(one for at, one in reversed(self.versions) if at < offset)
        voters = next(one for at, one in reversed(self.sets) if at < offset)
        return voters if version else None, version

    # Elections

    def leads(self, own: int, leader: int, epoch: int) -> None:
        """A replica names a leader. S1: an epoch has one. S18: it was a voter once."""
        known = self.leaders.get(epoch)
        if known is None:
            if leader not in self.known:
                raise Violation("S18", f"{leader} leads epoch {epoch}, says {own}, and is no voter")
            self.leaders[epoch] = leader
        elif known != leader:
            raise Violation(
                "S1",
                f"epoch {epoch} has two leaders",
                f"known before: leader {known} in epoch {epoch}",
                f"says node {own}: leader {leader} in epoch {epoch}",
            )

    def votes_for(self, key: Key, epoch: int, candidate: int) -> None:
        """A replica votes. S3: once in an epoch."""
        voted = self.votes.setdefault((key, epoch), candidate)
        if voted != candidate:
            raise Violation(
                "S3",
                f"{key[0]} votes twice in epoch {epoch}",
                f"first vote: {describe.vote(key[0], epoch, voted, own_id=key[1])}",
                f"second vote: {describe.vote(key[0], epoch, candidate, own_id=key[1])}",
            )

    def campaigned(self, own: int, epoch: int) -> None:
        """A candidate requests votes."""
        self.campaigns.add((own, epoch))

    def stores_vote(self, own: int, candidate: int, old: ElectionState, new: ElectionState) -> None:
        """A replica stores a vote for another one. S3: which has requested it."""
        if (candidate, new.epoch) not in self.campaigns:
            raise Violation(
                "S3",
                f"{own} has a vote for {candidate}, which did not ask in that epoch",
                f"stored before: {describe.election(old)}",
                f"stored now: {describe.election(new)}",
            )

    def elected(
        self, key: Key, epoch: int, voters: Voters, start: int, log: Sequence[Entry]
    ) -> None:
        """A replica leads, with a log from offset `start` on. S1, S5, S17: a majority of the set in
        its log voted for it, and it has all that was committed in older epochs."""
        own = key[0]
        self.leads(own, own, epoch)
        if is_member(voters, key):
            # A candidate's own vote, which is not stored by a step that makes it the leader.
            self.votes_for(key, epoch, own)
        granting = [member for member in voters if self._has_vote(member, epoch, own)]
        if 2 * len(granting) <= len(voters):
            by = sorted(member[0] for member in granting)
            raise Violation(
                "S17",
                f"{own} leads epoch {epoch} by the votes of {by} among "
                f"{[member[0] for member in voters]}",
                f"voters in force at {own}: {describe.voters(voters)}",
                f"of these voted for candidate {own}: {describe.voters(granting)}",
            )
        self._check_complete(own, epoch, start, log)

    def _has_vote(self, member: Key, epoch: int, candidate: int) -> bool:
        return any(
            voted == candidate and at == epoch and matches(member, key)
            for (key, at), voted in self.votes.items()
        )

    def _check_complete(self, own: int, epoch: int, start: int, log: Sequence[Entry]) -> None:
        for entry, at in zip(reversed(self.committed), reversed(self.commit_epochs), strict=True):
            if at >= epoch:
                continue
            if entry.end > start and entry not in log:
                end = (log[-1].end, log[-1].epoch) if log else (start, 0)
                raise Violation(
                    "S5",
                    f"{own} leads epoch {epoch} without all that is committed",
                    f"committed in epoch {at}: {describe.batch(entry.data)}",
                    f"its log ends at {describe.position(*end)}",
                )
            return

    # Logs

    def writes(self, own: int, entry: Entry, before: int) -> None:
        """A replica writes a batch after one of epoch `before`.

        S13: there is one batch for an offset and epoch, and its epoch's one leader leaves no gap;
        S6: and one log that ends with it.
        """
        base, end, epoch = entry[:3]
        known = self.written.get((base, epoch))
        if known is None:
            if self.written_to.setdefault(epoch, base) != base:
                raise Violation(
                    "S13",
                    f"{own} has a batch at {base} of epoch {epoch}, whose batches end elsewhere",
                    f"written before: up to {self.written_to[epoch]}",
                    f"at {own}: {describe.batch(entry.data)}",
                )
            self.written[base, epoch] = (entry, before)
            self.written_to[epoch] = end
            if entry.voters is not None:
                self.known.update([member[0] for member in entry.voters])
            return
        if known[0] != entry:
            raise Violation(
                "S13",
                f"offset {entry.base} of epoch {entry.epoch} is two batches",
                f"written before: {describe.batch(known[0].data)}",
                f"at {own}: {describe.batch(entry.data)}",
            )
        if known[1] != before:
            raise Violation(
                "S6",
                f"logs with the same batch differ before it: {describe.batch(entry.data)}",
                f"before it at {own}: epoch {before}",
                f"before it elsewhere: epoch {known[1]}",
            )

    def finds(self, own: int, entries: Sequence[Entry]) -> None:
        """A replica finds batches below the start that its log had. S13: committed ones."""
        for entry in entries:
            place = self.places.get(entry.base)
            if place is None or self.committed[place] != entry:
                raise Violation(
                    "S13",
                    f"{own} finds a batch that it did not write",
                    f"found: {describe.batch(entry.data)}",
                )

    def drops(self, own: int, epoch: int, end: int, entries: Sequence[Entry]) -> None:
        """A replica drops these batches, from offset `end` on.

        S11: none is committed, as far as the replica's epoch can know.
        """
        for entry in entries:
            place = self.places.get(entry.base)
            if place is None or self.committed[place] != entry:
                continue
            if self.commit_epochs[place] <= epoch:
                raise Violation(
                    "S11",
                    f"{own} in epoch {epoch} drops committed {entry.base}",
                    f"committed in epoch {self.commit_epochs[place]}: {describe.batch(entry.data)}",
                    f"node {own} keeps what is below {end}",
                )

    def advances(
        self, own: int, offset: int, leader_epoch: int, entries: Sequence[Entry]
    ) -> bool:
        """A high watermark advances over these batches; returns whether that commits any.

        `leader_epoch` is -1 except on the leader. S7: what is committed stays; S8: followers are
        not ahead; S10: a leader commits through a batch of its own epoch.
        """
        for entry in entries:
            place = self.places.get(entry.base)
            if place is not None and self.committed[place] != entry:
                raise Violation(
                    "S7",
                    f"{own} takes other records at {entry.base} for committed",
                    f"committed: {describe.batch(self.committed[place].data)}",
                    f"at {own}: {describe.batch(entry.data)}",
                )
            if place is None and leader_epoch < 0:
                raise Violation(
                    "S8",
                    f"{own} knows {offset}, committed is {self.frontier}",
                    f"at node {own}: {describe.batch(entry.data)}",
                    f"committed: up to {self.frontier}",
                )
        if leader_epoch < 0 or offset <= self.frontier:
            return False
        new = [entry for entry in entries if entry.base >= self.frontier]
        self._commit(own, offset, leader_epoch, new)
        return True

    def _commit(self, own: int, offset: int, leader_epoch: int, new: list[Entry]) -> None:
        if not new or new[0].base != self.frontier:
            raise Violation("S7", f"{own} commits up to {offset} after {self.frontier}")
        if new[-1].epoch != leader_epoch:
            raise Violation(
                "S10",
                f"{own} commits through a batch of an older epoch",
                f"leader {own} of epoch {leader_epoch}, high watermark {offset}",
                f"last committed batch: {describe.batch(new[-1].data)}",
            )
        for entry in new:
            self.places[entry.base] = len(self.committed)
            self.committed.append(entry)
            self.commit_epochs.append(leader_epoch)
            self.sums[entry.end] = crc32(entry.data, self.sums[entry.base])
            if entry.voters is not None:
                self.sets.append((entry.voters_offset, entry.voters))
            if entry.version is not None:
                self.versions.append((entry.base, entry.version))

    def commits_on(self, own: int, voters: Voters, holding: Sequence[Key]) -> None:
        """What a leader has just committed is durable on `holding`. S9, S17: a majority of its
        voters."""
        durable = members(voters, holding)
        if 2 * len(durable) <= len(voters):
            raise Violation(
                "S9",
                f"{own} commits what a minority has: {describe.batch(self.committed[-1].data)}",
                f"voters in force at {own}: {describe.voters(voters)}",
                f"of these have it durably: {describe.voters(durable)}",
            )

    def acknowledges(
        self, own: int, base: int, epoch: int, values: tuple[bytes, ...], after: int
    ) -> None:
        """A client is told that its records are committed. S12: they are; S21: above everything
        that had been acknowledged when it sent them."""
        if base < after:
            raise Violation("S21", f"{base} was acknowledged, asked for after {after} was")
        self.acknowledged = max(self.acknowledged, base + len(values))
        found: list[bytes] = []
        found_epoch = -1
        if base < self.frontier:
            entry = self.committed[bisect_left(self.committed, (base + 1,)) - 1]
            found_epoch = entry.epoch
            found = record_values(entry)[base - entry.base :][: len(values)]
        if found_epoch != epoch or tuple(found) != values:
            there = ", ".join(map(describe.value, found)) or "nothing"
            raise Violation(
                "S12",
                f"{own} acknowledged what is not committed at {base}",
                f"acknowledged: epoch {epoch} ({', '.join(map(describe.value, values))})",
                f"committed: epoch {found_epoch} ({there})",
            )

    def acknowledges_voter(self, key: Key, *, is_added: bool) -> None:
        """An operator is told that a voter was added or removed. S12: that is committed."""
        sets = [voters for _, voters in self.sets]
        if is_added:
            is_committed = any(key in voters for voters in sets)
        else:
            is_committed = any(
                key in before and key not in after for before, after in pairwise(sets)
            )
        if not is_committed:
            change = "addition" if is_added else "removal"
            raise Violation(
                "S12",
                f"the {change} of voter {key[0]} was acknowledged, and is not committed",
                f"committed: {describe.voters(self.voters)}",
            )

    # Snapshots and state machines

    def has_snapshot(
        self,
        own: int,
        snapshot: OffsetAndEpoch,
        state: tuple[int, int] | None,
        control: tuple[Voters | None, int],
    ) -> None:
        """A replica has a snapshot, with this voter set and kraft.version.

        S14: it is the sum of what is committed; S16: with the voters in force there.
        """
        offset = snapshot.offset
        if offset > self.frontier or offset not in self.sums:
            raise Violation("S14", f"{own} has snapshot {snapshot}, committed is {self.frontier}")
        before = next((one for one in reversed(self.committed) if one.end <= offset), None)
        if before is None or before.epoch != snapshot.epoch:
            raise Violation("S14", f"{own} has snapshot {snapshot} of another epoch")
        if state != (offset, self.sums[offset]):
            raise Violation("S14", f"{own} has snapshot {snapshot} of what was not committed")
        voters, version = self.at(offset)
        if control != (voters, version):
            raise Violation(
                "S16",
                f"{own} has snapshot {snapshot} with other voters than are in force there",
                f"in the snapshot: {_control(*control)}",
                f"in force: {_control(voters, version)}",
            )

    def delivers(self, own: int, entry: Entry) -> None:
        """A state machine gets a batch. S7: a committed one."""
        place = self.places.get(entry.base)
        if place is None or self.committed[place] != entry:
            known = "nothing" if place is None else describe.batch(self.committed[place].data)
            raise Violation(
                "S7",
                f"{own} delivers {entry.base}, which is not committed",
                f"delivered: {describe.batch(entry.data)}",
                f"committed there: {known}",
            )

    def loads(self, own: int, snapshot: OffsetAndEpoch, state: tuple[int, int]) -> None:
        """A state machine loads a snapshot. S14: of what was committed."""
        if state != (snapshot.offset, self.sums.get(snapshot.offset)):
            raise Violation("S14", f"{own} loads {snapshot} of what was not committed")


def _control(voters: Voters | None, version: int) -> str:
    return f"{describe.voters(voters or ())}, kraft.version {version}"
