"""What members are assigned: read from every form in which it is told, and put in words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kraftwire.decode.body.topics import TopicNames
from kraftwire.decode.render.groups.model import Assignment
from kraftwire.errors import WireError
from kraftwire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from kraftwire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kraftwire.wire.json_form import uuid_to_text

__all__ = ["assigned", "of_consumer_protocol", "of_tasks", "of_topics", "subscribed"]

_TOPICS_SHOWN = 6
_TASK_KINDS = (("active_tasks", ""), ("standby_tasks", "standby "), ("warmup_tasks", "warm-up "))


def of_consumer_protocol(data: bytes | memoryview) -> Assignment | None:
    """The assignment that the leader of a classic group made; None if it is something else."""
    found = _versioned(ConsumerProtocolAssignment, data)
    if found is None:
        return None if data else {}
    return {each.topic: tuple(sorted(each.partitions)) for each in found.assigned_partitions}


def subscribed(data: bytes | memoryview) -> list[str]:
    """The topics in the metadata of a consumer that joins; none if it is something else."""
    found = _versioned(ConsumerProtocolSubscription, data)
    return [] if found is None else sorted(found.topics)


def _versioned(cls: Any, data: bytes | memoryview) -> Any:
    """A message after its version of two bytes."""
    version = int.from_bytes(data[:2], "big", signed=True)
    if len(data) < 2 or version < 0:
        return None
    try:
        # As in Kafka, a later version is read as the latest that is known.
        return cls.decode(bytes(data), min(version, cls.VERSIONS.high), 2)[0]
    except WireError:
        return None


def of_topics(topics: Iterable[Any], names: TopicNames) -> Assignment:
    """The assignment in a heartbeat's answer, by topic ids."""
    found = {}
    for each in topics:
        name = names.name(None, each.topic_id) or uuid_to_text(each.topic_id)
        found[name] = tuple(sorted(each.partitions))
    return found


def of_tasks(answer: Any, before: Assignment | None) -> Assignment | None:
    """The tasks in the answer to a streams member; None if they have not changed."""
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
    """An assignment in words: partitions in ranges, tasks as Kafka Streams names them."""
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
    """Numbers in order, runs of them as their ends."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)
