"""The Raft core: events in, effects out.

A step handles an event, then does what is due in the current role until nothing more is. The whole
memory of a core is `RaftState`; the rules are in the other modules.

Source: KIP-595; Kafka's `KafkaRaftClient`; R-LOOP-1 to R-LOOP-4, R-START-6, R-SHUT-1.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from kraftwire.errors import check
from kraftwire.raft import (
    appending,
    changes,
    describe,
    downloading,
    elections,
    epoch_announcements,
    events,
    following,
    resignation,
    serving,
    snapshots,
    upgrading,
    voter_updates,
)
from kraftwire.raft.config import RaftConfig
from kraftwire.raft.effects import Effect
from kraftwire.raft.epochs import EPOCH_MAX
from kraftwire.raft.ports import StoredState
from kraftwire.raft.responses import settle_top_level
from kraftwire.raft.roles import (
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Role,
    Unattached,
)
from kraftwire.raft.startup import first_role
from kraftwire.raft.state import PROBES, Purpose, RaftState, SentRequest
from kraftwire.raft.transitions import (
    notify_listeners,
    persist,
    to_prospective,
    to_resigned,
    to_unattached,
)
from kraftwire.raft.view import RaftView

# A step passes through a few roles at most: resigned, unattached, prospective, candidate, leader.
_CHAIN_MAX = 10

_REQUESTS: dict[str, Callable[[RaftState, events.RequestReceived], None]] = {
    "VoteRequest": elections.handle_vote_request,
    "BeginQuorumEpochRequest": epoch_announcements.handle_begin_request,
    "EndQuorumEpochRequest": epoch_announcements.handle_end_request,
    "FetchRequest": serving.handle_fetch_request,
    "FetchSnapshotRequest": snapshots.handle_fetch_snapshot_request,
    "DescribeQuorumRequest": describe.handle_describe_quorum,
    "AddRaftVoterRequest": changes.handle_add_voter,
    "RemoveRaftVoterRequest": changes.handle_remove_voter,
    "UpdateRaftVoterRequest": voter_updates.handle_update_voter,
}

_RESPONSES: dict[Purpose, Callable[[RaftState, SentRequest, Any], None]] = {
    Purpose.VOTE: elections.handle_vote_response,
    Purpose.BEGIN: epoch_announcements.handle_begin_response,
    Purpose.END: epoch_announcements.handle_end_response,
    Purpose.FETCH: following.handle_fetch_response,
    Purpose.FETCH_SNAPSHOT: downloading.handle_fetch_snapshot_response,
    Purpose.UPDATE: voter_updates.handle_update_response,
    Purpose.JOIN: voter_updates.handle_join_response,
    Purpose.PROBE_NEW_VOTER: changes.handle_probe,
    Purpose.PROBE_SUCCESSOR: resignation.handle_successor_probe,
}


class RaftCore(RaftView):
    """One replica of a replicated log, without clock, files, sockets or randomness.

    Order: `start` once, then `handle` for every event, one at a time; the effects of each are
    carried out before the next. `now_ms` are milliseconds of a monotonic clock, which all timers
    use. `wall_ms` is the wall clock, milliseconds since the epoch, which may jump at any time:
    timestamps come from it. Without it the first clock is used for both. `deadline_ms` is when the
    next `TimerExpired` is due; None if no timer is running.
    """

    def __init__(self, config: RaftConfig, stored: StoredState, random: Random) -> None:
        """Set up from the stored state; nothing happens before `start`."""
        super().__init__(RaftState(config, stored, random))
        self._stored = stored
        self.deadline_ms: int | None = None

    def start(self, now_ms: int, wall_ms: int | None = None) -> list[Effect]:
        """Assume the role that follows from the stored state (R-START-6, R-START-7)."""
        state = self._state
        state.begin_step(now_ms, wall_ms)
        state.saw_timestamp(self._stored.log.newest_timestamp)
        state.role = first_role(state, self._stored)
        persist(state, state.role)
        if type(state.role) is not Resigned:
            notify_listeners(state)
        _compare_configuration(state)
        return self._finish()

    def handle(
        self, event: events.Event, now_ms: int, wall_ms: int | None = None
    ) -> list[Effect]:
        """Handle one event; returns the effects, in order."""
        state = self._state
        state.begin_step(now_ms, wall_ms)
        if type(event) is not events.TimerExpired:
            _dispatch(state, event)
        return self._finish()

    def _finish(self) -> list[Effect]:
        state = self._state
        _poll(state)
        if state.listeners.has_changes(state.high_watermark):
            _serve_listeners(state)
        self.deadline_ms = None if state.is_stopped else _deadline(state)
        return state.effects


def _dispatch(state: RaftState, event: events.Event) -> None:
    if type(event) is events.RequestReceived:
        _REQUESTS[event.message.NAME](state, event)
    elif type(event) is events.ResponseReceived:
        _handle_response(state, event)
    elif type(event) is events.RequestFailed:
        _handle_failure(state, event)
    elif type(event) is events.LogFlushed:
        appending.handle_flushed(state, event)
    elif type(event) is events.AppendRequested:
        appending.handle_append(state, event)
    else:
        _handle_rare(state, event)


def _compare_configuration(state: RaftState) -> None:
    """Log how the configured voters relate to those in the log (R-START-3)."""
    history, configured = state.history, state.config.voters
    if history.has_own_voters and len(configured):
        state.note(
            "controller.quorum.voters is ignored: the voters are in the log "
            f"(kraft.version {history.kraft_version}); configure "
            "controller.quorum.bootstrap.servers instead",
            "warning",
            key="static-voters",
        )
    elif not len(state.voters) and state.config.can_be_voter:
        state.note(
            "no voters are known yet: this node observes until the log has some, and becomes "
            "one with kafka-metadata-quorum add-controller or auto-join",
            key="no-voters",
        )


def _handle_rare(state: RaftState, event: events.Event) -> None:
    match event:
        case events.ListenerRegistered(listener_id, next_offset):
            state.listeners.register(listener_id, next_offset, _leader_end(state))
        case events.ListenerConsumed(listener_id, next_offset):
            state.listeners.consumed(listener_id, next_offset)
        case events.SnapshotWanted():
            snapshots.handle_wanted(state, event)
        case events.SnapshotWritten():
            snapshots.handle_written(state, event)
        case events.SnapshotFailed():
            snapshots.handle_failed(state, event)
        case events.SnapshotFinished():
            downloading.handle_finished(state, event)
        case events.SnapshotRejected():
            downloading.handle_rejected(state, event)
        case events.LogStartProposed():
            snapshots.handle_log_start(state, event)
        case events.UpgradeRequested():
            upgrading.handle_upgrade(state, event)
        case events.FeaturesHeard(destination, features):
            state.record_software(destination.key, not state.config.features <= features)
        case events.RequestAbandoned(token):
            state.parked.drop(token)
        case events.ClusterIdKnown(cluster_id):
            state.cluster_id = cluster_id
        case events.ResignRequested(epoch):
            if state.leader is not None and epoch == state.role.epoch:
                state.resign_reason = "this node was asked to resign"
        case events.LeadershipForbidden(reason):
            state.forbidden_reason = state.forbidden_reason or reason
        case events.ShutdownRequested():
            if state.shutdown_deadline_ms is None:
                state.shutdown_deadline_ms = state.now + state.config.timers.shutdown_timeout_ms


def _handle_response(state: RaftState, event: events.ResponseReceived) -> None:
    """Handle an answer if its request is still the current one (R-LOOP-2)."""
    sent = _take_sent(state, event.request_id)
    if sent is not None:
        _RESPONSES[sent.purpose](state, sent, event.message)


def _handle_failure(state: RaftState, event: events.RequestFailed) -> None:
    sent = _take_sent(state, event.request_id)
    if sent is None or sent.purpose is Purpose.PROBE_SUCCESSOR:
        return
    if sent.purpose is Purpose.VOTE:
        elections.vote_failed(state, sent, event.error)
    elif sent.purpose is Purpose.PROBE_NEW_VOTER:
        changes.probe_failed(state, sent, event.error)
    else:
        settle_top_level(state, sent, event.error)


def _take_sent(state: RaftState, request_id: int) -> SentRequest | None:
    """Return the request that was answered, None if its answer is no longer wanted."""
    sent = state.in_flight.pop(request_id, None)
    if sent is None or sent.purpose in PROBES:
        return sent
    return sent if state.peers.answered(request_id) else None


# ---- what is due ---------------------------------------------------------------------------------


def _poll(state: RaftState) -> None:
    """Do what is due in the current role, and again after every change of role (R-LOOP-1)."""
    due = state.parked.next_deadline_ms
    if due is not None and state.now >= due:
        serving.answer_expired(state)
    for _ in range(_CHAIN_MAX):
        if state.shutdown_deadline_ms is not None and (
            state.is_stopped or resignation.finish_shutdown(state)
        ):
            return
        role = state.role
        _POLLS[type(role)](state, role)
        if state.role is role:
            return
    check(False, "the role does not settle")


def _may_stand(state: RaftState) -> bool:
    # A candidate could lose the end of its log in a crash if that is not durable, but keep the
    # votes that it got for it (R-VOTE-6).
    if state.log.flushed_offset < state.log.end_offset:
        return False
    return state.may_stand and _may_end_epoch(state)


def _may_end_epoch(state: RaftState) -> bool:
    if state.role.epoch >= EPOCH_MAX and not state.has_reported_last_epoch:
        state.has_reported_last_epoch = True
        state.note(
            f"epoch {EPOCH_MAX} is the last one: there cannot be another election, and once its "
            "leader is gone this cluster has to be formatted again",
            "error",
            key="last-epoch",
        )
    return state.shutdown_deadline_ms is None and state.role.epoch < EPOCH_MAX


def _poll_unattached(state: RaftState, role: Unattached) -> None:
    is_late = role.deadline_ms is not None and state.now >= role.deadline_ms
    if (is_late or state.is_only_voter) and _may_stand(state):
        to_prospective(state, "no leader within the election timeout")
    else:
        following.poll_unattached(state)


def _poll_follower(state: RaftState, role: Follower) -> None:
    if state.now >= role.fetch_deadline_ms and _may_stand(state):
        reason = f"nothing heard from leader {role.leader_id} within the fetch timeout"
        to_prospective(state, reason)
    else:
        resignation.probe_software(state, role)
        following.poll_follower(state, role)


def _poll_prospective(state: RaftState, role: Prospective) -> None:
    elections.poll_prospective(state, role)


def _poll_candidate(state: RaftState, role: Candidate) -> None:
    if role.votes.is_won:
        appending.start_leading(state, role)
    else:
        elections.poll_candidate(state, role)


def _poll_resigned(state: RaftState, role: Resigned) -> None:
    if state.is_only_voter and state.may_stand and not state.is_shutting_down:
        to_prospective(state, "the only voter")
    elif state.now >= role.deadline_ms and _may_end_epoch(state):
        # The epoch was this node's own: no other node can lead it (R-ROLE table).
        to_unattached(state, role.epoch + 1, "resigned, and no voter took over")
    else:
        epoch_announcements.send_end_quorum_epoch(state, role)


def _poll_leader(state: RaftState, leader: Leader) -> None:
    """In Kafka's order: resign, write, announce (R-LEAD-4)."""
    reason = resignation.reason_to_resign(state, leader)
    if not reason and resignation.poll_handover(state, leader):
        reason = resignation.reason_to_resign(state, leader)
    if reason:
        preferred = resignation.successors(state, leader)
        state.resign_reason = ""
        to_resigned(state, reason, preferred)
        return
    due = leader.accumulator.drain_due_ms
    if due is not None and state.now >= due:
        appending.drain(state, leader)
    changes.expire_change(state, leader)
    epoch_announcements.poll_announcements(state, leader)


_POLLS: dict[type[Role], Callable[[RaftState, Any], None]] = {
    Follower: _poll_follower,
    Leader: _poll_leader,
    Unattached: _poll_unattached,
    Prospective: _poll_prospective,
    Candidate: _poll_candidate,
    Resigned: _poll_resigned,
}


def _serve_listeners(state: RaftState) -> None:
    """Deliver what is committed, then report the leader (R-LIS-2 to R-LIS-6)."""
    state.effects += state.listeners.serve(state.high_watermark, state.log, _leader_end(state))


def _leader_end(state: RaftState) -> int:
    """Return the next offset that this leader will assign, 0 if this node does not lead."""
    return state.leader.accumulator.end_offset if state.leader is not None else 0


def _deadline(state: RaftState) -> int | None:
    """Return the next time at which something is due without another event."""
    due = _role_deadline(state)
    at = state.parked.next_deadline_ms
    if at is not None and (due is None or at < due):
        due = at
    at = state.shutdown_deadline_ms
    if at is not None and (due is None or at < due):
        due = at
    at = state.peers.next_due_ms(state.now)
    if at is not None and (due is None or at < due):
        due = at
    return due


def _role_deadline(state: RaftState) -> int | None:
    role = state.role
    if type(role) is Follower:
        return role.fetch_deadline_ms if _may_stand(state) else None
    if type(role) is Leader:
        due = role.begin_due_ms
        for at in (
            role.accumulator.drain_due_ms,
            role.progress.quorum_deadline_ms,
            role.change.deadline_ms if role.change is not None else None,
            min((one.deadline_ms for one in role.candidates.values()), default=None),
            role.probe_due_ms if role.probe_due_ms > state.now else None,
        ):
            if at is not None and at < due:
                due = at
        return due
    if type(role) is Candidate:
        return role.deadline_ms if role.retry_ms is None else role.retry_ms
    if type(role) is Prospective:
        return role.deadline_ms
    if type(role) is Unattached:
        return role.deadline_ms if _may_stand(state) else None
    if type(role) is Resigned and _may_end_epoch(state):
        return role.deadline_ms
    return None
