"""Mistakes in snapshots: written, served, fetched, and what they replace."""

from __future__ import annotations

from tests.history.putting_back import Edit
from tests.mutants.mutant import Mutant

_OWN = "kraftwire.raft.snapshots"
_FETCHED = "kraftwire.raft.downloading"
_HISTORY = "kraftwire.raft.histories:VoterHistory"

MUTANTS = (
    Mutant(
        "a snapshot may end above what is committed",
        "R-SNAP-2, S14",
        Edit(f"{_OWN}:_refusal", "if end > state.committed:", "if end > log.end_offset:"),
        "tests/unit/raft/test_snapshots.py",
    ),
    Mutant(
        "a snapshot may end where the state machine is not",
        "R-SNAP-2, S14",
        Edit(
            f"{_OWN}:_refusal",
            "if not state.listeners.may_be_at(event.listener_id, end):",
            "if end < 0:",
        ),
        "tests/unit/raft/test_snapshots.py",
    ),
    Mutant(
        "a snapshot may end inside a batch",
        "R-SNAP-2",
        Edit(f"{_OWN}:_refusal", "if log.batch_base(end) != end:", "if end < 0:"),
        "tests/unit/raft/test_snapshots.py",
    ),
    Mutant(
        "a snapshot's id has the epoch after it",
        "KAFKA-14618, S14",
        Edit(
            f"{_OWN}:handle_wanted",
            "snapshot = OffsetAndEpoch(end, state.log.epoch_before(end))",
            "snapshot = OffsetAndEpoch(end, state.log.last_epoch)",
        ),
    ),
    Mutant(
        "a snapshot has the voters of the log's end",
        "R-SNAP-2, S16",
        Edit(
            f"{_OWN}:handle_wanted",
            "control = state.history.control_at(end - 1)",
            "control = state.history.control_at(state.log.end_offset)",
        ),
        "tests/unit/raft/test_snapshots.py",
    ),
    Mutant(
        "a snapshot has the voters one record early",
        "R-SNAP-2, S16",
        Edit(
            f"{_OWN}:handle_wanted",
            "control = state.history.control_at(end - 1)",
            "control = state.history.control_at(end - 2)",
        ),
        "tests/unit/raft/test_snapshots.py",
    ),
    Mutant(
        "a snapshot has no voters",
        "KAFKA-19850, S16",
        Edit(
            f"{_HISTORY}.control_at",
            "if where is not None:",
            "if where is None:",
        ),
    ),
    Mutant(
        "a snapshot prunes the voters in force",
        "R-ID-8, S16",
        Edit(
            "kraftwire.raft.histories:_prune",
            "del entries[: max(contained - 1, 0)]",
            "del entries[:contained]",
        ),
        "tests/unit/raft/test_histories.py",
    ),
    Mutant(
        "a loaded snapshot leaves the old voters",
        "R-ID-6, S16",
        Edit(
            f"{_FETCHED}:handle_finished",
            "if state.history.reset(snapshot.offset, event.control):",
            "if snapshot.offset < 0:",
        ),
        "tests/unit/raft/test_downloading.py tests/unit/raft/test_log_reset.py",
    ),
    Mutant(
        "the log starts above what is committed",
        "R-SNAP-6, S14",
        Edit(
            f"{_OWN}:handle_log_start",
            "if start.offset > state.committed or "
            "start.offset > state.listeners.lowest_offset():",
            "if start.offset > state.listeners.lowest_offset():",
        ),
        "tests/unit/raft/test_snapshots.py",
    ),
    Mutant(
        "the log starts above what a state machine has",
        "R-SNAP-6, S15",
        Edit(
            f"{_OWN}:handle_log_start",
            "if start.offset > state.committed or "
            "start.offset > state.listeners.lowest_offset():",
            "if start.offset > state.committed:",
        ),
        "tests/unit/raft/test_snapshots.py",
    ),
    Mutant(
        "the log starts where there is no snapshot",
        "R-SNAP-6, S14",
        Edit(
            f"{_OWN}:handle_log_start",
            "if log.snapshot_size(start) is None or not log.start_offset < start.offset:",
            "if not log.start_offset < start.offset:",
        ),
        "tests/unit/raft/test_snapshots.py",
    ),
    Mutant(
        "a follower below the log's start gets records",
        "R-FET-7, KAFKA-15078",
        Edit(
            "kraftwire.raft.log_view:LogView._needs_snapshot",
            "if offset < start or epoch < oldest.epoch:",
            "if epoch < oldest.epoch:",
        ),
        "tests/unit/raft/test_log_view.py",
    ),
    Mutant(
        "an empty follower is not sent to the snapshot",
        "R-FET-7, KAFKA-15078",
        Edit(
            "kraftwire.raft.log_view:LogView.check_position",
            "if newest is not None and (not offset or self._needs_snapshot(offset, epoch)):",
            "if newest is not None and offset and self._needs_snapshot(offset, epoch):",
        ),
        "tests/unit/raft/test_log_view.py",
    ),
    Mutant(
        "parts of a snapshot are accepted from any position",
        "R-FSN-4",
        Edit(
            f"{_FETCHED}:_append_chunk",
            "if named != current.id or part.position != current.position or not is_known:",
            "if named != current.id or not is_known:",
        ),
        "tests/unit/raft/test_downloading_wrong.py",
    ),
    Mutant(
        "parts of another snapshot are accepted",
        "R-FSN-4",
        Edit(
            f"{_FETCHED}:_append_chunk",
            "if named != current.id or part.position != current.position or not is_known:",
            "if part.position != current.position or not is_known:",
        ),
        "tests/unit/raft/test_downloading_wrong.py",
    ),
    Mutant(
        "a download continues under another leader",
        "R-FSN-5",
        Edit(
            "kraftwire.raft.state:Download.is_of",
            "return (self.leader_id, self.epoch) == (leader_id, epoch)",
            "return True",
        ),
        "tests/unit/raft/test_downloading.py tests/unit/raft/test_downloading_wrong.py",
    ),
    Mutant(
        "a snapshot that the leader deleted is asked for again",
        "R-FSN-4, L5",
        Edit(
            f"{_FETCHED}:handle_fetch_snapshot_response",
            "if is_gone:",
            "if not part:",
        ),
        "tests/unit/raft/test_downloading.py tests/unit/raft/test_downloading_wrong.py",
    ),
    Mutant(
        "a damaged snapshot is waited for",
        "R-FSN-5, L5",
        Edit(
            f"{_FETCHED}:handle_rejected",
            "state.download is not None and state.download.id == event.id",
            "state.download is None",
        ),
        "tests/unit/raft/test_downloading_wrong.py",
    ),
    Mutant(
        "a leader's log is replaced by a snapshot",
        "KAFKA-12958, S5",
        Edit(
            f"{_FETCHED}:handle_finished",
            "is_needless = type(state.role) is Leader or snapshot.offset <= log.start_offset",
            "is_needless = snapshot.offset <= log.start_offset",
        ),
        "tests/unit/raft/test_downloading.py tests/unit/raft/test_downloading_wrong.py "
        "tests/unit/raft/test_log_reset.py",
    ),
    Mutant(
        "a snapshot replaces a log that has it",
        "R-FSN-4, S11",
        Edit(
            f"{_FETCHED}:handle_finished",
            "is_committed = snapshot.offset <= state.committed",
            "is_committed = snapshot.offset < 0",
        ),
        "tests/unit/raft/test_downloading.py tests/unit/raft/test_log_reset.py",
    ),
    Mutant(
        "a flush from before a snapshot counts",
        "D5, S9",
        Edit(
            f"{_FETCHED}:handle_finished",
            "state.flush_generation += 1",
            "pass",
        ),
        "tests/unit/raft/test_flushes.py",
    ),
    Mutant(
        "an old leader's snapshot is served to anybody",
        "R-FSN-2",
        Edit(
            f"{_OWN}:_check_request",
            "if error != ErrorCode.NONE:",
            "if error == -2:",
        ),
        "tests/unit/raft/test_snapshots_served.py",
    ),
    Mutant(
        "a follower at the log's start with a later epoch is valid",
        "R-FET-7, S6",
        Edit(
            "kraftwire.raft.log_view:LogView._needs_snapshot",
            "epoch != oldest.epoch",
            "epoch < oldest.epoch",
        ),
    ),
    Mutant(
        "a part of a snapshot after its end is served",
        "R-FSN-2, S14",
        Edit(
            "kraftwire.raft.snapshots:_check_request",
            "0 <= requested.position < size",
            "0 <= requested.position <= size",
        ),
    ),
    Mutant(
        "a snapshot inside the committed log is fetched",
        "R-FET-21, S11",
        Edit(
            "kraftwire.raft.downloading:begin_download",
            "known = max(state.committed, state.log.start_offset)",
            "known = state.log.start_offset",
        ),
        "tests/fuzz/test_raft_hostile.py::test_hostile_peers_cannot_harm_a_core",
    ),
    Mutant(
        "only a long first part shows that a file is no snapshot",
        "SEC-SNAPSHOT",
        Edit(
            "kraftwire.raft.downloading:_check_beginning",
            "if current.position >= BEGINNING_BYTES_MIN:",
            "if current.position:",
        ),
        "tests/hostile/test_snapshot_claims.py",
    ),
    Mutant(
        "a snapshot inside the committed log replaces it",
        "R-FSN-4, S11",
        Edit(
            "kraftwire.raft.downloading:handle_finished",
            "is_committed = snapshot.offset <= state.committed",
            "is_committed = False",
        ),
        "tests/unit/raft/test_downloading.py",
    ),
)
