"""The plan of a recovery from a lost majority: the writes, and the records that may be missing.

Only the furthest log goes on: later epoch, then higher end. With kraft.version 1 it becomes the log
of a quorum of one voter, which a record at its end names; the other survivors start with an empty
log as observers and are added. Were they voters with an empty log, they could elect each other and
lose everything. With kraft.version 0 the voters are in the properties files: at most one of them
may start empty, because it needs the vote of the other, which is refused to an empty log.

Source: rules R-START-6, R-ID-5, R-VOTE-4, R-LIS-6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kraftwire.errors import UsageError
from kraftwire.messages.voters_record import VotersRecord
from kraftwire.protocol.endpoint import Endpoint
from kraftwire.raft.batches import control_records
from kraftwire.raft.effects import ElectionState
from kraftwire.raft.histories import voter_set
from kraftwire.raft.voters import ReplicaKey, Voter, VoterSet
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.replica.lost_majority.survivors import Survivor

_EPOCH_MAX = 0x7FFFFFFF
_VOTER_KRAFT_VERSION_MAX = 1
_STATIC_MAX = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """The writes of a recovery.

    `survivors` are the furthest first. `voters` are those of the quorum afterwards; with
    kraft.version 0 the files of `unset` do not name them yet. `epoch` is above every epoch that was
    seen. `is_written` if the furthest log was changed already; `set_aside` are the survivors whose
    logs are not continued.

    `lost` are the voters that did not survive. `end` is that of the furthest log before it is
    changed. Everything below `committed_end` was committed; if `is_complete`, everything that was
    acknowledged is in the furthest log.
    """

    survivors: tuple[Survivor, ...]
    voters: VoterSet
    unset: tuple[Survivor, ...]
    epoch: int
    is_written: bool
    set_aside: tuple[Survivor, ...]
    lost: tuple[Voter, ...]
    end: OffsetAndEpoch
    committed_end: int
    is_complete: bool

    @property
    def furthest(self) -> Survivor:
        """The survivor whose log goes on."""
        return self.survivors[0]

    @property
    def kraft_version(self) -> int:
        """Where the voters are: 1 in the log, 0 in the properties files."""
        return self.furthest.kraft_version

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to write."""
        is_free = self.furthest.election == ElectionState(self.epoch)
        return self.is_written and is_free and not self.set_aside and not self.unset


def plan_recovery(survivors: Sequence[Survivor]) -> Recovery:
    """Decide what to write. Raises: UsageError if the survivors do not form one quorum."""
    _check_one_quorum(survivors)
    first, *others = sorted(survivors, key=_rank)
    if not first.end.offset:
        raise UsageError("no survivor has a record in its metadata log: nothing can be recovered")
    voters = _voters(first, others)
    written = _written_epoch(first, others, voters)
    epoch = max(one.epoch for one in survivors) + 1 if written is None else written
    if epoch > _EPOCH_MAX:
        raise UsageError(f"no epoch is above {_EPOCH_MAX}, the last one that was seen")
    is_static = not first.kraft_version
    before = _voters_before(first, is_written=written is not None)
    return Recovery(
        survivors=(first, *others),
        voters=voters,
        unset=tuple(
            one for one in (first, *others) if is_static and one.node.static_voters != voters
        ),
        epoch=epoch,
        is_written=written is not None,
        set_aside=tuple(one for one in others if one.has_log),
        lost=_lost(before, survivors),
        end=_end_before(first) if written is not None and not is_static else first.end,
        committed_end=_committed_end(first, others),
        is_complete=bool(before) and all(_is_majority(some, survivors) for some in before),
    )


def _check_one_quorum(survivors: Sequence[Survivor]) -> None:
    sources: dict[int, str] = {}
    for one in survivors:
        source, known = one.node.directories.source, sources.get(one.key.id)
        if known is not None:
            raise UsageError(f"{source} and {known} both describe node {one.key.id}")
        sources[one.key.id] = source
    named = {one.cluster_id: one for one in survivors}
    if len(named) > 1:
        texts = [
            f"{one.node.directories.metadata} belongs to cluster {cluster_id}"
            for cluster_id, one in named.items()
        ]
        raise UsageError(", ".join(texts))


def _rank(survivor: Survivor) -> tuple[int, int, bool, int]:
    """Sort the furthest first; of equal logs a voter's, then that of the lowest id."""
    is_observer = not survivor.voters.is_voter(survivor.key)
    epoch, offset = survivor.end.rank
    return -epoch, -offset, is_observer, survivor.key.id


def _voters(first: Survivor, others: Sequence[Survivor]) -> VoterSet:
    if first.kraft_version:
        return VoterSet.of(
            Voter(first.key, first.node.endpoints, 0, _VOTER_KRAFT_VERSION_MAX)
        )
    if 1 + len(others) > _STATIC_MAX:
        nearest = others[0].node.directories.source
        raise UsageError(
            f"with static voters at most {_STATIC_MAX} nodes can be recovered together, because "
            "two that start empty could elect each other: name "
            f"{first.node.directories.source} and {nearest} now, and add the others to "
            "controller.quorum.voters one by one, each with an empty directory, once the voters "
            "before it have caught up"
        )
    return VoterSet.of(
        *(_static_voter(one.key.id, one.node.endpoints[0]) for one in (first, *others))
    )


def _static_voter(node_id: int, endpoint: Endpoint) -> Voter:
    return Voter(ReplicaKey(node_id), (endpoint,))


def _written_epoch(
    first: Survivor, others: Sequence[Survivor], voters: VoterSet
) -> int | None:
    """Return the epoch of an earlier run that ended after it changed the furthest log."""
    seen = max((one.epoch for one in others), default=-1)
    election = first.election
    if first.kraft_version:
        is_written = _ends_with(first, voters) and seen < first.end.epoch == first.epoch
        return first.end.epoch if is_written else None
    is_free = election.leader_id < 0 and election.voted is None
    return election.epoch if is_free and election.epoch > max(seen, first.end.epoch) else None


def _ends_with(survivor: Survivor, voters: VoterSet) -> bool:
    """Whether the last epoch consists of the record of these voters alone.

    A leader begins its epoch with another record.
    """
    batches, control = survivor.log.batches, survivor.log.control
    if not batches or not control or control[-1][0] != batches[-1].offset:
        return False
    if len(batches) > 1 and batches[-2].epoch == batches[-1].epoch:
        return False
    records = [message for _, _, message in control_records(control[-1][1])]
    return (
        len(records) == 1
        and isinstance(records[0], VotersRecord)
        and voter_set(records[0]) == voters
    )


def _voters_before(first: Survivor, *, is_written: bool) -> list[VoterSet]:
    """Return the voters that lost their majority, and the set before theirs if it may still count.

    The last set in a log may be uncommitted. After an earlier run only a log still has them.
    """
    if not first.kraft_version:
        return [] if is_written else [first.voters]
    sets = [first.previous] if is_written else [first.voters, first.previous]
    return [voters for voters in sets if len(voters)]


def _end_before(first: Survivor) -> OffsetAndEpoch:
    """Return the end of the furthest log without the record that an earlier run appended."""
    batches, snapshot = first.log.batches, first.snapshot
    epoch = batches[-2].epoch if len(batches) > 1 else snapshot.epoch if snapshot else 0
    return OffsetAndEpoch(batches[-1].offset, epoch)


def _lost(before: Sequence[VoterSet], survivors: Sequence[Survivor]) -> tuple[Voter, ...]:
    newest = before[0] if before else VoterSet()
    return tuple(voter for voter in newest if not _has_survived(voter, survivors))


def _has_survived(voter: Voter, survivors: Sequence[Survivor]) -> bool:
    return any(voter.matches(one.key) for one in survivors)


def _is_majority(voters: VoterSet, survivors: Sequence[Survivor]) -> bool:
    """Whether every majority of these voters contains a survivor, also after one more change."""
    return sum(_has_survived(voter, survivors) for voter in voters) >= voters.majority


def _committed_end(first: Survivor, others: Sequence[Survivor]) -> int:
    """Return the offset below which the furthest log is known to be committed.

    Snapshots hold only committed records. A leader appends records other than control records only
    after the first batch of its epoch is committed (R-LIS-6).
    """
    known = 0
    for one in (first, *others):
        if one.snapshot is not None and one.snapshot.offset <= first.end.offset:
            known = max(known, one.snapshot.offset)
    control = {base for base, _ in first.log.control}
    epoch, second = -1, -1
    for batch in first.log.batches:
        if batch.epoch != epoch:
            epoch, second = batch.epoch, -1
            continue
        if second < 0:
            second = batch.offset
        if batch.offset not in control:
            known = max(known, second)
    return known
