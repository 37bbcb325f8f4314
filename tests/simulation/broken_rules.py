"""Rules broken on purpose: each function puts a bug into the shipped code while a test runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from kraftwire.log import opening
from kraftwire.log.segment import Segment
from kraftwire.log.snapshots.store import SnapshotStore
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.versions import fetching_replica
from kraftwire.raft import (
    answers,
    changes,
    core,
    elections,
    following,
    progress,
    serving,
    snapshots,
    startup,
    transitions,
)
from kraftwire.raft.effects import DropLogPrefix, ElectionState, HighWatermarkAdvanced
from kraftwire.raft.histories import VoterHistory
from kraftwire.raft.log_view import LogView, Position, PositionKind
from kraftwire.raft.progress import LeaderProgress
from kraftwire.raft.roles import Votes
from kraftwire.raft.state import RaftState
from kraftwire.raft.transitions import to_candidate
from kraftwire.raft.voters import ReplicaKey, Voter
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.replica.runner import Runner
from kraftwire.sim.disk import SimFile, SimFiles
from kraftwire.sim.plan import Plan
from kraftwire.sim.state_machine import Digest

Break = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class BrokenRule:
    """A broken rule: the invariants that may object first, the seed where a search starts, and what
    draws the clusters in which the rule matters."""

    name: str
    break_rule: Break
    found_by: tuple[str, ...]
    seed: int
    plan: Callable[[int], Plan] | None


RULES: dict[str, BrokenRule] = {}


def rule(
    *found_by: str, seed: int = 0, plan: Callable[[int], Plan] | None = None
) -> Callable[[Break], Break]:
    """Register a function that breaks a rule."""

    def register(break_rule: Break) -> Break:
        name = break_rule.__name__
        RULES[name] = BrokenRule(name, break_rule, found_by, seed, plan)
        return break_rule

    return register


@rule("S17", seed=8)
def another_cluster_counts(patch: pytest.MonkeyPatch) -> None:
    """Requests of another cluster are answered like those of this cluster (R-VOTE-4, R-FET-1)."""
    patch.setattr(answers, "cluster_id_differs", lambda *_: False)
    patch.setattr(serving, "cluster_id_differs", lambda *_: False)


@rule("S12")
def change_acknowledged_early(patch: pytest.MonkeyPatch) -> None:
    """A change of the voters is acknowledged when it is written (R-ADD-9, R-REM-5)."""
    append = changes.append_voters

    def early(state: Any, leader: Any, change: Any, voters: Any) -> None:
        append(state, leader, change, voters)
        changes._answer_change(state, change, ErrorCode.NONE, "")

    patch.setattr(changes, "append_voters", early)


@rule("S16")
def change_before_the_last_is_committed(patch: pytest.MonkeyPatch) -> None:
    """Voters change again before the last change is committed (R-VC-1)."""

    def hasty(state: Any) -> Any:
        if state.history.kraft_version == 0:
            return ErrorCode.UNSUPPORTED_VERSION, "it is 0"
        return None

    patch.setattr(changes, "change_refusal", hasty)


@rule("S16")
def change_before_the_leaders_epoch_commits(patch: pytest.MonkeyPatch) -> None:
    """A new leader changes voters before anything of its own epoch is committed (KIP-853)."""
    refusal = changes.change_refusal

    def hasty(state: Any) -> Any:
        is_new = state.high_watermark < 0 and state.history.kraft_version > 0
        return None if is_new and state.leader and not state.leader.change else refusal(state)

    patch.setattr(changes, "change_refusal", hasty)


@rule("S11")
def cuts_committed(patch: pytest.MonkeyPatch) -> None:
    """A follower whose leader names an epoch that it does not know empties its log."""
    truncate = following._truncate

    def bold(state: Any, diverging: Any, sent: Any) -> bool:
        committed, state.committed = state.committed, -1
        try:
            return truncate(state, diverging, sent)
        finally:
            state.committed = committed

    patch.setattr(following, "_truncate", bold)
    patch.setattr(LogView, "truncation_offset", lambda *_: 0)


@rule("S6", "S7", "S8", "S9", "S13", seed=2)
def cuts_one_too_few(patch: pytest.MonkeyPatch) -> None:
    """A leader accepts every position as part of its log, so followers keep what it never had."""
    check = LogView.check_position

    def lax(self: Any, offset: int, epoch: int) -> Position:
        if offset <= self.end_offset:
            return Position(PositionKind.VALID)
        return check(self, offset, epoch)

    patch.setattr(LogView, "check_position", lax)


@rule("S2", "S3", "S12", "S9")
def directory_flush_ignored(patch: pytest.MonkeyPatch) -> None:
    """The quorum-state file is renamed, and the rename not made durable (D1)."""
    patch.setattr(SimFiles, "fsync_dir", lambda *_: None)


@rule("S9", "S17", "S18", seed=7)
def directory_id_ignored(patch: pytest.MonkeyPatch) -> None:
    """A replica with a voter's id takes itself for the voter, with any directory id (R-ID-2)."""

    def same_id(self: Any, key: Any) -> bool:
        return bool(self.key.id == key.id)

    patch.setattr(Voter, "matches", same_id)


@rule("S9")
def diverging_fetch_counts(patch: pytest.MonkeyPatch) -> None:
    """A leader counts a fetch although the logs diverge there (KAFKA-13141)."""
    answer = serving._fetch_answer

    def hasty(state: Any, event: Any, **options: Any) -> None:
        partition = event.message.topics[0].partitions[0]
        leader = state.leader
        replica = ReplicaKey(fetching_replica(event.message), partition.replica_directory_id)
        is_current = partition.current_leader_epoch == state.role.epoch
        if leader is not None and is_current and replica.id != state.config.key.id:
            offset = min(partition.fetch_offset, state.log.end_offset)
            serving._record_progress(state, leader, replica, state.log.batch_base(offset))
        answer(state, event, **options)

    patch.setattr(serving, "_fetch_answer", hasty)


@rule("S9", seed=4)
def fetch_of_another_directory_counts(patch: pytest.MonkeyPatch) -> None:
    """What another disk with a voter's id fetches counts as the voter's (R-REP-4)."""

    def same_id(entry: Any, key: Any) -> bool:
        return bool(entry.id == key.id)

    patch.setattr(progress, "_matches", same_id)


@rule("S9", "S11", "S12")
def flush_ignored(patch: pytest.MonkeyPatch) -> None:
    """The log is never flushed: the calls are made and do nothing."""
    sync = SimFile.fdatasync

    def idle(self: Any) -> None:
        if not self._path.endswith(".log"):
            sync(self)

    patch.setattr(SimFile, "fdatasync", idle)


@rule("FLUSH", seed=21)
def flush_lock_ignored(patch: pytest.MonkeyPatch) -> None:
    """Files of the log are closed during a flush."""

    def hasty(self: Any, effect: Any) -> None:
        self._log.drop_prefix(effect.start_offset)
        self._disk.snapshots.delete(effect.snapshots, self.machines.now_ms)

    patch.setattr(Runner, "_drop_log_prefix", hasty)


@rule("S9")
def follower_acknowledges_unflushed(patch: pytest.MonkeyPatch) -> None:
    """A follower fetches on before what it has is durable (D2, KAFKA-17332)."""
    patch.setattr(following, "_may_fetch", lambda _: True)


@rule("S9")
def half_commits(patch: pytest.MonkeyPatch) -> None:
    """Half of the voters commit."""

    def half(self: Any, current: int) -> int:
        ends = sorted((state.end_offset for state in self.voters.values()), reverse=True)
        mark = ends[(len(ends) - 1) // 2]
        return mark if mark > current and mark > self._start_offset else current

    patch.setattr(LeaderProgress, "high_watermark", half)


@rule("S1", "S17")
def half_elects(patch: pytest.MonkeyPatch) -> None:
    """Half of the votes elect a leader."""
    begin = Votes.__init__

    def half(self: Any, voters: Any, own_id: int) -> None:
        begin(self, voters, own_id)
        self.majority = max(1, (len(self._answers) + 1) // 2)

    patch.setattr(Votes, "__init__", half)


@rule("S8", seed=4)
def high_watermark_unchecked(patch: pytest.MonkeyPatch) -> None:
    """A follower takes over the high watermark of its leader beyond its own log."""

    def blind(state: Any, offered: int) -> None:
        if offered > state.committed:
            state.high_watermark = state.committed = offered
            state.emit(HighWatermarkAdvanced(offered))

    patch.setattr(following, "_follow_high_watermark", blind)


@rule("L7", seed=8)
def isolated_leader_stays(patch: pytest.MonkeyPatch) -> None:
    """A leader without fetches keeps leading (KAFKA-15489)."""
    begin = LeaderProgress.__init__

    def patient(self: Any, *arguments: Any) -> None:
        begin(self, *arguments)
        self.quorum_deadline_ms = None

    patch.setattr(LeaderProgress, "__init__", patient)


@rule("S16")
def last_voters_ignored(patch: pytest.MonkeyPatch) -> None:
    """A voter set counts only once the next one is written."""
    settle = VoterHistory._settle

    def late(self: Any, before: Any) -> bool:
        changed = settle(self, before)
        if len(self._voters) > 1:
            self.last_voters_offset, self.current = self._voters[-2]
        return changed

    patch.setattr(VoterHistory, "_settle", late)


@rule("S9", "L4")
def leader_counts_unflushed(patch: pytest.MonkeyPatch) -> None:
    """A leader counts its own log before it is durable (D3)."""
    note = LeaderProgress.note_log_end

    def hasty(self: Any, end_offset: int) -> None:
        note(self, end_offset)
        self.note_durable_end(end_offset)

    patch.setattr(LeaderProgress, "note_log_end", hasty)


@rule("S9")
def leader_outside_counts_itself(patch: pytest.MonkeyPatch) -> None:
    """A leader that is not in the voter set counts its own log (R-HW-4)."""

    def with_own(self: Any, current: int) -> int:
        ends = [state.end_offset for state in self.voters.values()]
        others = [self.own.end_offset] if self.own not in self.voters.values() else []
        ends = sorted([*ends, *others], reverse=True)[: len(ends)]
        mark = ends[len(ends) // 2]
        return mark if mark > current and mark > self._start_offset else current

    patch.setattr(LeaderProgress, "high_watermark", with_own)


@rule("L1", "S3", "S5", "S9", "S13", seed=8)
def leads_again(patch: pytest.MonkeyPatch) -> None:
    """A leader that restarts leads its epoch again, and writes other records (KAFKA-10527)."""
    first = startup.first_role

    def again(state: Any, stored: Any) -> Any:
        key = state.config.key
        if stored.election.leader_id == key.id:
            stored = replace(stored, election=ElectionState(stored.election.epoch, -1, key))
        return first(state, stored)

    patch.setattr(core, "first_role", again)


@rule("S9")
def observers_commit(patch: pytest.MonkeyPatch) -> None:
    """Observers count when the high watermark is computed."""

    def generous(self: Any, current: int) -> int:
        ends = [state.end_offset for state in self.voters.values()]
        others = [s.end_offset for s in self.observers.values() if s is not self.own]
        ends = sorted([*ends, *others], reverse=True)[: len(ends)]
        mark = ends[len(ends) // 2]
        return mark if mark > current and mark > self._start_offset else current

    patch.setattr(LeaderProgress, "high_watermark", generous)


@rule("S8", "S10", seed=1)
def older_epoch_counted(patch: pytest.MonkeyPatch) -> None:
    """A leader commits batches of older epochs because a majority has them (figure 8)."""
    mark = LeaderProgress.high_watermark

    def counting(self: Any, current: int) -> int:
        self._start_offset = -1
        return mark(self, current)

    patch.setattr(LeaderProgress, "high_watermark", counting)


@rule("L6", "L8", seed=5)
def pre_vote_skipped(patch: pytest.MonkeyPatch) -> None:
    """Nobody asks for pre-votes: a node that was cut off comes back with a new epoch."""

    def impatient(state: Any, role: Any) -> None:  # noqa: ARG001
        to_candidate(state, "impatient")

    patch.setattr(elections, "poll_prospective", impatient)


def _ending_at(offset: int) -> list[OffsetAndEpoch]:
    return [OffsetAndEpoch(offset, epoch) for epoch in range(1000)]


@rule("S14", seed=6)
def prefix_dropped_with_its_snapshot(patch: pytest.MonkeyPatch) -> None:
    """The log's prefix is dropped together with the snapshot that holds it (R-SNAP-6)."""

    def greedy(start_offset: int, older: tuple[OffsetAndEpoch, ...]) -> Any:
        return DropLogPrefix(start_offset, (*older, *_ending_at(start_offset)))

    patch.setattr(snapshots, "DropLogPrefix", greedy)


@rule("L1", "L4")
def removed_leader_stays(patch: pytest.MonkeyPatch) -> None:
    """A leader whose removal is committed keeps leading (R-REM-5)."""
    settle = serving.settle_change

    def stay(state: RaftState, leader: Any) -> None:
        before = state.resign_reason
        settle(state, leader)
        state.resign_reason = before

    patch.setattr(serving, "settle_change", stay)


@rule("S1", "S3", seed=2)
def second_vote(patch: pytest.MonkeyPatch) -> None:
    """A voter forgets, when it is asked again, that it has voted in the epoch."""
    decide = elections._decide_standard

    def forgetful(state: Any, candidate: Any, is_up_to_date: bool) -> bool:
        if isinstance(state.role, transitions.Unattached | transitions.Prospective):
            state.role.voted = None
        return decide(state, candidate, is_up_to_date)

    patch.setattr(elections, "_decide_standard", forgetful)


@rule("S14", seed=6)
def snapshot_of_a_later_state(patch: pytest.MonkeyPatch) -> None:
    """A snapshot changes along with the state machine while it is being written."""
    freeze = Digest.freeze

    def late(self: Any) -> Iterator[bytes]:
        yield from freeze(self)

    patch.setattr(Digest, "freeze", late)


@rule("S16", seed=6)
def snapshot_with_the_latest_voters(patch: pytest.MonkeyPatch) -> None:
    """A snapshot carries the voters of the log's end, not those of its own (R-SNAP-2)."""
    at = VoterHistory.control_at
    patch.setattr(VoterHistory, "control_at", lambda self, _: at(self, 1 << 62))


@rule("S14", "S12", "D11", seed=6)
def snapshot_without_a_name(patch: pytest.MonkeyPatch) -> None:
    """A snapshot gets its name, and the directory is not flushed (R-SNAP-5)."""
    publish = SnapshotStore._publish

    def careless(self: Any, *arguments: Any) -> None:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(SimFiles, "fsync_dir", lambda *_: None)
            publish(self, *arguments)

    patch.setattr(SnapshotStore, "_publish", careless)


@rule("S16", seed=6)
def snapshot_without_voters(patch: pytest.MonkeyPatch) -> None:
    """A snapshot does not carry the voters (R-SNAP-2)."""
    patch.setattr(VoterHistory, "control_at", lambda *_: ())


class _Unsynced:
    """A file that is never synced."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def fdatasync(self) -> None:
        """Do nothing."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@rule("S9", seed=1)
def start_without_flush(patch: pytest.MonkeyPatch) -> None:
    """A start takes a log's contents for durable, although a killed process may have left them."""
    repair = opening.repair

    def careless(files: Any, directory: str, found: Any, *, is_marked: bool) -> None:
        last = found.segments[-1]
        file, last.file = last.file, _Unsynced(last.file)
        repair(files, directory, found, is_marked=is_marked)
        last.file = file

    patch.setattr(opening, "repair", careless)


@rule("S12", "S13", "D11", "BUG", seed=1)
def torn_end_kept(patch: pytest.MonkeyPatch) -> None:
    """Recovery leaves a torn end in the log, and batches are written after it."""
    load = Segment.load

    def careless(self: Any, last_epoch: int) -> Any:
        scan = load(self, last_epoch)
        self.size = scan.size = self.file.size()
        return scan

    patch.setattr(Segment, "load", careless)


@rule("S16", seed=2)
def truncation_keeps_voters(patch: pytest.MonkeyPatch) -> None:
    """A truncation does not revert the voters (R-ID-8)."""
    patch.setattr(VoterHistory, "truncate", lambda *_: False)


@rule("S16", seed=4)
def two_changes_in_one(patch: pytest.MonkeyPatch) -> None:
    """A new disk takes the place of an old one in one record: there is no common majority."""
    judge = changes._check_absent

    def generous(state: Any, key: Any) -> Any:
        present = state.voters.get(key.id)
        is_other_disk = present is not None and present.key != key
        return None if is_other_disk else judge(state, key)

    patch.setattr(changes, "_check_absent", generous)


@rule("S17", "L1", "L4", "L5", seed=4)
def vote_for_another_directory(patch: pytest.MonkeyPatch) -> None:
    """A replica answers a request that is meant for another disk of its id (R-VOTE-4)."""

    def is_addressee(state: Any, voter_id: int, _directory_id: bytes) -> bool:
        return voter_id < 0 or voter_id == state.config.key.id

    patch.setattr(elections, "is_addressee", is_addressee)


@rule("S4", "S5", seed=2)
def vote_for_older_log(patch: pytest.MonkeyPatch) -> None:
    """A vote is granted without comparing the logs."""
    decide = elections._decide_standard

    def trusting(state: Any, candidate: Any, is_up_to_date: bool) -> bool:  # noqa: ARG001
        return decide(state, candidate, True)

    patch.setattr(elections, "_decide_standard", trusting)


@rule("S1", "S3", seed=1)
def vote_forgotten_at_start(patch: pytest.MonkeyPatch) -> None:
    """A start does not look at the vote in the quorum-state file (KAFKA-16526)."""
    first = startup.first_role

    def forgetful(state: Any, stored: Any) -> Any:
        election = replace(stored.election, voted=None)
        return first(state, replace(stored, election=election))

    patch.setattr(core, "first_role", forgetful)


@rule("S2", "S3")
def vote_not_stored(patch: pytest.MonkeyPatch) -> None:
    """A vote is granted before it is on disk."""
    grant = transitions.grant_vote

    def careless(state: Any, candidate: Any) -> None:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(transitions, "persist", lambda *_: None)
            grant(state, candidate)

    from kraftwire.raft import elections

    patch.setattr(elections, "grant_vote", careless)


@rule("S16", seed=6)
def voters_of_a_snapshot_ignored(patch: pytest.MonkeyPatch) -> None:
    """A log that begins at a snapshot keeps the voters that it had (R-ID-6)."""
    reset = VoterHistory.reset

    def once(self: Any, end_offset: int, control: bytes) -> bool:
        return False if self.has_own_voters else reset(self, end_offset, control)

    patch.setattr(VoterHistory, "reset", once)
