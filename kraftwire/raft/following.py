"""The follower's side of replication: fetching, appending, truncating.

A fetch acknowledges that this replica's log is durable up to its offset, so none is sent before the
flush is done (D2). A bad answer is noted and the fetch repeated; nothing a leader sends ends this
node.

Source: KIP-595, KIP-1166; R-FET-1 to R-FET-5, R-FET-19 to R-FET-24, R-UPD-1 to R-UPD-5.
"""

from __future__ import annotations

from kraftwire.messages.fetch_request import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ReplicaState,
)
from kraftwire.messages.fetch_response import EpochEndOffset, FetchResponse, PartitionData
from kraftwire.raft import answers
from kraftwire.raft.appending import flush
from kraftwire.raft.batches import read_fetched
from kraftwire.raft.downloading import begin_download, poll_download
from kraftwire.raft.effects import (
    AppendToLog,
    HighWatermarkAdvanced,
    TruncateLog,
)
from kraftwire.raft.responses import ResponseOutcome, settle, settle_top_level
from kraftwire.raft.roles import Follower
from kraftwire.raft.state import Purpose, RaftState, SentRequest
from kraftwire.raft.voter_updates import poll_update
from kraftwire.records.offsets import OffsetAndEpoch


def poll_unattached(state: RaftState) -> None:
    """Ask a bootstrap server who leads, one at a time (R-FET-2)."""
    if not state.peers.any_in_flight() and state.shutdown_deadline_ms is None:
        _fetch_from_bootstrap(state)


def poll_follower(state: RaftState, role: Follower) -> None:
    """Fetch from the leader; ask others if it does not answer (R-FET-3)."""
    if state.peers.any_in_flight() or state.shutdown_deadline_ms is not None:
        return
    if not _may_fetch(state):
        return
    leader = state.leader_destination()
    if leader is None or not state.is_ready(leader):
        _fetch_from_bootstrap(state)
    elif not poll_update(state, role, leader) and not poll_download(state, role, leader):
        state.send(leader, _next_fetch(state), Purpose.FETCH)


def _may_fetch(state: RaftState) -> bool:
    """Return whether everything that a fetch would acknowledge is durable (D2, KAFKA-17332)."""
    log = state.log
    return not state.config.can_be_voter or log.flushed_offset >= log.end_offset


def _fetch_from_bootstrap(state: RaftState) -> None:
    if not _may_fetch(state):
        return
    nodes = state.addresses.bootstrap(state.voters)
    if not nodes:
        return
    count = len(nodes)
    start = state.random.randrange(count)
    for place in range(start, start + count):
        node = nodes[place % count]
        if state.peers.is_ready(node.key, state.now):
            state.send(node, _next_fetch(state), Purpose.FETCH)
            return


def _next_fetch(state: RaftState) -> FetchRequest:
    """Return the Fetch for what follows this log: the previous message if nothing has changed."""
    log, last = state.log, state.fetch
    epoch, mark = state.role.epoch, state.high_watermark
    about = (epoch, log.end_offset, log.last_epoch, mark, state.cluster_id)
    if last.message is None or last.about != about:
        last.about, last.message = about, _fetch_request(state)
    return last.message


def _fetch_request(state: RaftState) -> FetchRequest:
    config, log = state.config, state.log
    partition = FetchPartition(
        current_leader_epoch=state.role.epoch,
        fetch_offset=log.end_offset,
        last_fetched_epoch=log.last_epoch,
        replica_directory_id=config.key.directory_id,
        high_watermark=state.high_watermark,
    )
    topic = FetchTopic(
        topic=config.topic.name, topic_id=config.topic.topic_id, partitions=[partition]
    )
    return FetchRequest(
        cluster_id=state.cluster_id,
        replica_state=ReplicaState(replica_id=config.key.id),
        max_wait_ms=config.timers.fetch_max_wait_ms,
        max_bytes=config.fetch_max_bytes,
        topics=[topic],
    )


def handle_fetch_response(state: RaftState, sent: SentRequest, response: FetchResponse) -> None:
    """Process what the leader sent (R-FET-19 to R-FET-24)."""
    if not settle_top_level(state, sent, response.error_code):
        return
    data = _only_partition(state, response)
    if data is None:
        text = f"{sent.destination.name} answered about something else"
        state.note(text, "warning", key="foreign-answer")
        state.failed(sent)
        return
    leader = data.current_leader
    leader_id, epoch = (leader.leader_id, leader.leader_epoch) if leader else (-1, -1)
    listener = state.config.listener
    endpoints = answers.endpoints_of(response.node_endpoints, leader_id, listener)
    outcome = settle(state, sent, (data.error_code, leader_id, epoch), endpoints)
    role = state.role
    if outcome is not ResponseOutcome.OWN:
        return
    if type(role) is not Follower or leader_id != role.leader_id:
        # An answer without error from a node that does not claim to lead: ignore it.
        state.failed(sent)
        return
    if _apply_fetched(state, role, data, sent):
        role.fetch_deadline_ms = state.now + role.fetch_timeout_ms
        role.has_fetched = True


def _only_partition(state: RaftState, response: FetchResponse) -> PartitionData | None:
    topics = response.responses
    if len(topics) != 1 or topics[0].topic_id != state.config.topic.topic_id:
        return None
    partitions = topics[0].partitions
    if len(partitions) != 1 or partitions[0].partition_index != 0:
        return None
    return partitions[0]


def _apply_fetched(
    state: RaftState, role: Follower, data: PartitionData, sent: SentRequest
) -> bool:
    """Truncate, append or begin a download; returns whether the leader is alive and plausible."""
    diverging, snapshot = data.diverging_epoch, data.snapshot_id
    if diverging is not None and diverging.epoch >= 0:
        return _truncate(state, diverging, sent)
    if snapshot is not None and (snapshot.epoch >= 0 or snapshot.end_offset >= 0):
        return begin_download(state, role, snapshot, sent)
    state.drop_download()
    role.snapshot_since_ms, role.snapshot_bytes = -1, 0
    mark = state.high_watermark
    if data.records:
        _append(state, data.records, sent)
    _follow_high_watermark(state, data.high_watermark)
    if not data.records and state.high_watermark == mark and _is_early(state, sent):
        state.failed(sent)
    return True


def _is_early(state: RaftState, sent: SentRequest) -> bool:
    """Return whether an answer came long before a leader without news would have sent one.

    One that answers at once, again and again, is not asked without a pause (L9).
    """
    return (state.now - sent.at_ms) * 2 < state.config.timers.fetch_max_wait_ms


def _truncate(state: RaftState, diverging: EpochEndOffset, sent: SentRequest) -> bool:
    """Truncate what the leader does not have, but never what is committed (S11, R-FET-20)."""
    if diverging.end_offset < 0:
        state.note("the leader named a negative end offset", "warning", key="diverging")
        state.failed(sent)
        return False
    end = state.log.truncation_offset(
        OffsetAndEpoch(diverging.end_offset, diverging.epoch)
    )
    if end < max(state.committed, state.log.start_offset):
        state.note(
            f"the leader wants the log cut to {end}, but {state.committed} is committed: refused",
            "error",
            key="cut-refused",
        )
        state.failed(sent)
        return False
    if end >= state.log.end_offset:
        # Nothing to truncate and yet diverging: asking again at once would never end (KAFKA-10706).
        state.failed(sent)
        return True
    state.note(f"truncates the log from {state.log.end_offset} to {end}", key="truncates")
    was_voter = state.is_voter
    state.emit(TruncateLog(end))
    state.flush_generation += 1
    state.log.truncate(end)
    if state.history.truncate(end):
        state.voters_changed(was_voter)
    if state.log.flushed_offset < state.log.end_offset:
        # The flush in progress began before the truncation and will not count.
        flush(state)
    return True


def _append(state: RaftState, records: bytes | memoryview, sent: SentRequest) -> None:
    """Append the valid batches of a Fetch; the rest is fetched again (R-FET-23)."""
    log = state.log
    fetched = read_fetched(
        records, log.end_offset, state.role.epoch, last_epoch=log.last_epoch
    )
    if fetched.problem is not None:
        state.note(
            f"fetched from {sent.destination.name} at {log.end_offset}: {fetched.problem}",
            "warning",
            key="fetched",
        )
        if not fetched.batches:
            state.failed(sent)
            return
    if not fetched.batches:
        return
    base = log.end_offset
    state.emit(AppendToLog(base, fetched.end_offset, fetched.data))
    log.append(fetched.batches, fetched.end_offset)
    state.saw_timestamp(fetched.newest_timestamp)
    was_voter, has_changed = state.is_voter, False
    for offset, batch in fetched.control:
        has_changed |= state.history.observe(offset, batch)
    if has_changed:
        state.voters_changed(was_voter)
    if state.config.can_be_voter:
        flush(state)
    else:
        log.flushed_offset = log.end_offset


def _follow_high_watermark(state: RaftState, offered: int) -> None:
    """Adopt the leader's high watermark, as far as this replica's log extends (R-FET-22).

    A lower one than before comes from a new leader that does not know the right one yet, and is
    ignored. So is one below this log's start, where nothing can be read (KAFKA-16452).
    """
    mark = min(offered, state.log.end_offset)
    if state.high_watermark < mark >= state.log.start_offset:
        state.high_watermark = mark
        state.committed = max(state.committed, mark)
        if mark > state.announced:
            state.announced = mark
            state.emit(HighWatermarkAdvanced(mark))
