"""What is known of groups: members, generations, offsets.

Owns plain values only; the modules next to it gather them, `text` and `json_form` show them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["Assignment", "Generation", "Group", "Kind", "Member", "Offsets", "Place"]

Kind = Literal["classic", "consumer", "share", "streams"]

# Topic and partition.
Place = tuple[str, int]

# Topics with their partitions, or subtopologies with those of their tasks; those of standby and
# warm-up tasks have the kind of the task before them.
Assignment = dict[str, tuple[int, ...]]


@dataclass(slots=True)
class Member:
    """A member of a group.

    Shape: `label` is its instance id or its client's id, with a number where several have the same.
    `ending` tells how it went, empty while it is there. Units: times in seconds since the epoch.
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
        """Whether it takes part."""
        return self.ended is None


@dataclass(slots=True)
class Generation:
    """A generation of a classic group, or an epoch of one of the other kinds.

    Shape: it begins when the first member is asked to rebalance, or does something that makes the
    group rebalance, and ends when the last member has its assignment; `reasons` say why it began.
    The first member was told of it when it became `known`. `members` are the ids of those who are
    in it, only counted in earlier generations.
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
        """How many members are in it."""
        return max(self.member_count, len(self.members))

    @property
    def seconds(self) -> float:
        """How long the group took to rebalance."""
        return max(0.0, self.end - self.start)


@dataclass(slots=True)
class Offsets:
    """What a group has committed of a partition.

    Shape: `committed` is None until a commit or an OffsetFetch has told it; a share group is also
    `done` with so many records after it. `lag_max` is the largest lag as far as the partition's
    end was known, at `lag_max_time`.
    """

    committed: int | None = None
    done: int = 0
    commits: int = 0
    lag_max: int | None = None
    lag_max_time: float = 0.0
    client: str = ""

    def lag(self, end: int | None) -> int | None:
        """How many records before an end the group has not done; None if either is not known."""
        if end is None or self.committed is None:
            return None
        return max(0, end - self.committed - self.done)


@dataclass(slots=True)
class Group:
    """A group.

    Shape: `members` are those that are there and those that were, by id; `instances` the latest of
    each instance id. `labels` counts how often a name was wanted for a member.
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
        """The members that are there."""
        return [each for each in self.members.values() if each.is_there]
