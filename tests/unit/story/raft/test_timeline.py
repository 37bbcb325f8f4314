"""The Raft view shows what happened in a quorum: tested on conversations with one event each."""

from __future__ import annotations

import io

import pytest

from kraftwire.capture.framing.frames import Ending, Request
from kraftwire.inspect.stories.raft import write_story
from kraftwire.inspect.stories.raft_json import story_to_json
from kraftwire.messages.topic_record import TopicRecord
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.story.raft.model import LEADS, RaftEvent, Story
from tests.support.captures.frames import frame_at
from tests.support.captures.scripted_quorum import ScriptedQuorum, batch


def _events(story: Story, kind: str) -> list[RaftEvent]:
    return [each for each in story.events if each.kind == kind]


def _text(story: Story) -> str:
    stream = io.StringIO()
    write_story(story, stream)
    return stream.getvalue()


def _elect(quorum: ScriptedQuorum, leader: int, others: list[int], *, epoch: int) -> None:
    """Votes of all others, and the announcement."""
    for voter in others:
        quorum.vote(leader, voter, epoch=epoch)
    for voter in others:
        quorum.begin(leader, voter, epoch=epoch)


def _keep_fetching(quorum: ScriptedQuorum, replicas: list[int], leader: int, *, epoch: int) -> None:
    """Three seconds in which all replicas fetch."""
    for _ in range(6):
        for replica in replicas:
            quorum.fetch(replica, leader, offset=7, epoch=epoch, high_watermark=7)
        quorum.wait(0.5)


def test_an_election_is_a_round_of_pre_votes_one_of_votes_and_a_leader() -> None:
    """The order that KIP-996 prescribes, and which voters agreed, is the core of the view."""
    quorum = ScriptedQuorum()
    for voter in (2, 3):
        quorum.vote(1, voter, epoch=0, pre_vote=True)
    _elect(quorum, 1, [2, 3], epoch=1)
    story = quorum.timeline.story()
    assert [(e.kind, e.epoch, e.node) for e in story.events] == [
        ("pre-vote", 0, 1),
        ("vote", 1, 1),
        ("leader", 1, 1),
    ]
    assert story.rounds[0].granted == [2, 3]
    assert story.rounds[0].reason == "no leader known"
    assert (story.leaders[0].epoch, story.leaders[0].leader) == (1, 1)
    assert "votes of 1, 2, 3, announced to 2, 3" in story.events[-1].text


def test_colliding_pre_votes_show_who_refused_and_why() -> None:
    """Two candidates at once delay elections; the loser's refusal names the epoch."""
    quorum = ScriptedQuorum()
    quorum.vote(3, 1, epoch=1, pre_vote=True)
    quorum.vote(3, 1, epoch=2)
    quorum.vote(
        1, 3, epoch=1, pre_vote=True, granted=False, known_epoch=2,
        error=ErrorCode.FENCED_LEADER_EPOCH,
    )
    quorum.begin(3, 1, epoch=2)
    story = quorum.timeline.story()
    lost = _events(story, "pre-vote")[1]
    assert lost.node == 1
    assert lost.text.endswith("refused by 3 (FENCED_LEADER_EPOCH, epoch 2)")
    assert [each.leader for each in story.leaders] == [3]


def test_a_voter_that_is_asked_again_begins_a_new_round() -> None:
    """A candidate that loses tries again in the same epoch: that makes two rounds, not one."""
    quorum = ScriptedQuorum()
    quorum.vote(1, 2, epoch=4, pre_vote=True, granted=False, leader=3)
    quorum.wait(1)
    quorum.vote(1, 2, epoch=4, pre_vote=True)
    first, second = quorum.timeline.story().rounds
    assert (first.granted, second.granted) == ([], [2])


def test_a_voter_without_an_answer_is_named() -> None:
    """A dead voter has not refused."""
    quorum = ScriptedQuorum()
    quorum.vote(1, 2, epoch=2)
    quorum.vote(1, 3, epoch=2, granted=None)
    (vote,) = _events(quorum.timeline.story(), "vote")
    assert vote.text == "asks for votes: granted by 2; answer not recorded: 3"
    quorum.go_on(3)
    (vote,) = _events(quorum.timeline.story(), "vote")
    assert vote.text == "asks for votes: granted by 2; no answer of 3"


def test_a_leader_that_dies_falls_silent_and_leaves_a_gap() -> None:
    """How long nobody led is the first question after an incident."""
    quorum = ScriptedQuorum()
    _elect(quorum, 2, [1, 3], epoch=1)
    _keep_fetching(quorum, [1, 3], 2, epoch=1)
    for replica in (1, 3):
        quorum.fetch(replica, 2, offset=7, epoch=1, is_answered=False)
    died = quorum.now
    quorum.wait(2)
    quorum.vote(3, 1, epoch=1, pre_vote=True)
    _elect(quorum, 3, [1], epoch=2)
    _keep_fetching(quorum, [1], 3, epoch=2)
    story = quorum.timeline.story()
    (silence,) = _events(story, "silence")
    assert (silence.node, silence.epoch) == (2, 1)
    assert silence.text == (
        "leader falls silent for at least 5.09 s (2 requests to it without an answer, not recorded "
        "after that)"
    )
    assert silence.time < died
    assert _events(story, "pre-vote")[0].text.startswith(
        "asks for pre-votes, 2.5 s after the last answer of leader 2"
    )
    first, second = story.leaders
    assert (first.ending, second.ending) == ("fell silent", "")
    assert "no leader for 2.5" in _events(story, "leader")[1].text


def test_a_leader_that_shuts_down_resigns_in_favour_of_successors() -> None:
    """An orderly hand-over must not look like a failure."""
    quorum = ScriptedQuorum()
    _elect(quorum, 3, [1, 2], epoch=2)
    for receiver in (1, 2):
        quorum.end(3, receiver, epoch=2, preferred=[1, 2])
    quorum.vote(1, 3, epoch=2, pre_vote=True)
    _elect(quorum, 1, [2, 3], epoch=3)
    story = quorum.timeline.story()
    (resigned,) = _events(story, "resign")
    assert (resigned.node, resigned.epoch) == (3, 2)
    assert resigned.text == "resigns: EndQuorumEpoch to 1, 2, preferred successors 1, 2"
    assert _events(story, "pre-vote")[0].details["reason"] == "leader 3 ended its epoch"
    assert story.leaders[0].ending == "resigned"


def test_a_leader_that_comes_back_is_told_of_the_newer_epoch() -> None:
    """The stopped leader still believes it leads; the line shows who corrects it, and how."""
    quorum = ScriptedQuorum()
    _elect(quorum, 1, [2, 3], epoch=3)
    quorum.vote(3, 2, epoch=4)
    quorum.begin(3, 2, epoch=4)
    quorum.end(
        1, 2, epoch=3, preferred=[2], error=ErrorCode.FENCED_LEADER_EPOCH, newer=(3, 4)
    )
    story = quorum.timeline.story()
    (fenced,) = _events(story, "fenced")
    assert (fenced.node, fenced.epoch) == (1, 3)
    assert "2 know epoch 4, leader 3: FENCED_LEADER_EPOCH" in fenced.text
    assert not _events(story, "resign")


def test_an_observer_that_waits_for_a_dead_leader_is_not_called_silent() -> None:
    """It has nothing to say until its request times out."""
    quorum = ScriptedQuorum()
    _elect(quorum, 2, [1, 3], epoch=1)
    _keep_fetching(quorum, [1, 3, 10], 2, epoch=1)
    quorum.fetch(10, 2, offset=7, epoch=1, is_answered=False)
    for _ in range(3):
        quorum.vote(3, 1, epoch=1, pre_vote=True)
        quorum.vote(1, 3, epoch=1, pre_vote=True)
        quorum.wait(1)
    quorum.fetch(10, 3, offset=7, epoch=1)
    assert [each.node for each in quorum.timeline.story().silences] == [2]


def test_a_capture_with_a_hole_has_no_silent_nodes() -> None:
    """If no node is seen for five seconds, the capture paused, not every node."""
    quorum = ScriptedQuorum()
    _elect(quorum, 2, [1, 3], epoch=1)
    _keep_fetching(quorum, [1, 3], 2, epoch=1)
    quorum.wait(5)
    _keep_fetching(quorum, [1, 3], 2, epoch=1)
    assert quorum.timeline.story().silences == []


def test_two_leaders_of_one_epoch_are_a_conflict() -> None:
    """It must never happen, so it must never be overlooked."""
    quorum = ScriptedQuorum()
    quorum.begin(1, 3, epoch=5)
    quorum.begin(2, 3, epoch=5)
    (conflict,) = _events(quorum.timeline.story(), "conflict")
    assert (conflict.epoch, conflict.node, conflict.details["other"]) == (5, 2, 1)


def test_the_lag_of_a_replica_counts_the_records_that_it_lacks() -> None:
    """A slow voter shows here before the high watermark does."""
    quorum = ScriptedQuorum()
    topics = [TopicRecord(name=f"t{n}", topic_id=bytes(15) + bytes([n])) for n in range(20)]
    quorum.fetch(2, 1, offset=0, epoch=1, high_watermark=0, records=batch(0, 1, topics))
    quorum.fetch(3, 1, offset=0, epoch=1, high_watermark=0)
    quorum.fetch(2, 1, offset=20, epoch=1, high_watermark=20)
    slow = {each.node: each for each in quorum.timeline.story().replicas}
    assert (slow[2].lag_max, slow[3].lag_max) == (0, 20)
    assert (slow[2].offset, slow[3].offset) == (20, 0)


def test_a_replica_that_leads_has_no_lag() -> None:
    """The leader does not fetch; an old fetch offset would make it look far behind."""
    quorum = ScriptedQuorum()
    quorum.fetch(1, 2, offset=3, epoch=1, high_watermark=3)
    quorum.fetch(2, 1, offset=30, epoch=2, high_watermark=30)
    quorum.wait(1)
    quorum.fetch(2, 1, offset=31, epoch=2, high_watermark=31)
    one = quorum.timeline.story().replicas[0]
    assert (one.node, one.lag_max, one.lags[-1]) == (1, 0, LEADS)


def test_a_high_watermark_that_stands_still_over_records_is_reported() -> None:
    """Records without a majority are the sign of a quorum in trouble."""
    quorum = ScriptedQuorum()
    quorum.fetch(2, 1, offset=5, epoch=1, high_watermark=5)
    quorum.fetch(3, 1, offset=9, epoch=1, high_watermark=5)
    quorum.wait(3)
    quorum.fetch(2, 1, offset=9, epoch=1, high_watermark=9)
    (stuck,) = _events(quorum.timeline.story(), "stuck")
    assert stuck.details["highWatermark"] == 5
    assert 3 <= stuck.details["seconds"] < 3.1


def test_votes_of_version_0_know_their_voter_by_its_address() -> None:
    """Before KIP-853 the request did not name the voter."""
    quorum = ScriptedQuorum()
    quorum.vote(1, 2, epoch=2, is_named=False)
    (vote,) = _events(quorum.timeline.story(), "vote")
    assert vote.text == "asks for votes: granted by 10.0.0.2:9002"


def test_frames_of_other_apis_count_as_signs_of_life_only() -> None:
    """A controller that answers clients is alive, even without traffic in the quorum."""
    quorum = ScriptedQuorum()
    quorum.begin(1, 2, epoch=1)
    _keep_fetching(quorum, [2], 1, epoch=1)
    for _ in range(10):
        quorum.wait(0.5)
        for is_request in (True, False):
            seen = frame_at(quorum.now, "10.0.0.7:1-10.0.0.2:9002", 3, is_request=is_request)
            quorum.timeline.on_frame(seen)
    assert [each.node for each in quorum.timeline.story().silences] == [1]


def test_a_node_that_is_heard_now_and_then_is_not_called_silent() -> None:
    """A capture at one node's interface shows the others only when they speak to it."""
    quorum = ScriptedQuorum()
    quorum.vote(3, 1, epoch=1)
    for _ in range(3):
        _keep_fetching(quorum, [1], 2, epoch=1)
    assert quorum.timeline.story().silences == []


def test_the_json_form_has_what_the_text_has() -> None:
    """Scripts get the same story, with absolute times."""
    quorum = ScriptedQuorum()
    _elect(quorum, 1, [2, 3], epoch=1)
    json = story_to_json(quorum.timeline.story())
    assert [each["event"] for each in json["events"]] == ["vote", "leader"]
    assert json["events"][0]["answers"][0] == {
        "voter": 2,
        "granted": True,
        "error": "NONE",
        "isRecorded": True,
        "epoch": 1,
        "leader": None,
        "latencyMs": json["events"][0]["answers"][0]["latencyMs"],
    }
    assert json["leaders"][0]["leader"] == 1
    assert json["start"] == 1000.0


def _end(quorum: ScriptedQuorum, client: int, server: int, **how: bool) -> None:
    connection = f"10.0.0.{client}:50000-10.0.0.{server}:{9000 + server}"
    how = {"is_by_client": False, "is_reset": False} | how
    quorum.timeline.on_ending(Ending(connection, round(quorum.now * 1e9), **how))


def test_connections_that_break_between_nodes_are_one_line_per_node() -> None:
    """A process that ends closes all of its connections at once."""
    quorum = ScriptedQuorum()
    _elect(quorum, 1, [2, 3], epoch=1)
    _keep_fetching(quorum, [2, 3], 1, epoch=1)
    _end(quorum, 2, 1)
    quorum.wait(0.1)
    _end(quorum, 3, 1)
    _end(quorum, 1, 2, is_by_client=True)
    quorum.wait(5)
    quorum.fetch(3, 1, offset=7, epoch=1)
    _end(quorum, 3, 1, is_by_client=True, is_reset=True)
    story = quorum.timeline.story()
    first, second = _events(story, "disconnect")
    assert (first.node, first.text) == (1, "closes 3 connections with 2, 3")
    assert (second.node, second.text) == (3, "resets its connection with 1")
    assert first.details == {"peers": [2, 3], "count": 3, "isReset": False}
    assert "node 3  resets its connection with 1" in _text(story)


def test_the_end_of_an_idle_connection_is_not_mentioned() -> None:
    """Kafka closes connections that are idle for minutes, and clients come and go."""
    quorum = ScriptedQuorum()
    _elect(quorum, 1, [2, 3], epoch=1)
    quorum.wait(600)
    _end(quorum, 1, 2)
    _end(quorum, 77, 2, is_reset=True)
    assert not _events(quorum.timeline.story(), "disconnect")


def test_the_reset_of_an_idle_connection_is_reported() -> None:
    """A healthy connection is not reset."""
    quorum = ScriptedQuorum()
    _elect(quorum, 1, [2, 3], epoch=1)
    quorum.wait(600)
    _end(quorum, 1, 2, is_reset=True)
    (event,) = _events(quorum.timeline.story(), "disconnect")
    assert (event.node, event.text) == (2, "resets its connection with 1")


def test_a_capture_without_a_quorum_says_so() -> None:
    """An empty page would leave the reader wondering."""
    assert "nothing of a KRaft quorum was seen" in _text(ScriptedQuorum().timeline.story())


def _late(quorum: ScriptedQuorum, node: int, time: float) -> None:
    """A frame of a server that waited for a lost packet, with the time that it has."""
    quorum.timeline.on_frame(
        frame_at(time, f"10.0.0.7:1-10.0.0.{node}:{9000 + node}", 3, is_request=False)
    )


@pytest.mark.parametrize("lost", [None, (1, 238)])
def test_a_response_that_the_capture_lost_was_not_left_out_by_its_node(
    lost: tuple[int, int] | None,
) -> None:
    """Only what a silent node never sent is said of it."""
    quorum = ScriptedQuorum()
    _elect(quorum, 2, [1, 3], epoch=1)
    _keep_fetching(quorum, [1, 3], 2, epoch=1)
    facts = Request(1, 17, 4711, "tester")
    facts.lost = lost
    connection = "10.0.0.1:50000-10.0.0.2:9002"
    asked = frame_at(
        quorum.now, connection, 1, is_request=True, correlation_id=4711, request=facts
    )
    quorum.timeline.on_frame(asked)
    for _ in range(8):
        quorum.vote(3, 1, epoch=1, pre_vote=True)
        quorum.wait(0.6)
    counts = {each.node: each.unanswered for each in quorum.timeline.story().silences}
    assert counts[2] == (lost is None)


def test_a_frame_that_was_held_back_does_not_move_the_last_sign_of_life() -> None:
    """It came before others that were decoded first; that is not a silence."""
    quorum = ScriptedQuorum()
    _elect(quorum, 2, [1, 3], epoch=1)
    start = quorum.now
    for _ in range(4):
        _keep_fetching(quorum, [1, 3], 2, epoch=1)
        _late(quorum, 2, start + 1)
        quorum.fetch(1, 2, offset=7, epoch=1)
        place = "10.0.0.1:50000-10.0.0.2:9002"
        late = frame_at(start + 1, place, 1, is_request=True, correlation_id=1)
        quorum.timeline.on_frame(late)
    story = quorum.timeline.story()
    assert story.silences == []
    assert max(each.gap_max for each in story.replicas) < 1


def test_a_frame_that_was_held_back_breaks_the_silence_around_it() -> None:
    """A node that was heard in the middle was silent for two short times, which do not count."""
    for after, starts in ((1.48, []), (0.4, [0.4])):
        quorum = ScriptedQuorum()
        _elect(quorum, 2, [1, 3], epoch=1)
        _keep_fetching(quorum, [1, 3], 2, epoch=1)
        died = quorum.now
        for _ in range(4):
            quorum.vote(3, 1, epoch=1, pre_vote=True)
            quorum.wait(0.6)
        quorum.fetch(3, 2, offset=7, epoch=1)
        last = died - 0.5
        _late(quorum, 2, last + after)
        silences = [each for each in quorum.timeline.story().silences if each.node == 2]
        assert [round(each.start - last, 3) for each in silences] == starts
