"""A change of the voters in progress: late, given up, or interrupted."""

from __future__ import annotations

from typing import Any

from kraftwire.raft import effects, events
from tests.support.raft.lone import Lone, append, caught_up, fetches, leading, replies
from tests.support.raft.messages import add_voter, begin, features, fetched, remove_voter, vote


def removing(voters: tuple[int, ...] = (1, 2, 3, 4)) -> Lone:
    """Node 1 leads and removes the last voter; the record is written and not committed."""
    lone = leading(voters)
    assert lone.request(remove_voter(voters[-1])) is None
    assert len(lone.core.voters) == len(voters) - 1
    return lone


def answers(lone: Lone, since: int = 0) -> list[int]:
    """The error codes of the answers to RemoveRaftVoter."""
    found = replies(lone.effects[since:])
    return [one.error_code for one in found if one.NAME == "RemoveRaftVoterResponse"]


def test_a_change_that_takes_too_long_is_given_up() -> None:
    """R-VC-1: after the request timeout, whatever time the request itself names."""
    lone = removing()
    lone.wait(lone.config.timers.request_timeout_ms - 1)
    assert answers(lone) == []
    lone.wait(1)
    assert answers(lone) == [7]
    # An operator who reads of a failure must not take the change for undone.
    assert "may still be committed" in replies(lone.effects)[-1].error_message


def test_a_record_may_be_committed_after_its_change_was_given_up() -> None:
    """R-VC-1: no request is answered again, the set stays, and the next change may come."""
    lone = removing()
    lone.wait(lone.config.timers.request_timeout_ms)
    refused = lone.request(remove_voter(3))
    assert (refused.error_code, "not committed yet" in refused.error_message) == (7, True)
    fetches(lone, 2)
    assert lone.core.high_watermark == lone.core.end_offset
    assert answers(lone)[0] == 7
    assert sorted(lone.core.voters.voters) == [1, 2, 3]
    assert lone.request(remove_voter(3)) is None


def test_a_leader_that_resigns_fails_waiting_requests() -> None:
    """R-VC-3, R-ROLE-8: the record may survive, but this leader will never know."""
    lone = removing()
    lone.handle(events.ResignRequested(lone.core.epoch))
    assert answers(lone) == [6]


def test_a_deposed_leader_fails_waiting_requests() -> None:
    """R-VC-3, whatever ends the leadership."""
    for message in (vote(2, 9, (1, 99)), begin(2, 9)):
        lone = removing()
        before = len(lone.effects)
        lone.request(message)
        assert answers(lone, before) == [6]
        lone.wait(10_000)
        assert answers(lone, before) == [6]


def test_a_leader_that_resigns_while_it_probes_answers_the_request() -> None:
    """R-VC-3, also before there is a record."""
    lone = leading()
    caught_up(lone, 4)
    lone.request(add_voter(4))
    found = lone.handle(events.ResignRequested(lone.core.epoch))
    added: list[Any] = [one for one in replies(found) if one.NAME == "AddRaftVoterResponse"]
    assert [one.error_code for one in added] == [6]


def test_a_change_is_undone_when_its_record_is_cut_off() -> None:
    """R-VC-2, R-ID-8: set, majority and this node's role are as if it had never happened."""
    lone = leading()
    end = lone.core.end_offset
    lone.request(remove_voter(1))
    assert not lone.core.is_voter
    epoch = lone.core.epoch
    lone.request(begin(2, epoch + 1))
    assert (lone.core.role, lone.core.is_voter) == ("follower", False)
    found = lone.fetch_gets(fetched(2, epoch + 1, diverging=(epoch, end)))
    assert lone.core.end_offset == end
    assert sorted(lone.core.voters.voters) == [1, 2, 3]
    assert lone.core.is_voter
    [changed] = [one for one in found if isinstance(one, effects.VotersChanged)]
    assert (changed.is_voter, changed.offset, len(changed.voters)) == (True, end - 1, 3)
    # As a voter again it stands for election when the leader is silent.
    lone.wait(10_000)
    assert "prospective" in {one.new for one in lone.all_of(effects.RoleChanged)}


def test_a_change_that_is_cut_off_restores_the_previous_majority() -> None:
    """Three of five are needed again, not two of four."""
    lone = leading((1, 2, 3, 4, 5))
    end, epoch = lone.core.end_offset, lone.core.epoch
    lone.request(remove_voter(5))
    lone.request(begin(2, epoch + 1))
    lone.fetch_gets(fetched(2, epoch + 1, diverging=(epoch, end)))
    lone.lead()
    mark = lone.core.high_watermark
    for one in (2, 3):
        assert lone.core.high_watermark == mark
        fetches(lone, one)
    assert lone.core.high_watermark == lone.core.end_offset


def test_a_leader_may_change_voters_in_every_epoch_only_after_its_own_first_record() -> None:
    """R-ADD-1, S16: a set of an older epoch may still be cut off, and two sets of single changes
    from one base need have no majority in common."""
    lone = removing()
    lone.handle(events.ResignRequested(lone.core.epoch))
    lone.lead()
    assert "not committed anything" in lone.request(remove_voter(3)).error_message
    fetches(lone, 2)
    assert lone.request(remove_voter(3)) is None


def test_other_records_do_not_end_a_change() -> None:
    """R-REM-5: only a high watermark after the record's own offset does."""
    lone = leading()
    append(lone, b"before")
    lone.request(remove_voter(3))
    fetches(lone, 2, lone.core.end_offset - 1)
    assert answers(lone) == []
    fetches(lone, 2)
    assert answers(lone) == [0]


def test_the_probed_voter_joins_the_set_that_is_there_then() -> None:
    """R-VC-1: only a record that is not committed yet excludes other changes."""
    lone = leading()
    caught_up(lone, 4)
    lone.request(add_voter(4))
    sent = lone.last_request
    assert lone.request(remove_voter(3)) is None
    fetches(lone, 2)
    assert answers(lone) == [0]
    lone.answer(sent, features())
    assert sorted(lone.core.voters.voters) == [1, 2, 4]


def test_a_probed_voter_is_refused_while_another_change_is_not_committed() -> None:
    """R-VC-1: two sets in a row might have majorities without a common voter."""
    lone = leading()
    caught_up(lone, 4)
    lone.request(add_voter(4))
    sent = lone.last_request
    assert lone.request(remove_voter(3)) is None
    [refused] = replies(lone.answer(sent, features()))
    assert (refused.error_code, "another change" in refused.error_message) == (7, True)
    assert sorted(lone.core.voters.voters) == [1, 2]
