"""The current voter sets as checkers see them: read only from the bytes of logs.

This is an independent model, which each core's own view is compared with.
"""

from __future__ import annotations

from collections.abc import Iterable

from kraftwire.messages.kraft_version_record import KRaftVersionRecord
from kraftwire.messages.voters_record import VotersRecord
from kraftwire.records.batch import RecordBatch
from kraftwire.records.control import decode_control

# A replica: node id and directory id, zeros for an unknown directory.
Key = tuple[int, bytes]

# A voter set. Order: by id.
Voters = tuple[Key, ...]


def matches(member: Key, key: Key) -> bool:
    """Return whether a replica is a member of a set; a member without a directory id matches any
    (R-ID-2)."""
    return member[0] == key[0] and (not any(member[1]) or member[1] == key[1])


def members(voters: Voters, keys: Iterable[Key]) -> list[Key]:
    """The members of a set that these replicas are."""
    keys = list(keys)
    return [member for member in voters if any(matches(member, key) for key in keys)]


def is_member(voters: Voters, key: Key) -> bool:
    """Return whether a replica is in a set."""
    return any(matches(member, key) for member in voters)


def is_majority(voters: Voters, keys: Iterable[Key]) -> bool:
    """Return whether these replicas are more than half of a set."""
    return 2 * len(members(voters, keys)) > len(voters)


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
