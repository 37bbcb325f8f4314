"""The leader's own writing: accumulate, write, replicate, and count oneself once it is durable.

A difference from Kafka: the leader's own log end counts towards the high watermark only up to what
is flushed (D3); followers may see records before that, which is as safe and as fast.

Source: notes R-LEAD-1 to R-LEAD-4, R-ACC-1 to R-ACC-7, R-FET-15.
"""

from __future__ import annotations

from kraftwire.raft.accumulator import Refusal
from kraftwire.raft.batches import leader_change
from kraftwire.raft.effects import (
    AppendAccepted,
    AppendRefused,
    AppendToLog,
    FlushLog,
    RefusalReason,
)
from kraftwire.raft.events import AppendRequested, LogFlushed
from kraftwire.raft.roles import Candidate, Leader
from kraftwire.raft.serving import advance_high_watermark, wake_after_append
from kraftwire.raft.state import RaftState
from kraftwire.raft.transitions import to_leader
from kraftwire.records.offsets import OffsetAndEpoch

__all__ = ["drain", "flush", "handle_append", "handle_flushed", "start_leading"]


def start_leading(state: RaftState, candidate: Candidate) -> None:
    """Take over the epoch and open it with a LeaderChange record (R-LEAD-1, R-LEAD-2)."""
    granting = candidate.votes.granting
    to_leader(state, f"{len(granting)} of {len(state.voters)} voters voted for this node")
    leader = state.leader
    if leader is not None:
        message = leader_change(state.config.key.id, list(state.voters.voters), granting)
        leader.accumulator.append_control([message], state.now)
        drain(state, leader)


def handle_append(state: RaftState, event: AppendRequested) -> None:
    """Take records of the state machine, or say why not."""
    reason, detail = _refusal(state, event)
    leader = state.leader
    if reason is not None or leader is None:
        state.emit(AppendRefused(event.token, reason or RefusalReason.NOT_LEADER, detail))
        return
    taken = leader.accumulator.append(event.values, state.now)
    if isinstance(taken, Refusal):
        state.emit(AppendRefused(event.token, taken.reason, taken.detail))
        return
    base, last = taken
    state.emit(AppendAccepted(event.token, base, last, leader.epoch))


def _refusal(state: RaftState, event: AppendRequested) -> tuple[RefusalReason | None, str]:
    role, leader = state.role, state.leader
    if leader is None or event.epoch < role.epoch:
        detail = f"this node is {role.NAME} in epoch {role.epoch}, not {event.epoch}"
        return RefusalReason.NOT_LEADER, detail
    if event.epoch > role.epoch:
        return RefusalReason.ILLEGAL_EPOCH, f"the epoch is {role.epoch}, not {event.epoch}"
    wanted, end = event.expected_end_offset, leader.accumulator.end_offset
    if wanted is not None and wanted != end:
        # The state machine is behind its own log: another leader may do better.
        state.resign_asked = f"the state machine expected to write at {wanted}, not at {end}"
        return RefusalReason.UNEXPECTED_END_OFFSET, f"the next offset is {end}, not {wanted}"
    return None, ""


def drain(state: RaftState, leader: Leader) -> None:
    """Write what is due, and offer it to those who wait (R-FET-15)."""
    batches = leader.accumulator.drain(state.now)
    if not batches:
        return
    for batch in batches:
        state.emit(AppendToLog(batch.base, batch.end_offset, batch.data))
        state.log.append([OffsetAndEpoch(batch.base, leader.epoch)], batch.end_offset)
    leader.progress.log_grew(state.log.end_offset)
    wake_after_append(state)
    flush(state)


def flush(state: RaftState) -> None:
    """Have the log made durable up to its present end."""
    end = state.log.end_offset
    state.flush_asked = end
    state.emit(FlushLog(end, state.flush_generation))


def handle_flushed(state: RaftState, event: LogFlushed) -> None:
    """Count what is durable: as the leader's own vote for committing it."""
    if event.generation != state.flush_generation:
        return
    log = state.log
    log.flushed_offset = max(log.flushed_offset, min(event.end_offset, log.end_offset))
    leader = state.leader
    if leader is not None and leader.progress.own_end(log.flushed_offset):
        advance_high_watermark(state, leader)
