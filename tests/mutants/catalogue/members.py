"""Mistakes in voter sets that change."""

from __future__ import annotations

from tests.history.putting_back import Edit
from tests.mutants.mutant import Mutant

_CHANGES = "kraftwire.raft.changes"
_HISTORY = "kraftwire.raft.histories:VoterHistory"

MUTANTS = (
    Mutant(
        "voters count only once they are committed",
        "R-VC-2, S16",
        Edit(
            "kraftwire.raft.appending:drain",
            "if batch.is_control:",
            "if batch.is_control and batch.end_offset <= state.high_watermark:",
        ),
        "tests/unit/raft/voters/test_in_force.py",
    ),
    Mutant(
        "a follower does not observe the voters that it appends",
        "R-ID-6, S16",
        Edit(
            "kraftwire.raft.following:_append",
            "has_changed |= state.history.observe(offset, batch)",
            "has_changed |= offset < 0",
        ),
        "tests/unit/raft/voters/test_in_force.py",
    ),
    Mutant(
        "a truncation does not revert the voters",
        "R-ID-8, S16",
        Edit(
            "kraftwire.raft.following:_truncate",
            "if state.history.truncate(end):",
            "if end < 0:",
        ),
        "tests/unit/raft/voters/test_pending.py",
    ),
    Mutant(
        "a truncation reverts one record too few",
        "R-ID-8, S16",
        Edit(
            f"{_HISTORY}._drop",
            "while self._voters and self._voters[-1][0] >= offset:",
            "while self._voters and self._voters[-1][0] > offset:",
        ),
        "tests/unit/raft/test_histories.py",
    ),
    Mutant(
        "the leader counts by the previous voters",
        "R-REP-5, S9",
        Edit(
            "kraftwire.raft.state:RaftState.voters_changed",
            "leader.progress.voters_changed(current, self.now)",
            "pass",
        ),
    ),
    Mutant(
        "a second change begins before the first is committed",
        "R-VC-1, S16",
        Edit(
            f"{_CHANGES}:change_refusal",
            "if where is None or where >= state.high_watermark:",
            "if where is None:",
        ),
        "tests/unit/raft/voters/test_pending.py tests/unit/raft/voters/test_added.py",
    ),
    Mutant(
        "a second change begins while one is pending",
        "R-VC-1, S16",
        Edit(
            f"{_CHANGES}:change_refusal",
            "if leader is not None and leader.change is not None:",
            "if leader is None:",
        ),
        "tests/unit/raft/voters/test_pending.py",
    ),
    Mutant(
        "a change begins before the epoch has committed",
        "R-ADD-1, S16",
        Edit(
            f"{_CHANGES}:change_refusal",
            "if state.high_watermark < 0:",
            "if state.high_watermark < -1:",
        ),
        "tests/unit/raft/voters/test_pending.py",
    ),
    Mutant(
        "voters change at kraft.version 0",
        "R-ADD-1",
        Edit(
            f"{_CHANGES}:change_refusal",
            "if history.kraft_version == 0:",
            "if history.kraft_version < 0:",
        ),
        "tests/unit/raft/voters/test_added.py tests/unit/raft/voters/test_removed.py",
    ),
    Mutant(
        "an id is added twice",
        "R-ADD-1, KAFKA-15671",
        Edit(
            f"{_CHANGES}:_check_absent",
            "if present is None:",
            "if present is None or present.key != key:",
        ),
        "tests/unit/raft/voters/test_added.py",
    ),
    Mutant(
        "a voter that lags is added",
        "R-ADD-5",
        Edit(
            f"{_CHANGES}:_check_candidate",
            "if not leader.progress.is_caught_up(key, state.now, within):",
            "if within < 0:",
        ),
        "tests/unit/raft/voters/test_added.py",
    ),
    Mutant(
        "a voter that does not answer is added",
        "R-ADD-3",
        Edit(
            f"{_CHANGES}:handle_probe",
            "if response.error_code != ErrorCode.NONE:",
            "if response.error_code == -2:",
        ),
        "tests/unit/raft/voters/test_added.py",
    ),
    Mutant(
        "a voter that does not support the version is added",
        "R-ADD-4",
        Edit(
            f"{_CHANGES}:handle_probe",
            "if feature is None or not voter.supports(version):",
            "if feature is None:",
        ),
        "tests/unit/raft/voters/test_added.py",
    ),
    Mutant(
        "a voter is removed by its id alone",
        "R-REM-1, S17",
        Edit(
            f"{_CHANGES}:_check_remove",
            "if voter is None or voter.key != key:",
            "if voter is None:",
        ),
        "tests/unit/raft/voters/test_removed.py",
    ),
    Mutant(
        "the last voter is removed",
        "R-REM-1, S16",
        Edit(
            f"{_CHANGES}:_check_remove",
            "if len(state.voters) == 1:",
            "if len(state.voters) == 0:",
        ),
    ),
    Mutant(
        "a change is acknowledged before it is committed",
        "R-ADD-9, S12",
        Edit(
            f"{_CHANGES}:settle_change",
            "if change is not None and 0 <= change.offset < mark:",
            "if change is not None and 0 <= change.offset:",
        ),
        "tests/unit/raft/voters/test_added.py tests/unit/raft/voters/test_removed.py "
        "tests/unit/raft/voters/test_pending.py",
    ),
    Mutant(
        "a removed leader keeps leading",
        "R-REM-5",
        Edit(
            f"{_CHANGES}:settle_change",
            "if not state.is_voter and where is not None and where < mark:",
            "if where is None:",
        ),
        "tests/unit/raft/voters/test_removed.py",
    ),
    Mutant(
        "a removed leader resigns too early",
        "R-REM-3, R-REM-5",
        Edit(
            f"{_CHANGES}:settle_change",
            "if not state.is_voter and where is not None and where < mark:",
            "if not state.is_voter:",
        ),
        "tests/unit/raft/voters/test_removed.py",
    ),
    Mutant(
        "a change never times out",
        "R-VC-1, L4",
        Edit(
            f"{_CHANGES}:expire_change",
            "if change is not None and state.now >= change.deadline_ms:",
            "if change is None:",
        ),
        "tests/unit/raft/voters/test_pending.py",
    ),
    Mutant(
        "a lost leadership leaves a change unanswered",
        "R-VC-3, L4",
        Edit(
            f"{_CHANGES}:fail_change",
            "_end_change(state, leader, ErrorCode.NOT_LEADER_OR_FOLLOWER, text)",
            "_end_change(state, leader, ErrorCode.NONE, text)",
        ),
        "tests/unit/raft/voters/test_pending.py",
    ),
    Mutant(
        "a leader refuses UpdateRaftVoter",
        "R-UPD-3",
        Edit(
            "kraftwire.raft.voter_updates:_check_update",
            "if not voter.supports(version):",
            "if voter.supports(version):",
        ),
        "tests/unit/raft/voters/test_updated.py",
    ),
    Mutant(
        "an update of a stranger is accepted",
        "R-UPD-3, S17",
        Edit(
            "kraftwire.raft.voter_updates:_check_update",
            "if entry is None or not entry.matches(voter.key):",
            "if entry is None:",
        ),
        "tests/unit/raft/voters/test_updated.py",
    ),
    Mutant(
        "an update does not wait for a pending change",
        "R-VC-1, S16",
        Edit(
            "kraftwire.raft.voter_updates:_check_update",
            "if refused is not None and not (version == 0 and "
            "refused[0] == ErrorCode.UNSUPPORTED_VERSION):",
            "if refused is None and version < 0:",
        ),
        "tests/unit/raft/voters/test_updated.py",
    ),
    Mutant(
        "the first leader leaves its voters out of the log",
        "R-LEAD-2, S16",
        Edit(
            "kraftwire.raft.appending:_first_records",
            "if history.last_voters_offset == -1 or voters is not state.voters:",
            "if voters is not state.voters:",
        ),
        "tests/unit/raft/test_first_batch.py",
    ),
    Mutant(
        "records come before the first voters are committed",
        "KIP-853",
        Edit(
            "kraftwire.raft.appending:_refusal",
            "if state.high_watermark < 0 and leader.opens_with_voters:",
            "if leader is None:",
        ),
        "tests/unit/raft/test_first_batch.py",
    ),
    Mutant(
        "a newcomer's progress is forgotten",
        "R-REP-5",
        Edit(
            "kraftwire.raft.progress:LeaderProgress._adopt",
            "state = self.observers.pop(key)",
            "state = ReplicaProgress(key)",
        ),
        "tests/unit/raft/test_progress.py",
    ),
    Mutant(
        "a voter that comes back under its id brings old progress",
        "R-REP-5, S9",
        Edit(
            "kraftwire.raft.progress:LeaderProgress._adopt",
            "if state is not None and (voter.matches(state.key) or "
            "_matches(state.key, voter.key)):",
            "if state is not None:",
        ),
        "tests/unit/raft/test_progress.py",
    ),
    Mutant(
        "a removed voter still counts as heard",
        "R-CQ-2",
        Edit(
            "kraftwire.raft.progress:LeaderProgress.voters_changed",
            "self._heard = {state for state in self._heard if "
            "self.voters.get(state.key.id) is state}",
            "self._heard = set(self._heard)",
        ),
        "tests/unit/raft/test_progress.py",
    ),
    Mutant(
        "an upgrade does not wait for all voters",
        "R-UPG-1",
        Edit(
            "kraftwire.raft.upgrading:_check_voters",
            "if reported is None:",
            "if reported is None:\n    continue\nif voter is None:",
        ),
        "tests/unit/raft/test_upgrading.py",
    ),
    Mutant(
        "directory ids repeat",
        "R-ID-1, S17",
        Edit(
            "kraftwire.log.uuids:random_uuid",
            "value = bytearray(os.urandom(16))",
            "value = bytearray(range(16))",
        ),
        "tests/unit/log/test_directory_ids.py",
    ),
    Mutant(
        "a snapshot takes the set before a change right after it",
        "R-ID-8, S16",
        Edit("kraftwire.raft.histories:_prune", "offset < end_offset", "offset <= end_offset"),
    ),
    Mutant(
        "a removed voter joins again when the others change",
        "R-JOIN-1, R-JOIN-3, S12",
        Edit(
            "kraftwire.raft.state:RaftState.voters_changed",
            "self.is_removed or (was_voter and is_later)",
            "was_voter and is_later",
        ),
    ),
    Mutant(
        "a voter does not report another kraft.version maximum",
        "R-UPD-1, L4",
        Edit(
            "kraftwire.raft.voter_updates:_is_known",
            "entry.kraft_version_max == own.kraft_version_max",
            "True",
        ),
    ),
    Mutant(
        "the answer to an update is no sign of life",
        "R-UPD-5",
        Edit(
            "kraftwire.raft.voter_updates:handle_update_response",
            "role.fetch_deadline_ms = state.now + role.fetch_timeout_ms",
            "pass",
        ),
        "tests/simulation/test_update_answers.py",
    ),
)
