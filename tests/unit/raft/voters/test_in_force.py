"""Which voters count: leaders, majorities and marks while sets change, and replaced disks."""

from __future__ import annotations

from typing import Any

from kraftwire.raft import effects
from kraftwire.raft.histories import voters_record
from kraftwire.raft.voters import ReplicaKey, VoterSet
from kraftwire.records.control import ControlType, control_batch
from kraftwire.records.offsets import OffsetAndEpoch
from tests.support.raft.disk import snapshot_bytes
from tests.support.raft.lone import Lone, append, caught_up, fetches, leading
from tests.support.raft.messages import (
    add_voter,
    begin,
    directory_id,
    dynamic_set,
    features,
    fetched,
    remove_voter,
    voted,
    voter,
    voters_control,
)

OTHER = b"another one dir."


def record(lone: Lone, voters: VoterSet) -> bytes:
    """The batch that states a set, to be fetched next."""
    records = [(ControlType.KRAFT_VOTERS, voters_record(voters))]
    return control_batch(lone.core.end_offset, lone.core.epoch, 0, records)


def following(**config: Any) -> Lone:
    """Node 1 follows node 2 in epoch 1."""
    lone = Lone(is_dynamic=True, **config)
    lone.follow(2, 1)
    return lone


def gets(lone: Lone, voters: VoterSet) -> list[effects.Effect]:
    """Let the follower fetch a set."""
    return lone.fetch_gets(fetched(2, 1, record(lone, voters)))


# ---- followers -----------------------------------------------------------------------------------


def test_a_follower_goes_by_a_set_that_is_not_committed() -> None:
    """R-VC-2: it may never be committed, but a majority of the old set no longer decides."""
    lone = following()
    found = gets(lone, dynamic_set([1, 2, 3, 4, 5]))
    [changed] = [one for one in found if isinstance(one, effects.VotersChanged)]
    assert (changed.offset, changed.kraft_version, len(changed.voters)) == (0, 1, 5)
    lone.fail(lone.last_request)
    before = len(lone.requests)
    lone.wait(5000)
    assert lone.core.role in ("prospective", "follower")
    votes = [one for one in lone.requests[before:] if one.message.NAME == "VoteRequest"]
    assert {one.destination.id for one in votes} == {2, 3, 4, 5}


def roles_of(lone: Lone) -> set[str]:
    """The roles that a core has had since its start."""
    return {one.new for one in lone.all_of(effects.RoleChanged)}


def test_a_follower_that_left_the_set_does_not_stand_once_that_is_committed() -> None:
    """S18: it keeps fetching, as an observer."""
    lone = following()
    batch = record(lone, dynamic_set([2, 3]))
    found = lone.fetch_gets(fetched(2, 1, batch, high_watermark=1))
    [note] = [one for one in found if isinstance(one, effects.Note) and one.key == "voter"]
    assert note.text == "this node is no longer a voter; the voters are 2, 3"
    lone.wait(60_000)
    assert "prospective" not in roles_of(lone)


def test_a_follower_whose_removal_may_not_be_committed_stands() -> None:
    """Its log may be the only one with that record, and then no other voter can win."""
    lone = following()
    gets(lone, dynamic_set([2, 3]))
    assert not lone.core.is_voter
    before = len(lone.requests)
    lone.wait(10_000)
    assert "prospective" in roles_of(lone)
    votes = [one for one in lone.requests[before:] if one.message.NAME == "VoteRequest"]
    assert {one.destination.id for one in votes} == {2, 3}


def test_a_leader_that_removed_itself_of_two_leads_again_until_that_is_committed() -> None:
    """The other one lacks the record and needs this one's vote: no other voter can end the change.

    Its own vote and its own log do not count: it is not in the set.
    """
    lone = leading((1, 2))
    lone.request(remove_voter(1))
    lone.restart()
    assert lone.core.role == "resigned"
    lone.lead()
    votes = [one for one in lone.requests if one.message.NAME == "VoteRequest"]
    assert {one.destination.id for one in votes} == {2}
    assert not lone.all_of(effects.HighWatermarkAdvanced)
    fetches(lone, 2)
    [mark] = lone.all_of(effects.HighWatermarkAdvanced)
    assert (mark.offset, lone.core.role) == (lone.core.end_offset, "resigned")
    lone.wait(60_000)
    assert lone.core.role == "unattached"


def test_a_snapshot_says_that_a_removal_is_committed() -> None:
    """After a restart no high watermark is known, but what a snapshot holds is committed."""
    lone = Lone(is_dynamic=True, log=[record(Lone(is_dynamic=True), dynamic_set([2, 3]))])
    lone.disk.snapshots[OffsetAndEpoch(1, 0)] = snapshot_bytes(
        OffsetAndEpoch(1, 0), voters_control(dynamic_set([2, 3]))
    )
    lone.restart()
    lone.wait(60_000)
    assert roles_of(lone) <= {"unattached"}


def test_an_observer_that_enters_the_set_stands_when_the_leader_is_gone() -> None:
    """From the record on it is a voter like any other."""
    lone = Lone(4, is_dynamic=True)
    lone.request(begin(2, 1))
    lone.fetch_gets(fetched(2, 1, record(lone, dynamic_set([1, 2, 3, 4]))))
    assert lone.core.is_voter
    lone.wait(10_000)
    assert "prospective" in {one.new for one in lone.all_of(effects.RoleChanged)}


def test_a_candidate_that_wins_counts_those_that_it_asked() -> None:
    """R-VOTE-11: answers count by key; the vote of another directory does not count."""
    lone = Lone(is_dynamic=True)
    lone.wait(2000)
    asked = {one.destination.id: one for one in lone.requests if one.message.NAME == "VoteRequest"}
    for sent in asked.values():
        assert sent.destination.directory_id == directory_id(sent.destination.id)
        partition = sent.message.topics[0].partitions[0]  # type: ignore[attr-defined]
        assert partition.voter_directory_id == sent.destination.directory_id
    lone.answer(asked[2], voted(0, is_granted=True))
    assert lone.core.role == "candidate"


def test_a_node_of_another_directory_than_the_voters_does_not_stand() -> None:
    """S18, R-ID-2: the bootstrap checkpoint names the disk that is gone."""
    lone = Lone(key=ReplicaKey(1, OTHER), is_dynamic=True)
    lone.wait(60_000)
    assert {one.new for one in lone.all_of(effects.RoleChanged)} <= {"unattached"}


# ---- the high watermark --------------------------------------------------------------------------


def lagging(*voters: int) -> Lone:
    """Node 1 leads, and has committed a record with node 2, which the others lack."""
    lone = leading(voters)
    append(lone, b"x")
    for one in voters[1 : len(voters) // 2 + 1]:
        fetches(lone, one)
    assert lone.core.high_watermark == lone.core.end_offset
    return lone


def test_the_high_watermark_does_not_fall_when_the_set_shrinks() -> None:
    """S8: of the two that stay, only the leader has what is committed."""
    lone = lagging(1, 2, 3)
    mark = lone.core.high_watermark
    lone.request(remove_voter(2))
    assert lone.core.high_watermark == mark
    fetches(lone, 3, mark - 1)
    assert lone.core.high_watermark == mark
    fetches(lone, 3)
    assert lone.core.high_watermark == mark + 1


def test_the_high_watermark_does_not_fall_when_the_set_grows() -> None:
    """S8: three of four are needed from now on, but only for new records."""
    lone = leading()
    caught_up(lone, 4)
    append(lone, b"x")
    fetches(lone, 2)
    mark = lone.core.high_watermark
    lone.request(add_voter(4))
    lone.answer(lone.last_request, features())
    fetches(lone, 4, mark - 1)
    assert lone.core.high_watermark == mark
    fetches(lone, 2)
    assert lone.core.high_watermark == mark
    fetches(lone, 4)
    assert lone.core.high_watermark == mark + 1


def test_each_advance_of_the_high_watermark_is_reported_once() -> None:
    """S8 as listeners see it: it strictly rises, even across changes of the set."""
    lone = lagging(1, 2, 3)
    lone.request(remove_voter(2))
    fetches(lone, 3)
    lone.request(remove_voter(3))
    marks = [one.offset for one in lone.all_of(effects.HighWatermarkAdvanced)]
    assert marks == sorted(set(marks))
    assert lone.core.high_watermark == lone.core.end_offset


# ---- a replaced disk -----------------------------------------------------------------------------


def test_the_wiped_disk_of_a_voter_does_not_count() -> None:
    """S17: with its log it lost what it acknowledged; under its id it is an observer."""
    lone = leading()
    append(lone, b"x")
    mark = lone.core.high_watermark
    fetches(lone, 2, directory=OTHER)
    assert lone.core.high_watermark == mark
    # Nor does it keep the leader.
    for _ in range(8):
        lone.wait(500)
        fetches(lone, 2, directory=OTHER)
    assert lone.core.role == "resigned"


def test_a_voter_is_replaced_under_its_id_in_two_steps() -> None:
    """The old directory is removed, the new one is added once it is caught up."""
    lone = leading()
    fetches(lone, 3, directory=OTHER)
    assert lone.request(remove_voter(3)) is None
    fetches(lone, 2)
    fetches(lone, 3, directory=OTHER)
    assert lone.request(add_voter(3, directory=OTHER)) is None
    lone.answer(lone.last_request, features())
    assert lone.core.voters.get(3) == voter(3, OTHER)
    mark = lone.core.high_watermark
    fetches(lone, 3)
    assert lone.core.high_watermark == mark, "counted the disk that is gone"
    fetches(lone, 3, directory=OTHER)
    assert lone.core.high_watermark == mark + 1


def test_a_replaced_disk_refuses_what_is_meant_for_its_predecessor() -> None:
    """S17, R-VOTE-13: the request names the directory, and the error is not a refusal."""
    lone = Lone(is_dynamic=True)
    lone.wait(2000)
    asked = {one.destination.id: one for one in lone.requests if one.message.NAME == "VoteRequest"}
    wiped = Lone(3, is_dynamic=True, key=ReplicaKey(3, OTHER))
    answer = wiped.request(asked[3].message)
    partition = answer.topics[0].partitions[0]
    assert (partition.error_code, partition.vote_granted) == (125, False)
    lone.answer(asked[3], answer)
    assert lone.core.role == "prospective"
