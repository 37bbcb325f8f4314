"""The committed log of a quorum, read from the directories of its members at the end."""

from __future__ import annotations

import struct
from collections import defaultdict

from kraftwire.messages.leader_change_message import LeaderChangeMessage
from kraftwire.messages.register_broker_record import RegisterBrokerRecord
from kraftwire.messages.unregister_broker_record import UnregisterBrokerRecord
from kraftwire.records.batch import RecordBatch
from kraftwire.records.control import decode_control
from kraftwire.records.metadata import decode_metadata
from tests.nemesis.check import Committed
from tests.support.kafka.mixed_quorum import Member


def read_committed(member: Member, mark: int) -> Committed:
    """What is below the high watermark in the log of a member that has all of it."""
    places: dict[bytes, list[int]] = defaultdict(list)
    epochs: dict[int, int] = {}
    leaders: dict[int, int] = {}
    control: set[int] = set()
    end_offset = 0
    for batch in member.batches():
        if batch.last_offset >= mark:
            break
        assert batch.base_offset == end_offset, f"the log of node {member.node_id} has a hole"
        end_offset = batch.last_offset + 1
        offsets = range(batch.base_offset, end_offset)
        epochs |= dict.fromkeys(offsets, batch.partition_leader_epoch)
        if batch.is_control:
            control.update(offsets)
            _note_leader(batch, leaders)
        else:
            _note_keys(batch, places)
    return Committed(places, epochs, leaders, end_offset, frozenset(control))


def _note_leader(batch: RecordBatch, leaders: dict[int, int]) -> None:
    for record in batch.records():
        message = decode_control(record.key, record.value).message
        if isinstance(message, LeaderChangeMessage):
            epoch = batch.partition_leader_epoch
            assert leaders.setdefault(epoch, message.leader_id) == message.leader_id


def _note_keys(batch: RecordBatch, places: dict[bytes, list[int]]) -> None:
    """The keys that `appends` chose, with their offsets."""
    for record in batch.records():
        message = decode_metadata(record.value).message
        if isinstance(message, RegisterBrokerRecord):
            places[message.incarnation_id].append(record.offset)
        elif isinstance(message, UnregisterBrokerRecord):
            key = struct.pack(">iq", message.broker_id, message.broker_epoch)
            places[key].append(record.offset)
