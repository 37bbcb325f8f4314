"""The current voter sets as checkers see them: read only from the bytes of logs.

This is an independent model, which each core's own view is compared with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kraftwire.messages.kraft_version_record import KRaftVersionRecord
from kraftwire.messages.voters_record import VotersRecord
from kraftwire.records.batch import RecordBatch
from kraftwire.records.control import decode_control

# A replica: node id and directory id, zeros for an unknown directory.
Key = tuple[int, bytes]

# A voter set. Order: by id.
Voters = tuple[Key, ...]


@dataclass(frozen=True, slots=True, eq=False)
class InForce:
    """A voter set and kraft.version; `before` is what they replaced.

    `offset` is that of the record which states the voters, -1 for a configuration and for the
    bootstrap checkpoint.
    """

    voters: Voters
    version: int = 0
    offset: int = -1
    before: InForce | None = None

    def has(self, key: Key) -> bool:
        """Whether a replica is in the set."""
        return key in self.voters or any(matches(member, key) for member in self.voters)

    def has_majority(self, keys: Iterable[Key]) -> bool:
        """Whether these replicas are more than half of the set."""
        return 2 * len(members(self.voters, keys)) > len(self.voters)

    def past(self) -> Iterator[InForce]:
        """This and all that was in force before it. Order: the latest first."""
        found: InForce | None = self
        while found is not None:
            yield found
            found = found.before

    def follow(self, data: bytes) -> InForce:
        """Return what is in effect after a control batch."""
        voters, version, offset = read_control(data)
        if voters is None and version is None:
            return self
        return InForce(
            self.voters if voters is None else voters,
            self.version if version is None else version,
            self.offset if voters is None else offset,
            self,
        )


NOBODY = InForce(())


def matches(member: Key, key: Key) -> bool:
    """Return whether a replica is a member of a set; a member without a directory id matches any
    (R-ID-2)."""
    return member[0] == key[0] and (not any(member[1]) or member[1] == key[1])


def members(voters: Voters, keys: Iterable[Key]) -> list[Key]:
    """The members of a set that these replicas are."""
    keys = list(keys)
    return [member for member in voters if any(matches(member, key) for key in keys)]


def read_control(data: bytes) -> tuple[Voters | None, int | None, int]:
    """Voter set and kraft.version that a control batch sets, and the offset of the former."""
    voters: Voters | None = None
    version: int | None = None
    offset = -1
    for record in RecordBatch(data).records():
        message = decode_control(record.key, record.value).message
        if isinstance(message, VotersRecord):
            keys = ((one.voter_id, one.voter_directory_id) for one in message.voters)
            voters, offset = tuple(sorted(keys)), record.offset
        elif isinstance(message, KRaftVersionRecord):
            version = message.kraft_version
    return voters, version, offset
