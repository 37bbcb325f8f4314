"""Mistakes that matter once some links are cut for a long time and others are not."""

from __future__ import annotations

from tests.history.putting_back import Edit
from tests.mutants.mutant import Mutant

_VOTES = "kraftwire.raft.elections"
_COUNTS = "kraftwire.raft.progress:LeaderProgress"
_PARTITIONS = "tests/simulation/test_partitions.py"

MUTANTS = (
    Mutant(
        "a follower helps to depose a leader that it heard a moment ago",
        "R-VOTE-6, L8",
        Edit(
            "kraftwire.raft.epochs:hears_no_leader",
            "silence >= timeout - timeout // 10",
            "silence >= timeout // 10",
        ),
        f"{_PARTITIONS}::test_a_follower_that_alone_cannot_reach_the_leader_does_not_depose_it "
        f"{_PARTITIONS}::test_two_followers_that_reach_only_a_third_one_depose_no_leader",
    ),
    Mutant(
        "a leader that one of four can reach waits too long",
        "R-CQ-1, L7",
        Edit(
            f"{_COUNTS}.__init__",
            "self._quorum_timeout_ms = fetch_timeout_ms * 3 // 2",
            "self._quorum_timeout_ms = fetch_timeout_ms * 150",
        ),
        f"{_PARTITIONS}::test_a_leader_that_one_of_four_can_reach_steps_down",
    ),
    Mutant(
        "a leader that hears from nobody keeps leading",
        "R-CQ-1, L7",
        Edit(
            "kraftwire.raft.resignation:reason_to_resign",
            "if deadline is not None and state.now >= deadline:",
            "if deadline is not None and not leader.progress.leader_end:",
        ),
        f"{_PARTITIONS}::test_a_leader_whose_links_work_one_way_steps_down",
    ),
    Mutant(
        "observers keep a leader",
        "R-CQ-2, R-HW-3, L7",
        Edit(
            f"{_COUNTS}.record_fetch",
            "if not is_voter:",
            "if not is_voter:\n    self._count(state, now_ms)\nif not is_voter:",
        ),
        f"{_PARTITIONS}::test_observers_do_not_keep_a_leader_that_no_voter_reaches",
    ),
    Mutant(
        "a nominee does not wait for the pre-votes of a majority",
        "R-VOTE-10, L6",
        Edit(
            f"{_VOTES}:poll_prospective",
            "elif state.now >= role.deadline_ms:",
            "elif state.now >= role.deadline_ms and state.may_stand:\n"
            '    to_candidate(state, "the pre-vote timed out")\n'
            "elif state.now >= role.deadline_ms:",
        ),
        f"{_PARTITIONS}::test_voters_that_only_an_observer_reaches_elect_no_leader",
    ),
)
