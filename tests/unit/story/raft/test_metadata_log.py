"""The story of a quorum from the records of its log."""

from __future__ import annotations

import io

from kraftwire.inspect.stories.raft import write_story
from kraftwire.messages.config_record import ConfigRecord
from kraftwire.messages.fetch_response import EpochEndOffset
from kraftwire.messages.leader_change_message import LeaderChangeMessage, Voter
from kraftwire.messages.topic_record import TopicRecord
from kraftwire.messages.user_scram_credential_record import UserScramCredentialRecord
from kraftwire.messages.voters_record import Endpoint, VotersRecord
from kraftwire.messages.voters_record import Voter as VoterRecord
from kraftwire.story.raft.model import RaftEvent, Story
from tests.support.captures.scripted_quorum import ScriptedQuorum, batch


def _events(story: Story, kind: str) -> list[RaftEvent]:
    return [each for each in story.events if each.kind == kind]


def _text(story: Story) -> str:
    stream = io.StringIO()
    write_story(story, stream)
    return stream.getvalue()


def test_voters_leaders_and_offsets_appear_once_however_often_the_log_is_fetched() -> None:
    """Every replica fetches the same batches; counting them twice would be wrong."""
    voters = [VoterRecord(voter_id=n, endpoints=[Endpoint(host="h", port=n)]) for n in (1, 2)]
    change = LeaderChangeMessage(
        leader_id=1,
        voters=[Voter(voter_id=1), Voter(voter_id=2)],
        granting_voters=[Voter(voter_id=2)],
    )
    records = batch(0, 1, [change, VotersRecord(voters=voters)])
    quorum = ScriptedQuorum()
    for replica in (2, 9):
        quorum.fetch(replica, 1, offset=0, epoch=1, high_watermark=0, records=records)
    story = quorum.timeline.story()
    assert story.log.counts == {"LeaderChangeMessage": 1, "VotersRecord": 1}
    assert [(each.offset, list(each.voters)) for each in story.voters] == [(1, [1, 2])]
    leader = story.leaders[0]
    assert (leader.start_offset, leader.granting) == (0, [2])
    assert story.labels == {2: "voter", 9: "observer", 1: "voter"}


def test_records_that_a_new_leader_replaces_are_a_truncation() -> None:
    """What an isolated leader wrote last is lost; the offset says where the loss begins."""
    quorum = ScriptedQuorum()
    topic = TopicRecord(name="t", topic_id=bytes(15) + b"\x09")
    for offset in (5, 6):
        quorum.fetch(2, 1, offset=offset, epoch=1, records=batch(offset, 1, [topic]))
    quorum.fetch(2, 3, offset=6, epoch=2, records=batch(6, 2, [topic]))
    (lost,) = _events(quorum.timeline.story(), "truncation")
    assert lost.details == {"offset": 6, "end": 7}


def test_the_leaders_answer_shows_a_diverging_follower() -> None:
    """It explains why a follower does not simply catch up."""
    quorum = ScriptedQuorum()
    diverging = EpochEndOffset(epoch=1, end_offset=6)
    quorum.fetch(2, 1, offset=9, epoch=2, diverging_epoch=diverging)
    (event,) = _events(quorum.timeline.story(), "diverging")
    assert event.details == {"divergingEpoch": 1, "endOffset": 6}


def test_secrets_in_metadata_records_are_not_quoted() -> None:
    """A timeline is pasted into tickets."""
    quorum = ScriptedQuorum()
    records = batch(
        0,
        1,
        [
            ConfigRecord(
                resource_type=4, resource_name="1", name="ssl.key.password", value="hunter2"
            ),
            UserScramCredentialRecord(
                name="alice", mechanism=1, salt=b"pepper", stored_key=b"stored", server_key=b"srv"
            ),
        ],
    )
    quorum.fetch(2, 1, offset=0, epoch=1, records=records)
    text = _text(quorum.timeline.story())
    assert "ssl.key.password=[redacted]" in text
    assert "alice (SCRAM-SHA-256)" in text
    assert "hunter2" not in text
    assert "pepper" not in text


def test_damaged_records_are_a_problem_of_the_log_not_of_the_run() -> None:
    """A capture of a broken disk is exactly when the view is needed."""
    quorum = ScriptedQuorum()
    topic = TopicRecord(name="t", topic_id=bytes(16))
    damaged = bytearray(batch(0, 1, [topic]))
    damaged[61] = 0x7F
    quorum.fetch(2, 1, offset=0, epoch=1, records=bytes(damaged))
    assert len(quorum.timeline.story().log.problems) == 1


def test_old_records_that_a_newcomer_fetches_are_history() -> None:
    """A node that reads the log from the start must not replay the elections of last week."""
    quorum = ScriptedQuorum()
    change = LeaderChangeMessage(leader_id=1, voters=[Voter(voter_id=1)])
    old = batch(0, 1, [change], time=quorum.now - 3600)
    quorum.fetch(9, 2, offset=0, epoch=4, high_watermark=1, records=old)
    first, now = quorum.timeline.story().leaders
    assert (first.epoch, first.time) == (1, 1000.0 - 3600)
    assert (now.epoch, now.leader) == (4, 2)
