"""ListOffsets: offsets of the quorum's topic by kind or by time.

Latest is the high watermark, earliest the log start offset; a timestamp finds the first record at
or after it, by a scan of the committed batches. There is no tiered storage, so its kinds find
nothing. Only the leader answers, and a client's leader epoch must equal the quorum's.

Source: KIP-79, KIP-734 (largest timestamp); Kafka's `UnifiedLog.fetchOffsetByTimestamp`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import trio

from kraftwire.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest
from kraftwire.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kraftwire.node.context import Context, Request
from kraftwire.node.handlers.shared import body, epoch_error
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.records.batch import RecordBatch
from kraftwire.records.reader import BatchReader
from kraftwire.records.record import Record

# A search of the committed log by time reads this much at once; other work is done in between.
SCAN_READ_BYTES = 1024 * 1024

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6

# The first version that may ask for each kind.
_KINDS = {
    LATEST: 0,
    EARLIEST: 0,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}

_WITH_LEADER_EPOCH = 4

# Clients of lower versions do not know OFFSET_NOT_AVAILABLE.
_WITH_OFFSET_NOT_AVAILABLE = 5


async def handle(request: Request, context: Context) -> ListOffsetsResponse:
    """Find an offset for every partition in the request."""
    message = body(request, ListOffsetsRequest)
    seen = Counter((t.name, p.partition_index) for t in message.topics for p in t.partitions)
    topics = []
    for topic in message.topics:
        answers = []
        for partition in topic.partitions:
            if seen[topic.name, partition.partition_index] > 1:
                answer = _failed(partition, ErrorCode.INVALID_REQUEST)
            elif topic.name != context.config.topic.name or partition.partition_index:
                answer = _failed(partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            else:
                answer = await _answer(request, context, partition)
            if request.version < _WITH_LEADER_EPOCH:
                answer.leader_epoch = -1
            answers.append(answer)
        topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=answers))
    return ListOffsetsResponse(topics=topics)


async def _answer(
    request: Request, context: Context, partition: ListOffsetsPartition
) -> ListOffsetsPartitionResponse:
    kind = partition.timestamp
    if kind < 0 and not 0 <= _KINDS.get(kind, -1) <= request.version:
        return _failed(partition, ErrorCode.UNSUPPORTED_VERSION)
    error = epoch_error(context, partition.current_leader_epoch)
    if error:
        return _failed(partition, error)
    raft = context.raft
    if raft.high_watermark < 0:
        is_known = request.version >= _WITH_OFFSET_NOT_AVAILABLE
        code = ErrorCode.OFFSET_NOT_AVAILABLE if is_known else ErrorCode.LEADER_NOT_AVAILABLE
        return _failed(partition, code)
    if kind == LATEST:
        return _found(partition, raft.high_watermark, epoch=raft.epoch)
    if kind in (EARLIEST, EARLIEST_LOCAL):
        epoch = context.image.epoch_at(raft.start_offset)
        return _found(partition, raft.start_offset, epoch=epoch)
    if kind in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return _found(partition, -1, epoch=-1)
    match = await (_latest_record(context) if kind < 0 else _record_at(context, kind))
    if match is None:
        return _found(partition, -1, epoch=-1)
    batch, record = match
    response = _found(partition, record.offset, epoch=batch.partition_leader_epoch)
    response.timestamp = record.timestamp
    return response


def _found(
    partition: ListOffsetsPartition, offset: int, *, epoch: int
) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(
        partition_index=partition.partition_index,
        offset=offset,
        leader_epoch=epoch,
        timestamp=-1,
    )


def _failed(partition: ListOffsetsPartition, code: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(
        partition_index=partition.partition_index,
        error_code=code,
        offset=-1,
        leader_epoch=-1,
        timestamp=-1,
    )


Match = tuple[RecordBatch, Record]


async def _record_at(context: Context, timestamp: int) -> Match | None:
    """Find the first record at or after a timestamp."""

    def find(batch: RecordBatch) -> Match | None:
        if batch.max_timestamp < timestamp:
            return None
        late = (record for record in batch.records() if record.timestamp >= timestamp)
        record = next(late, None)
        return None if record is None else (batch, record)

    return await _search(context, find)


async def _latest_record(context: Context) -> Match | None:
    """Find the first record that has the largest timestamp."""
    best: list[RecordBatch] = []

    def compare(batch: RecordBatch) -> None:
        if not best or batch.max_timestamp > best[0].max_timestamp:
            best[:] = [batch]

    await _search(context, compare)
    if not best:
        return None
    return best[0], max(best[0].records(), key=lambda record: record.timestamp)


async def _search(
    context: Context, visit: Callable[[RecordBatch], Match | None]
) -> Match | None:
    """Scan the committed batches until one matches, with pauses for other work."""
    offset = context.raft.start_offset
    while data := context.read_committed(offset, SCAN_READ_BYTES):
        for batch in BatchReader(data):
            if isinstance(batch, RecordBatch):
                if match := visit(batch):
                    return match
                offset = batch.last_offset + 1
        await trio.lowlevel.checkpoint()
    return None
