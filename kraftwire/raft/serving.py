"""The leader's side of replication: answering, parking and waking Fetch requests.

Every replica answers a Fetch; only a leader answers with records. A parked request is checked again
when the log grows or the high watermark advances, and then counts as a fetch at that later time
(R-FET-14).

Source: KIP-595, KIP-1166; R-FET-6 to R-FET-18.
"""

from __future__ import annotations

from typing import cast

from kraftwire.limits import FETCH_BYTES_MAX, FETCH_WAIT_MAX_MS
from kraftwire.messages import fetch_response as answer
from kraftwire.messages.fetch_request import FetchPartition, FetchRequest
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.session import SOFTWARE_NAME
from kraftwire.protocol.versions import fetching_replica
from kraftwire.raft.answers import cluster_id_differs, leader_address, leader_error
from kraftwire.raft.changes import settle_change
from kraftwire.raft.effects import HighWatermarkAdvanced, LogSlice, SendReply
from kraftwire.raft.events import RequestReceived
from kraftwire.raft.log_view import PositionKind
from kraftwire.raft.parked import PARKED_WOKEN_MAX, ParkedFetch
from kraftwire.raft.roles import Leader
from kraftwire.raft.state import RaftState
from kraftwire.raft.voters import ReplicaKey

# Answers have the leader's endpoint from this version on (R-FET-17).
_ENDPOINTS_VERSION = 17


def handle_fetch_request(state: RaftState, event: RequestReceived) -> None:
    """Answer a Fetch, now or when there is something to send."""
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
        _refuse_fetch(state, event, ErrorCode.INVALID_REQUEST)
        return
    _fetch_answer(state, event, may_wait=True)


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


def _fetch_answer(
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
        _refuse_fetch(state, event, error)
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
            state.record_claimed_software(replica, event.client_software != SOFTWARE_NAME)
        _record_progress(state, role, replica, log.batch_base(offset))
    _reply_with_records(state, event, partition, may_wait)


def _reply_with_records(
    state: RaftState, event: RequestReceived, partition: FetchPartition, may_wait: bool
) -> None:
    request = cast("FetchRequest", event.message)
    offset, end, mark = partition.fetch_offset, state.log.end_offset, state.high_watermark
    is_empty = offset >= end
    # The schema's default of HighWatermark is the largest number: only version 18 sends the known
    # one, so only its senders learn of a new one at once (KIP-1166).
    can_wait = is_empty and request.max_wait_ms > 0 and partition.high_watermark >= mark
    if may_wait and can_wait:
        due = state.now + min(request.max_wait_ms, FETCH_WAIT_MAX_MS)
        if state.parked.park(ParkedFetch(event.token, offset, due, event)):
            return
    if is_empty:
        state.emit(SendReply(event.token, _without_records(state, event, ErrorCode.NONE, mark)))
        return
    response = _response(state, event, _partition(state, ErrorCode.NONE, mark))
    limit = min(max(request.max_bytes, 0), FETCH_BYTES_MAX)
    state.emit(SendReply(event.token, response, LogSlice(offset, limit, end)))


def _record_progress(state: RaftState, leader: Leader, replica: ReplicaKey, position: int) -> None:
    """Record a replica's progress: all below a voter's fetch offset is durable there (D2)."""
    progress = leader.progress
    if progress.record_fetch(replica, position, state.now):
        advance_high_watermark(state, leader)


def advance_high_watermark(state: RaftState, leader: Leader) -> None:
    """Commit what a majority has, and wake the requests that wait for it (R-HW-1 to R-HW-6)."""
    mark = leader.progress.high_watermark(state.high_watermark)
    if mark <= state.high_watermark:
        return
    state.high_watermark = mark
    state.committed = max(state.committed, mark)
    state.announced = max(state.announced, mark)
    state.emit(HighWatermarkAdvanced(mark))
    settle_change(state, leader)
    _answer_parked(state, state.parked.wake_all())


def wake_after_append(state: RaftState) -> None:
    """Answer the requests that wait for what was just appended.

    A leader that is the only voter answers them once its log is flushed, with the high watermark
    that commits the records (R-FET-15).
    """
    if state.is_voter and len(state.voters) == 1:
        return
    _answer_parked(state, state.parked.wake_at_or_below(state.log.end_offset))


def _answer_parked(state: RaftState, woken: list[ParkedFetch]) -> None:
    """Answer the voters, and the others too if they are few; else they are due a few at a time.

    A peer with thousands of parked requests must not delay commits by their answers: a step that
    answers voters answers nothing else then.
    """
    voters, is_crowd = set[int](), len(woken) > PARKED_WOKEN_MAX
    later: list[ParkedFetch] = []
    for parked in woken:
        replica_id = fetching_replica(cast("FetchRequest", parked.event.message))
        is_first = state.voters.get(replica_id) is not None and replica_id not in voters
        voters.add(replica_id)
        if is_first or not is_crowd:
            _fetch_answer(state, parked.event)
        else:
            later.append(parked)
    state.parked.defer(later)


def answer_expired(state: RaftState) -> None:
    """Answer the requests whose wait time is up, with the current state.

    Kafka sends the answer that it built when the request came; the current one is never older. As
    in Kafka, waiting is not a sign of life: it does not count as another fetch.
    """
    for parked in state.parked.expired(state.now):
        _fetch_answer(state, parked.event, counts=False)


def fail_parked(state: RaftState, error: ErrorCode) -> None:
    """Fail all parked requests: this node does not lead, or no longer does."""
    for parked in state.parked.take_all():
        _refuse_fetch(state, parked.event, error)


def _refuse_fetch(state: RaftState, event: RequestReceived, error: ErrorCode) -> None:
    state.emit(SendReply(event.token, _without_records(state, event, error, -1)))


def _without_records(
    state: RaftState, event: RequestReceived, error: ErrorCode, mark: int
) -> answer.FetchResponse:
    """Return an answer without records: leader, epoch and offsets. Reuses the last one if equal."""
    role, last = state.role, state.empty_answer
    has_endpoints = event.version >= _ENDPOINTS_VERSION
    where = (error, mark, state.log.start_offset, role.leader_id, role.epoch)
    about = (*where, role.leader_endpoints, event.listener if has_endpoints else None)
    if last.message is None or last.about != about:
        data = _partition(state, error, mark)
        if error != ErrorCode.NONE:
            data.log_start_offset = -1
        last.about, last.message = about, _response(state, event, data)
    return last.message


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
