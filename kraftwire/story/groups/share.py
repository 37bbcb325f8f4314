"""The records that members of share groups acquire, and their acknowledgements."""

from __future__ import annotations

from typing import Any

from kraftwire.protocol.error_codes import error_name
from kraftwire.story.groups.members import Groups
from kraftwire.story.groups.model import Member
from kraftwire.story.talk import Talk

__all__ = ["Shares"]

# Types of acknowledgements; a gap is an offset without a record.
_TYPES = {0: "gap", 1: "accepted", 2: "released", 3: "rejected", 4: "renewed"}


class Shares:
    """Counts records by member."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    def see_response(self, talk: Talk) -> None:
        """Add a ShareFetch or ShareAcknowledge."""
        body, told = talk.request, talk.response
        group = None if body is None else self._groups.group(body.group_id, "share")
        if group is None:
            return
        member = self._groups.present(group, body.member_id, talk)
        if told.error_code:
            self._groups.refuse(group, member, talk, error_name(told.error_code))
        if member is None:
            return
        for topic in body.topics:
            for part in topic.partitions:
                _acknowledge(member, part.acknowledgement_batches)
        for topic in told.responses:
            for part in topic.partitions:
                _acquire(member, getattr(part, "acquired_records", ()))
                if part.error_code:
                    self._groups.refuse(group, member, talk, error_name(part.error_code))


def _acquire(member: Member, acquired: Any) -> None:
    for each in acquired:
        count = each.last_offset - each.first_offset + 1
        member.acquired += count
        if each.delivery_count > 1:
            member.redelivered += count


def _acknowledge(member: Member, batches: Any) -> None:
    for each in batches:
        types = each.acknowledge_types
        # A single type stands for all records of the batch.
        count = each.last_offset - each.first_offset + 1 if len(types) == 1 else 1
        for kind in types:
            name = _TYPES.get(kind, f"type {kind}")
            member.acknowledged[name] = member.acknowledged.get(name, 0) + count
