"""Fetch: committed batches of the quorum's topic for consumers.

A consumer has no replica id (-1). It gets whole batches below the high watermark, control batches
included, from the leader only. A request for a new session is answered without one (session id 0),
as Kafka does when its cache is full; continuing a session is FETCH_SESSION_ID_NOT_FOUND. Topics
have names below version 13 and ids from version 13 on. A replica's fetch is refused per partition
here; on a controller's listener the Raft core answers it, and below version 13, which has no topic
ids, it is INVALID_REQUEST.

Source: KIP-74 (limits), KIP-227 (sessions), KIP-320 (epochs), KIP-951 (leader in errors).
"""

from __future__ import annotations

from kraftwire.limits import FETCH_BYTES_MAX, FETCH_WAIT_MAX_MS
from kraftwire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kraftwire.messages.fetch_response import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from kraftwire.node.context import Context, Request
from kraftwire.node.handlers.shared import body, epoch_error, is_quorum_topic, leader_of_topic
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.versions import fetching_replica
from kraftwire.wire.message import Message

_WITH_SESSIONS = 7
_WITH_CURRENT_LEADER = 12
_WITH_TOPIC_IDS = 13
_WITH_NODE_ENDPOINTS = 16

_NEW_SESSION = 0
_NO_SESSION = -1
_READ_COMMITTED = 1

_LEADER_ERRORS = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_LEADER_EPOCH,
)


async def handle_replica(request: Request, context: Context) -> Message | None:
    """Pass a Fetch with topic ids to the core: all current replicas send such."""
    if request.version < _WITH_TOPIC_IDS:
        error = ErrorCode.INVALID_REQUEST if request.version >= _WITH_SESSIONS else 0
        return FetchResponse(error_code=error)
    return await context.raft_request(request)


async def handle(request: Request, context: Context) -> FetchResponse | None:
    """Read, and wait for enough bytes as long as the consumer allows, at most half a minute."""
    message = body(request, FetchRequest)
    if request.version >= _WITH_SESSIONS and message.session_epoch not in (
        _NEW_SESSION,
        _NO_SESSION,
    ):
        return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    if _repeats(message):
        error = ErrorCode.INVALID_REQUEST
        return FetchResponse(error_code=error) if request.version >= _WITH_SESSIONS else None
    deadline_ms = context.now_ms() + min(max(message.max_wait_ms, 0), FETCH_WAIT_MAX_MS)
    while True:
        await request.admit(_size(message, context))
        high_watermark = context.raft.high_watermark
        response = _FetchReader(request, context).read()
        left_ms = deadline_ms - context.now_ms()
        if left_ms <= 0 or _is_enough(response, message.min_bytes):
            return response
        # Release what was read and its turn, so that others proceed in the meantime.
        del response
        await request.admit(0)
        await context.wait_high_watermark(high_watermark, left_ms)


def _repeats(message: FetchRequest) -> bool:
    """Return whether a partition is named twice: that multiplies work, and no consumer does it."""
    names = [
        (topic.topic, topic.topic_id, one.partition)
        for topic in message.topics
        for one in topic.partitions
    ]
    return len(set(names)) < len(names)


def _size(message: FetchRequest, context: Context) -> int:
    """Return the maximum size of the answer in bytes, within the request's limits."""
    partitions = [one for topic in message.topics for one in topic.partitions]
    limit = min(max(message.max_bytes, 0), FETCH_BYTES_MAX)
    return sum(context.committed_size(one.fetch_offset, limit) for one in partitions)


def _is_enough(response: FetchResponse, min_bytes: int) -> bool:
    """Return whether to answer now: there are enough bytes, an error, or nothing to wait for."""
    partitions = [p for topic in response.responses for p in topic.partitions]
    size = sum(len(partition.records or b"") for partition in partitions)
    is_final = any(p.error_code or p.diverging_epoch for p in partitions)
    return is_final or not partitions or size >= min_bytes


class _FetchReader:
    """One pass over the partitions of a request, within its limit of bytes."""

    def __init__(self, request: Request, context: Context) -> None:
        self.request = request
        self.context = context
        self.message = body(request, FetchRequest)
        self.is_replica = fetching_replica(self.message) >= 0
        self.left = min(max(self.message.max_bytes, 0), FETCH_BYTES_MAX)
        self.is_first = True

    def read(self) -> FetchResponse:
        """Answer every partition."""
        response = FetchResponse(
            responses=[
                FetchableTopicResponse(
                    topic=topic.topic,
                    topic_id=topic.topic_id,
                    partitions=[self._partition(topic, p) for p in topic.partitions],
                )
                for topic in self.message.topics
            ]
        )
        self._add_endpoints(response)
        return response

    def _partition(self, topic: FetchTopic, partition: FetchPartition) -> PartitionData:
        error = self._error(topic, partition)
        if error:
            return self._failed(partition, error)
        raft = self.context.raft
        is_committed = self.message.isolation_level == _READ_COMMITTED
        answer = PartitionData(
            partition_index=partition.partition,
            high_watermark=raft.high_watermark,
            last_stable_offset=raft.high_watermark,
            log_start_offset=raft.start_offset,
            aborted_transactions=[] if is_committed else None,
            records=b"",
        )
        if raft.high_watermark < 0:
            answer.error_code = ErrorCode.OFFSET_NOT_AVAILABLE
        elif not raft.start_offset <= partition.fetch_offset <= raft.high_watermark:
            answer.error_code = ErrorCode.OFFSET_OUT_OF_RANGE
        elif (diverging := self._divergence(partition)) is not None:
            answer.diverging_epoch = diverging
        else:
            answer.records = self._records(partition)
        return answer

    def _error(self, topic: FetchTopic, partition: FetchPartition) -> ErrorCode:
        if self.is_replica:
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        is_by_name = self.request.version < _WITH_TOPIC_IDS
        name = topic.topic if is_by_name else None
        if not is_quorum_topic(self.context, name, topic.topic_id):
            if is_by_name:
                return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return ErrorCode.UNKNOWN_TOPIC_ID
        if partition.partition:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return epoch_error(self.context, partition.current_leader_epoch)

    def _failed(self, partition: FetchPartition, error: ErrorCode) -> PartitionData:
        answer = PartitionData(
            partition_index=partition.partition,
            error_code=error,
            high_watermark=-1,
            last_stable_offset=-1,
            log_start_offset=-1,
            records=b"",
        )
        if error in _LEADER_ERRORS and self.request.version >= _WITH_CURRENT_LEADER:
            raft = self.context.raft
            answer.current_leader = LeaderIdAndEpoch(
                leader_id=raft.leader_id, leader_epoch=raft.epoch
            )
        return answer

    def _divergence(self, partition: FetchPartition) -> EpochEndOffset | None:
        """Return where the log diverges from a consumer that sends the epoch that it read last."""
        fetched = partition.last_fetched_epoch
        if self.request.version < _WITH_CURRENT_LEADER or fetched < 0:
            return None
        high_watermark = self.context.raft.high_watermark
        epoch, end = self.context.image.epoch_end(fetched, high_watermark)
        if epoch == fetched and end >= partition.fetch_offset:
            return None
        return EpochEndOffset(epoch=epoch, end_offset=end)

    def _records(self, partition: FetchPartition) -> bytes:
        """Return the batches from the offset on; the very first may exceed every limit."""
        limit = min(self.left, max(partition.partition_max_bytes, 0))
        if limit <= 0 and not self.is_first:
            return b""
        data = self.context.read_committed(partition.fetch_offset, limit)
        if not self.is_first and len(data) > limit:
            return b""
        self.left -= len(data)
        self.is_first = self.is_first and not data
        return data

    def _add_endpoints(self, response: FetchResponse) -> None:
        """Add the leader's endpoint if the answer names the leader (KIP-951)."""
        if self.request.version < _WITH_NODE_ENDPOINTS:
            return
        is_named = any(p.current_leader for t in response.responses for p in t.partitions)
        endpoint = leader_of_topic(self.request, self.context) if is_named else None
        if endpoint is not None:
            node = NodeEndpoint(
                node_id=self.context.raft.leader_id, host=endpoint.host, port=endpoint.port
            )
            response.node_endpoints = [node]
