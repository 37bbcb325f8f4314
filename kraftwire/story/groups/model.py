"""The values that the story of groups consists of: members, generations, offsets.

Owns plain values only; the modules next to it gather them, `text` and `json_form` show them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["Assignment", "Generation", "Group", "Kind", "Member", "Offsets", "Place"]

Kind = Literal["classic", "consumer", "share", "streams"]

# A topic's name and a partition.
Place = tuple[str, int]

# Topics with their partitions, or subtopologies with the partitions of their tasks. For standby and
# warm-up tasks, the kind of task comes before the subtopology.
Assignment = dict[str, tuple[int, ...]]


@dataclass(slots=True)
class Member:
    """A member of a group.

    `label` is its instance id or client id, with a number where several members have the same.
    `ending` says how it left, and is empty while it is a member. Units: times in seconds since the
    epoch.
    """

    id: str
    label: str
    client_id: str
    host: str
    joined: float
    last_seen: float
    instance_id: str | None = None
    ended: float | None = None
    ending: str = ""
    number: int = -1
    connection: str = ""
    interval: float = 0.0
    assignment: Assignment | None = None
    error: str = ""
    acquired: int = 0
    redelivered: int = 0
    acknowledged: dict[str, int] = field(default_factory=dict)

    @property
    def is_there(self) -> bool:
        """Whether it is currently a member."""
        return self.ended is None


@dataclass(slots=True)
class Generation:
    """A generation of a classic group, or an epoch of a group of another kind.

    It begins when the first member is asked to rebalance, or causes a rebalance, and ends when the
    last member has its assignment; `reasons` say why it began. `known` is when the first member
    learned of it. `members` are the ids of its members; for earlier generations only their number
    is kept.
    """

    number: int
    start: float
    end: float
    known: float
    reasons: list[str] = field(default_factory=list)
    members: set[str] = field(default_factory=set)
    member_count: int = 0
    leader: str = ""
    protocol: str = ""

    @property
    def size(self) -> int:
        """The number of its members."""
        return max(self.member_count, len(self.members))

    @property
    def seconds(self) -> float:
        """How long the group took to rebalance, in seconds."""
        return max(0.0, self.end - self.start)


@dataclass(slots=True)
class Offsets:
    """The offsets that a group has committed for a partition.

    `committed` is None until a commit or an OffsetFetch has shown it; a share group has also `done`
    that number of records after it. `lag_max` is the largest lag, by the end of the partition as
    far as it was known, at `lag_max_time`.
    """

    committed: int | None = None
    done: int = 0
    commits: int = 0
    lag_max: int | None = None
    lag_max_time: float = 0.0
    client: str = ""

    def lag(self, end: int | None) -> int | None:
        """Return the number of records before `end` that are not done; None if it is unknown."""
        if end is None or self.committed is None:
            return None
        return max(0, end - self.committed - self.done)


@dataclass(slots=True)
class Group:
    """A group.

    `members` are current and former members, by id; `instances` the latest member of each instance
    id. `labels` counts how many members wanted the same name.
    """

    id: str
    kind: Kind | None = None
    members: dict[str, Member] = field(default_factory=dict)
    generations: list[Generation] = field(default_factory=list)
    generation_overflow: int = 0
    offsets: dict[Place, Offsets] = field(default_factory=dict)
    instances: dict[str, Member] = field(default_factory=dict)
    labels: Counter[str] = field(default_factory=Counter)

    @property
    def present(self) -> list[Member]:
        """The current members."""
        return [each for each in self.members.values() if each.is_there]
