"""The values of the story of groups: members, generations, assignments, offsets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from kraftwire.decode.body.context import TopicNames
from kraftwire.errors import WireError
from kraftwire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from kraftwire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kraftwire.wire.json_form import uuid_to_text
from kraftwire.wire.size_estimate import decode_bounded

Kind = Literal["classic", "consumer", "share", "streams"]

# A topic's name and a partition.
TopicPartition = tuple[str, int]

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
    that number of records after it, as `time` shows. It `is_old` if nothing was recorded between
    that and when the end of the partition was seen last. `lag_max` is the largest lag, by the end
    of the partition as far as it was known, at `lag_max_time`.
    """

    committed: int | None = None
    done: int = 0
    commits: int = 0
    lag_max: int | None = None
    lag_max_time: float = 0.0
    client: str = ""
    time: float = 0.0
    is_old: bool = False

    def lag(self, end: int | None) -> int | None:
        """Return the number of records before `end` that are not done; None if it is unknown."""
        if end is None or self.committed is None or self.is_old:
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
    offsets: dict[TopicPartition, Offsets] = field(default_factory=dict)
    instances: dict[str, Member] = field(default_factory=dict)
    labels: Counter[str] = field(default_factory=Counter)

    @property
    def present(self) -> list[Member]:
        """The current members."""
        return [each for each in self.members.values() if each.is_there]


_TOPICS_SHOWN = 6
_TASK_KINDS = (("active_tasks", ""), ("standby_tasks", "standby "), ("warmup_tasks", "warm-up "))


def of_consumer_protocol(data: bytes | memoryview) -> Assignment | None:
    """Return the assignment that a classic group's leader made; None in other formats."""
    found = _versioned(ConsumerProtocolAssignment, data)
    if found is None:
        return None if data else {}
    return {each.topic: tuple(sorted(each.partitions)) for each in found.assigned_partitions}


def subscribed(data: bytes | memoryview) -> list[str]:
    """Return the topics in the metadata of a joining consumer; an empty list in other formats."""
    found = _versioned(ConsumerProtocolSubscription, data)
    return [] if found is None else sorted(found.topics)


def _versioned(cls: Any, data: bytes | memoryview) -> Any:
    """Decode a message that follows its version of two bytes; None if that is not possible."""
    version = int.from_bytes(data[:2], "big", signed=True)
    if len(data) < 2 or version < 0:
        return None
    try:
        # As in Kafka, a newer version is read as the latest known one.
        return decode_bounded(cls, bytes(data), min(version, cls.VERSIONS.high), 2)[0]
    except WireError:
        return None


def of_topics(topics: Iterable[Any], names: TopicNames) -> Assignment:
    """Return the assignment in the answer to a heartbeat, which has topic ids."""
    found = {}
    for each in topics:
        name = names.name(None, each.topic_id) or uuid_to_text(each.topic_id)
        found[name] = tuple(sorted(each.partitions))
    return found


def of_tasks(answer: Any, before: Assignment | None) -> Assignment | None:
    """Return the tasks in the answer to a streams member; None if they have not changed."""
    found: Assignment = {}
    is_new = False
    for attribute, kind in _TASK_KINDS:
        tasks = getattr(answer, attribute)
        if tasks is None:
            old = before or {}
            found |= {key: value for key, value in old.items() if _task_kind(key) == kind}
            continue
        is_new = True
        found |= {f"{kind}{each.subtopology_id}": tuple(sorted(each.partitions)) for each in tasks}
    return found if is_new else None


def _task_kind(name: str) -> str:
    return next((kind for _, kind in _TASK_KINDS if kind and name.startswith(kind)), "")


def assigned(assignment: Assignment | None, *, is_tasks: bool = False) -> str:
    """Describe an assignment: partitions as ranges, tasks in the notation of Kafka Streams."""
    if assignment is None:
        return "an assignment of its own kind"
    parts = [(name, numbers) for name, numbers in sorted(assignment.items()) if numbers]
    joint = "_" if is_tasks else " "
    texts = [f"{name}{joint}{_ranges(numbers)}" for name, numbers in parts[:_TOPICS_SHOWN]]
    if len(parts) > _TOPICS_SHOWN:
        texts.append(f"{len(parts) - _TOPICS_SHOWN} more")
    head = "tasks " if is_tasks and texts else ""
    return head + ("; ".join(texts) or "nothing")


def _ranges(numbers: tuple[int, ...]) -> str:
    """Return sorted numbers with runs of them as ranges."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)
