"""The voter set and kraft.version in effect, by offset.

The newest control record in the log counts, committed or not; truncating the log undoes it. A
snapshot has both for everything that it contains. Without either, the static voters of the
configuration count, at kraft.version 0.

Source: Kafka's `KRaftControlRecordStateMachine`, `VoterSetHistory`, `KRaftVersionHistory`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

from kraftwire.messages.kraft_version_record import KRaftVersionRecord
from kraftwire.messages.voters_record import Endpoint as RecordEndpoint
from kraftwire.messages.voters_record import KRaftVersionFeature, VotersRecord
from kraftwire.messages.voters_record import Voter as RecordVoter
from kraftwire.protocol.endpoint import Endpoint
from kraftwire.raft.batches import control_records
from kraftwire.raft.voters import ReplicaKey, Voter, VoterSet
from kraftwire.records.control import ControlType
from kraftwire.wire.message import Message

_Value = TypeVar("_Value")
_Entries = list[tuple[int, _Value]]


class InForce(NamedTuple):
    """The voters and version at an offset. The offset of the voters is None for the static set."""

    voters: VoterSet
    kraft_version: int
    voters_offset: int | None


class VoterHistory:
    """The voter sets and versions that snapshot and log hold (R-ID-5 to R-ID-8).

    `current` and `kraft_version` are in effect. `last_voters_offset` is the offset of the record of
    the current set, None for the static one; for a snapshot it is the snapshot's last offset, so -1
    for the bootstrap checkpoint.
    """

    __slots__ = (
        "_static",
        "_versions",
        "_voters",
        "current",
        "kraft_version",
        "last_voters_offset",
    )

    def __init__(
        self,
        static: VoterSet,
        control: Iterable[tuple[int, bytes]] = (),
        snapshot: tuple[int, bytes] | None = None,
    ) -> None:
        """Start with the control batches of the newest snapshot and of the log after it.

        `snapshot` is the end offset and the first control batch; `control` has (base offset, bytes)
        of each batch. Order: by offset; batches that the snapshot contains are skipped.
        """
        self._static = static
        self._voters: _Entries[VoterSet] = []
        self._versions: _Entries[int] = []
        self.current = static
        self.kraft_version = 0
        self.last_voters_offset: int | None = None
        if snapshot is not None:
            self.reset(*snapshot)
        end = snapshot[0] if snapshot is not None else 0
        for base, batch in control:
            if base >= end:
                self.observe(base, batch)

    @property
    def has_own_voters(self) -> bool:
        """Whether the log or a snapshot has the voters, so that the static ones do not count."""
        return bool(self._voters)

    @property
    def previous(self) -> VoterSet:
        """The set before the current one, unless it has been pruned."""
        return self._voters[-2][1] if len(self._voters) > 1 else self._static

    def reset(self, end_offset: int, control: bytes) -> bool:
        """Replace everything with the contents of a snapshot's first control batch.

        Returns: whether set or version changed.
        """
        before = self.current, self.kraft_version
        self._voters.clear()
        self._versions.clear()
        for _, _, message in control_records(control):
            self._take(end_offset - 1, message)
        return self._settle(before)

    def observe(self, base: int, batch: bytes) -> bool:
        """Process an appended control batch; returns whether set or version changed.

        `base` is the batch's base offset, at which nothing may be known yet. Unknown types of
        records are skipped, where Kafka would end (R-ID-6).
        """
        before = self.current, self.kraft_version
        self._drop(base)
        for offset, _, message in control_records(batch):
            self._take(offset, message)
        return self._settle(before)

    def truncate(self, offset: int) -> bool:
        """Forget records at or after this offset (R-ID-8); returns whether set or version
        changed."""
        before = self.current, self.kraft_version
        self._drop(offset)
        return self._settle(before)

    def prune(self, end_offset: int) -> None:
        """Forget what a snapshot with this end offset replaces, except its newest (R-ID-8)."""
        _prune(self._voters, end_offset)
        _prune(self._versions, end_offset)

    def at(self, offset: int) -> InForce:
        """Return the value in effect after the record at an offset, unless it has been pruned."""
        voters = _last(self._voters, offset)
        version = _last(self._versions, offset)
        return InForce(
            voters[1] if voters else self._static,
            version[1] if version else 0,
            voters[0] if voters else None,
        )

    def control_at(self, offset: int) -> tuple[tuple[ControlType, Message], ...]:
        """Return the records after the header of a snapshot whose last offset is given
        (R-SNAP-2)."""
        voters, version, where = self.at(offset)
        if version == 0:
            return ()
        found: list[tuple[ControlType, Message]] = [
            (ControlType.KRAFT_VERSION, KRaftVersionRecord(version=0, kraft_version=version))
        ]
        if where is not None:
            found.append((ControlType.KRAFT_VOTERS, voters_record(voters)))
        return tuple(found)

    def _take(self, offset: int, message: Message | None) -> None:
        if isinstance(message, VotersRecord):
            self._voters.append((offset, voter_set(message)))
        elif isinstance(message, KRaftVersionRecord):
            self._versions.append((offset, message.kraft_version))

    def _drop(self, offset: int) -> None:
        while self._voters and self._voters[-1][0] >= offset:
            self._voters.pop()
        while self._versions and self._versions[-1][0] >= offset:
            self._versions.pop()

    def _settle(self, before: tuple[VoterSet, int]) -> bool:
        if self._voters:
            self.last_voters_offset, self.current = self._voters[-1]
        else:
            self.last_voters_offset, self.current = None, self._static
        self.kraft_version = self._versions[-1][1] if self._versions else 0
        return before != (self.current, self.kraft_version)


def _last(entries: _Entries[_Value], offset: int) -> tuple[int, _Value] | None:
    return next((entry for entry in reversed(entries) if entry[0] <= offset), None)


def _prune(entries: _Entries[_Value], end_offset: int) -> None:
    contained = sum(offset < end_offset for offset, _ in entries)
    del entries[: max(contained - 1, 0)]


def voter_set(record: VotersRecord) -> VoterSet:
    """Build the voter set of a record; listener names become upper case (R-ID-4)."""
    return VoterSet.of(*map(_voter, record.voters))


def voters_record(voters: VoterSet) -> VotersRecord:
    """Build the record of a voter set."""
    return VotersRecord(version=0, voters=[_record_voter(voter) for voter in voters])


def _voter(entry: RecordVoter) -> Voter:
    feature = entry.kraft_version_feature
    return Voter(
        ReplicaKey(entry.voter_id, entry.voter_directory_id),
        _endpoints(entry.endpoints),
        feature.min_supported_version,
        feature.max_supported_version,
    )


def _endpoints(entries: Sequence[RecordEndpoint]) -> tuple[Endpoint, ...]:
    return tuple(Endpoint(entry.name.upper(), entry.host, entry.port) for entry in entries)


def _record_voter(voter: Voter) -> RecordVoter:
    return RecordVoter(
        voter_id=voter.key.id,
        voter_directory_id=voter.key.directory_id,
        endpoints=[
            RecordEndpoint(name=endpoint.listener, host=endpoint.host, port=endpoint.port)
            for endpoint in voter.endpoints
        ],
        kraft_version_feature=KRaftVersionFeature(
            min_supported_version=voter.kraft_version_min,
            max_supported_version=voter.kraft_version_max,
        ),
    )
