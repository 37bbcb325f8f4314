"""The Raft core: events in, effects out.

Owns the order of a step: what happened is handled, then whatever is due in the present role, until
nothing more is. Everything it remembers is in `RaftState`; the rules stand in the other modules.

Source: KIP-595; Kafka's `KafkaRaftClient`; R-LOOP-1 to R-LOOP-4, R-START-6, R-SHUT-1.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from kraftwire.errors import check
from kraftwire.limits import EPOCH_MAX
from kraftwire.raft import (
    announcing,
    appending,
    changes,
    describe,
    downloading,
    elections,
    events,
    following,
    leaving,
    serving,
    snapshots,
    updating,
    upgrading,
)
from kraftwire.raft.config import RaftConfig
from kraftwire.raft.effects import Effect
from kraftwire.raft.ports import StoredState
from kraftwire.raft.responses import settle_top_level
from kraftwire.raft.roles import Candidate, Follower, Leader, Prospective, Resigned, Unattached
from kraftwire.raft.startup import first_role
from kraftwire.raft.state import Purpose, RaftState, Sent
from kraftwire.raft.transitions import (
    persist,
    tell_listeners,
    to_prospective,
    to_resigned,
    to_unattached,
)
from kraftwire.raft.view import RaftView

__all__ = ["RaftCore"]

# A step leads through a few roles at most: resigned, unattached, prospective, candidate, leader.
_CHAIN_MAX = 10

_REQUESTS: dict[str, Callable[[RaftState, events.RequestReceived], None]] = {
    "VoteRequest": elections.handle_vote_request,
    "BeginQuorumEpochRequest": announcing.handle_begin_request,
    "EndQuorumEpochRequest": announcing.handle_end_request,
    "FetchRequest": serving.handle_fetch_request,
    "FetchSnapshotRequest": snapshots.handle_fetch_snapshot_request,
    "DescribeQuorumRequest": describe.handle_describe_quorum,
    "AddRaftVoterRequest": changes.handle_add_voter,
    "RemoveRaftVoterRequest": changes.handle_remove_voter,
    "UpdateRaftVoterRequest": updating.handle_update_voter,
}

_RESPONSES: dict[Purpose, Callable[[RaftState, Sent, Any], None]] = {
    Purpose.VOTE: elections.handle_vote_response,
    Purpose.BEGIN: announcing.handle_begin_response,
    Purpose.END: announcing.handle_end_response,
    Purpose.FETCH: following.handle_fetch_response,
    Purpose.FETCH_SNAPSHOT: downloading.handle_fetch_snapshot_response,
    Purpose.UPDATE: updating.handle_update_response,
    Purpose.JOIN: updating.handle_join_response,
    Purpose.PROBE_NEW_VOTER: changes.handle_probe,
    Purpose.PROBE_SUCCESSOR: leaving.handle_successor_probe,
}


class RaftCore(RaftView):
    """One replica of a replicated log, without clock, files, sockets or randomness of its own.

    Order: `start` once, then `handle` for every event, one at a time; the effects of each are
    carried out before the next. `now_ms` are milliseconds of a clock that never goes back: all
    timers run by it. `wall_ms` is the wall clock, milliseconds since the epoch, which may be set at
    any time: records and replicas are stamped by it. Without one the first clock is taken for both.
    """

    def __init__(self, config: RaftConfig, stored: StoredState, random: Random) -> None:
        """Remember what was stored; nothing happens before `start`."""
        super().__init__(RaftState(config, stored, random))
        self._stored = stored
        self._deadline: int | None = None

    @property
    def deadline_ms(self) -> int | None:
        """When `TimerExpired` is due next; None if nothing waits for time."""
        return self._deadline

    def start(self, now_ms: int, wall_ms: int | None = None) -> list[Effect]:
        """Take up the role that the stored state implies (R-START-6, R-START-7)."""
        state = self._state
        state.begin_step(now_ms, wall_ms)
        state.saw_timestamp(self._stored.log.newest_timestamp)
        state.role = first_role(state, self._stored)
        persist(state, state.role)
        if type(state.role) is not Resigned:
            tell_listeners(state)
        _compare_configuration(state)
        return self._finish()

    def handle(
        self, event: events.Event, now_ms: int, wall_ms: int | None = None
    ) -> list[Effect]:
        """Handle one event; returns the effects, in order."""
        state = self._state
        state.begin_step(now_ms, wall_ms)
        self._dispatch(state, event)
        return self._finish()

    def _finish(self) -> list[Effect]:
        state = self._state
        _poll(state)
        _serve_listeners(state)
        self._deadline = _deadline(state)
        return state.effects

    def _dispatch(self, state: RaftState, event: events.Event) -> None:
        if type(event) is events.TimerExpired:
            return
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
    """Say what the configured voters mean next to those in the log (R-START-3)."""
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
            "no voters are known yet: this node observes until the log names some, and becomes "
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
            state.hear_of_software(destination.key, features != state.config.features)
        case events.RequestAbandoned(token):
            state.parked.drop(token)
        case events.ClusterIdKnown(cluster_id):
            state.cluster_id = cluster_id
        case events.ResignRequested(epoch):
            if state.leader is not None and epoch == state.role.epoch:
                state.resign_asked = "the state machine asked for it"
        case events.ShutdownRequested():
            if state.shutdown_deadline_ms is None:
                state.shutdown_deadline_ms = state.now + state.config.timers.shutdown_timeout_ms


def _handle_response(state: RaftState, event: events.ResponseReceived) -> None:
    """Look at an answer if its request is still the current one (R-LOOP-2)."""
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


def _take_sent(state: RaftState, request_id: int) -> Sent | None:
    """The request that was answered, None if nobody waits for its answer any more."""
    sent = state.in_flight.pop(request_id, None)
    if sent is None or sent.purpose is Purpose.PROBE_SUCCESSOR:
        return sent
    return sent if state.peers.answered(request_id) else None


# ---- what is due ---------------------------------------------------------------------------------


def _poll(state: RaftState) -> None:
    """Do what the role has to do now, and again after every change of role (R-LOOP-1)."""
    due = state.parked.next_deadline_ms
    if due is not None and state.now >= due:
        serving.answer_expired(state)
    for _ in range(_CHAIN_MAX):
        if state.is_shutting_down and (state.is_stopped or leaving.finish_shutdown(state)):
            return
        role = state.role
        _poll_role(state)
        if state.role is role:
            return
    check(False, "the role does not settle")


def _poll_role(state: RaftState) -> None:
    role = state.role
    if type(role) is Follower:
        _poll_follower(state, role)
    elif type(role) is Leader:
        _poll_leader(state, role)
    elif type(role) is Unattached:
        _poll_unattached(state, role)
    elif type(role) is Prospective:
        elections.poll_prospective(state, role)
    elif type(role) is Candidate:
        _poll_candidate(state, role)
    elif type(role) is Resigned:
        _poll_resigned(state, role)


def _may_stand(state: RaftState) -> bool:
    # A candidate whose log ends in what is not durable could lose that in a crash, and be given
    # again, for the log it has no more, the votes that it had got (R-VOTE-6).
    if state.log.flushed_offset < state.log.end_offset:
        return False
    return state.may_stand and _may_end_epoch(state)


def _may_end_epoch(state: RaftState) -> bool:
    if state.role.epoch >= EPOCH_MAX and not state.has_told_last_epoch:
        state.has_told_last_epoch = True
        state.note(
            f"epoch {EPOCH_MAX} is the last one: there cannot be another election, and once its "
            "leader is gone this cluster has to be formatted anew",
            "error",
            key="last-epoch",
        )
    return not state.is_shutting_down and state.role.epoch < EPOCH_MAX


def _poll_unattached(state: RaftState, role: Unattached) -> None:
    is_late = role.deadline_ms is not None and state.now >= role.deadline_ms
    if (is_late or state.is_only_voter) and _may_stand(state):
        to_prospective(state, "no leader within the election timeout")
    else:
        following.poll_unattached(state)


def _poll_follower(state: RaftState, role: Follower) -> None:
    if state.now >= role.fetch_deadline_ms and _may_stand(state):
        to_prospective(state, f"the time to hear from leader {role.leader_id} is over")
    else:
        leaving.ask_for_software(state, role)
        following.poll_follower(state, role)


def _poll_candidate(state: RaftState, role: Candidate) -> None:
    if role.votes.is_won:
        appending.start_leading(state, role)
    else:
        elections.poll_candidate(state, role)


def _poll_resigned(state: RaftState, role: Resigned) -> None:
    if state.is_only_voter and not state.is_shutting_down:
        to_prospective(state, "the only voter")
    elif state.now >= role.deadline_ms and _may_end_epoch(state):
        # The epoch was this node's own: nobody else can lead it any more (R-ROLE table).
        to_unattached(state, role.epoch + 1, "resigned, and nobody took over")
    else:
        announcing.send_end_quorum_epoch(state, role)


def _poll_leader(state: RaftState, leader: Leader) -> None:
    """In Kafka's order: resign, write, announce (R-LEAD-4)."""
    reason = leaving.reason_to_resign(state, leader)
    if not reason and leaving.poll_handover(state, leader):
        reason = leaving.reason_to_resign(state, leader)
    if reason:
        preferred = leaving.successors(state, leader)
        state.resign_asked = ""
        to_resigned(state, reason, preferred)
        return
    due = leader.accumulator.drain_due_ms
    if due is not None and state.now >= due:
        appending.drain(state, leader)
    changes.expire_change(state, leader)
    announcing.poll_announcements(state, leader)


def _serve_listeners(state: RaftState) -> None:
    """Offer what is committed, then say who leads (R-LIS-2 to R-LIS-6)."""
    listeners, mark = state.listeners, state.high_watermark
    if listeners.has_news(mark):
        state.effects += listeners.serve(mark, state.log, _leader_end(state))


def _leader_end(state: RaftState) -> int:
    """The end of what this node has given offsets to, 0 if it does not lead."""
    return state.leader.accumulator.end_offset if state.leader is not None else 0


def _deadline(state: RaftState) -> int | None:
    """The next time at which something is due without any other event."""
    if state.is_stopped:
        return None
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
            _probe_due(state, role),
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


def _probe_due(state: RaftState, leader: Leader) -> int | None:
    """When a successor may be asked again, if one was asked and has not answered."""
    return leader.probe_due_ms if leader.probe_due_ms > state.now else None
