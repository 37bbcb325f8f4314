"""Replica keys and voter sets.

A replica counts as a voter if it matches the entry of its id. Source: Kafka's `ReplicaKey`,
`Endpoints`, `VoterSet`; R-ID-1 to R-ID-5.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kraftwire.protocol.endpoint import Endpoint
from kraftwire.wire.fast import ZERO_UUID


class ReplicaKey(NamedTuple):
    """A replica: node id and directory id, the zero uuid standing for an unknown directory.

    A tuple, because what is known of peers is looked up by it several times in every step.
    """

    id: int
    directory_id: bytes = ZERO_UUID

    @property
    def directory_text(self) -> str:
        """The directory id as Kafka prints it: base64, url-safe, unpadded."""
        return urlsafe_b64encode(self.directory_id).decode().rstrip("=")

    @property
    def has_directory_id(self) -> bool:
        """Whether the log directory is known."""
        return self.directory_id != ZERO_UUID


@dataclass(frozen=True, slots=True)
class Voter:
    """One entry of a voter set."""

    key: ReplicaKey
    endpoints: tuple[Endpoint, ...] = ()
    kraft_version_min: int = 0
    kraft_version_max: int = 0

    def endpoint(self, listener: str) -> Endpoint | None:
        """The voter's address under a listener name, if it has one."""
        for endpoint in self.endpoints:
            if endpoint.listener == listener:
                return endpoint
        return None

    def supports(self, kraft_version: int) -> bool:
        """Whether the voter understands the records of a kraft.version."""
        return self.kraft_version_min <= kraft_version <= self.kraft_version_max

    def matches(self, key: ReplicaKey) -> bool:
        """Whether a replica is this voter: an entry without directory id takes any (R-ID-2)."""
        mine = self.key
        return mine.id == key.id and (
            mine.directory_id == ZERO_UUID or mine.directory_id == key.directory_id
        )


@dataclass(frozen=True, slots=True)
class VoterSet:
    """A set of voters, at most one entry per id. Order: by id."""

    voters: Mapping[int, Voter] = field(default_factory=dict)

    @staticmethod
    def of(*voters: Voter) -> VoterSet:
        """A set of these voters. Ids are unique."""
        return VoterSet({voter.key.id: voter for voter in sorted(voters, key=lambda v: v.key.id)})

    def __len__(self) -> int:
        return len(self.voters)

    def __iter__(self) -> Iterator[Voter]:
        return iter(self.voters.values())

    @property
    def majority(self) -> int:
        """How many voters make a majority."""
        return len(self.voters) // 2 + 1

    def with_voter(self, voter: Voter) -> VoterSet:
        """The set with this entry, in place of the one that has its id."""
        others = (one for one in self if one.key.id != voter.key.id)
        return VoterSet.of(*others, voter)

    def without(self, replica_id: int) -> VoterSet:
        """The set without the entry of an id."""
        return VoterSet.of(*(one for one in self if one.key.id != replica_id))

    def is_voter(self, key: ReplicaKey) -> bool:
        """Whether a replica matches the entry for its id; all others are observers."""
        voter = self.voters.get(key.id)
        return voter is not None and voter.matches(key)

    def get(self, replica_id: int) -> Voter | None:
        """The entry of an id."""
        return self.voters.get(replica_id)

    def endpoint(self, replica_id: int, listener: str) -> Endpoint | None:
        """The address of a voter under a listener name, if both are known."""
        voter = self.voters.get(replica_id)
        return voter.endpoint(listener) if voter else None
