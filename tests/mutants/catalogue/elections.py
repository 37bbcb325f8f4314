"""Mistakes in votes and epochs."""

from __future__ import annotations

from tests.history.putting_back import Edit
from tests.mutants.mutant import Mutant

_VOTES = "kraftwire.raft.elections"
_TURNS = "kraftwire.raft.transitions"
_STATE = "kraftwire.raft.state:RaftState"

MUTANTS = (
    Mutant(
        "a vote ignores the offset of the log",
        "R-VOTE-5, S4",
        Edit(
            f"{_VOTES}:_decide_vote",
            "_candidate_end(partition).is_newer_or_equal(state.log.end)",
            "_candidate_end(partition).epoch >= state.log.end.epoch",
        ),
    ),
    Mutant(
        "a vote ignores the epoch of the log",
        "R-VOTE-5, S4",
        Edit(
            f"{_VOTES}:_decide_vote",
            "_candidate_end(partition).is_newer_or_equal(state.log.end)",
            "_candidate_end(partition).offset >= state.log.end.offset",
        ),
    ),
    Mutant(
        "a vote compares the offset before the epoch",
        "R-VOTE-5, S4",
        Edit(
            f"{_VOTES}:_decide_vote",
            "_candidate_end(partition).is_newer_or_equal(state.log.end)",
            "tuple(_candidate_end(partition)) >= tuple(state.log.end)",
        ),
    ),
    Mutant(
        "a vote is granted for an epoch that is over",
        "R-VOTE-4, S3",
        Edit(
            f"{_VOTES}:_vote_answer",
            "if partition.replica_epoch < state.role.epoch:",
            "if partition.replica_epoch < state.role.epoch - 1:",
        ),
    ),
    Mutant(
        "a second vote is granted in an epoch",
        "R-VOTE-6, S3",
        Edit(
            f"{_VOTES}:_decide_standard",
            "return voted.id == candidate.id and "
            "(not voted.has_directory_id or voted.directory_id == candidate.directory_id)",
            "return True",
        ),
    ),
    Mutant(
        "a nominee that knows the leader of an epoch votes in it",
        "R-VOTE-6, S3",
        Edit(
            f"{_VOTES}:_decide_standard",
            "if role.leader_id >= 0 or not is_up_to_date:",
            "if not is_up_to_date:",
        ),
        "tests/unit/raft/test_votes_kept.py",
    ),
    Mutant(
        "another directory of this node gets its vote",
        "R-VOTE-6, S3",
        Edit(
            f"{_VOTES}:_decide_vote",
            "if partition.replica_id == state.config.key.id:",
            "if False:",
        ),
        "tests/unit/raft/test_votes.py",
    ),
    Mutant(
        "a leader grants pre-votes",
        "R-VOTE-6, L8",
        Edit(
            "kraftwire.raft.epochs:hears_no_leader",
            "return type(role) is not Leader",
            "return True",
        ),
        "tests/unit/raft/test_pre_votes.py",
    ),
    Mutant(
        "a follower that hears its leader grants pre-votes",
        "R-VOTE-6, L8",
        Edit(
            "kraftwire.raft.epochs:hears_no_leader",
            "return not role.has_fetched or silence >= timeout - timeout // 10",
            "return True",
        ),
    ),
    Mutant(
        "a pre-vote is granted to an older log",
        "R-VOTE-6, S4",
        Edit(
            f"{_VOTES}:_decide_vote",
            "return is_up_to_date and hears_no_leader(state)",
            "return hears_no_leader(state)",
        ),
    ),
    Mutant(
        "a refusal counts as a vote",
        "R-VOTE-10, S17",
        Edit(
            f"{_VOTES}:handle_vote_response",
            "nominee.votes.record(sent.destination.key, partition.vote_granted)",
            "nominee.votes.record(sent.destination.key, True)",
        ),
    ),
    Mutant(
        "half of the votes win",
        "R-VOTE-11, S1, S17",
        Edit(
            "kraftwire.raft.voters:VoterSet.majority",
            "return len(self.voters) // 2 + 1",
            "return (len(self.voters) + 1) // 2",
        ),
    ),
    Mutant(
        "a node's own vote counts outside the set",
        "R-VOTE-11, S17",
        Edit(
            "kraftwire.raft.roles:Votes.__init__",
            "voter.key: True if voter.matches(own) else None for voter in voters",
            "voter.key: True if voter.key.id == own.id else None for voter in voters",
        ),
        "tests/unit/raft/test_votes_kept.py",
    ),
    Mutant(
        "a candidate stands in its old epoch",
        "R-ROLE table, S3",
        Edit(
            f"{_TURNS}:to_candidate",
            "state.role.epoch + 1",
            "max(state.role.epoch, 1)",
        ),
    ),
    Mutant(
        "a vote is kept on a new epoch",
        "R-ROLE-2",
        Edit(
            f"{_TURNS}:to_unattached",
            "if keep:",
            "if not keep:\n    new.voted = old.voted\nif keep:",
        ),
        "tests/unit/raft/test_votes_kept.py",
    ),
    Mutant(
        "a follower keeps its vote on a new epoch",
        "R-ROLE-2",
        Edit(
            f"{_TURNS}:to_follower",
            "old.voted if epoch == old.epoch else None",
            "old.voted",
        ),
        "tests/unit/raft/test_votes_kept.py",
    ),
    Mutant(
        "a follower forgets its vote of the epoch",
        "R-ROLE-2, S3",
        Edit(
            f"{_TURNS}:to_follower",
            "old.voted if epoch == old.epoch else None",
            "None",
        ),
    ),
    Mutant(
        "a lost pre-vote forgets the vote of the epoch",
        "R-ROLE-2, S3",
        Edit(
            f"{_TURNS}:to_unattached",
            "new.voted, new.leader_id = old.voted, old.leader_id",
            "new.leader_id = old.leader_id",
        ),
    ),
    Mutant(
        "a nominee forgets the vote of the epoch",
        "R-ROLE-2, S3",
        Edit(
            f"{_TURNS}:to_prospective",
            "old.leader_endpoints, old.voted\n",
            "old.leader_endpoints\n",
        ),
    ),
    Mutant(
        "no change of role is stored",
        "D1, S2",
        Edit(
            f"{_TURNS}:_become",
            "if row is not None and row.durable:",
            "if row is None:",
        ),
    ),
    Mutant(
        "answers to an old role are looked at",
        "R-LOOP-2",
        Edit(f"{_TURNS}:_reset_connections", "state.in_flight.clear()", "pass"),
        "tests/unit/raft/test_late_answers.py",
        Edit(
            "kraftwire.raft.core:_take_sent",
            "return sent if state.peers.answered(request_id) else None",
            "state.peers.answered(request_id)\nreturn sent",
        ),
    ),
    Mutant(
        "an answer that arrives after its time-out counts",
        "R-LOOP-2, R-NET-4",
        Edit(
            "kraftwire.raft.core:_take_sent",
            "sent = state.in_flight.pop(request_id, None)",
            "sent = state.in_flight.get(request_id)",
        ),
        "tests/unit/raft/test_late_answers.py",
        Edit(
            "kraftwire.raft.core:_take_sent",
            "return sent if state.peers.answered(request_id) else None",
            "state.peers.answered(request_id)\nreturn sent",
        ),
    ),
    Mutant(
        "a node stands although the end of its log is not durable",
        "R-VOTE-1, S4",
        Edit(
            "kraftwire.raft.core:_may_stand",
            "if state.log.flushed_offset < state.log.end_offset:",
            "if state.log.flushed_offset < 0:",
        ),
        "tests/unit/raft/test_standing.py",
    ),
    Mutant(
        "an observer stands",
        "R-ROLE-6, S18",
        Edit(
            f"{_STATE}.may_stand",
            "return is_open and self.history.previous.is_voter(self.config.key)",
            "return True",
        ),
        "tests/unit/raft/test_standing.py",
    ),
    Mutant(
        "a replica stands although its removal is committed",
        "R-ROLE-6, S18",
        Edit(
            f"{_STATE}.may_stand",
            "is_open = where is not None and where >= known",
            "is_open = where is not None",
        ),
        "tests/unit/raft/voters/test_in_force.py",
    ),
    Mutant(
        "a replica whose removal may be lost does not stand",
        "L1",
        Edit(
            f"{_STATE}.may_stand",
            "return is_open and self.history.previous.is_voter(self.config.key)",
            "return False",
        ),
        "tests/unit/raft/voters/test_in_force.py",
    ),
    Mutant(
        "elections have no jitter",
        "R-VOTE-12, L1",
        Edit(
            f"{_STATE}.random_timeout",
            "return self.now + timeout + self.random.randrange(timeout)",
            "return self.now + timeout",
        ),
        "tests/unit/raft/test_jitter.py",
    ),
    Mutant(
        "a lost election is tried again without jitter",
        "R-VOTE-12, L1",
        Edit(
            f"{_VOTES}:poll_candidate",
            "wait = state.random.randrange(backoff + 1)",
            "wait = backoff",
        ),
        "tests/unit/raft/test_jitter.py",
    ),
    Mutant(
        "a candidate without pre-votes tries again as early as one that had them",
        "R-VOTE-12, L1",
        Edit(
            f"{_VOTES}:poll_candidate",
            "early_ms if role.has_pre_votes else role.deadline_ms",
            "early_ms",
        ),
        "tests/unit/raft/test_jitter.py",
    ),
    Mutant(
        "followers of a dead leader stand together",
        "R-ROLE-5, L1",
        Edit(
            f"{_STATE}.draw_fetch_timeout_ms",
            "wait = timers.fetch_timeout_ms + self.random.randrange(fifth + 1)",
            "wait = timers.fetch_timeout_ms",
        ),
        "tests/unit/raft/test_jitter.py",
    ),
    Mutant(
        "a restarted leader leads its epoch again",
        "R-START-6, S13",
        Edit(
            "kraftwire.raft.startup:first_role",
            "return _resigned(state)",
            "return Candidate(election.epoch, Votes(state.voters, config.key), "
            "state.random_timeout(), config.key)",
        ),
    ),
    Mutant(
        "a restarted follower forgets its vote",
        "R-START-6, S3",
        Edit(
            "kraftwire.raft.startup:first_role",
            "election.epoch, election.leader_id, voted=voted, deadline_ms=deadline",
            "election.epoch, election.leader_id, deadline_ms=deadline",
        ),
    ),
    Mutant(
        "a start believes a file that is older than the log",
        "R-START-6, S2",
        Edit(
            "kraftwire.raft.startup:first_role",
            "if election.epoch < last_epoch:",
            "if election.epoch < 0:",
        ),
        "tests/unit/raft/test_votes_kept.py",
    ),
    Mutant(
        "a contradicting leader is believed",
        "R-ROLE-9, S1",
        Edit(
            f"{_TURNS}:is_consistent",
            "return epoch > role.epoch or role.leader_id in (-1, leader_id)",
            "return True",
        ),
        "tests/unit/raft/test_transitions.py",
    ),
    Mutant(
        "a prospective that is no longer a voter does not return to its leader",
        "R-VOTE-12, L2",
        Edit(
            "kraftwire.raft.elections:poll_prospective",
            '_end_prospective(state, role, "no longer a voter")',
            'to_unattached(state, role.epoch, "no longer a voter", keep=True)',
        ),
        "tests/unit/raft/test_log_reset.py",
    ),
)
