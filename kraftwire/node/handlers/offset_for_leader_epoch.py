"""OffsetForLeaderEpoch: where a leader epoch of the quorum's topic ends.

The answer is the largest epoch that is not above the one asked about, and its end among the
committed records. Only the leader answers.

Source: KIP-101, KIP-320.
"""

from __future__ import annotations

from kraftwire.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
)
from kraftwire.messages.offset_for_leader_epoch_response import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from kraftwire.node.context import Context, Request
from kraftwire.node.handlers.shared import body, epoch_error
from kraftwire.protocol.error_codes import ErrorCode


async def handle(request: Request, context: Context) -> OffsetForLeaderEpochResponse:
    """Find the end of an epoch for every partition."""
    message = body(request, OffsetForLeaderEpochRequest)
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[_answer(context, topic.topic, p) for p in topic.partitions],
            )
            for topic in message.topics
        ]
    )


def _answer(context: Context, topic: str, partition: OffsetForLeaderPartition) -> EpochEndOffset:
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if topic == context.config.topic.name and not partition.partition:
        error = epoch_error(context, partition.current_leader_epoch)
        if not error and context.raft.high_watermark < 0:
            error = ErrorCode.OFFSET_NOT_AVAILABLE
    answer = EpochEndOffset(
        error_code=error, partition=partition.partition, leader_epoch=-1, end_offset=-1
    )
    if not error and partition.leader_epoch <= context.raft.epoch:
        answer.leader_epoch, answer.end_offset = context.image.epoch_end(
            partition.leader_epoch, context.raft.high_watermark
        )
    return answer
