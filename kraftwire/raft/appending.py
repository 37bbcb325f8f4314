"""The leader's own writes: accumulate, write, replicate, and count its copy once it is durable.

Differs from Kafka: the leader's own log counts towards the high watermark only as far as it is
flushed (D3). Followers may get records before that, which is as safe and as fast.

Source: R-LEAD-1 to R-LEAD-4, R-ACC-1 to R-ACC-7, R-FET-15.
"""

from __future__ import annotations

from kraftwire.messages.kraft_version_record import KRaftVersionRecord
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
from kraftwire.raft.histories import voters_record
from kraftwire.raft.roles import Candidate, Leader
from kraftwire.raft.serving import advance_high_watermark, wake_after_append
from kraftwire.raft.state import RaftState
from kraftwire.raft.transitions import notify_listeners, to_leader
from kraftwire.raft.voter_updates import own_voter
from kraftwire.records.control import ControlType
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.wire.message import Message


def start_leading(state: RaftState, candidate: Candidate) -> None:
    """Take over the epoch and open it with a LeaderChange record (R-LEAD-1, R-LEAD-2)."""
    granting = candidate.votes.granting
    to_leader(state, f"{len(granting)} of {len(state.voters)} voters voted for this node")
    leader = state.leader
    if leader is not None:
        records = _first_records(state, [key.id for key in granting])
        leader.opens_with_voters = len(records) > 1
        leader.accumulator.append_control(records, state.now, state.timestamp())
        notify_listeners(state)
        drain(state, leader)


def _first_records(
    state: RaftState, granting: list[int]
) -> list[tuple[ControlType, Message]]:
    """Return the first records of an epoch, which are in one batch (R-LEAD-2).

    The first leader of a dynamic quorum also writes its version and voters to the log, because no
    other replica has the checkpoint that they come from; so does a leader whose own entry has
    changed.
    """
    config, history = state.config, state.history
    records = [leader_change(config.key.id, list(state.voters.voters), granting)]
    if history.kraft_version == 0 or not history.has_own_voters:
        return records
    voters, own = state.voters, own_voter(state)
    if state.own_entry is not None and state.own_entry != own:
        voters = voters.with_voter(own)
    if history.last_voters_offset == -1 or voters is not state.voters:
        version = KRaftVersionRecord(version=0, kraft_version=history.kraft_version)
        records.append((ControlType.KRAFT_VERSION, version))
        records.append((ControlType.KRAFT_VOTERS, voters_record(voters)))
    return records


def handle_append(state: RaftState, event: AppendRequested) -> None:
    """Append records of the state machine, or refuse them with a reason."""
    reason, detail = _refusal(state, event)
    leader = state.leader
    if reason is not None or leader is None:
        state.emit(AppendRefused(event.token, reason or RefusalReason.NOT_LEADER, detail))
        return
    taken = leader.accumulator.append(event.values, state.now, state.timestamp())
    if isinstance(taken, Refusal):
        state.emit(AppendRefused(event.token, taken.reason, taken.detail))
        return
    base, last = taken
    state.emit(AppendAccepted(event.token, base, last, leader.epoch))


def _refusal(state: RaftState, event: AppendRequested) -> tuple[RefusalReason | None, str]:
    role, leader = state.role, state.leader
    if leader is None or event.epoch < role.epoch:
        text = f"this node is {role.NAME} in epoch {role.epoch}, not the leader of {event.epoch}"
        return RefusalReason.NOT_LEADER, text
    if event.epoch > role.epoch:
        return RefusalReason.ILLEGAL_EPOCH, f"the epoch is {role.epoch}, not {event.epoch}"
    if state.high_watermark < 0 and leader.opens_with_voters:
        # The first voters of a quorum must be in the log before anything else (KIP-853).
        return RefusalReason.NOT_LEADER, "the first voters of the quorum are not committed yet"
    wanted, end = event.expected_end_offset, leader.accumulator.end_offset
    if wanted is not None and wanted != end:
        # A control record came between; the state machine decides again.
        return RefusalReason.UNEXPECTED_END_OFFSET, f"the next offset is {end}, not {wanted}"
    return None, ""


def drain(state: RaftState, leader: Leader) -> None:
    """Write what is due, and answer the Fetches that wait for it (R-FET-15)."""
    batches = leader.accumulator.drain(state.now)
    if not batches:
        return
    was_voter, has_changed = state.is_voter, False
    for batch in batches:
        state.emit(AppendToLog(batch.base, batch.end_offset, batch.data))
        state.log.append([OffsetAndEpoch(batch.base, leader.epoch)], batch.end_offset)
        if batch.is_control:
            # The leader observes its control records as a follower does, as soon as they are
            # written.
            has_changed |= state.history.observe(batch.base, batch.data)
    if has_changed:
        state.voters_changed(was_voter)
    leader.progress.note_log_end(state.log.end_offset)
    wake_after_append(state)
    flush(state)


def flush(state: RaftState) -> None:
    """Request a flush of the log up to its current end."""
    end = state.log.end_offset
    state.requested_flush_end = end
    state.emit(FlushLog(end, state.flush_generation))


def handle_flushed(state: RaftState, event: LogFlushed) -> None:
    """Record what is durable, which is the leader's own share in committing it."""
    if event.generation != state.flush_generation:
        return
    log = state.log
    log.flushed_offset = max(log.flushed_offset, min(event.end_offset, log.end_offset))
    leader = state.leader
    if leader is not None and leader.progress.note_durable_end(log.flushed_offset):
        advance_high_watermark(state, leader)
