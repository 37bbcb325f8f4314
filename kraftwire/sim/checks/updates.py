"""Checks that an answer to UpdateRaftVoter is a sign of life of the leader, as one to a Fetch is.

Invariant L1. Rule R-UPD-5.
"""

from __future__ import annotations

from typing import Protocol

from kraftwire.messages.end_quorum_epoch_request import EndQuorumEpochRequest
from kraftwire.messages.fetch_snapshot_request import FetchSnapshotRequest
from kraftwire.messages.update_raft_voter_request import UpdateRaftVoterRequest
from kraftwire.messages.update_raft_voter_response import UpdateRaftVoterResponse
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.raft.core import RaftCore
from kraftwire.raft.effects import RoleChanged, SendRequest
from kraftwire.raft.events import Event, RequestFailed, RequestReceived, ResponseReceived
from kraftwire.sim.invariants import Violation
from kraftwire.wire.message import Message

# A leader too old to know updates answers with the latter.
_ACCEPTED = (ErrorCode.NONE, ErrorCode.UNSUPPORTED_VERSION)


class _Process(Protocol):
    """A run of a node: its core, and the time by its clock."""

    @property
    def core(self) -> RaftCore: ...

    @property
    def now_ms(self) -> int: ...


class UpdateChecks:
    """The last answer to an update that one node got in one run.

    Once its leader ends the epoch or sends a snapshot, other rules say how long a follower waits.
    """

    def __init__(self, node: int, fetch_timeout_ms: int) -> None:
        self._node = node
        self._fetch_timeout_ms = fetch_timeout_ms
        self._asked: int | None = None
        self._answered_ms: int | None = None
        self._is_exempt = False

    def handled(self, event: Event | None, process: _Process) -> None:
        """Note an event that the core has handled, before its effects."""
        if type(event) is ResponseReceived and event.request_id == self._asked:
            self._note_answer(event.message, process.core, process.now_ms)
        elif type(event) is RequestFailed and event.request_id == self._asked:
            self._asked = None
        elif type(event) is RequestReceived and type(event.message) is EndQuorumEpochRequest:
            self._is_exempt = True

    def requests(self, effect: SendRequest) -> None:
        """Note a request that the node sends. An answer that it no longer waits for is none."""
        if type(effect.message) is FetchSnapshotRequest:
            self._is_exempt = True
        elif type(effect.message) is UpdateRaftVoterRequest:
            self._asked = effect.request_id

    def role_changed(self, effect: RoleChanged, now_ms: int) -> bool:
        """Check a new role; returns whether an answer to an update was the reason to wait. L1."""
        last, self._answered_ms, self._asked = self._answered_ms, None, None
        is_checked = effect.new == "prospective" and last is not None and not self._is_exempt
        self._is_exempt = False
        if not is_checked or last is None:
            return False
        waited = now_ms - last
        if waited < self._fetch_timeout_ms:
            raise Violation(
                "L1",
                f"{self._node} stands for election {waited} ms after the leader's answer to its "
                "update",
                f"fetch timeout: {self._fetch_timeout_ms} ms",
            )
        return True

    def _note_answer(self, answer: Message, core: RaftCore, now_ms: int) -> None:
        if type(answer) is not UpdateRaftVoterResponse:
            return
        leader = answer.current_leader
        is_present = leader is not None and leader.leader_epoch == core.epoch
        if is_present and core.role == "follower" and answer.error_code in _ACCEPTED:
            self._answered_ms = now_ms
