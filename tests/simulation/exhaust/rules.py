"""Rules that are broken on purpose, as edits of the source, with bounds that suffice."""

from __future__ import annotations

from typing import NamedTuple

from kraftwire.sim.exhaust.bounds import Bounds
from tests.history.putting_back import Bug, Edit


class Rule(NamedTuple):
    """A broken rule. `invariant` is violated first, within `bounds`; `shown` is in the report."""

    name: str
    bug: Bug
    bounds: Bounds
    invariant: str
    shown: str


def _bounds(elections: int, restarts: int = 0, values: int = 0, changes: int = 0) -> Bounds:
    return Bounds(elections=elections, restarts=restarts, values=values, changes=changes)


RULES = (
    Rule(
        "older epochs are committed by count (figure 8)",
        (
            Edit(
                "kraftwire.raft.progress:LeaderProgress.high_watermark",
                "mark > current and mark > self._start_offset",
                "mark > current",
            ),
        ),
        _bounds(2),
        "S10",
        "through a batch of an older epoch",
    ),
    Rule(
        "a vote is given before it is stored",
        (
            Edit(
                "kraftwire.raft.transitions:persist",
                "if wanted != state.persisted:",
                "if wanted != state.persisted and wanted.voted in (None, state.config.key):",
            ),
        ),
        _bounds(1),
        "S3",
        "without having stored that",
    ),
    Rule(
        "a vote is forgotten at a restart",
        (
            Edit(
                "kraftwire.raft.startup:first_role",
                "voted = election.voted",
                "voted = None",
            ),
        ),
        _bounds(1, restarts=1),
        "S3",
        "changes its vote",
    ),
    Rule(
        "a late answer counts in a newer epoch",
        (
            Edit(
                "kraftwire.raft.transitions:_reset_connections",
                "state.in_flight.clear()",
                "pass",
            ),
            Edit(
                "kraftwire.raft.core:_take_sent",
                "return sent if state.peers.answered(request_id) else None",
                "return sent",
            ),
            Edit(
                "kraftwire.raft.responses:settle",
                "if epoch < role.epoch or error",
                "if error",
            ),
        ),
        _bounds(2),
        "S17",
        "by the votes of",
    ),
    Rule(
        "two changes of the voters at once",
        (
            Edit(
                "kraftwire.raft.changes:change_refusal",
                "if leader is not None and leader.change is not None:",
                "if False:",
            ),
            Edit(
                "kraftwire.raft.changes:change_refusal",
                "if where is None or where >= state.high_watermark:",
                "if where is None:",
            ),
        ),
        _bounds(1, changes=2),
        "S16",
        "is not committed",
    ),
    Rule(
        "voters count only once they are committed",
        (
            Edit(
                "kraftwire.raft.progress:LeaderProgress.voters_changed",
                "old, observers = self.voters, self.observers",
                "old, observers = self.voters, self.observers\n"
                "if len(voters) < len(old):\n    return",
            ),
        ),
        _bounds(1, changes=1),
        "S9",
        "what a minority has",
    ),
    Rule(
        "a leader takes any position of a follower for its own",
        (
            Edit(
                "kraftwire.raft.log_view:LogView.check_position",
                "if own.epoch != epoch or own.offset < offset:",
                "if False:",
            ),
        ),
        _bounds(2),
        "S9",
        "what a minority has",
    ),
    Rule(
        "a leader counts what it has not flushed",
        (
            Edit(
                "kraftwire.raft.appending:drain",
                "leader.progress.note_log_end(state.log.end_offset)",
                "leader.progress.note_log_end(state.log.end_offset)\n"
                "leader.progress.note_durable_end(state.log.end_offset)",
            ),
        ),
        _bounds(1, restarts=1),
        "S9",
        "what a minority has",
    ),
    Rule(
        "votes are given to older logs",
        (
            Edit(
                "kraftwire.raft.elections:_decide_vote",
                "is_up_to_date = _candidate_end(partition).is_newer_or_equal(state.log.end)",
                "is_up_to_date = True",
            ),
        ),
        _bounds(2),
        "S4",
        "whose log is older",
    ),
)
