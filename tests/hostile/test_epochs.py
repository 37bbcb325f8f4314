"""A forged epoch cannot end elections: who may advance an epoch, and how far (SEC-EPOCH)."""

from __future__ import annotations

import pytest

from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.raft.effects import ElectionState, Note
from kraftwire.raft.epoch_rate_limit import (
    EPOCH_BURST_MAX,
    EPOCH_JUMP_OF_OTHERS_MAX,
    EPOCH_REGAINED_MS,
)
from kraftwire.raft.epochs import EPOCH_MAX
from kraftwire.wire.message import Message
from tests.support.raft.lone import Lone, leading, stored_log
from tests.support.raft.messages import begin, end, fetched, vote, voted

STRANGER = 66
AHEAD = (1, 99)


def follower(*, has_fetched: bool) -> Lone:
    """Node 1 follows 2 in epoch 3."""
    lone = Lone(log=stored_log((1, 4)), election=ElectionState(2))
    lone.follow(2, 3)
    if has_fetched:
        lone.fetch_gets(fetched(2, 3))
    return lone


def code(lone: Lone, message: Message) -> ErrorCode:
    """The error code in the response to a request's partition."""
    answer = lone.request(message)
    assert not getattr(answer.topics[0].partitions[0], "vote_granted", False)
    return ErrorCode(answer.topics[0].partitions[0].error_code)


@pytest.mark.parametrize("sender", [2, 3, STRANGER])
@pytest.mark.parametrize("make", [vote, begin, end])
def test_the_last_epoch_is_never_accepted(sender: int, make: type[Message]) -> None:
    """One such request used to end all elections, restart included."""
    lone = follower(has_fetched=False)
    assert code(lone, make(sender, EPOCH_MAX)) == ErrorCode.BROKER_NOT_AVAILABLE
    assert lone.core.epoch == 3
    refused = [note.text for note in lone.all_of(Note) if note.key == "epoch-refused"]
    assert f"{sender} would move the epoch from 3 to {EPOCH_MAX}" in refused[-1]
    lone.restart()
    lone.lead()
    assert lone.core.epoch == 4


def test_a_voter_is_believed_as_far_as_the_allowance_goes() -> None:
    """It grows with time, so that no series of requests gets further."""
    lone = follower(has_fetched=True)
    lone.now += EPOCH_REGAINED_MS  # restores what the leader's announcement used up
    far = 3 + EPOCH_BURST_MAX
    assert code(lone, vote(3, far + 1, AHEAD)) == ErrorCode.BROKER_NOT_AVAILABLE
    lone.request(vote(3, far, AHEAD))
    assert lone.core.epoch == far
    lone.request(vote(3, far + 1, AHEAD))
    assert lone.core.epoch == far
    lone.now += EPOCH_REGAINED_MS
    lone.request(vote(3, far + 1, AHEAD))
    assert lone.core.epoch == far + 1


def test_a_stranger_cannot_advance_the_epoch_of_a_node_that_hears_a_leader() -> None:
    """This holds for any log that it claims, and if it claims to be a voter or a leader."""
    lone = follower(has_fetched=True)
    for message in (vote(STRANGER, 4, AHEAD), begin(STRANGER, 4), end(STRANGER, 4)):
        assert code(lone, message) == ErrorCode.BROKER_NOT_AVAILABLE
    assert (lone.core.epoch, lone.core.leader_id) == (3, 2)


def test_a_stranger_cannot_advance_the_epoch_of_a_leader() -> None:
    """A leader knows every voter set."""
    lone = leading()
    epoch = lone.core.epoch
    for message in (vote(STRANGER, epoch + 1, AHEAD), begin(STRANGER, epoch + 1)):
        assert code(lone, message) == ErrorCode.BROKER_NOT_AVAILABLE
    assert (lone.core.role, lone.core.epoch) == ("leader", epoch)


def test_the_directory_is_part_of_a_voter() -> None:
    """The id of a voter with another directory is a stranger's."""
    lone = leading()
    epoch = lone.core.epoch
    lone.request(vote(2, epoch + 1, AHEAD, directory=b"o" * 16))
    assert lone.core.role == "leader"
    lone.request(vote(2, epoch + 1, AHEAD))
    assert (lone.core.role, lone.core.epoch) == ("unattached", epoch + 1)


def test_without_a_leader_a_new_voter_is_heard() -> None:
    """This log may lack the record that added it: then its epoch is ahead by a few elections."""
    lone = follower(has_fetched=False)
    too_far = 4 + EPOCH_JUMP_OF_OTHERS_MAX
    assert code(lone, vote(STRANGER, too_far, AHEAD)) == ErrorCode.BROKER_NOT_AVAILABLE
    assert code(lone, vote(STRANGER, 4, (0, 0))) == ErrorCode.BROKER_NOT_AVAILABLE
    answer = lone.request(vote(STRANGER, 4, AHEAD))
    assert answer.topics[0].partitions[0].vote_granted
    # Only once in an election timeout, or no other node would ever be elected.
    lone.request(vote(STRANGER + 1, 5, AHEAD))
    assert lone.core.epoch == 4
    lone.now += lone.config.timers.election_timeout_ms
    lone.request(vote(STRANGER + 1, 5, AHEAD))
    assert lone.core.epoch == 5


def test_a_voter_that_was_away_for_long_is_heard_by_its_answer() -> None:
    """This node sent the request, to an address in the voter set."""
    lone = Lone(log=stored_log((1, 4)), election=ElectionState(2))
    far = 3 + 10 * EPOCH_BURST_MAX
    due = lone.core.deadline_ms
    assert due is not None
    lone.wait(due - lone.now)
    sent = next(one for one in reversed(lone.requests) if one.message.NAME == "VoteRequest")
    lone.answer(sent, voted(far, error=ErrorCode.FENCED_LEADER_EPOCH))
    assert lone.core.epoch == far
