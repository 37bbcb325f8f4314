"""Handles what all responses of peers have in common: older or newer epochs, the leader, errors.

No response ends this node: an error that is fatal to a Java node is noted, and the request is
retried after the back-off.

Source: R-RESP-1 to R-RESP-9; Kafka's `KafkaRaftClient.maybeHandleCommonResponse`.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Any

from kraftwire.protocol.endpoint import Endpoint
from kraftwire.protocol.error_codes import ErrorCode, error_name
from kraftwire.raft.state import RaftState, SentRequest
from kraftwire.raft.transitions import maybe_transition


class ResponseOutcome(Enum):
    """The result of the common checks of a response: which handling is left."""

    OWN = auto()  # the handling by its API
    DONE = auto()  # nothing: it was handled
    FAILED = auto()  # nothing: its node gets no requests for a while


def _failed(state: RaftState, sent: SentRequest) -> ResponseOutcome:
    state.failed(sent)
    return ResponseOutcome.FAILED


def settle_top_level(state: RaftState, sent: SentRequest, error: int) -> bool:
    """Return whether to read an answer further: a top-level error causes a back-off (R-RESP-7)."""
    if error == ErrorCode.NONE:
        return True
    if error != ErrorCode.BROKER_NOT_AVAILABLE:
        _note_error(state, sent, error)
    _failed(state, sent)
    return False


def _note_error(state: RaftState, sent: SentRequest, error: int) -> None:
    text = f"{sent.destination.name} answered {error_name(error)}"
    if error == ErrorCode.INCONSISTENT_CLUSTER_ID:
        text += (
            f": it is not of cluster {state.cluster_id}, for which this node's directory was "
            "formatted; correct the addresses of the quorum, or format an empty directory with "
            "the other cluster's id"
        )
    state.note(text, "warning", key="answered")


def settle_partition(
    state: RaftState, sent: SentRequest, partition: Any | None, endpoints: tuple[Endpoint, ...]
) -> ResponseOutcome:
    """Adopt leader and epoch of an answer; returns OWN if the handling by its API comes next.

    `partition` has error_code, leader_id and leader_epoch.
    """
    if partition is None:
        text = f"{sent.destination.name} answered about something else"
        state.note(text, "warning", key="foreign-answer")
        return _failed(state, sent)
    error, leader_id = partition.error_code, partition.leader_id
    return settle(state, sent, (error, leader_id, partition.leader_epoch), endpoints)


def settle(
    state: RaftState,
    sent: SentRequest,
    answer: tuple[int, int, int],
    endpoints: tuple[Endpoint, ...],
) -> ResponseOutcome:
    """Adopt leader and epoch of an answer, given by its fields; returns as `settle_partition`."""
    error, leader_id, epoch = answer
    role = state.role
    if epoch < role.epoch or error == ErrorCode.UNKNOWN_LEADER_EPOCH:
        # Kafka asks again at once; nothing new was learned, so a pause does no harm (L9).
        return _failed(state, sent)
    if epoch > role.epoch or error in _LEADER_ERRORS:
        maybe_transition(state, leader_id, epoch, endpoints, _reason(sent))
        return ResponseOutcome.DONE if state.role is not role else _failed(state, sent)
    if leader_id >= 0 and (role.leader_id < 0 or not role.leader_endpoints):
        believed = maybe_transition(state, leader_id, epoch, endpoints, _reason(sent))
        if error == ErrorCode.NONE and believed:
            return ResponseOutcome.OWN
        return ResponseOutcome.DONE if believed else _failed(state, sent)
    if error == ErrorCode.INVALID_VOTER_KEY:
        return _failed(state, sent)
    if error != ErrorCode.NONE:
        if error != ErrorCode.BROKER_NOT_AVAILABLE:
            _note_error(state, sent, error)
        return _failed(state, sent)
    return ResponseOutcome.OWN


def _reason(sent: SentRequest) -> str:
    return f"answer of {sent.destination.name}"


_LEADER_ERRORS = (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER)
