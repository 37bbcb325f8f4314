"""Fetching a snapshot from the leader, because its log begins after this node's end.

The bytes go into a file that is checked as a whole before it gets its name; only then is the log
replaced. An interrupted download is resumed while leader and epoch are the same; anything else
leads to a new Fetch.

Source: KIP-630; Kafka's `KafkaRaftClient.handleFetchSnapshotResponse`; R-FET-21, R-FSN-1,
R-FSN-4, R-FSN-5.
"""

from __future__ import annotations

from kraftwire.messages import fetch_snapshot_request as ask
from kraftwire.messages.fetch_response import SnapshotId
from kraftwire.messages.fetch_snapshot_response import FetchSnapshotResponse, PartitionSnapshot
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.raft import answers
from kraftwire.raft.effects import (
    AppendToSnapshot,
    Destination,
    DropLogPrefix,
    FinishSnapshot,
    HighWatermarkAdvanced,
    ResetLog,
)
from kraftwire.raft.events import SnapshotFinished, SnapshotRejected
from kraftwire.raft.responses import Outcome, settle, settle_top_level
from kraftwire.raft.roles import Follower, Leader
from kraftwire.raft.state import Download, Purpose, RaftState, SentRequest
from kraftwire.records.offsets import BOOTSTRAP_SNAPSHOT, OffsetAndEpoch

# A leader that names a snapshot this often without sending any part of one no longer counts as
# alive. An honest leader may, once or twice, delete the snapshot that it named while it is fetched.
SNAPSHOT_CLAIMS_MAX = 3

# Errors after which only a new Fetch shows what the leader has: Java cannot encode its refusals of
# FetchSnapshot, which arrive as UNKNOWN_SERVER_ERROR (R-FSN-3).
_GONE = (
    ErrorCode.SNAPSHOT_NOT_FOUND,
    ErrorCode.POSITION_OUT_OF_RANGE,
    ErrorCode.UNKNOWN_SERVER_ERROR,
)


def begin_download(state: RaftState, role: Follower, named: SnapshotId, sent: SentRequest) -> bool:
    """Start to fetch the snapshot that a leader names; returns whether it is plausible
    (R-FET-21)."""
    snapshot = OffsetAndEpoch(named.end_offset, named.epoch)
    known = max(state.committed, state.log.start_offset)
    if min(snapshot) < 0 or snapshot == BOOTSTRAP_SNAPSHOT or snapshot.epoch > role.epoch:
        problem = "that is impossible"
    elif snapshot.offset <= known:
        problem = f"this node has everything up to {known}"
    elif snapshot.offset < state.log.end_offset and snapshot.epoch <= state.log.last_epoch:
        # A log that extends past it, in no earlier epoch, can be truncated where it diverges.
        problem = f"this node's log ends at {state.log.end}"
    else:
        _open(state, role, snapshot)
        role.snapshot_claims += 1
        return _is_alive(role)
    text = f"{sent.destination.name} names snapshot {snapshot}, but {problem}: ignored"
    state.note(text, "warning", key="snapshot-claim")
    state.failed(sent)
    return False


def _is_alive(role: Follower) -> bool:
    """Return whether naming a snapshot counts as a sign of life of the leader.

    A leader that names snapshots repeatedly but never sends them must not keep its followers from
    standing for election.
    """
    return role.snapshot_claims <= SNAPSHOT_CLAIMS_MAX


def _open(state: RaftState, role: Follower, snapshot: OffsetAndEpoch) -> None:
    current = state.download
    wanted = (snapshot, role.leader_id, role.epoch)
    if current is not None and (current.id, current.leader_id, current.epoch) == wanted:
        return
    state.drop_download()
    state.download = Download(snapshot, role.leader_id, role.epoch)
    state.note(
        f"the leader's log begins after offset {state.log.end_offset}: "
        f"fetches snapshot {snapshot} from {role.leader_id}",
        key="snapshot-begun",
    )


def poll_download(state: RaftState, role: Follower, leader: Destination) -> bool:
    """Fetch the next chunk; returns whether there is a download, so that no Fetch is due (R-FET-3).

    A download from another leader or epoch is dropped.
    """
    current = state.download
    if current is None:
        return False
    if current.is_finishing:
        return True
    if not current.is_of(role.leader_id, role.epoch):
        state.drop_download()
        return False
    state.send(leader, _request(state, current), Purpose.FETCH_SNAPSHOT)
    return True


def _request(state: RaftState, current: Download) -> ask.FetchSnapshotRequest:
    config = state.config
    partition = ask.PartitionSnapshot(
        current_leader_epoch=state.role.epoch,
        snapshot_id=ask.SnapshotId(end_offset=current.id.offset, epoch=current.id.epoch),
        position=current.position,
        replica_directory_id=config.key.directory_id,
    )
    return ask.FetchSnapshotRequest(
        cluster_id=state.cluster_id,
        replica_id=config.key.id,
        max_bytes=config.fetch_snapshot_max_bytes,
        topics=[ask.TopicSnapshot(name=config.topic.name, partitions=[partition])],
    )


def handle_fetch_snapshot_response(
    state: RaftState, sent: SentRequest, response: FetchSnapshotResponse
) -> None:
    """Keep a chunk of the snapshot, or send a new Fetch (R-FSN-4)."""
    if response.error_code in _GONE:
        state.drop_download()
    if not settle_top_level(state, sent, response.error_code):
        return
    part = _only_partition(state, response)
    if part is None:
        text = f"{sent.destination.name} answered about something else"
        state.note(text, "warning", key="foreign-answer")
        state.failed(sent)
        return
    role = state.role
    leader = part.current_leader
    leader_id, epoch = (leader.leader_id, leader.leader_epoch) if leader else (-1, -1)
    endpoints = answers.endpoints_of(response.node_endpoints, leader_id, state.config.listener)
    is_gone = part.error_code in _GONE or part.snapshot_id.end_offset < 0
    error = ErrorCode.NONE if is_gone else part.error_code
    if settle(state, sent, (error, leader_id, epoch), endpoints) is not Outcome.OWN:
        return
    if type(role) is not Follower or state.role is not role:
        return
    if is_gone:
        text = f"the leader no longer has snapshot {state.download and state.download.id}"
        state.note(text, key="snapshot-gone")
        state.drop_download()
        # The snapshot that the leader just named is gone: pause, because it may name it repeatedly.
        state.failed(sent)
        if not _is_alive(role):
            return
    elif not _take(state, part, sent):
        return
    else:
        role.snapshot_claims = 0
    role.fetch_deadline_ms = state.now + role.fetch_timeout_ms
    role.has_fetched = True


def _only_partition(
    state: RaftState, response: FetchSnapshotResponse
) -> PartitionSnapshot | None:
    topics = response.topics
    if len(topics) != 1 or topics[0].name != state.config.topic.name:
        return None
    partitions = topics[0].partitions
    return partitions[0] if len(partitions) == 1 and partitions[0].index == 0 else None


def _take(state: RaftState, part: PartitionSnapshot, sent: SentRequest) -> bool:
    """Append a chunk to the file; returns whether it is the requested one."""
    current = state.download
    if current is None or current.is_finishing:
        return False
    named = OffsetAndEpoch(part.snapshot_id.end_offset, part.snapshot_id.epoch)
    data = part.unaligned_records or b""
    end = current.position + len(data)
    is_known = current.size in (-1, part.size)
    if named != current.id or part.position != current.position or not is_known:
        problem = f"sent {named} at {part.position} of {part.size} bytes"
    elif not data or end > part.size:
        problem = f"sent {len(data)} bytes at {part.position} of {part.size}"
    else:
        current.size = part.size
        state.emit(AppendToSnapshot(current.id, current.position, data))
        current.position = end
        if end == part.size:
            current.is_finishing = True
            state.emit(FinishSnapshot(current.id))
        return True
    text = f"{sent.destination.name} {problem}, asked for {current.id} at {current.position}"
    state.note(text, "warning", key="snapshot-part")
    state.drop_download()
    state.failed(sent)
    return False


def handle_rejected(state: RaftState, event: SnapshotRejected) -> None:
    """Discard a damaged snapshot and send a new Fetch, after a pause."""
    text = f"the snapshot {event.id} that was fetched is damaged: {event.problem}; it is not loaded"
    state.note(text, "error", key="snapshot-damaged")
    if state.download is not None and state.download.id == event.id:
        state.download = None
    leader = state.leader_destination()
    if leader is not None:
        state.peers.failed(leader.key, state.now)


def handle_finished(state: RaftState, event: SnapshotFinished) -> None:
    """Start the log where a checked snapshot ends (R-FSN-4)."""
    if state.download is not None and state.download.id == event.id:
        state.download = None
    snapshot = event.id
    log = state.log
    if log.snapshot_size(snapshot) is not None:
        return
    is_committed = snapshot.offset <= state.committed
    is_needless = type(state.role) is Leader or snapshot.offset <= log.start_offset
    if is_needless or (is_committed and log.epoch_before(snapshot.offset) != snapshot.epoch):
        # A node that a majority has elected needs no snapshot; its log has everything committed.
        state.emit(DropLogPrefix(log.start_offset, (snapshot,)))
        return
    if is_committed:
        log.add_snapshot(snapshot, event.size)
        return
    was_voter = state.is_voter
    state.emit(ResetLog(snapshot))
    state.flush_generation += 1
    log.add_snapshot(snapshot, event.size)
    log.reset(snapshot)
    state.requested_flush_end = snapshot.offset
    state.high_watermark = state.committed = state.announced = snapshot.offset
    if state.history.reset(snapshot.offset, event.control):
        state.voters_changed(was_voter)
    state.listeners.wake()
    state.note(f"the log now begins at snapshot {snapshot}", key="snapshot-taken")
    state.emit(HighWatermarkAdvanced(snapshot.offset))
