"""Bugs of leaders: those that should step down and do not, and those that should stay."""

from __future__ import annotations

from kraftwire.raft import effects, events
from kraftwire.raft.accumulator import Accumulator, Refusal
from kraftwire.raft.progress import LeaderProgress
from kraftwire.raft.voters import ReplicaKey
from tests.history.putting_back import Edit, history
from tests.support.raft.cluster import Cluster
from tests.support.raft.lone import Lone
from tests.support.raft.messages import directory_id, fetch, voter_set


@history(
    15,
    "KAFKA-15489",
    "R-CQ-1, L7",
    Edit(
        "kraftwire.raft.progress:LeaderProgress.voters_changed",
        "if leads_as_voter and len(voters) == 1:",
        "if leads_as_voter and len(voters) >= 1:",
    ),
    red="still leads",
)
def test_an_isolated_leader_steps_down() -> None:
    """Its clients would wait for a commit that cannot come, while another node already leads."""
    cluster = Cluster([1, 2, 3], seed=3)
    cluster.start(1, 2, 3)
    cluster.run(4000)
    [leader] = cluster.leaders()
    others = [one for one in (1, 2, 3) if one != leader]
    cluster.cut([leader], others)
    cluster.run(cluster.timers.fetch_timeout_ms * 3 // 2 + 1)
    assert leader not in cluster.leaders(), "still leads"


@history(
    16,
    "KAFKA-16144",
    "R-CQ-1",
    Edit(
        "kraftwire.raft.progress:LeaderProgress.voters_changed",
        "if leads_as_voter and len(voters) == 1:",
        "if False:",
    ),
    red="stepped down",
)
def test_the_only_voter_keeps_leading_without_any_fetch() -> None:
    """No other node could lead: stepping down would only cause an outage."""
    lone = Lone(voters=(1,))
    lone.lead()
    epoch = lone.core.epoch
    lone.wait(30_000)
    assert (lone.core.role, lone.core.epoch) == ("leader", epoch), "stepped down"


def _outside(*fetched: int) -> LeaderProgress:
    """Node 1 leads an epoch from offset 10 on without being a voter; these voters fetched at 20."""
    key = ReplicaKey(1, directory_id(1))
    progress = LeaderProgress(key, voter_set([1, 2, 3, 4]), 10, 0, 2000)
    progress.voters_changed(voter_set([2, 3, 4]), 0)
    progress.note_log_end(30)
    progress.note_durable_end(30)
    for voter_id in fetched:
        progress.record_fetch(ReplicaKey(voter_id, directory_id(voter_id)), 20, 1000)
    return progress


@history(
    17,
    "KAFKA-16531",
    "R-CQ-2, S17",
    Edit(
        "kraftwire.raft.progress:LeaderProgress.voters_changed",
        "self._needed = len(voters) // 2 + (0 if leads_as_voter else 1)",
        "self._needed = len(voters) // 2",
    ),
    red="one of three voters is not a majority",
)
def test_a_leader_outside_the_voter_set_is_not_part_of_the_quorum_that_keeps_it() -> None:
    """Otherwise one of three voters could keep a leader that the others have left."""
    before = _outside().quorum_deadline_ms
    after = _outside(2).quorum_deadline_ms
    assert after == before, "one of three voters is not a majority"
    assert _outside(2, 3).quorum_deadline_ms == 4000


@history(
    18,
    "KAFKA-16530",
    "R-HW-4, S17",
    Edit(
        "kraftwire.raft.progress:LeaderProgress.high_watermark",
        "[state.end_offset for state in voters.values()]",
        "[state.end_offset for state in [*voters.values(), self.own]]",
    ),
    Edit(
        "kraftwire.raft.progress:LeaderProgress.high_watermark",
        "mark = ends[len(ends) // 2]",
        "mark = ends[len(voters) // 2]",
    ),
    red="committed without a majority of the voters",
)
def test_a_leader_outside_the_voter_set_does_not_help_to_commit() -> None:
    """What only one of three voters has can be lost with it."""
    mark = _outside(2).high_watermark(-1)
    assert mark == -1, "committed without a majority of the voters"
    assert _outside(2, 3).high_watermark(-1) == 20


@history(
    19,
    "KAFKA-13104",
    "R-RES-1, L3",
    Edit(
        "kraftwire.raft.core:_handle_rare",
        'state.resign_reason = "this node was asked to resign"',
        "pass",
    ),
    red="leads without a state machine",
)
def test_a_leader_whose_state_machine_gave_up_stops_leading() -> None:
    """A quorum under a leader without a controller answers and decides nothing."""
    cluster = Cluster([1, 2, 3], seed=3)
    cluster.start(1, 2, 3)
    cluster.run(4000)
    [leader] = cluster.leaders()
    cluster.handle(leader, events.ResignRequested(cluster.core(leader).epoch))
    cluster.run(2000)
    assert leader not in cluster.leaders(), "leads without a state machine"
    assert len(cluster.leaders()) == 1


@history(
    21,
    "KAFKA-10677",
    "R-ROLE-7, R-FET-14",
    Edit(
        "kraftwire.raft.transitions:to_resigned",
        "fail_parked(state, ErrorCode.NOT_LEADER_OR_FOLLOWER)",
        "pass",
    ),
    red="the waiting fetch was not answered",
)
def test_a_leader_that_resigns_answers_the_fetches_that_wait() -> None:
    """Followers would wait for records of a leader that no longer writes any."""
    lone = Lone()
    lone.lead()
    epoch = lone.core.epoch
    assert lone.request(fetch(2, 1, epoch, epoch, high_watermark=1, max_wait_ms=60_000)) is None
    found = lone.handle(events.ResignRequested(epoch))
    answers = [one.message for one in found if isinstance(one, effects.SendReply)]
    assert answers, "the waiting fetch was not answered"
    assert answers[0].responses[0].partitions[0].error_code == 6  # type: ignore[attr-defined]


@history(
    22,
    "KAFKA-13959, KAFKA-14145",
    "R-FET-13, R-FET-14",
    Edit(
        "kraftwire.raft.serving:_reply_with_records",
        "and partition.high_watermark >= mark",
        "",
    ),
    Edit(
        "kraftwire.raft.serving:advance_high_watermark",
        "_answer_parked(state, state.parked.wake_all())",
        "_answer_parked(state, [])",
    ),
    red="never knew all that was committed",
)
def test_an_observer_reaches_the_end_of_a_log_that_grows_steadily() -> None:
    """With a record in every fetch interval its high watermark would always be one behind, and a
    broker that waits for the end at its start would never be up."""
    cluster = Cluster([1, 2, 3], [4], seed=3)
    cluster.start(1, 2, 3, 4)
    cluster.run(4000)
    [leader] = cluster.leaders()
    reached = 0
    for _ in range(10):
        cluster.append(leader, b"no-op")
        cluster.run(400)
        reached += cluster.core(4).high_watermark == cluster.core(leader).end_offset
    assert reached, "never knew all that was committed"


@history(
    23,
    "AutoMQ 2057",
    "R-ACC-1, L3",
    Edit(
        "kraftwire.raft.appending:handle_append",
        "state.emit(AppendRefused(event.token, taken.reason, taken.detail))",
        "state.resign_reason = taken.detail",
    ),
    red="resigned because of a batch that no leader could write",
)
def test_a_batch_that_is_too_large_is_refused_and_does_not_depose_the_leader() -> None:
    """The next leader would be asked to write the same batch, and the next, without end."""
    lone = Lone(voters=(1,), batch_max_bytes=2000)
    lone.lead()
    epoch = lone.core.epoch
    found = lone.handle(events.AppendRequested(1, epoch, [b"x" * 3000]))
    is_same = (lone.core.role, lone.core.epoch) == ("leader", epoch)
    assert is_same, "resigned because of a batch that no leader could write"
    [refused] = [one for one in found if isinstance(one, effects.AppendRefused)]
    assert refused.reason == "RecordBatchTooLarge"


@history(
    24,
    "KAFKA-14222",
    "R-ACC-3",
    Edit(
        "kraftwire.raft.accumulator:Accumulator._close",
        "self._due_now(now_ms)",
        "pass",
    ),
    Edit(
        "kraftwire.raft.accumulator:Accumulator.append",
        "if len(self._complete) >= WAITING_BATCHES_MAX:",
        "self.drain_due_ms = now_ms + self._linger_ms\n"
        "if len(self._complete) >= WAITING_BATCHES_MAX:",
    ),
    red="never succeeds again",
)
def test_appends_succeed_again_after_too_many_waited() -> None:
    """A state machine that tries again at once must not keep the full batches from being
    written."""
    accumulator = Accumulator(0, 1, linger_ms=25, batch_max_bytes=200)
    accepted = []
    for now in range(0, 2000, 5):
        for _ in range(20):
            taken = accumulator.append([b"x" * 60], now, now)
            if not isinstance(taken, Refusal):
                accepted.append(now)
        accumulator.drain(now)
    assert max(accepted) > 1900, "never succeeds again"
