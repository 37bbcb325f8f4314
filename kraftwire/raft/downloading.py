"""Fetching a snapshot from the leader, because its log begins after this node's end.

The bytes go into a file that is checked as a whole before it gets its name; only then is the log
replaced. An interrupted download is resumed while leader and epoch are the same; anything else
leads to a new Fetch.

Any node that claims to lead could send bytes for ever, so a leader is believed within limits: the
size of its snapshot, the number of its parts, what they begin with, and how fast they come. One
that exceeds them is given up: nothing is fetched from it for a while, and this node stands for
election. That does no harm to a leader that others hear from: they refuse their pre-votes.

Source: KIP-630; Kafka's `KafkaRaftClient.handleFetchSnapshotResponse`; R-FET-21, R-FSN-1,
R-FSN-4, R-FSN-5.
"""

from __future__ import annotations

from kraftwire.messages import fetch_snapshot_request as ask
from kraftwire.messages.fetch_response import SnapshotId
from kraftwire.messages.fetch_snapshot_response import FetchSnapshotResponse, PartitionSnapshot
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.raft import answers
from kraftwire.raft.batches import OFFSET_MAX, read_fetched
from kraftwire.raft.effects import (
    AppendToSnapshot,
    Destination,
    DropLogPrefix,
    FinishSnapshot,
    HighWatermarkAdvanced,
    ResetLog,
)
from kraftwire.raft.events import SnapshotFinished, SnapshotRejected
from kraftwire.raft.responses import ResponseOutcome, settle, settle_top_level
from kraftwire.raft.roles import Follower, Leader
from kraftwire.raft.state import Download, Purpose, RaftState, SentRequest
from kraftwire.records.offsets import BOOTSTRAP_SNAPSHOT, OffsetAndEpoch

# A leader whose parts come more slowly than this on average no longer counts as alive; the download
# goes on. Units: bytes in a millisecond, so about 16 MiB/s.
PART_BYTES_PER_MS_MIN = 16 * 1024

# A leader that sends parts of fewer bytes than this on average, after some free ones, is given up:
# Kafka and kraftwire send as much as is asked for, up to a MiB.
PART_BYTES_MIN = 16 * 1024
PARTS_FREE = 1000

# A beginning of this size has whole batches in it: header, kraft.version and voters take less.
BEGINNING_BYTES_MIN = 64 * 1024

# The pause after a failed download, doubled for each further one in the same epoch.
DOWNLOAD_PAUSE_MS = 100
DOWNLOAD_PAUSE_MAX_MS = 30_000

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
    is_possible = 0 <= snapshot.offset <= OFFSET_MAX and 0 <= snapshot.epoch <= role.epoch
    if not is_possible or snapshot == BOOTSTRAP_SNAPSHOT:
        problem = "that is impossible"
    elif snapshot.offset <= known:
        problem = f"this node has everything up to {known}"
    elif snapshot.offset < state.log.end_offset and snapshot.epoch <= state.log.last_epoch:
        # A log that extends past it, in no earlier epoch, can be truncated where it diverges.
        problem = f"this node's log ends at {state.log.end}"
    elif state.now < state.download_pause_ms:
        state.failed(sent)
        return False
    else:
        _open(state, role, snapshot)
        if role.snapshot_since_ms < 0:
            role.snapshot_since_ms = state.now
        _count_as_alive(state, role)
        return False
    text = f"{sent.destination.name} names snapshot {snapshot}, but {problem}: ignored"
    state.note(text, "warning", key="snapshot-claim")
    state.failed(sent)
    return False


def _count_as_alive(state: RaftState, role: Follower) -> None:
    """Wait on for a leader that names and sends snapshots, as long as it sends them fast enough.

    One that only names them must not keep its followers from standing for election. A replica
    without any log must not stand while it can be helped: two such replicas would elect each other,
    and lose everything.
    """
    until = state.now
    if state.log.end_offset:
        until = role.snapshot_since_ms + role.snapshot_bytes // PART_BYTES_PER_MS_MIN
    deadline = min(state.now, until) + role.fetch_timeout_ms
    role.fetch_deadline_ms = max(role.fetch_deadline_ms, deadline)
    role.has_fetched = True


def _pause(state: RaftState) -> None:
    """Begin no download for a while, longer after each failure."""
    wait = DOWNLOAD_PAUSE_MS << min(state.download_failures, 16)
    state.download_failures += 1
    state.download_pause_ms = state.now + min(wait, DOWNLOAD_PAUSE_MAX_MS)
    leader = state.leader_destination()
    if leader is not None:
        state.peers.failed(leader.key, state.now)


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
    if settle(state, sent, (error, leader_id, epoch), endpoints) is not ResponseOutcome.OWN:
        return
    if type(role) is not Follower or state.role is not role:
        return
    if is_gone:
        text = f"the leader no longer has snapshot {state.download and state.download.id}"
        state.note(text, key="snapshot-gone")
        state.drop_download()
        # The snapshot that the leader just named is gone: pause, because it may name it repeatedly.
        state.failed(sent)
    elif not _append_chunk(state, role, part, sent):
        return
    if role.snapshot_since_ms >= 0:
        _count_as_alive(state, role)


def _only_partition(
    state: RaftState, response: FetchSnapshotResponse
) -> PartitionSnapshot | None:
    topics = response.topics
    if len(topics) != 1 or topics[0].name != state.config.topic.name:
        return None
    partitions = topics[0].partitions
    return partitions[0] if len(partitions) == 1 and partitions[0].index == 0 else None


def _append_chunk(
    state: RaftState, role: Follower, part: PartitionSnapshot, sent: SentRequest
) -> bool:
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
    elif lie := _check_part(state, current, part, data):
        text = f"{sent.destination.name} {lie}: the leader is given up"
        state.note(text, "error", key="snapshot-refused")
        state.drop_download()
        _pause(state)
        role.fetch_deadline_ms = state.now
        return False
    else:
        current.size = part.size
        current.parts += 1
        role.snapshot_bytes += len(data)
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


def _check_part(
    state: RaftState, current: Download, part: PartitionSnapshot, data: bytes | memoryview
) -> str:
    """Return why a leader is not believed, empty if it is."""
    limit = max(state.config.snapshot_max_bytes, 2 * state.log.largest_snapshot)
    if part.size > limit:
        return f"announces a snapshot of {part.size:,} bytes, more than {limit:,}"
    least = max(1, min(PART_BYTES_MIN, state.config.fetch_snapshot_max_bytes))
    if current.parts > PARTS_FREE + current.position // least:
        return f"sent {current.parts:,} parts for {current.position:,} bytes of a snapshot"
    return _check_beginning(current, data)


def _check_beginning(current: Download, data: bytes | memoryview) -> str:
    """Return why a part makes the file no snapshot, empty as long as it may be one: parts may be
    too small to tell."""
    if current.position >= BEGINNING_BYTES_MIN:
        return ""
    current.beginning += data
    if len(current.beginning) < BEGINNING_BYTES_MIN:
        return ""
    epoch = current.id.epoch
    problem = read_fetched(current.beginning, 0, epoch, last_epoch=epoch).problem
    current.beginning = b""
    return f"sent what is no snapshot: {problem}" if problem else ""


def handle_rejected(state: RaftState, event: SnapshotRejected) -> None:
    """Discard a damaged snapshot, and one that could not be written; fetch again after a pause.

    The leader gets no credit for what it sent.
    """
    if state.download is not None and state.download.id == event.id:
        state.download = None
    text = f"the snapshot {event.id} that was fetched is not loaded: {event.problem}"
    state.note(text, "error", key="snapshot-damaged")
    role = state.role
    if type(role) is Follower:
        role.snapshot_bytes = 0
    _pause(state)


def handle_finished(state: RaftState, event: SnapshotFinished) -> None:
    """Start the log where a checked snapshot ends (R-FSN-4)."""
    if state.download is not None and state.download.id == event.id:
        state.download = None
    state.download_failures = state.download_pause_ms = 0
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
