"""What all replicas of a cluster have made known: leaders, votes, written and committed batches.

Each method checks what one replica claims against everything known before, then adds it. Nothing
else of a replica is needed, so that the exhaustive search can check a claim against many histories.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from zlib import crc32

from kraftwire.raft.effects import ElectionState
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.sim import describe
from kraftwire.sim.invariants import Violation
from kraftwire.sim.untimed.disk import Entry, record_values
from kraftwire.sim.voters import Key, Voters, matches


class ClusterHistory:
    """Checks S1, S3, S5 to S12, S14, S16 and S17 across replicas.

    `campaigns` are (candidate, epoch) of requests for votes; `leaders` are by epoch; `votes` by
    voter and epoch. `places` has the index in `committed` of every base offset, `sums` the state of
    a state machine at every committed offset. `written` has by base offset and epoch the batch and
    the epoch of the one before it.
    """

    __slots__ = (
        "campaigns", "commit_epochs", "committed", "leaders", "places", "sums", "votes", "written",
    )  # fmt: skip

    def __init__(self) -> None:
        self.campaigns: set[tuple[int, int]] = set()
        self.leaders: dict[int, int] = {}
        self.votes: dict[tuple[Key, int], int] = {}
        self.committed: list[Entry] = []
        self.commit_epochs: list[int] = []
        self.places: dict[int, int] = {}
        self.sums: dict[int, int] = {0: 0}
        self.written: dict[tuple[int, int], tuple[Entry, int]] = {}

    def copy(self) -> ClusterHistory:
        """Return a copy."""
        made = object.__new__(ClusterHistory)
        for name in ClusterHistory.__slots__:
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

    # Elections

    def leads(self, own: int, leader: int, epoch: int) -> None:
        """A replica names a leader. S1: an epoch has one."""
        known = self.leaders.setdefault(epoch, leader)
        if known != leader:
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
        if any(matches(member, key) for member in voters):
            # A candidate's own vote, which is not stored by a step that makes it the leader.
            self.votes_for(key, epoch, own)
        members = [member for member in voters if self._has_vote(member, epoch, own)]
        if 2 * len(members) <= len(voters):
            by = sorted(member[0] for member in members)
            raise Violation(
                "S17",
                f"{own} leads epoch {epoch} by the votes of {by} among "
                f"{[member[0] for member in voters]}",
                f"voters in force at {own}: {describe.voters(voters)}",
                f"of these voted for candidate {own}: {describe.voters(members)}",
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

        S13: there is one batch for an offset and epoch; S6: and one log that ends with it.
        """
        known = self.written.setdefault((entry.base, entry.epoch), (entry, before))
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

    def commits_on(self, own: int, voters: Voters, holding: Sequence[Key]) -> None:
        """What a leader has just committed is durable on `holding`. S9, S17: a majority of its
        voters."""
        members = [member for member in voters if any(matches(member, key) for key in holding)]
        if 2 * len(members) <= len(voters):
            raise Violation(
                "S9",
                f"{own} commits what a minority has: {describe.batch(self.committed[-1].data)}",
                f"voters in force at {own}: {describe.voters(voters)}",
                f"of these have it durably: {describe.voters(members)}",
            )

    def acknowledges(self, own: int, base: int, epoch: int, values: tuple[bytes, ...]) -> None:
        """A client is told that its records are committed. S12: they are."""
        at = self.places.get(base, -1)
        if at < 0:
            at = next((at for at, e in enumerate(self.committed) if e.base < base < e.end), -1)
        found: list[bytes] = []
        found_epoch = -1
        if at >= 0:
            entry = self.committed[at]
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

    # Snapshots and state machines

    def has_snapshot(
        self,
        own: int,
        snapshot: OffsetAndEpoch,
        state: tuple[int, int] | None,
        control: tuple[Voters | None, int | None],
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
        voters, version = self._control_at(offset)
        if (version and control[1] != version) or (voters is not None and control[0] != voters):
            raise Violation(
                "S16",
                f"{own} has snapshot {snapshot} with other voters than are in force there",
                f"in the snapshot: {describe.voters(control[0] or ())}",
                f"in force: {describe.voters(voters or ())}",
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
