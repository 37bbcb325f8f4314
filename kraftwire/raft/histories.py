"""Which voter set and which kraft.version are in force, by offset.

The newest control record in the log counts, committed or not; cutting the log takes it back.
Without any, the static voters of the configuration count, at kraft.version 0.

Source: Kafka's `KRaftControlRecordStateMachine`, `VoterSetHistory`, `KRaftVersionHistory`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kraftwire.messages.kraft_version_record import KRaftVersionRecord
from kraftwire.messages.voters_record import Endpoint as RecordEndpoint
from kraftwire.messages.voters_record import KRaftVersionFeature, VotersRecord
from kraftwire.messages.voters_record import Voter as RecordVoter
from kraftwire.raft.batches import control_records
from kraftwire.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet

__all__ = ["VoterHistory", "voter_set", "voters_record"]

_Entries = list[tuple[int, VoterSet]]


class VoterHistory:
    """The voter sets and versions that the log holds (R-ID-5 to R-ID-8).

    Shape: `current` and `kraft_version` are in force; `last_voters_offset` is where the set in
    force stands in the log, None for the static one.
    """

    __slots__ = (
        "_static",
        "_versions",
        "_voters",
        "current",
        "kraft_version",
        "last_voters_offset",
    )

    def __init__(self, static: VoterSet, control: Iterable[tuple[int, bytes]] = ()) -> None:
        """Start with a log's control batches, (base offset, bytes) each. Order: by offset."""
        self._static = static
        self._voters: _Entries = []
        self._versions: list[tuple[int, int]] = []
        self.current = static
        self.kraft_version = 0
        self.last_voters_offset: int | None = None
        for base, batch in control:
            self.observe(base, batch)

    def observe(self, base: int, batch: bytes) -> bool:
        """Take in an appended control batch; returns whether set or version changed.

        Shape: `base` is the batch's base offset, at which nothing may be known yet. Types of
        records that are not known here are passed over, where Kafka would end (R-ID-6).
        """
        before = self.current, self.kraft_version
        self._drop(base)
        for offset, _, message in control_records(batch):
            if isinstance(message, VotersRecord):
                self._voters.append((offset, voter_set(message)))
            elif isinstance(message, KRaftVersionRecord):
                self._versions.append((offset, message.kraft_version))
        return self._settle(before)

    def truncate(self, offset: int) -> bool:
        """Forget what stood at this offset or behind it (R-ID-8); returns whether it changed."""
        before = self.current, self.kraft_version
        self._drop(offset)
        return self._settle(before)

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


def voter_set(record: VotersRecord) -> VoterSet:
    """The voter set that a record states; listener names become upper case (R-ID-4)."""
    return VoterSet.of(*map(_voter, record.voters))


def voters_record(voters: VoterSet) -> VotersRecord:
    """The record that states a voter set."""
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
