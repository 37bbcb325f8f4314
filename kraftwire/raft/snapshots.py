"""This node's snapshots: when one may be written, where the log may start, serving them.

Source: KIP-630; Kafka's `KafkaRaftLog.createNewSnapshot`, `KafkaRaftClient.handleFetchSnapshot`;
R-SNAP-1 to R-SNAP-6, R-FSN-2, R-FSN-3.
"""

from __future__ import annotations

from typing import cast

from kraftwire.messages import fetch_snapshot_response as answer
from kraftwire.messages.fetch_snapshot_request import FetchSnapshotRequest, PartitionSnapshot
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.raft.answers import cluster_id_differs, leader_address, leader_error
from kraftwire.raft.effects import DropLogPrefix, SendReply, SnapshotRefused, SnapshotSlice
from kraftwire.raft.effects import WriteSnapshot as Write
from kraftwire.raft.events import (
    LogStartProposed,
    RequestReceived,
    SnapshotFailed,
    SnapshotWanted,
    SnapshotWritten,
)
from kraftwire.raft.state import RaftState
from kraftwire.raft.voters import ReplicaKey
from kraftwire.records.offsets import OffsetAndEpoch

# The largest part of a snapshot that a leader sends at a time, however much a peer asks for.
SNAPSHOT_CHUNK_BYTES_MAX = 1024 * 1024

# ---- writing -------------------------------------------------------------------------------------


def handle_wanted(state: RaftState, event: SnapshotWanted) -> None:
    """Request a snapshot of what a listener has applied, or refuse with a reason (R-SNAP-2)."""
    reason = _refusal(state, event)
    if reason:
        state.emit(SnapshotRefused(event.listener_id, event.end_offset, reason))
        return
    end = event.end_offset
    snapshot = OffsetAndEpoch(end, state.log.epoch_before(end))
    state.unfinished_snapshot = snapshot
    control = state.history.control_at(end - 1)
    state.emit(Write(event.listener_id, snapshot, control, event.timestamp))


def _refusal(state: RaftState, event: SnapshotWanted) -> str:
    log, end = state.log, event.end_offset
    newest = log.latest_snapshot
    if state.unfinished_snapshot is not None:
        return f"snapshot {state.unfinished_snapshot} is being written"
    if end <= log.start_offset or (newest is not None and end <= newest.offset):
        return f"there is already a snapshot that ends at {newest.offset if newest else 0}"
    if end > state.committed:
        return f"offset {end} is not committed; {state.committed} is the high watermark"
    if not state.listeners.may_be_at(event.listener_id, end):
        return f"the listener has not applied exactly what is below {end}"
    if log.batch_base(end) != end:
        return f"offset {end} is inside a batch"
    return ""


def handle_written(state: RaftState, event: SnapshotWritten) -> None:
    """Record a durable snapshot: it can be served, and the log before its end may be dropped."""
    if state.unfinished_snapshot == event.id:
        state.unfinished_snapshot = None
    if event.id.offset <= state.log.start_offset:
        # The log has since been reset to a newer snapshot.
        state.emit(DropLogPrefix(state.log.start_offset, (event.id,)))
        return
    state.log.add_snapshot(event.id, event.size)
    state.history.prune(event.id.offset)
    state.note(f"wrote snapshot {event.id}, {event.size:,} bytes", key="snapshot-written")


def handle_failed(state: RaftState, event: SnapshotFailed) -> None:
    """Record a failed snapshot; the state machine tries again when the next one is due."""
    if state.unfinished_snapshot == event.id:
        state.unfinished_snapshot = None
    state.note(f"snapshot {event.id} failed: {event.problem}", "error", key="snapshot-failed")


def handle_log_start(state: RaftState, event: LogStartProposed) -> None:
    """Start the log at a snapshot's end, if all below is committed and applied (R-SNAP-6)."""
    log, start = state.log, event.snapshot
    if log.snapshot_size(start) is None or not log.start_offset < start.offset:
        return
    if start.offset > state.committed or start.offset > state.listeners.lowest_offset():
        return
    older = tuple(one for one in log.snapshots if one < start)
    state.emit(DropLogPrefix(start.offset, older))
    log.raise_start(start.offset)
    log.forget_snapshots(older)
    state.note(f"the log now starts at {start.offset}, with snapshot {start}", key="log-start")


# ---- serving -------------------------------------------------------------------------------------


def handle_fetch_snapshot_request(state: RaftState, event: RequestReceived) -> None:
    """Serve a chunk of a snapshot, or refuse with a reason (R-FSN-2).

    Refusals have empty records so that they can be encoded, unlike Java's (R-FSN-3).
    """
    request = cast("FetchSnapshotRequest", event.message)
    error = ErrorCode.NONE
    if cluster_id_differs(state, request.cluster_id):
        error = ErrorCode.INCONSISTENT_CLUSTER_ID
    elif len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
        error = ErrorCode.INVALID_REQUEST
    if error != ErrorCode.NONE:
        state.emit(SendReply(event.token, answer.FetchSnapshotResponse(error_code=error)))
        return
    topic = request.topics[0]
    requested = topic.partitions[0]
    key = ReplicaKey(request.replica_id, requested.replica_directory_id)
    error = _check_request(state, topic.name, requested, key)
    leader = state.leader
    part = None
    if error == ErrorCode.NONE and leader is not None:
        leader.progress.record_activity(key, state.now)
        limit = min(max(request.max_bytes, 0), SNAPSHOT_CHUNK_BYTES_MAX)
        part = SnapshotSlice(_snapshot_id(requested), requested.position, limit)
    response = _response(state, event, topic.name, requested, error)
    state.emit(SendReply(event.token, response, part))


def _snapshot_id(requested: PartitionSnapshot) -> OffsetAndEpoch:
    return OffsetAndEpoch(requested.snapshot_id.end_offset, requested.snapshot_id.epoch)


def _check_request(
    state: RaftState, topic: str, requested: PartitionSnapshot, replica: ReplicaKey
) -> ErrorCode:
    if topic != state.config.topic.name or requested.partition != 0:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    error = leader_error(state, requested.current_leader_epoch)
    if error != ErrorCode.NONE:
        return error
    if replica.id == state.config.key.id:
        return ErrorCode.INVALID_REQUEST
    size = state.log.snapshot_size(_snapshot_id(requested))
    if size is None:
        return ErrorCode.SNAPSHOT_NOT_FOUND
    return ErrorCode.NONE if 0 <= requested.position < size else ErrorCode.POSITION_OUT_OF_RANGE


def _response(
    state: RaftState,
    event: RequestReceived,
    topic: str,
    requested: PartitionSnapshot,
    error: ErrorCode,
) -> answer.FetchSnapshotResponse:
    role = state.role
    data = answer.PartitionSnapshot(
        index=requested.partition,
        error_code=error,
        snapshot_id=answer.SnapshotId(
            end_offset=requested.snapshot_id.end_offset, epoch=requested.snapshot_id.epoch
        ),
        current_leader=answer.LeaderIdAndEpoch(
            leader_id=role.leader_id, leader_epoch=role.epoch
        ),
        size=state.log.snapshot_size(_snapshot_id(requested)) or 0,
        position=requested.position,
        unaligned_records=b"",
    )
    response = answer.FetchSnapshotResponse(
        topics=[answer.TopicSnapshot(name=topic, partitions=[data])]
    )
    endpoint = leader_address(state, event.listener)
    if endpoint is not None and event.version >= 1:
        response.node_endpoints = [
            answer.NodeEndpoint(node_id=role.leader_id, host=endpoint.host, port=endpoint.port)
        ]
    return response
