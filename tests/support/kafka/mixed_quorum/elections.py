"""Who led which epoch, as logs state it."""

from __future__ import annotations

from kraftwire.messages.leader_change_message import LeaderChangeMessage
from kraftwire.records.control import decode_control
from tests.support.kafka.mixed_quorum.member import Member


def leaders_of_epochs(member: Member) -> dict[int, int]:
    """The leader of every epoch of which this member's log has the LeaderChange record."""
    found = {}
    for batch in member.batches():
        for record in batch.records() if batch.is_control else ():
            message = decode_control(record.key, record.value).message
            if isinstance(message, LeaderChangeMessage):
                found[batch.partition_leader_epoch] = message.leader_id
    return found
