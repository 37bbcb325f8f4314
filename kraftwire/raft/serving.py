"""The leader's side of replication: answering Fetch, holding it back, waking it.

The replica that gets a Fetch answers it; only a leader answers with records. A request that waits
is looked at again when the log grows or the high watermark advances, and then counts as a fetch of
that later time (R-FET-14).

Source: KIP-595, KIP-1166; R-FET-6 to R-FET-18.
"""

from __future__ import annotations

from typing import cast

from kraftwire.limits import FETCH_BYTES_MAX, FETCH_WAIT_MAX_MS, PARKED_WOKEN_MAX
from kraftwire.messages import fetch_response as answer
from kraftwire.messages.fetch_request import FetchPartition, FetchRequest
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.fetching import fetching_replica
from kraftwire.protocol.session import SOFTWARE_NAME
from kraftwire.raft.answers import cluster_id_differs, leader_address, leader_error
from kraftwire.raft.changes import settle_change
from kraftwire.raft.effects import HighWatermarkAdvanced, LogSlice, SendReply
from kraftwire.raft.events import RequestReceived
from kraftwire.raft.log_picture import PositionKind
from kraftwire.raft.parked import ParkedFetch
from kraftwire.raft.roles import Leader
from kraftwire.raft.state import RaftState
from kraftwire.raft.voters import ReplicaKey

__all__ = [
    "advance_high_watermark",
    "answer_expired",
    "fail_parked",
    "handle_fetch_request",
    "wake_after_append",
]

# From this version on an answer says where the leader is (R-FET-17).
_ENDPOINTS_VERSION = 17


def handle_fetch_request(state: RaftState, event: RequestReceived) -> None:
    """Answer a Fetch, now or when there is something to say."""
    request = cast("FetchRequest", event.message)
    if cluster_id_differs(state, request.cluster_id):
        reply = answer.FetchResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
        state.emit(SendReply(event.token, reply))
        return
    partition = _only_partition(state, request)
    if partition is None:
        reply = answer.FetchResponse(error_code=ErrorCode.INVALID_REQUEST)
        state.emit(SendReply(event.token, reply))
        return
    if not _is_legal(request, partition):
        _refuse(state, event, ErrorCode.INVALID_REQUEST)
        return
    _answer(state, event, may_wait=True)


def _only_partition(state: RaftState, request: FetchRequest) -> FetchPartition | None:
    topics = request.topics
    if len(topics) != 1 or topics[0].topic_id != state.config.topic.topic_id:
        return None
    partitions = topics[0].partitions
    return partitions[0] if len(partitions) == 1 and partitions[0].partition == 0 else None


def _is_legal(request: FetchRequest, partition: FetchPartition) -> bool:
    return (
        request.max_wait_ms >= 0
        and partition.fetch_offset >= 0
        and 0 <= partition.last_fetched_epoch <= partition.current_leader_epoch
    )


def _answer(
    state: RaftState, event: RequestReceived, *, may_wait: bool = False, counts: bool = True
) -> None:
    """Steps 4 to 6 of R-FET-6: leader, position, records and the replica's progress."""
    request = cast("FetchRequest", event.message)
    partition = request.topics[0].partitions[0]
    error = leader_error(state, partition.current_leader_epoch)
    replica = ReplicaKey(fetching_replica(request), partition.replica_directory_id)
    if error == ErrorCode.NONE and replica.id == state.config.key.id:
        error = ErrorCode.UNKNOWN_SERVER_ERROR
    role = state.role
    if error != ErrorCode.NONE or type(role) is not Leader:
        _refuse(state, event, error)
        return
    offset, log = partition.fetch_offset, state.log
    position = log.check_position(offset, partition.last_fetched_epoch)
    if position.kind is not PositionKind.VALID:
        data = _partition(state, ErrorCode.NONE, state.high_watermark)
        if position.kind is PositionKind.DIVERGING:
            data.diverging_epoch = answer.EpochEndOffset(
                epoch=position.at.epoch, end_offset=position.at.offset
            )
        else:
            data.snapshot_id = answer.SnapshotId(
                epoch=position.at.epoch, end_offset=position.at.offset
            )
        state.emit(SendReply(event.token, _response(state, event, data)))
        return
    if replica.id >= 0 and counts:
        if event.client_software:
            state.hear_claim(replica, event.client_software != SOFTWARE_NAME)
        _count(state, role, replica, log.batch_base(offset))
    _reply_with_records(state, event, partition, may_wait)


def _reply_with_records(
    state: RaftState, event: RequestReceived, partition: FetchPartition, may_wait: bool
) -> None:
    request = cast("FetchRequest", event.message)
    offset, end, mark = partition.fetch_offset, state.log.end_offset, state.high_watermark
    is_empty = offset >= end
    # The schema's default of HighWatermark is the largest number: only senders of version 18 say
    # what they know and so are told of a new one at once (KIP-1166).
    can_wait = is_empty and request.max_wait_ms > 0 and partition.high_watermark >= mark
    if may_wait and can_wait:
        due = state.now + min(request.max_wait_ms, FETCH_WAIT_MAX_MS)
        if state.parked.park(ParkedFetch(event.token, offset, due, event)):
            return
    response = _response(state, event, _partition(state, ErrorCode.NONE, mark))
    limit = min(max(request.max_bytes, 0), FETCH_BYTES_MAX)
    part = None if is_empty else LogSlice(offset, limit, end)
    state.emit(SendReply(event.token, response, part))


def _count(state: RaftState, leader: Leader, replica: ReplicaKey, position: int) -> None:
    """Note how far a replica is: what a voter asks for next, it has made durable (D2)."""
    progress = leader.progress
    if progress.record_fetch(replica, position, state.now):
        advance_high_watermark(state, leader)


def advance_high_watermark(state: RaftState, leader: Leader) -> None:
    """Commit what a majority has, and tell everybody who waits (R-HW-1 to R-HW-6)."""
    mark = leader.progress.high_watermark(state.high_watermark)
    if mark <= state.high_watermark:
        return
    state.high_watermark = mark
    state.committed = max(state.committed, mark)
    state.announced = max(state.announced, mark)
    state.emit(HighWatermarkAdvanced(mark))
    settle_change(state, leader)
    _wake(state, state.parked.wake_all())


def wake_after_append(state: RaftState) -> None:
    """Answer those who wait for what was just appended."""
    _wake(state, state.parked.wake_at_or_below(state.log.end_offset))


def _wake(state: RaftState, woken: list[ParkedFetch]) -> None:
    """Answer the voters and a few others; the rest are due at once, a few at a time.

    A peer that has thousands of them wait must not keep commits waiting for all their answers.
    """
    voters, others = set[int](), 0
    later: list[ParkedFetch] = []
    for parked in woken:
        replica_id = fetching_replica(cast("FetchRequest", parked.event.message))
        is_first = state.voters.get(replica_id) is not None and replica_id not in voters
        voters.add(replica_id)
        others += not is_first
        if is_first or others <= PARKED_WOKEN_MAX:
            _answer(state, parked.event)
        else:
            later.append(parked)
    state.parked.defer(later)


def answer_expired(state: RaftState) -> None:
    """Answer those who waited long enough, with what is known now.

    Kafka sends the answer that it made when the request came; the present one is never older. As
    there, waiting is no sign of life: it does not count as another fetch.
    """
    for parked in state.parked.expired(state.now):
        _answer(state, parked.event, counts=False)


def fail_parked(state: RaftState, error: ErrorCode) -> None:
    """Tell those who wait that this node does not lead (any more)."""
    for parked in state.parked.take_everything():
        _refuse(state, parked.event, error)


def _refuse(state: RaftState, event: RequestReceived, error: ErrorCode) -> None:
    data = _partition(state, error, -1)
    data.log_start_offset = -1
    state.emit(SendReply(event.token, _response(state, event, data)))


def _partition(state: RaftState, error: ErrorCode, high_watermark: int) -> answer.PartitionData:
    role = state.role
    return answer.PartitionData(
        error_code=error,
        high_watermark=high_watermark,
        log_start_offset=state.log.start_offset,
        current_leader=answer.LeaderIdAndEpoch(leader_id=role.leader_id, leader_epoch=role.epoch),
        records=b"",
    )


def _response(
    state: RaftState, event: RequestReceived, data: answer.PartitionData
) -> answer.FetchResponse:
    topic = answer.FetchableTopicResponse(topic_id=state.config.topic.topic_id, partitions=[data])
    response = answer.FetchResponse(responses=[topic])
    if event.version >= _ENDPOINTS_VERSION:
        endpoint = leader_address(state, event.listener)
        if endpoint is not None:
            response.node_endpoints = [
                answer.NodeEndpoint(
                    node_id=state.role.leader_id, host=endpoint.host, port=endpoint.port
                )
            ]
    return response
