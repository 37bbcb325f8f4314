"""The record batches of the replicated log: accepted by followers, built by leaders.

Checks fetched bytes and builds data and control batches. Nothing that a peer sends is trusted, and
no bytes make a reader here raise.

Source: Kafka's `KafkaRaftLog.appendAsFollower`, `UnifiedLog`, `BatchBuilder` and `MemoryRecords`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from kraftwire.errors import WireError
from kraftwire.messages.leader_change_message import LeaderChangeMessage, Voter
from kraftwire.records.batch import RecordBatch
from kraftwire.records.control import ControlType, decode_control
from kraftwire.records.crc import crc32c
from kraftwire.records.header import (
    CONTROL,
    CRC_START,
    HEADER,
    HEADER_SIZE,
    LENGTH_MIN,
    LOG_OVERHEAD,
    MAGIC,
    fields,
)
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.records.record import Record
from kraftwire.wire.message import Message

_HEADER = HEADER.unpack_from
_LENGTH = fields("batch_length").unpack_from
_KEY = struct.Struct(">hh").unpack_from

# No log gets here: a peer that claims more would have this node count beyond what a field can hold.
OFFSET_MAX = 1 << 62

ControlRecord = tuple[int, ControlType | int, Message | None]


class FetchedBatches(NamedTuple):
    """The records of a fetch that may be appended.

    `data` holds the accepted whole batches, `batches` their (base offset, epoch), `control` the
    (base offset, bytes) of the control batches among them; `end_offset` is the log end offset
    afterwards. `problem` is why the next batch was refused, None if none was. `newest_timestamp` is
    the largest among them, -1 without any.
    """

    data: bytes | memoryview
    batches: list[OffsetAndEpoch]
    end_offset: int
    control: list[tuple[int, bytes]]
    problem: str | None
    newest_timestamp: int = -1


def read_fetched(
    data: bytes | memoryview | None, next_offset: int, epoch: int, *, last_epoch: int = 0
) -> FetchedBatches:
    """Check the records of a FetchResponse for a log that ends at `next_offset` (R-FET-23).

    `epoch` is the leader's, `last_epoch` the log's; every batch's epoch must lie between them. Good
    batches before a bad one are kept; a batch that is cut off at the end is ignored, unless it is
    the only one.

    Differs from Kafka, which accepts gaps, ends the node on overlaps and checks only the leader's
    epoch: everything that does not exactly continue the log is refused here.
    """
    if not data:
        return FetchedBatches(b"", [], next_offset, [], None)
    if not isinstance(data, bytes) and data.format != "B":
        data = data.cast("B")
    view = memoryview(data)
    size = len(data)
    batches: list[OffsetAndEpoch] = []
    control: list[tuple[int, bytes]] = []
    problem = None
    newest = -1
    position = 0
    while position < size:
        if size - position < HEADER_SIZE:
            problem = _cut_header(view, position)
            break
        header = _HEADER(data, position)
        base, length, batch_epoch, _, crc, attributes, last_delta, _, timestamp, *_ = header
        end = position + LOG_OVERHEAD + length
        if end > size and length >= LENGTH_MIN:
            break
        problem = _header_problem(header, next_offset, last_epoch, epoch)
        if problem is None and crc32c(view[position + CRC_START : end]) != crc:
            problem = f"the CRC of the batch at offset {base} is wrong"
        if problem is not None:
            break
        batches.append(OffsetAndEpoch(base, batch_epoch))
        if attributes & CONTROL:
            control.append((base, bytes(view[position:end])))
        if timestamp > newest:
            newest = timestamp
        last_epoch = batch_epoch
        next_offset = base + last_delta + 1
        position = end
    if not batches and problem is None:
        problem = f"{size} bytes hold no whole batch"
    good = data if position == size else view[:position]
    return FetchedBatches(good, batches, next_offset, control, problem, newest)


def _header_problem(
    header: tuple[int, ...], next_offset: int, last_epoch: int, epoch: int
) -> str | None:
    """Return what is wrong with a batch's header, None if it is valid."""
    base, length, batch_epoch, magic, _, _, last_delta, *_, count = header
    if length < LENGTH_MIN:
        return f"a batch's length is {length}, expected {LENGTH_MIN} or more"
    if magic != MAGIC:
        return f"a batch's magic is {magic}, expected {MAGIC}"
    if base != next_offset:
        return f"a batch begins at offset {base}, expected {next_offset}"
    if last_delta < 0 or last_delta + 1 != count:
        return (
            f"the batch at offset {base} has {count} records and last offset delta {last_delta}, "
            "expected one less"
        )
    if base + last_delta >= OFFSET_MAX:
        return f"the batch at offset {base} ends beyond offset {OFFSET_MAX}"
    if not last_epoch <= batch_epoch <= epoch:
        return (
            f"the batch at offset {base} has epoch {batch_epoch}, expected {last_epoch} to {epoch}"
        )
    return None


def _cut_header(view: memoryview, position: int) -> str | None:
    """Return what is wrong with trailing bytes that are too few for a header."""
    if len(view) - position < LOG_OVERHEAD:
        return None
    (length,) = _LENGTH(view, position)
    if length >= LENGTH_MIN:
        return None
    return f"a batch's length is {length}, expected {LENGTH_MIN} or more"


def control_records(batch: bytes) -> list[ControlRecord]:
    """Return (offset, type, message) of the records in a control batch; never raises.

    The type of an unknown or unreadable record is a number (-1 without a key), and its message is
    None. Order: the batch's CRC was checked before.
    """
    if len(batch) < HEADER_SIZE:
        return []
    records, _ = RecordBatch(batch).salvage()
    return [_control_record(record) for record in records]


def _control_record(record: Record) -> ControlRecord:
    key = record.key
    number = _KEY(key)[1] if key is not None and len(key) >= 4 else -1
    try:
        message = decode_control(key, record.value).message
        return record.offset, ControlType(number), message
    except WireError:
        return record.offset, number, None


def leader_change(
    leader_id: int, voters: Sequence[int], granting: Sequence[int]
) -> tuple[ControlType, Message]:
    """Build the first control record of an epoch (R-LEAD-2): leader, voters, granting voters."""
    message = LeaderChangeMessage(
        version=0,
        leader_id=leader_id,
        voters=[Voter(voter_id=voter) for voter in voters],
        granting_voters=[Voter(voter_id=voter) for voter in granting],
    )
    return ControlType.LEADER_CHANGE, message
