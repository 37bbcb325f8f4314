"""Groups of the classic protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

A generation begins with the first sign that the group rebalances: a member that joins or leaves, or
is told to join again. It ends when the last member has received its assignment.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kraftwire.decode.text import count_text, duration_text, listed, with_remarks
from kraftwire.protocol.error_codes import ErrorCode, error_name
from kraftwire.story.events import Event
from kraftwire.story.groups.members import REASONS_MAX, Groups, because
from kraftwire.story.groups.model import (
    Generation,
    Group,
    Member,
    assigned,
    of_consumer_protocol,
    subscribed,
)
from kraftwire.story.observed_exchange import ObservedExchange

# Answers that are steps of the protocol, not refusals.
_STEPS = frozenset({ErrorCode.MEMBER_ID_REQUIRED, ErrorCode.REBALANCE_IN_PROGRESS})
_CONSUMER = "consumer"


@dataclass(slots=True)
class _Rebalance:
    """A rebalance that has begun, before its generation is known."""

    start: float
    reasons: list[str] = field(default_factory=list)


class ClassicGroups:
    """Gathers the members and generations of classic groups."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups
        self._begun: dict[str, _Rebalance] = {}

    def on_join_request(self, exchange: ObservedExchange) -> None:
        """Add the request of a member that joins, for the first time or again."""
        request = exchange.request_body
        group = self._groups.group(request.group_id, "classic")
        if group is None or not request.member_id:
            return
        if self._groups.present(group, request.member_id, exchange) is not None:
            self._begin(group, exchange.request_time)

    def on_join_response(self, exchange: ObservedExchange) -> None:
        """Add the answer to JoinGroup: the member's id, or its place in a new generation."""
        request, response = exchange.request_body, exchange.response_body
        if request is None:
            return
        group = self._groups.group(request.group_id, "classic")
        if group is None or response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            return
        member = self._groups.present(group, request.member_id or response.member_id, exchange)
        if response.error_code:
            self._refused(group, member, exchange, response.error_code)
            return
        if member is None:
            member = self._join(group, exchange)
        if member is None:
            return
        generation = self._generation(group, response.generation_id, exchange)
        generation.protocol = response.protocol_name or ""
        leader = group.members.get(response.leader)
        generation.leader = leader.label if leader else response.leader
        generation.members.add(response.member_id)
        self._groups.extend(generation, exchange.response_time)
        member.number = response.generation_id
        if response.members:
            self._miss(group, {each.member_id for each in response.members}, generation)

    def _join(self, group: Group, exchange: ObservedExchange) -> Member | None:
        request, response = exchange.request_body, exchange.response_body
        topics: set[str] = set()
        if request.protocol_type == _CONSUMER:
            topics = {name for each in request.protocols for name in subscribed(each.metadata)}
        protocols = listed(each.name for each in request.protocols)
        remarks = [f"{request.protocol_type} with {protocols}"]
        remarks += [f"wants {listed(sorted(topics))}"] if topics else []
        member = self._groups.join(
            group, response.member_id, exchange.client_id, exchange.connection,
            time=exchange.request_time, instance_id=request.group_instance_id, remarks=remarks,
        )
        if member is not None:
            self._begin(group, exchange.request_time, f"{member.label} joins")
        return member

    def _miss(self, group: Group, ids: set[str], generation: Generation) -> None:
        """Mark the members as gone that the generation's leader is not told about."""
        for each in group.present:
            # A member that joined after the generation was formed is not in it.
            if each.id not in ids and each.number < generation.number:
                if len(generation.reasons) < REASONS_MAX:
                    generation.reasons.append(f"{each.label} is missing")
                self._groups.vanish(group, each, generation.start)
        generation.members |= ids

    def on_sync_response(self, exchange: ObservedExchange) -> None:
        """Add the answer to SyncGroup, which gives a member its assignment."""
        request, response = exchange.request_body, exchange.response_body
        group = None if request is None else self._groups.group(request.group_id, "classic")
        if group is None:
            return
        member = self._groups.present(group, request.member_id, exchange)
        if response.error_code:
            self._refused(group, member, exchange, response.error_code)
            return
        generation = _known(group, request.generation_id)
        if generation is not None:
            self._groups.extend(generation, exchange.response_time)
        if member is None:
            return
        assignment = of_consumer_protocol(response.assignment)
        if assignment != member.assignment or assignment is None:
            member.assignment = assignment
            member.number = request.generation_id
            text = f"is assigned {assigned(assignment)}"
            self._groups.add_event(
                group, member, exchange.response_time, "assign", text, assignment=assignment
            )

    def on_heartbeat_response(self, exchange: ObservedExchange) -> None:
        """Add the answer to a heartbeat, which may tell the member to join again."""
        request, response = exchange.request_body, exchange.response_body
        group = None if request is None else self._groups.group(request.group_id, "classic")
        if group is None:
            return
        member = self._groups.present(group, request.member_id, exchange)
        if response.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            self._begin(group, exchange.response_time)
        elif response.error_code:
            self._refused(group, member, exchange, response.error_code)
        elif member is None:
            member = self._groups.find(group, request.member_id, exchange)
        if member is not None and member.number < 0:
            member.number = request.generation_id

    def on_leave_request(self, exchange: ObservedExchange) -> None:
        """Add the request of members that leave."""
        request = exchange.request_body
        group = self._groups.group(request.group_id, "classic")
        if group is None:
            return
        left = [(each.member_id, each.group_instance_id, each.reason) for each in request.members]
        for id, instance_id, reason in left or [(request.member_id, None, None)]:
            member = group.members.get(id)
            if member is None and instance_id:
                member = group.instances.get(instance_id)
            if member is None or not member.is_there:
                continue
            text = with_remarks("leaves", [reason] if reason else [])
            self._groups.leave(group, member, exchange.request_time, reason or "left", text)
            self._begin(group, exchange.request_time, f"{member.label} leaves")

    def finish(self) -> None:
        """Report all generations. Order: after all requests and responses."""
        for group in self._groups.by_id.values():
            for each in group.generations if group.kind == "classic" else ():
                self._report(group, each)

    # -- generations ---------------------------------------------------------------------------

    def _begin(self, group: Group, time: float, reason: str = "") -> None:
        begun = self._begun.get(group.id)
        if begun is None:
            begun = self._begun[group.id] = _Rebalance(time)
        begun.start = min(begun.start, time)
        if reason and reason not in begun.reasons and len(begun.reasons) < REASONS_MAX:
            begun.reasons.append(reason)

    def _generation(self, group: Group, number: int, exchange: ObservedExchange) -> Generation:
        found = _known(group, number)
        if found is not None:
            # A member that joins while others already have their answers is a reason as well.
            late = self._begun.pop(group.id, None)
            if late is not None and self._groups.is_together(found.end, late.start):
                found.reasons += late.reasons
                found.start = min(found.start, late.start)
            return found
        begun = self._begun.pop(group.id, None)
        if begun is None or not self._groups.is_together(begun.start, exchange.response_time):
            begun = _Rebalance(exchange.request_time)
        generation = Generation(
            number, begun.start, exchange.response_time, exchange.response_time, begun.reasons
        )
        self._groups.add_generation(group, generation)
        return generation

    def _report(self, group: Group, each: Generation) -> None:
        remarks = [count_text(each.size, "member")]
        remarks += [f"leader {each.leader}"] if each.leader else []
        remarks += [each.protocol] if each.protocol else []
        # In a log, all steps may have the same time.
        took = f" in {duration_text(each.seconds)}" if each.seconds else ""
        text = f"generation {each.number} is reached{took}{because(each.reasons)}"
        details = {
            "seconds": each.seconds, "reasons": each.reasons, "members": each.size,
            "leader": each.leader, "protocol": each.protocol,
        }
        event = Event(
            each.start, "rebalance", group.id, with_remarks(text, remarks), "", each.number, details
        )
        self._groups.events.add(event)

    def _refused(
        self, group: Group, member: Member | None, exchange: ObservedExchange, code: int
    ) -> None:
        if code not in _STEPS:
            self._groups.refuse(group, member, exchange, error_name(code))


def _known(group: Group, number: int) -> Generation | None:
    """Return a generation by its number, if it is one of the latest."""
    return next((each for each in reversed(group.generations[-3:]) if each.number == number), None)
