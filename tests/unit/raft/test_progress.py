"""How a leader tracks its followers' fetches."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraftwire.raft.progress import OBSERVERS_MAX, LeaderProgress
from kraftwire.raft.voters import ReplicaKey, Voter, VoterSet

ME = ReplicaKey(1, b"a" * 16)
TWO, THREE = ReplicaKey(2, b"b" * 16), ReplicaKey(3, b"c" * 16)
FETCH_TIMEOUT = 2000
START = 10


def static(*ids: int) -> VoterSet:
    """Voters without directory ids, as a configuration names them."""
    return VoterSet.of(*(Voter(ReplicaKey(voter_id)) for voter_id in ids))


def leader(voters: VoterSet | None = None, now_ms: int = 0) -> LeaderProgress:
    """Node 1 leads an epoch that starts at offset 10."""
    return LeaderProgress(ME, voters or static(1, 2, 3), START, now_ms, FETCH_TIMEOUT)


def grown(end: int = 20, voters: VoterSet | None = None) -> LeaderProgress:
    """The same, with a durable log up to an offset."""
    progress = leader(voters)
    progress.note_log_end(end)
    progress.note_durable_end(end)
    return progress


def test_a_majority_commits_what_it_has() -> None:
    """R-HW-1: the leader and one of two followers are enough."""
    progress = grown(20)
    assert progress.high_watermark(-1) == -1
    assert progress.record_fetch(TWO, 15, 1)
    assert progress.high_watermark(-1) == 15
    assert progress.record_fetch(THREE, 18, 2)
    assert progress.high_watermark(15) == 18


def test_nothing_is_committed_before_a_record_of_the_leaders_epoch() -> None:
    """R-HW-2: a majority that holds only records of older epochs may still lose them."""
    progress = grown(START)
    progress.record_fetch(TWO, START, 1)
    assert progress.high_watermark(-1) == -1
    progress.note_durable_end(START + 1)
    progress.record_fetch(TWO, START + 1, 2)
    assert progress.high_watermark(-1) == START + 1


def test_the_high_watermark_never_falls() -> None:
    """R-HW-2: a follower that returns with a shorter log revokes nothing."""
    progress = grown(20)
    progress.record_fetch(TWO, 18, 1)
    progress.record_fetch(TWO, 12, 2)
    assert progress.high_watermark(18) == 18


def test_the_leader_counts_only_what_it_has_flushed() -> None:
    """D3: two of three copies must be durable, and the leader's own may be one of them."""
    progress = leader()
    progress.note_log_end(20)
    progress.record_fetch(TWO, 20, 1)
    assert progress.high_watermark(-1) == -1
    assert progress.note_durable_end(20)
    assert not progress.note_durable_end(20)
    assert progress.high_watermark(-1) == 20


def test_a_single_voter_commits_what_it_has_flushed() -> None:
    """R-HW-1 with one voter."""
    assert grown(14, static(1)).high_watermark(-1) == 14


def test_observers_do_not_commit() -> None:
    """R-HW-3: their copies may be lost, and another directory id is another replica."""
    voters = VoterSet.of(Voter(ME), Voter(TWO), Voter(THREE))
    progress = grown(20, voters)
    stranger = ReplicaKey(2, b"x" * 16)
    assert not progress.record_fetch(stranger, 20, 1)
    assert not progress.record_fetch(ReplicaKey(2), 20, 1)
    assert not progress.record_fetch(ReplicaKey(9), 20, 1)
    assert progress.high_watermark(-1) == -1
    assert set(progress.observers) == {stranger, ReplicaKey(2), ReplicaKey(9)}


def test_an_unchanged_position_moves_nothing() -> None:
    """Idle followers fetch all the time; then nothing needs to be computed."""
    progress = grown()
    assert progress.record_fetch(TWO, 20, 1)
    assert not progress.record_fetch(TWO, 20, 2)


def test_a_leader_outside_the_set_does_not_count_itself() -> None:
    """R-HW-4: after its removal it keeps leading, but only the others' copies matter."""
    progress = grown(20, static(2, 3))
    assert not progress.note_durable_end(30)
    assert list(progress.observers) == [ME]
    progress.record_fetch(TWO, 20, 1)
    assert progress.high_watermark(-1) == -1
    progress.record_fetch(THREE, 15, 1)
    assert progress.high_watermark(-1) == 15


@given(
    st.integers(1, 7),
    st.lists(st.tuples(st.integers(1, 8), st.integers(0, 40)), max_size=40),
)
@settings(max_examples=300, deadline=None, derandomize=True)
def test_the_high_watermark_agrees_with_counting(
    count: int, steps: list[tuple[int, int]]
) -> None:
    """It is the largest offset that a majority has reached, if that is in the leader's epoch."""
    progress = leader(static(*range(1, count + 1)))
    ends = dict.fromkeys(range(1, count + 1), -1)
    mark = expected = -1
    for replica, offset in steps:
        if replica == 1:
            progress.note_durable_end(offset)
            ends[1] = max(ends[1], offset)
        else:
            progress.record_fetch(ReplicaKey(replica), offset, 0)
            if replica in ends:
                ends[replica] = offset
        reached = [
            offset
            for offset in set(ends.values())
            if sum(end >= offset for end in ends.values()) * 2 > count and offset > START
        ]
        expected = max([expected, *reached])
        mark = progress.high_watermark(mark)
        assert mark == expected


def caught_up(progress: LeaderProgress, voter_id: int = 2) -> tuple[int, int]:
    """(last fetch, last caught up) of a voter."""
    state = progress.voters[voter_id]
    return state.last_fetch_ms, state.last_caught_up_ms


def test_a_fetch_at_the_leaders_end_is_caught_up_now() -> None:
    """KIP-836, first rule."""
    progress = grown(20)
    progress.record_fetch(TWO, 20, 100)
    assert caught_up(progress) == (100, 100)


def test_a_fetch_at_the_end_of_the_previous_fetch_was_caught_up_then() -> None:
    """KIP-836, second rule: a replica always one fetch behind a busy leader is not lagging."""
    progress = grown(20)
    progress.record_fetch(TWO, 15, 100)
    progress.note_log_end(30)
    progress.record_fetch(TWO, 20, 200)
    assert caught_up(progress) == (200, 100)
    progress.note_log_end(40)
    progress.record_fetch(TWO, 29, 300)
    assert caught_up(progress) == (300, 100)


def test_no_replica_is_caught_up_before_the_leader_knows_its_own_end() -> None:
    """R-REP-2: without it, only the time of the fetch is recorded."""
    progress = leader()
    progress.record_fetch(TWO, 10, 100)
    progress.note_log_end(11)
    progress.record_fetch(TWO, 10, 200)
    assert caught_up(progress) == (200, -1)
    progress.record_fetch(TWO, 11, 300)
    assert caught_up(progress) == (300, 300)


def test_times_of_a_replica_never_go_back() -> None:
    """KIP-836 promises that both are monotone."""
    progress = grown(20)
    progress.record_fetch(TWO, 20, 200)
    progress.record_fetch(TWO, 20, 100)
    assert caught_up(progress) == (200, 200)


@pytest.mark.parametrize(("count", "needed"), [(2, 1), (3, 1), (4, 2), (5, 2), (7, 3)])
def test_a_majority_that_fetches_keeps_the_leader(count: int, needed: int) -> None:
    """R-CQ-2: the leader itself is one of the majority."""
    progress = leader(static(*range(1, count + 1)), now_ms=1000)
    assert progress.quorum_deadline_ms == 4000
    for voter_id in range(2, 2 + needed):
        assert progress.quorum_deadline_ms == 4000
        progress.record_fetch(ReplicaKey(voter_id), 5, 1500)
    assert progress.quorum_deadline_ms == 4500


def test_the_same_voter_twice_is_not_a_majority() -> None:
    """R-CQ-2 counts voters, not fetches; observers not at all."""
    progress = leader(static(1, 2, 3, 4, 5))
    progress.record_fetch(TWO, 5, 100)
    progress.record_fetch(TWO, 5, 200)
    progress.record_fetch(ReplicaKey(9), 5, 200)
    assert progress.quorum_deadline_ms == 3000
    progress.record_activity(THREE, 300)
    assert progress.quorum_deadline_ms == 3300


def test_a_majority_must_fetch_again_each_time() -> None:
    """R-CQ-2: a voter that fetched once and is gone does not keep a leader."""
    progress = leader(static(1, 2, 3, 4, 5))
    progress.record_fetch(TWO, 5, 100)
    progress.record_fetch(THREE, 5, 200)
    assert progress.quorum_deadline_ms == 3200
    progress.record_fetch(TWO, 5, 2000)
    assert progress.quorum_deadline_ms == 3200


def test_a_replica_that_has_left_the_set_no_longer_counts() -> None:
    """R-CQ-2: a fetch from before the change does not count for the new set."""
    progress = leader(static(1, 2, 3, 4, 5))
    progress.record_fetch(TWO, 5, 100)
    progress.voters_changed(static(1, 3, 4, 5), 150)
    progress.record_fetch(THREE, 5, 200)
    assert progress.quorum_deadline_ms == 3000
    progress.record_fetch(ReplicaKey(4), 5, 300)
    assert progress.quorum_deadline_ms == 3300


def test_another_disk_with_the_id_of_a_voter_starts_over() -> None:
    """R-REP-5, S17: what the previous disk had acknowledged is gone with it."""
    progress = grown(20, VoterSet.of(Voter(ME), Voter(TWO), Voter(THREE)))
    progress.record_fetch(TWO, 20, 1)
    replaced = ReplicaKey(2, b"x" * 16)
    progress.voters_changed(VoterSet.of(Voter(ME), Voter(replaced), Voter(THREE)), 2)
    assert progress.high_watermark(-1) == -1
    assert progress.voters[2].end_offset == -1
    assert progress.observers[TWO].end_offset == 20


def test_a_message_in_the_leaders_own_name_proves_nothing() -> None:
    """R-CQ-3: a peer cannot keep a leader alive by using the leader's name."""
    progress = leader(static(1, 2))
    progress.record_activity(ReplicaKey(1), 100)
    progress.record_activity(ReplicaKey(7), 100)
    assert progress.quorum_deadline_ms == 3000


def test_a_single_voter_needs_no_other() -> None:
    """R-CQ-1: it must not resign; with a second voter its time starts over."""
    progress = leader(static(1))
    assert progress.quorum_deadline_ms is None
    progress.voters_changed(static(1, 2), 50_000)
    assert progress.quorum_deadline_ms == 53_000


def test_voters_silent_for_half_a_fetch_timeout_are_reminded() -> None:
    """R-BEG-1: at once while they have never fetched, and never the leader itself."""
    progress = leader()
    two, three = ReplicaKey(2), ReplicaKey(3)
    assert progress.silent_voters(0) == [two, three]
    progress.record_fetch(TWO, 10, 100)
    assert progress.silent_voters(1099) == [three]
    assert progress.silent_voters(1100) == [two, three]


def test_successors_are_ordered_by_what_they_have() -> None:
    """R-END-2: furthest first, never fetched last, ties by key."""
    progress = grown(20, static(1, 2, 3, 4, 5))
    progress.record_fetch(ReplicaKey(4), 19, 1)
    progress.record_fetch(ReplicaKey(3), 12, 1)
    assert [key.id for key in progress.preferred_successors()] == [4, 3, 2, 5]


def test_a_new_voter_set_keeps_all_progress() -> None:
    """R-REP-5: an observer that becomes a voter counts at once, a voter that left is observed."""
    progress = grown(20, static(1, 2, 3))
    progress.record_fetch(TWO, 20, 1)
    new = ReplicaKey(4, b"d" * 16)
    progress.record_fetch(new, 20, 2)
    progress.voters_changed(VoterSet.of(Voter(ME), Voter(THREE), Voter(new)), 3)
    assert progress.voters[4].end_offset == 20
    assert progress.observers[ReplicaKey(2)].end_offset == 20
    assert progress.voters[3].key == THREE
    assert progress.high_watermark(-1) == 20


def test_observers_are_forgotten_after_their_session() -> None:
    """R-REP-6: a broker that was removed must not be described for ever; the leader stays."""
    progress = grown(20, static(2, 3))
    progress.record_fetch(ReplicaKey(8), 5, 1000)
    progress.record_fetch(ReplicaKey(9), 5, 2000)
    progress.drop_observers(301_000, 300_000)
    assert sorted(key.id for key in progress.observers) == [1, 9]


def test_invented_observers_do_not_fill_the_memory() -> None:
    """The observer that has not fetched for longest is forgotten first, the leader never."""
    progress = grown(20, static(2, 3))
    for number in range(OBSERVERS_MAX + 5):
        progress.record_fetch(ReplicaKey(100 + number), 5, number)
    assert len(progress.observers) == OBSERVERS_MAX
    assert ME in progress.observers
    assert ReplicaKey(105) not in progress.observers
    assert ReplicaKey(106) in progress.observers
