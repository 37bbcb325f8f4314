"""Bugs of voters that change: accepted too early, waited for too long, forgotten, counted twice."""

from __future__ import annotations

from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.raft import effects, events
from kraftwire.raft.effects import ElectionState
from kraftwire.raft.histories import voters_record
from kraftwire.raft.voters import VoterSet
from kraftwire.records.control import ControlType, control_batch
from tests.history.putting_back import Edit, history
from tests.support.raft.cluster import Cluster
from tests.support.raft.lone import Lone
from tests.support.raft.messages import (
    add_voter,
    directory_id,
    dynamic_set,
    fetch,
    fetched,
    remove_voter,
    update_voter,
    voters_control,
)


def _set_at(offset: int, epoch: int, voters: VoterSet) -> bytes:
    """A batch that states the voters."""
    return control_batch(offset, epoch, 0, [(ControlType.KRAFT_VOTERS, voters_record(voters))])


def _has_all(lone: Lone, *replicas: int) -> None:
    """Replicas fetch at the end of the leader's log, as often as it takes to commit."""
    for _ in range(2):
        for replica in replicas:
            core = lone.core
            lone.request(fetch(replica, core.end_offset, core.epoch, core.epoch, max_wait_ms=0))


def _leader(*voters: int, **more: object) -> Lone:
    """Node 1 leads a dynamic quorum; all nodes have everything."""
    lone = Lone(voters=voters, is_dynamic=True, **more)  # type: ignore[arg-type]
    lone.lead()
    _has_all(lone, *(one for one in voters if one != 1))
    assert lone.core.high_watermark == lone.core.end_offset
    return lone


def _asked(lone: Lone, name: str) -> list[effects.SendRequest]:
    return [one for one in lone.requests if name == one.message.NAME]


@history(
    54,
    "KAFKA-19850",
    "R-JOIN-1",
    Edit("kraftwire.raft.voter_updates:poll_update", " or state.is_removed", ""),
    red="joins again at once",
)
def test_a_voter_that_was_removed_does_not_join_again_by_itself() -> None:
    """An operator who removes a voter in order to shut it down would have to be faster than it."""
    lone = Lone(4, voters=(1, 2, 3, 4), is_dynamic=True, auto_join=True)
    lone.follow(1, 1)
    removed = _set_at(0, 1, dynamic_set([1, 2, 3]))
    lone.fetch_gets(fetched(1, 1, removed, high_watermark=1))
    assert not lone.core.is_voter
    for _ in range(5):
        lone.wait(1000)
        assert not _asked(lone, "AddRaftVoterRequest"), "joins again at once"
        lone.fetch_gets(fetched(1, 1, high_watermark=1))


@history(
    54,
    "KAFKA-19850",
    "R-JOIN-1, L4",
    Edit(
        "kraftwire.raft.state:RaftState.voters_changed",
        "(self.is_removed or (was_voter and is_later))",
        "(self.is_removed or was_voter)",
    ),
    red="waits for ever",
)
def test_a_voter_whose_joining_was_undone_joins_again() -> None:
    """Nobody removed it: the leader that had added it was deposed before that was committed."""
    lone = Lone(4, voters=(1, 2, 3), is_dynamic=True, auto_join=True)
    lone.follow(1, 1)
    lone.fetch_gets(fetched(1, 1, _set_at(0, 1, dynamic_set([1, 2, 3, 4])), high_watermark=0))
    assert lone.core.is_voter
    lone.follow(2, 2)
    lone.fetch_gets(fetched(2, 2, diverging=(0, 0), high_watermark=0))
    assert not lone.core.is_voter
    for _ in range(5):
        lone.wait(1000)
        if lone.last_request.message.NAME == "FetchRequest":
            lone.fetch_gets(fetched(2, 2, high_watermark=0))
    assert _asked(lone, "AddRaftVoterRequest"), "waits for ever"


@history(
    55,
    "KIP-853, single-server change",
    "R-ADD-1, R-REM-1, S16",
    Edit("kraftwire.raft.changes:change_refusal", "if state.high_watermark < 0:", "if False:"),
    Edit(
        "kraftwire.raft.changes:change_refusal",
        "if where is None or where >= state.high_watermark:",
        "if where is None:",
    ),
    red="changes a set that may not be in force",
)
def test_no_voter_is_changed_before_the_leader_commits_in_its_own_epoch() -> None:
    """Two leaders that follow each other could each change the set that they know by one voter:
    two sets that have no voter in common would both be majorities."""
    lone = Lone(voters=(1, 2, 3, 4), is_dynamic=True)
    lone.lead()
    answer = lone.request(remove_voter(4))
    refused = answer is not None and answer.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert refused, "changes a set that may not be in force"
    assert len(lone.core.voters) == 4
    _has_all(lone, 2, 3)
    assert lone.request(remove_voter(4)) is None
    assert len(lone.core.voters) == 3


@history(
    56,
    "KAFKA-16534",
    "R-UPD-3, L4",
    Edit(
        "kraftwire.raft.voter_updates:handle_update_voter",
        "state.emit(SendReply(event.token, response))",
        "error and state.emit(SendReply(event.token, response))",
    ),
    red="waits for a commit that waits for it",
)
def test_a_voter_that_is_updated_is_answered_before_the_commit() -> None:
    """It does not fetch while it waits for the answer, and without its fetch nothing is
    committed."""
    lone = _leader(1, 2)
    renamed = update_voter(2, lone.core.epoch, listeners=("CONTROLLER", "OTHER"))
    answer = lone.request(renamed)
    assert answer is not None, "waits for a commit that waits for it"
    assert answer.error_code == ErrorCode.NONE
    assert lone.core.high_watermark < lone.core.end_offset
    _has_all(lone, 2)
    assert lone.core.high_watermark == lone.core.end_offset


# Kafka counted the time until the next update into that until the next poll.
_WAITS_FOR_UPDATE = "return min(role.fetch_deadline_ms, role.update_due_ms)"
_WAITS = "return role.fetch_deadline_ms if _may_stand(state) else None"


@history(
    57,
    "KAFKA-17751",
    "R-UPD-1, L9",
    Edit("kraftwire.raft.core:_role_deadline", _WAITS, _WAITS_FOR_UPDATE),
    Edit(
        "kraftwire.raft.voter_updates:poll_update",
        "role.update_due_ms = state.now + state.config.timers.fetch_timeout_ms",
        "pass",
    ),
    red="a busy loop",
)
def test_a_voter_that_has_nothing_to_update_sleeps_until_something_happens() -> None:
    """A busy loop leaves less processor time for elections."""
    lone = Lone(2, voters=(1, 2, 3), is_dynamic=True)
    lone.follow(1, 1)
    for _ in range(4):
        lone.wait(1500)
        lone.fetch_gets(fetched(1, 1, high_watermark=0))
    assert not _asked(lone, "UpdateRaftVoterRequest")


@history(
    58,
    "KAFKA-19605",
    "R-ROLE-10, L9",
    Edit("kraftwire.raft.core:_role_deadline", _WAITS, _WAITS_FOR_UPDATE),
    red="a busy loop",
)
def test_an_observer_that_cannot_be_a_voter_sleeps_until_something_happens() -> None:
    """Otherwise each broker of a cluster would keep a processor busy."""
    lone = Lone(9, voters=(1, 2, 3), is_dynamic=True, can_be_voter=False)
    lone.follow(1, 1)
    for _ in range(4):
        lone.wait(1500)
        lone.fetch_gets(fetched(1, 1, high_watermark=0))


@history(
    59,
    "KAFKA-17608",
    "R-REM-3, R-REM-5, R-END-2",
    Edit(
        "kraftwire.raft.progress:LeaderProgress.preferred_successors",
        "if state is not self.own",
        "if state.key != self.voters.get(self._key.id).key",
    ),
    red="'NoneType' object has no attribute 'key'",
    fails_with=AttributeError,
)
def test_a_leader_that_was_removed_steps_down_and_keeps_running() -> None:
    """It leads until its removal is committed, by the others; then it is an observer."""
    cluster = Cluster([1, 2, 3], seed=5, dynamic=True)
    cluster.start(1, 2, 3)
    cluster.run(4000)
    [leader] = cluster.leaders()
    cluster.append(leader, b"before")
    removal = cluster.ask(leader, remove_voter(leader), 0)
    assert leader in cluster.leaders()
    cluster.append(leader, b"next to it")
    cluster.run(5000)
    assert removal.answer.error_code == ErrorCode.NONE  # type: ignore[union-attr]
    [successor] = cluster.leaders()
    assert successor != leader
    assert cluster.core(leader).role == "follower"
    assert not cluster.core(leader).is_voter
    cluster.append(successor, b"after")
    cluster.run(1000)
    logs = [cluster.log_of(one) for one in (1, 2, 3)]
    assert logs[0] == logs[1] == logs[2]


@history(
    60,
    "KAFKA-16538, KAFKA-20661",
    "R-UPG-1, R-UPD-6",
    Edit(
        "kraftwire.raft.upgrading:handle_upgrade",
        "(ControlType.KRAFT_VOTERS, voters_record(voters))",
        "*()",
    ),
    red="nobody knows the voters",
)
def test_an_upgrade_of_kraft_version_writes_the_voters_too() -> None:
    """Only the leader knows what they reported: the next leader, and every snapshot, would be at
    kraft.version 1 without voters."""
    lone = Lone(voters=(1, 2, 3))
    lone.lead()
    _has_all(lone, 2, 3)
    for voter in (2, 3):
        answer = lone.request(update_voter(voter, lone.core.epoch))
        assert answer.error_code == ErrorCode.NONE
    lone.handle(events.UpgradeRequested(9, lone.core.epoch, 1))
    [decided] = lone.all_of(effects.UpgradeDecided)
    assert decided.error == ErrorCode.NONE, decided
    lone.wait(50)
    _has_all(lone, 2, 3)
    assert lone.core.kraft_version == 1
    known = [voter.key.directory_id for voter in lone.core.voters]
    assert known == [directory_id(1), directory_id(2), directory_id(3)], "nobody knows the voters"
    lone.restart()
    assert [voter.key.directory_id for voter in lone.core.voters] == known


@history(
    61,
    "KAFKA-20661",
    "R-VC-1, R-ADD-2, L4",
    Edit(
        "kraftwire.raft.changes:handle_add_voter",
        "leader.candidates[destination] = candidate",
        "leader.change, candidate.deadline_ms = candidate, 1 << 62",
    ),
    red="no voter can be changed any more",
)
def test_a_new_voter_that_never_answers_does_not_block_other_changes() -> None:
    """Its address leads nowhere, and packets to it are lost without an error."""
    lone = _leader(1, 2, 3)
    _has_all(lone, 4)
    assert lone.request(add_voter(4)) is None
    assert _asked(lone, "ApiVersionsRequest")
    for _ in range(3):
        lone.wait(900)
        _has_all(lone, 2, 3)
    again = lone.request(remove_voter(3))
    assert again is None, "no voter can be changed any more"
    assert len(lone.core.voters) == 2


@history(
    62,
    "KAFKA-15671",
    "R-ID-2, R-REP-4, S17",
    Edit(
        "kraftwire.raft.progress:LeaderProgress.record_fetch",
        "is_voter = state is not None and _matches(state.key, key)",
        "is_voter = state is not None",
    ),
    red="committed with the help of another directory",
)
def test_a_replica_with_a_voters_id_and_another_directory_is_not_a_voter() -> None:
    """It is a second replica, or the first one without what it had acknowledged."""
    lone = _leader(1, 2, 3)
    mark = lone.core.high_watermark
    lone.handle(events.AppendRequested(5, lone.core.epoch, (b"value",)))
    lone.wait(50)
    core, other = lone.core, bytes(range(16))
    for _ in range(2):
        end, epoch = core.end_offset, core.epoch
        lone.request(fetch(2, end, epoch, epoch, max_wait_ms=0, directory=other))
    assert core.high_watermark == mark, "committed with the help of another directory"
    _has_all(lone, 2)
    assert core.high_watermark == core.end_offset


@history(
    63,
    "KAFKA-17332, KAFKA-13884",
    "R-FET-24, D2",
    Edit(
        "kraftwire.raft.following:_append",
        "if state.config.can_be_voter:",
        "if state.is_voter:",
    ),
    red="acknowledges what a power loss takes",
)
def test_a_controller_that_is_not_yet_a_voter_makes_durable_what_it_fetches() -> None:
    """The leader may add it at any time, and counts its next fetch as an acknowledgement."""
    lone = Lone(4, voters=(1, 2, 3), is_dynamic=True, election=ElectionState(1))
    lone.is_slow = True
    lone.follow(1, 1)
    batch = control_batch(0, 1, 0, voters_control(dynamic_set([1, 2, 3])))
    before = len(_asked(lone, "FetchRequest"))
    lone.fetch_gets(fetched(1, 1, batch, high_watermark=0))
    flushes = lone.all_of(effects.FlushLog)
    assert len(flushes) == 1, "acknowledges what a power loss takes"
    assert len(_asked(lone, "FetchRequest")) == before
    lone.flush(flushes[0])
    assert len(_asked(lone, "FetchRequest")) == before + 1
