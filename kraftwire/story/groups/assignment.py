"""Assignments of members: how to read them from messages, and how to describe them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kraftwire.decode.body.topics import TopicNames
from kraftwire.errors import WireError
from kraftwire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from kraftwire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kraftwire.story.groups.model import Assignment
from kraftwire.wire.json_form import uuid_to_text
from kraftwire.wire.scales import decode_bounded

__all__ = ["assigned", "of_consumer_protocol", "of_tasks", "of_topics", "subscribed"]

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
