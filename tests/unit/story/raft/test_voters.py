"""The Raft view of voters: requests and how they ended, sets of the log and when they committed."""

from __future__ import annotations

import io

import pytest

from kraftwire.decode.body.frame import FrameDecoder
from kraftwire.decode.body.records import Settings
from kraftwire.inspect.stories.raft import RaftWriter
from kraftwire.inspect.stories.raft_json import story_to_json
from kraftwire.messages.add_raft_voter_request import AddRaftVoterRequest, Listener
from kraftwire.messages.add_raft_voter_response import AddRaftVoterResponse
from kraftwire.messages.describe_quorum_request import DescribeQuorumRequest
from kraftwire.messages.describe_quorum_response import (
    DescribeQuorumResponse,
    PartitionData,
    ReplicaState,
    TopicData,
)
from kraftwire.messages.envelope_request import EnvelopeRequest
from kraftwire.messages.envelope_response import EnvelopeResponse
from kraftwire.messages.kraft_version_record import KRaftVersionRecord
from kraftwire.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kraftwire.messages.remove_raft_voter_response import RemoveRaftVoterResponse
from kraftwire.messages.request_header import RequestHeader
from kraftwire.messages.response_header import ResponseHeader
from kraftwire.messages.topic_record import TopicRecord
from kraftwire.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from kraftwire.messages.update_features_response import (
    UpdatableFeatureResult,
    UpdateFeaturesResponse,
)
from kraftwire.messages.update_raft_voter_request import UpdateRaftVoterRequest
from kraftwire.messages.update_raft_voter_response import UpdateRaftVoterResponse
from kraftwire.messages.voters_record import Endpoint, Voter, VotersRecord
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.payloads import encode_request, encode_response
from kraftwire.story.raft.model import RaftEvent
from kraftwire.wire.message import Message
from tests.support.captures.frames import FrameMaker
from tests.support.captures.scripted_quorum import ScriptedQuorum, batch


def events(quorum: ScriptedQuorum, kind: str) -> list[RaftEvent]:
    """The events of a kind, in order."""
    return [each for each in quorum.timeline.story().events if each.kind == kind]


def voters(*ids: int, directory: int = 1, port: int = 9000) -> VotersRecord:
    """A set of voters; the directory of the first one and the port of all may be others."""
    return VotersRecord(
        voters=[
            Voter(
                voter_id=id,
                voter_directory_id=bytes([directory if id == ids[0] else 1] * 16),
                endpoints=[Endpoint(name="C", host="h", port=port + id)],
            )
            for id in ids
        ]
    )


def show(
    quorum: ScriptedQuorum, offset: int, records: bytes, high_watermark: int, epoch: int = 1
) -> None:
    """A follower gets records."""
    quorum.fetch(
        2, epoch, offset=offset, epoch=epoch, high_watermark=high_watermark, records=records
    )


def test_a_voter_set_says_when_it_was_committed() -> None:
    """Until then the change may be reverted."""
    quorum = ScriptedQuorum()
    show(quorum, 0, batch(0, 1, [voters(1, 2, 3)]), 0)
    quorum.wait(0.02)
    show(quorum, 1, b"", 1)
    show(quorum, 1, batch(1, 1, [voters(1, 2)]), 1)
    first, second = events(quorum, "voters")
    assert first.text == (
        "voters are 1, 2, 3 (VotersRecord at offset 0, committed after 30 ms)"
    )
    assert second.text == "voters are 1, 2 (3 left, VotersRecord at offset 1, commit not recorded)"
    quorum.go_on(2)
    _, second = events(quorum, "voters")
    assert second.text == "voters are 1, 2 (3 left, VotersRecord at offset 1, not committed)"


def test_a_voter_set_that_is_undone_is_reported() -> None:
    """The next leader did not have that record."""
    quorum = ScriptedQuorum()
    show(quorum, 0, batch(0, 1, [voters(1, 2)]), 0)
    show(quorum, 1, batch(1, 1, [voters(1, 2, 3)]), 1)
    topic = TopicRecord(name="t", topic_id=bytes(15) + b"\x09")
    show(quorum, 1, batch(1, 3, [topic]), 1, epoch=3)
    show(quorum, 2, batch(2, 3, [voters(1, 2, 4)]), 1, epoch=3)
    texts = [each.text for each in events(quorum, "voters")]
    assert texts[1] == "voters are 1, 2, 3 (3 joined, VotersRecord at offset 1, taken back)"
    assert texts[2].startswith("voters are 1, 2, 4 (4 joined, ")
    (undone,) = events(quorum, "voters-undone")
    assert undone.text == "voters are 1, 2 again (the VotersRecord at offset 1 was taken back)"
    assert quorum.timeline.story().labels == {1: "voter", 2: "voter", 3: "former voter", 4: "voter"}


def test_a_set_may_change_with_the_same_voters() -> None:
    """A wiped disk has another directory id, a node that moved has other addresses."""
    quorum = ScriptedQuorum()
    show(quorum, 0, batch(0, 1, [voters(1, 2)]), 0)
    show(quorum, 1, batch(1, 1, [voters(1, 2, directory=7)]), 1)
    show(quorum, 2, batch(2, 1, [voters(1, 2, directory=7, port=9100)]), 2)
    texts = [each.text for each in events(quorum, "voters")]
    assert "(1 has another directory, VotersRecord at offset 1" in texts[1]
    assert "(1 moved to h:9101, 2 moved to h:9102, VotersRecord at offset 2" in texts[2]


def test_old_sets_that_a_newcomer_fetches_are_not_called_uncommitted() -> None:
    """They were committed long before the capture."""
    quorum = ScriptedQuorum()
    show(quorum, 0, batch(0, 1, [voters(1, 2)], time=10.0), 5)
    (event,) = events(quorum, "voters")
    assert event.text == "voters are 1, 2 (VotersRecord at offset 0)"


def described(*ids: int, directory: int) -> DescribeQuorumResponse:
    """An answer to DescribeQuorum."""
    states = [ReplicaState(replica_id=id, replica_directory_id=bytes([directory] * 16))
              for id in ids]
    partition = PartitionData(leader_id=1, leader_epoch=1, current_voters=states)
    topic = TopicData(topic_name="__cluster_metadata", partitions=[partition])
    return DescribeQuorumResponse(topics=[topic])


def test_described_voters_are_reported_if_they_are_new() -> None:
    """By their directories, too."""
    quorum = ScriptedQuorum()
    for answer in (
        described(1, 2, directory=1),
        described(1, 2, directory=1),
        described(1, 2, directory=5),
    ):
        quorum.send(99, 1, DescribeQuorumRequest(), answer)
    texts = [each.text for each in events(quorum, "voters")]
    assert texts == [
        "voters are 1, 2 (DescribeQuorum)",
        "voters are 1, 2 (1 has another directory, 2 has another directory, DescribeQuorum)",
    ]


def test_levels_of_kraft_version_are_in_the_log() -> None:
    """From level 1 on voters can change."""
    quorum = ScriptedQuorum()
    upgrade = batch(4, 1, [KRaftVersionRecord(kraft_version=1), voters(1, 2)])
    show(quorum, 4, upgrade, 4)
    show(quorum, 6, b"", 6)
    (event,) = events(quorum, "kraft-version")
    assert event.text == (
        "kraft.version is 1 (KRaftVersionRecord at offset 4, committed after 10 ms)"
    )
    assert event.details["level"] == 1


def add(voter: int = 4, **more: bool) -> AddRaftVoterRequest:
    """A request to add a voter."""
    listener = Listener(name="C", host="h", port=9004)
    return AddRaftVoterRequest(voter_id=voter, listeners=[listener], **more)


@pytest.mark.parametrize(
    ("request_", "response", "text"),
    [
        (add(), AddRaftVoterResponse(), "AddRaftVoter at h:9004, asked of 1: done after 10 ms"),
        (
            add(ack_when_committed=False),
            AddRaftVoterResponse(),
            "AddRaftVoter at h:9004, asked of 1: in the log after 10 ms",
        ),
        (
            add(),
            AddRaftVoterResponse(
                error_code=ErrorCode.REQUEST_TIMED_OUT, error_message="it is lagging"
            ),
            "AddRaftVoter at h:9004, asked of 1: REQUEST_TIMED_OUT (it is lagging) after 10 ms",
        ),
        (
            RemoveRaftVoterRequest(voter_id=4),
            RemoveRaftVoterResponse(error_code=ErrorCode.VOTER_NOT_FOUND),
            "RemoveRaftVoter, asked of 1: VOTER_NOT_FOUND after 10 ms",
        ),
        (
            UpdateRaftVoterRequest(voter_id=4),
            UpdateRaftVoterResponse(),
            "UpdateRaftVoter, asked of 1: done after 10 ms",
        ),
        (add(), None, "AddRaftVoter at h:9004, asked of 1: answer not recorded"),
    ],
)
def test_requests_to_change_the_voters_show_their_outcome(
    request_: Message, response: Message | None, text: str
) -> None:
    """An operator wants to see that a change worked, how long it took, or why not."""
    quorum = ScriptedQuorum()
    quorum.fetch(2, 1, offset=0, epoch=1)
    quorum.send(99, 1, request_, response)
    (event,) = (each for each in quorum.timeline.story().events if each.kind.endswith("-voter"))
    assert (event.text, event.node) == (text, 4)


def test_a_controller_that_joins_by_itself_is_one_line_however_often_it_asks() -> None:
    """It asks every two seconds until it is caught up."""
    quorum = ScriptedQuorum()
    quorum.fetch(4, 1, offset=0, epoch=1)
    late = AddRaftVoterResponse(error_code=ErrorCode.REQUEST_TIMED_OUT, error_message="it lags")
    for _ in range(3):
        quorum.send(4, 1, add(ack_when_committed=False), late)
        quorum.wait(2)
    quorum.send(4, 1, add(ack_when_committed=False), AddRaftVoterResponse())
    refused, done = events(quorum, "add-voter")
    assert refused.text == (
        "AddRaftVoter at h:9004, asked of 1 by itself: REQUEST_TIMED_OUT (it lags) after 10 ms "
        "(3 times in 4.02 s)"
    )
    assert (refused.details["count"], refused.details["byItself"]) == (3, True)
    assert done.text == "AddRaftVoter at h:9004, asked of 1 by itself: in the log after 10 ms"


def update(*levels: tuple[str, int], **more: bool) -> UpdateFeaturesRequest:
    """A request to raise features."""
    keys = [FeatureUpdateKey(feature=name, max_version_level=level) for name, level in levels]
    return UpdateFeaturesRequest(feature_updates=keys, **more)


@pytest.mark.parametrize(
    ("request_", "response", "text"),
    [
        (
            update(("kraft.version", 1)),
            UpdateFeaturesResponse(),
            "UpdateFeatures kraft.version=1, asked of 1: done after 10 ms",
        ),
        (
            update(("kraft.version", 1), validate_only=True),
            UpdateFeaturesResponse(
                results=[
                    UpdatableFeatureResult(
                        feature="kraft.version",
                        error_code=ErrorCode.INVALID_UPDATE_VERSION,
                        error_message="voter 2 is too old",
                    )
                ]
            ),
            "UpdateFeatures kraft.version=1 to try it, asked of 1: "
            "INVALID_UPDATE_VERSION (voter 2 is too old) after 10 ms",
        ),
    ],
)
def test_an_upgrade_of_kraft_version_shows_its_outcome(
    request_: Message, response: Message, text: str
) -> None:
    """Other features do not concern the quorum."""
    quorum = ScriptedQuorum()
    quorum.fetch(2, 1, offset=0, epoch=1)
    quorum.send(99, 1, update(("group.version", 1)), UpdateFeaturesResponse())
    quorum.send(99, 1, request_, response)
    (event,) = events(quorum, "upgrade")
    assert event.text == text


def forwarded(maker: FrameMaker, writer: RaftWriter) -> None:
    """What a broker passes on to the leader, in an envelope."""
    decoder = FrameDecoder(Settings())
    header = RequestHeader(request_api_key=80, request_api_version=1, correlation_id=7)
    envelope = EnvelopeRequest(
        request_data=encode_request(header, add()), client_host_address=bytes(4)
    )
    answer = AddRaftVoterResponse(error_code=ErrorCode.DUPLICATE_VOTER)
    data = encode_response(ResponseHeader(correlation_id=7), answer, 1)
    for frame in (maker.request(envelope, 0), maker.response(EnvelopeResponse(response_data=data))):
        writer.frame(decoder.decode(frame))


def test_what_a_broker_passes_on_is_seen_in_its_envelope() -> None:
    """A capture of only the traffic between nodes shows it nowhere else."""
    writer = RaftWriter(io.StringIO())
    forwarded(FrameMaker("10.0.0.9:5-10.0.0.1:9001"), writer)
    (event,) = (each for each in writer.timeline.story().events if each.kind == "add-voter")
    assert event.text == (
        "AddRaftVoter at h:9004, asked of 10.0.0.1:9001: DUPLICATE_VOTER after 2.5 ms"
    )


def test_a_request_and_its_envelope_are_one_event() -> None:
    """A capture of everything shows it twice."""
    writer = RaftWriter(io.StringIO())
    decoder = FrameDecoder(Settings())
    client = FrameMaker("10.0.0.99:5-10.0.0.9:9092")
    writer.frame(decoder.decode(client.request(add(), 1)))
    forwarded(FrameMaker("10.0.0.9:5-10.0.0.1:9001"), writer)
    refused = AddRaftVoterResponse(error_code=ErrorCode.DUPLICATE_VOTER)
    writer.frame(decoder.decode(client.response(refused)))
    (event,) = (each for each in writer.timeline.story().events if each.kind == "add-voter")
    assert event.text == (
        "AddRaftVoter at h:9004, asked of 10.0.0.9:9092, which passes it on to 10.0.0.1:9001: "
        "DUPLICATE_VOTER after 2.5 ms"
    )


def test_the_json_form_has_directories_and_commits() -> None:
    """A script needs these before it removes the old voter."""
    quorum = ScriptedQuorum()
    show(quorum, 0, batch(0, 1, [voters(1, 2)]), 0)
    show(quorum, 1, b"", 1)
    (found,) = story_to_json(quorum.timeline.story())["voterSets"]
    assert found["voters"] == [1, 2]
    assert found["directories"] == {"1": "AQEBAQEBAQEBAQEBAQEBAQ", "2": "AQEBAQEBAQEBAQEBAQEBAQ"}
    assert found["committed"] == quorum.now
    assert found["isUndone"] is False
