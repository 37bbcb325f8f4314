"""Groups whose assignments the broker computes: consumer, share and streams groups.

KIP-848, KIP-932 and KIP-1071: all three work by heartbeats. A request has the member's epoch: 0 to
join, -1 to leave, -2 for a static member that may come back. A response has the epoch of the group
that the member has reached, and its assignment if that has changed.
"""

from __future__ import annotations

from typing import Any

from kraftwire.decode.body.context import TopicNames
from kraftwire.decode.text import count_text, duration_text, listed, with_remarks
from kraftwire.protocol.error_codes import error_name
from kraftwire.story.events import Event
from kraftwire.story.groups.members import REASONS_MAX, Groups, because
from kraftwire.story.groups.model import (
    Assignment,
    Generation,
    Group,
    Kind,
    Member,
    assigned,
    of_tasks,
    of_topics,
)
from kraftwire.story.observed_exchange import ObservedExchange

HEARTBEATS: dict[str, Kind] = {
    "ConsumerGroupHeartbeat": "consumer",
    "ShareGroupHeartbeat": "share",
    "StreamsGroupHeartbeat": "streams",
}

_JOINS, _LEAVES, _PAUSES = 0, -1, -2
# A member that has been silent for this many of its heartbeat intervals is taken to be gone when
# the group moves to another epoch.
_INTERVALS = 2.5
# If nobody at all is heard for this many intervals, that is a pause of the recording.
_UNHEARD = 1.2
_MS = 1000


class HeartbeatGroups:
    """Gathers the members and epochs of groups of the three kinds."""

    def __init__(self, groups: Groups, names: TopicNames) -> None:
        self._groups = groups
        self._names = names
        # Group -> its epoch when the first of its members was seen.
        self._before: dict[str, int] = {}
        # Group -> times and reasons of changes since its last epoch began.
        self._reasons: dict[str, list[tuple[float, str]]] = {}

    def on_response(self, exchange: ObservedExchange) -> None:
        """Add a heartbeat and its answer."""
        request, response = exchange.request_body, exchange.response_body
        group = (
            None
            if request is None
            else self._groups.group(request.group_id, HEARTBEATS[exchange.api])
        )
        if request is None or group is None:
            return
        member = self._groups.present(group, request.member_id, exchange)
        if response.error_code:
            remark = f" ({response.error_message})" if response.error_message else ""
            self._groups.refuse(group, member, exchange, error_name(response.error_code) + remark)
            return
        if request.member_epoch in (_LEAVES, _PAUSES):
            self._leave(group, member, exchange)
            return
        if member is None:
            id = response.member_id or request.member_id
            is_new = request.member_epoch == _JOINS
            member = (
                self._join(group, exchange, id)
                if is_new
                else self._groups.find(group, id, exchange)
            )
        if member is None:
            return
        member.interval = response.heartbeat_interval_ms / _MS
        self._reach(group, member, response.member_epoch, exchange)
        self._assign(group, member, exchange)
        for status in getattr(response, "status", None) or ():
            text = f"is told: {status.status_detail}"
            code = status.status_code
            self._groups.add_event(group, member, exchange.response_time, "status", text, code=code)

    def _join(self, group: Group, exchange: ObservedExchange, id: str) -> Member | None:
        member = self._groups.join(
            group, id, exchange.client_id, exchange.connection, time=exchange.request_time,
            instance_id=getattr(exchange.request_body, "instance_id", None),
            remarks=[f"wants {each}" for each in _wishes(exchange.request_body)],
        )
        if member is not None:
            self._note_join(group, exchange, f"{member.label} joins")
        return member

    def _note_join(self, group: Group, exchange: ObservedExchange, reason: str) -> None:
        """Note a join as a reason for the latest epoch if it came before, else for the next."""
        latest = group.generations[-1] if group.generations else None
        is_in_time = latest is not None and exchange.request_time < latest.known
        if latest is not None and latest.reasons and is_in_time:
            latest.reasons.append(reason)
            latest.start = min(latest.start, exchange.request_time)
        else:
            self._note_reason(group, exchange.request_time, reason)

    def _leave(self, group: Group, member: Member | None, exchange: ObservedExchange) -> None:
        if member is None:
            return
        is_pause = exchange.request_body.member_epoch == _PAUSES
        text = "leaves and keeps its place for a while" if is_pause else "leaves"
        why = "left, keeping its place" if is_pause else "left"
        self._groups.leave(group, member, exchange.request_time, why, text)
        self._note_reason(group, exchange.request_time, f"{member.label} leaves")

    def _note_reason(self, group: Group, time: float, reason: str) -> None:
        reasons = self._reasons.setdefault(group.id, [])
        if len(reasons) < REASONS_MAX:
            reasons.append((time, reason))

    def _reach(self, group: Group, member: Member, epoch: int, exchange: ObservedExchange) -> None:
        """Note that a member is in an epoch; the first such member shows that it has begun."""
        latest = group.generations[-1] if group.generations else None
        member.number = epoch
        if latest is None and exchange.request_body.member_epoch == epoch:
            # The member joined before the capture began.
            self._before[group.id] = epoch
        known = self._before.get(group.id, -1) if latest is None else latest.number
        if epoch > known:
            reasons = [
                each
                for each in self._reasons.pop(group.id, [])
                if self._groups.is_together(each[0], exchange.request_time)
            ]
            start = min((time for time, _ in reasons), default=exchange.request_time)
            texts = [text for _, text in reasons]
            latest = Generation(epoch, start, exchange.response_time, exchange.response_time, texts)
            self._groups.add_generation(group, latest)
            self._miss(group, latest, exchange.response_time)
        is_here = latest is not None and epoch == latest.number
        if latest is not None and is_here and member.id not in latest.members:
            latest.members.add(member.id)
            self._groups.extend(latest, exchange.response_time)

    def _miss(self, group: Group, generation: Generation, now: float) -> None:
        """Mark members as gone that have been silent for too long."""
        for each in group.present:
            if each.interval and self._is_silent(each, now):
                if len(generation.reasons) < REASONS_MAX:
                    generation.reasons.append(f"{each.label} is missing")
                self._groups.vanish(group, each, now)

    def _is_silent(self, member: Member, now: float) -> bool:
        """Return whether a member was not heard for too long, all of which was recorded.

        After a pause in which nobody was heard, the next frames of a connection may not be found.
        """
        if now - member.last_seen <= _INTERVALS * member.interval:
            return False
        recordings = self._groups.recordings
        pauses = [] if recordings.is_empty else recordings.pauses(member.last_seen, now)
        return all(end - start <= _UNHEARD * member.interval for start, end in pauses)

    def _assign(self, group: Group, member: Member, exchange: ObservedExchange) -> None:
        response = exchange.response_body
        is_streams = group.kind == "streams"
        found = self._assignment_in(response, member.assignment, is_streams=is_streams)
        if found is None or found == (member.assignment or {}):
            member.assignment = member.assignment if found is None else found
            return
        member.assignment = found
        for generation in group.generations[-1:]:
            if member.number >= generation.number - 1:
                self._groups.extend(generation, exchange.response_time)
        text = f"is assigned {assigned(found, is_tasks=is_streams)}"
        time = exchange.response_time
        self._groups.add_event(group, member, time, "assign", text, assignment=found)

    def _assignment_in(
        self, response: Any, before: Assignment | None, *, is_streams: bool
    ) -> Assignment | None:
        """Return the assignment in an answer; None if it has not changed."""
        if is_streams:
            return of_tasks(response, before)
        if response.assignment is None:
            return None
        return of_topics(response.assignment.topic_partitions, self._names)

    def finish(self) -> None:
        """Report all epochs. Order: after all heartbeats."""
        for group in self._groups.by_id.values():
            for each in group.generations if group.kind in HEARTBEATS.values() else ():
                self._report(group, each)

    def _report(self, group: Group, each: Generation) -> None:
        remarks = [count_text(each.size, "member")]
        # In a log, all steps may have the same time.
        took = f" in {duration_text(each.seconds)}" if each.seconds else ""
        text = f"epoch {each.number} is reached{took}{because(each.reasons)}"
        details = {"seconds": each.seconds, "reasons": each.reasons, "members": each.size}
        event = Event(
            each.start, "rebalance", group.id, with_remarks(text, remarks), "", each.number, details
        )
        self._groups.events.add(event)


def _wishes(body: Any) -> list[str]:
    topics = getattr(body, "subscribed_topic_names", None)
    found = [listed(sorted(topics))] if topics else []
    pattern = getattr(body, "subscribed_topic_regex", None)
    if pattern:
        found.append(f"topics like {pattern}")
    topology = getattr(body, "topology", None)
    if topology is not None:
        sources = {name for each in topology.subtopologies for name in each.source_topics}
        count = len(topology.subtopologies)
        noun = "subtopology" if count == 1 else "subtopologies"
        found.append(f"{listed(sorted(sources))} for {count:,} {noun}")
    return found
