"""The log of a group coordinator: records of `__consumer_offsets`.

Each record is the state of a group after a change, so joins and departures are differences between
records. A record without a value deletes the entry that its key names; the log does not show
whether a member left or was removed by the coordinator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kraftwire.decode.body.context import TopicNames
from kraftwire.records.messages import Decoded
from kraftwire.story.groups.members import REASONS_MAX, Groups
from kraftwire.story.groups.model import (
    Assignment,
    Generation,
    Group,
    Kind,
    Member,
    assigned,
    of_consumer_protocol,
    of_tasks,
    of_topics,
)
from kraftwire.story.groups.offsets import Lag

_OUT = "out of the group"
# The prefixes of the names of record types.
_KINDS: tuple[tuple[str, Kind], ...] = (
    ("ConsumerGroup", "consumer"),
    ("ShareGroup", "share"),
    ("StreamsGroup", "streams"),
)


class CoordinatorLog:
    """Gathers groups from the records of all partitions of the topic."""

    def __init__(self, groups: Groups, lag: Lag, names: TopicNames) -> None:
        self._groups = groups
        self._lag = lag
        self._names = names
        # Group -> time of its first change since the last epoch, and the changes.
        self._changes: dict[str, tuple[float, list[str]]] = {}

    def on_record(self, record: Decoded, time: float) -> None:
        """Add a record. Units: `time` is when it was written, in seconds since the epoch."""
        key: Any = record.key
        if record.type == "GroupMetadata":
            self._on_classic(key.group, record.message, time)
        elif record.type == "OffsetCommit":
            self._on_commit(key, record.message, time)
        for prefix, kind in _KINDS:
            read = _READERS.get(record.type.removeprefix(prefix))
            if record.type.startswith(prefix) and read is not None:
                group = self._groups.group(key.group_id, kind)
                if group is not None:
                    read(self, group, key, record.message, time)

    # -- classic groups ------------------------------------------------------------------------

    def _on_classic(self, id: str, value: Any, time: float) -> None:
        group = self._groups.group(id, "classic")
        if group is None:
            return
        members = {} if value is None else {each.member_id: each for each in value.members}
        for each in group.present:
            if each.id not in members:
                self._leave(group, each, time)
        for each in members.values():
            known = group.members.get(each.member_id)
            if known is None or not known.is_there:
                known = self._join(group, each, time, each.member_id)
            if known is not None:
                known.last_seen, known.number = time, value.generation
                self._assign(group, known, of_consumer_protocol(each.assignment), time)
        if members:
            self._on_generation(group, value, time)

    def _on_generation(self, group: Group, value: Any, time: float) -> None:
        start, reasons = self._changes.pop(group.id, (time, []))
        latest = group.generations[-1].number if group.generations else -1
        if value.generation <= latest:
            return
        generation = Generation(value.generation, start, time, time, reasons)
        generation.protocol = value.protocol or ""
        leader = group.members.get(value.leader or "")
        generation.leader = leader.label if leader else value.leader or ""
        generation.members = {each.member_id for each in value.members}
        self._groups.add_generation(group, generation)

    # -- the other kinds -----------------------------------------------------------------------

    def _on_member(self, group: Group, key: Any, value: Any, time: float) -> None:
        """Add a member of a consumer, share or streams group: MemberMetadata."""
        known = group.members.get(key.member_id)
        is_there = known is not None and known.is_there
        if value is None:
            if known is not None and is_there:
                self._leave(group, known, time)
        elif not is_there:
            self._join(group, value, time, key.member_id)

    def _on_epoch(self, group: Group, _key: Any, value: Any, time: float) -> None:
        """Add an epoch of a consumer, share or streams group: Metadata."""
        start, reasons = self._changes.pop(group.id, (time, []))
        latest = group.generations[-1].number if group.generations else -1
        if value is not None and value.epoch > latest:
            generation = Generation(value.epoch, start, time, time, reasons)
            self._groups.add_generation(group, generation)

    def _on_current(self, group: Group, key: Any, value: Any, time: float) -> None:
        """Add the assignment of a member of such a group: CurrentMemberAssignment."""
        member = group.members.get(key.member_id)
        if member is None or value is None or not member.is_there:
            return
        member.last_seen, member.number = time, value.member_epoch
        latest = group.generations[-1] if group.generations else None
        if latest is not None and latest.number == value.member_epoch:
            latest.members.add(member.id)
            latest.end = max(latest.end, time)
        if group.kind == "streams":
            found = of_tasks(value, member.assignment)
        else:
            found = of_topics(value.assigned_partitions, self._names)
        self._assign(group, member, found, time)

    def _change(self, group: Group, time: float, reason: str) -> None:
        _, reasons = self._changes.setdefault(group.id, (time, []))
        reasons.append(reason)
        del reasons[REASONS_MAX:]

    # -- offsets -------------------------------------------------------------------------------

    def _on_commit(self, key: Any, value: Any, time: float) -> None:
        topic_id = getattr(value, "topic_id", None)
        if topic_id:
            self._names.note(key.topic, topic_id)
        group = self._groups.group(key.group)
        if group is not None and value is not None:
            place = key.topic, key.partition
            offsets = self._lag.note_commit(group, place, value.offset, time)
            if offsets is not None:
                offsets.commits += 1

    # -- members -------------------------------------------------------------------------------

    def _join(self, group: Group, value: Any, time: float, id: str) -> Member | None:
        host = value.client_host.removeprefix("/")
        name = "group_instance_id" if group.kind == "classic" else "instance_id"
        instance_id = getattr(value, name, None)
        member = self._groups.join(
            group, id, value.client_id, f"{host}:0-", time=time, instance_id=instance_id
        )
        if member is not None:
            self._change(group, time, f"{member.label} joins")
        return member

    def _leave(self, group: Group, member: Member, time: float) -> None:
        self._groups.leave(group, member, time, _OUT, f"is {_OUT}")
        self._change(group, time, f"{member.label} is {_OUT}")

    def _assign(
        self, group: Group, member: Member, found: Assignment | None, time: float
    ) -> None:
        if found is None or found == (member.assignment or {}):
            return
        member.assignment = found
        text = f"is assigned {assigned(found, is_tasks=group.kind == 'streams')}"
        self._groups.add_event(group, member, time, "assign", text, assignment=found)


_Reader = Callable[[CoordinatorLog, Group, Any, Any, float], None]
_READERS: dict[str, _Reader] = {
    "CurrentMemberAssignment": CoordinatorLog._on_current,
    "MemberMetadata": CoordinatorLog._on_member,
    "Metadata": CoordinatorLog._on_epoch,
}
