"""Raising kraft.version from 0 to 1: the configured voters become voters in the log.

Source: KIP-853; Kafka's `KRaftVersionUpgrade` and `LeaderState.maybeAppendUpgradedKRaftVersion`;
R-UPG-1 to R-UPG-3.
"""

from __future__ import annotations

from kraftwire.messages.kraft_version_record import KRaftVersionRecord
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.raft.config import KRAFT_VERSION_MAX
from kraftwire.raft.effects import UpgradeDecided
from kraftwire.raft.events import UpgradeRequested
from kraftwire.raft.histories import voters_record
from kraftwire.raft.roles import Leader
from kraftwire.raft.state import RaftState
from kraftwire.raft.voters import VoterSet
from kraftwire.records.control import ControlType

_Refused = tuple[ErrorCode, str]


def handle_upgrade(state: RaftState, event: UpgradeRequested) -> None:
    """Append the records of the upgrade, or refuse with a reason."""
    leader = state.leader
    error, text = _check_upgrade(state, leader, event)
    offset = -1
    is_change = event.version != state.history.kraft_version
    if error == ErrorCode.NONE and leader is not None and is_change and not event.validate_only:
        voters = VoterSet.of(*leader.reported.values())
        records = [
            (
                ControlType.KRAFT_VERSION,
                KRaftVersionRecord(version=0, kraft_version=event.version),
            ),
            (ControlType.KRAFT_VOTERS, voters_record(voters)),
        ]
        _, offset = leader.accumulator.append_control(records, state.now, state.timestamp())
    state.emit(UpgradeDecided(event.token, error, text, offset))


def _check_upgrade(state: RaftState, leader: Leader | None, event: UpgradeRequested) -> _Refused:
    """The checks in Kafka's order (R-UPG-1)."""
    role, current = state.role, state.history.kraft_version
    if leader is None or event.epoch != role.epoch:
        text = f"this node is {role.NAME} in epoch {role.epoch}, not the leader of {event.epoch}"
        return ErrorCode.NOT_LEADER_OR_FOLLOWER, text
    if event.version == current:
        return ErrorCode.NONE, ""
    if not current < event.version <= KRAFT_VERSION_MAX:
        text = f"kraft.version is {current} and can become at most {KRAFT_VERSION_MAX}, never less"
        return ErrorCode.INVALID_UPDATE_VERSION, text
    if leader.change is not None or state.high_watermark < 0:
        return ErrorCode.REQUEST_TIMED_OUT, "the leader has not committed anything yet"
    return _check_voters(state, leader, event.version)


def _check_voters(state: RaftState, leader: Leader, version: int) -> _Refused:
    for voter in state.voters:
        reported = leader.reported.get(voter.key.id)
        if reported is None:
            text = f"voter {voter.key.id} has not reported its directory id and versions yet"
            return ErrorCode.INVALID_UPDATE_VERSION, text
        if not reported.supports(version):
            low, high = reported.kraft_version_min, reported.kraft_version_max
            text = f"voter {voter.key.id} supports kraft.version {low} to {high}, not {version}"
            return ErrorCode.INVALID_UPDATE_VERSION, text
    if not state.is_voter:
        return ErrorCode.INVALID_UPDATE_VERSION, "this leader is not in the voter set"
    return ErrorCode.NONE, ""
