"""Groups and their members: names, joins and departures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from kraftwire.capture.recorded import REST_S, Recordings, TimeSpan
from kraftwire.decode.text import duration_text, listed, with_remarks
from kraftwire.story.events import Event, Events
from kraftwire.story.groups.model import Generation, Group, Kind, Member
from kraftwire.story.observed_exchange import ObservedExchange

# Groups and their members, each over all of a story; further ones are only counted. A member takes
# about a kilobyte. Above the limit of generations, a group drops its first one for each new one.
GROUPS_MAX = 5_000
GROUP_MEMBERS_MAX = 20_000
GROUP_GENERATIONS_MAX = 20_000

VANISHED = "vanished"

# The number of latest generations that may still get members.
_GENERATIONS_OPEN = 3
_REASONS_SHOWN = 4
# The largest number of reasons that are kept for one rebalance.
REASONS_MAX = 16


class Groups:
    """Gathers all groups, and the events of their members."""

    def __init__(self, events: Events, recordings: Recordings) -> None:
        self.recordings = recordings
        # The times of the first and the last record of a coordinator's log.
        self._logged = math.inf, -math.inf
        self.by_id: dict[str, Group] = {}
        self.events = events
        self.overflow = 0
        self._member_count = 0
        self._generation_count = 0
        # Connection -> time when it ended.
        self._endings: dict[str, float] = {}

    def group(self, id: str, kind: Kind | None = None) -> Group | None:
        """Return a group, which is added if it is new; None beyond the limit of groups."""
        group = self.by_id.get(id)
        if group is None:
            if len(self.by_id) >= GROUPS_MAX:
                self.overflow += 1
                return None
            group = self.by_id[id] = Group(id)
        group.kind = kind or group.kind
        return group

    def on_ending(self, connection: str, time: float) -> None:
        """Note the end of a connection."""
        if len(self._endings) < GROUP_MEMBERS_MAX:
            self._endings.setdefault(connection, time)

    def present(self, group: Group, id: str, exchange: ObservedExchange) -> Member | None:
        """Return a current member, and note its request; None if it is not a current member."""
        member = group.members.get(id)
        if member is None or not member.is_there:
            return None
        member.last_seen = exchange.request_time
        member.connection = exchange.connection
        return member

    def join(
        self,
        group: Group,
        id: str,
        client_id: str,
        connection: str,
        *,
        time: float,
        instance_id: str | None = None,
        remarks: Iterable[str] = (),
        verb: str = "joins",
    ) -> Member | None:
        """Add a member that joins, and return it; None beyond the limit of members."""
        known = group.members.get(id)
        if known is None and self._member_count >= GROUP_MEMBERS_MAX:
            self.overflow += 1
            return None
        replaced = group.instances.get(instance_id) if instance_id else None
        if known is not None:
            label = known.label
        elif replaced is not None:
            label = replaced.label
        else:
            label = _label(group, instance_id or client_id or id)
        self._member_count += known is None
        host = connection.rpartition("-")[0].rpartition(":")[0]
        member = Member(
            id, label, client_id, host, time, time, instance_id, connection=connection
        )
        if replaced is not None and replaced.id != id and replaced.is_there:
            self._end(replaced, time, "replaced by a new process of the same instance id")
        group.members[id] = member
        if instance_id:
            group.instances[instance_id] = member
        text = with_remarks(f"{verb} from {member.host}", [*_who(member), *remarks])
        kind = "join" if verb == "joins" else "present"
        self.add_event(group, member, time, kind, text, memberId=id)
        return member

    def find(self, group: Group, id: str, exchange: ObservedExchange) -> Member | None:
        """Add a member that joined before the capture began, as the answer to its request shows.

        Returns None if it is known as a member, or has left since it sent the request.
        """
        known = group.members.get(id)
        if known is not None and (known.ended is None or exchange.request_time <= known.ended):
            return None
        instance_id = getattr(exchange.request_body, "group_instance_id", None)
        instance_id = instance_id or getattr(exchange.request_body, "instance_id", None)
        return self.join(
            group,
            id,
            exchange.client_id,
            exchange.connection,
            time=exchange.request_time,
            instance_id=instance_id,
            verb="is a member,",
        )

    def leave(self, group: Group, member: Member, time: float, why: str, text: str) -> None:
        """Note that a member leaves."""
        self._end(member, time, why)
        self.add_event(group, member, time, "leave", text, reason=why)

    def note_logged(self, time: float) -> None:
        """Note that a coordinator's log has a record of a time."""
        first, last = self._logged
        self._logged = min(first, time), max(last, time)

    def is_together(self, start: float, end: float) -> bool:
        """Whether what happened at two times may belong together: it was recorded between them."""
        is_logged = self._logged[0] <= start and end <= self._logged[1]
        if is_logged or self.recordings.is_empty:
            return True
        return not self.recordings.holes(start, end, REST_S)

    def leave_unrecorded(self, holes: Sequence[TimeSpan]) -> None:
        """End members that were not heard after a time that is not recorded. Order: at the end."""
        for member in (each for group in self.by_id.values() for each in group.present):
            after = [start for start, _ in holes if start >= member.last_seen]
            if after:
                self._end(member, after[0], "not recorded after that")

    def extend(self, generation: Generation, time: float) -> None:
        """Note that a generation was still forming at a time."""
        if time > generation.end and self.is_together(generation.end, time):
            generation.end = time

    def vanish(self, group: Group, member: Member, time: float) -> None:
        """Note that a member is gone, although it has not left."""
        silence = duration_text(max(0.0, time - member.last_seen))
        remarks = [f"last heard {silence} before"]
        if not self.is_together(member.last_seen, time):
            remarks.append("not all of it is recorded")
        ended = self._endings.get(member.connection)
        if ended is not None and ended <= time:
            remarks.append(f"its connection ended {duration_text(time - ended)} before")
        self._end(member, time, VANISHED)
        text = with_remarks("is given up by the group", remarks)
        seconds = time - member.last_seen
        self.add_event(group, member, time, "gone", text, silentSeconds=seconds)

    def refuse(
        self, group: Group, member: Member | None, exchange: ObservedExchange, error: str
    ) -> None:
        """Note that a member's request is refused."""
        who = member.label if member else exchange.client_id
        text = f"{exchange.api} is refused: {error}"
        details = {"api": exchange.api, "error": error}
        number = member.number if member and member.number >= 0 else None
        event = Event(exchange.response_time, "error", group.id, text, who, number, details)
        self.events.add(event)

    def add_event(
        self,
        group: Group,
        member: Member,
        time: float,
        kind: str,
        text: str,
        **details: object,
    ) -> None:
        """Add an event of a member; `details` are for programs."""
        number = member.number if member.number >= 0 else None
        self.events.add(Event(time, kind, group.id, text, member.label, number, details))

    def add_generation(self, group: Group, generation: Generation) -> None:
        """Add a generation; of generations that can get no more members, keep only their number."""
        if self._generation_count >= GROUP_GENERATIONS_MAX and group.generations:
            group.generation_overflow += 1
            group.generations.pop(0)
        else:
            self._generation_count += 1
        for each in group.generations[-1:]:
            each.member_count = len(each.members)
        for each in group.generations[-_GENERATIONS_OPEN:-_GENERATIONS_OPEN + 1]:
            each.members.clear()
        group.generations.append(generation)

    def _end(self, member: Member, time: float, why: str) -> None:
        member.ended, member.ending = time, why



def _label(group: Group, name: str) -> str:
    """Return a name that no other member of the group has."""
    group.labels[name] += 1
    return name if group.labels[name] == 1 else f"{name} #{group.labels[name]}"


def _who(member: Member) -> list[str]:
    remarks = []
    if member.instance_id:
        remarks.append("static")
        if member.client_id and member.client_id != member.instance_id:
            remarks.append(f"client id {member.client_id}")
    return remarks


def because(reasons: Sequence[str]) -> str:
    """Describe why a group rebalanced; empty if the reasons are not known."""
    found = list(dict.fromkeys(reasons))
    if not found:
        return ""
    more = len(found) - _REASONS_SHOWN
    return f" because {listed(found[:_REASONS_SHOWN])}" + (f" and {more} more" if more > 0 else "")
