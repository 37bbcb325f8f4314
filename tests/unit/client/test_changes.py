"""Admin calls that change voters and features: sent once, to the leader, with their outcome."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kraftwire.client import Admin, Endpoint
from kraftwire.errors import ApiError, UsageError
from kraftwire.messages.add_raft_voter_request import AddRaftVoterRequest
from kraftwire.messages.add_raft_voter_response import AddRaftVoterResponse
from kraftwire.messages.describe_quorum_request import DescribeQuorumRequest
from kraftwire.messages.remove_raft_voter_response import RemoveRaftVoterResponse
from kraftwire.messages.update_features_request import UpdateFeaturesRequest
from kraftwire.messages.update_features_response import (
    UpdatableFeatureResult,
    UpdateFeaturesResponse,
)
from kraftwire.messages.update_raft_voter_request import UpdateRaftVoterRequest
from kraftwire.messages.update_raft_voter_response import CurrentLeader, UpdateRaftVoterResponse
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.wire.json_form import uuid_from_text
from kraftwire.wire.message import Message
from tests.support.nodes.fake_node import (
    ADD_RAFT_VOTER,
    DESCRIBE_CLUSTER,
    DESCRIBE_QUORUM,
    METADATA,
    REMOVE_RAFT_VOTER,
    UPDATE_FEATURES,
    UPDATE_RAFT_VOTER,
    FakeNode,
    HangUpError,
    controllers,
    metadata,
    quorum_state,
)

DIRECTORY_ID = "l6CpXS7PU8WM8TMz3NcI7w"
ENDPOINTS = [Endpoint("CONTROLLER", "127.0.0.1", 9004), Endpoint("INSIDE", "::1", 9005)]


@pytest.fixture
def controller() -> Iterator[FakeNode]:
    """A controller that leads epoch 7."""
    with FakeNode() as node:
        node.answers[DESCRIBE_CLUSTER] = lambda _: controllers({2: node}, 2)
        node.answers[DESCRIBE_QUORUM] = lambda _: quorum_state(2, 7)
        yield node


@pytest.fixture
def broker() -> Iterator[FakeNode]:
    """A broker, which forwards requests for controllers."""
    with FakeNode() as node:
        node.answers[METADATA] = lambda _: metadata({1: node})
        yield node


def through_controllers(*nodes: FakeNode) -> Admin:
    """A client with very short pauses."""
    addresses = [node.address for node in nodes]
    return Admin(bootstrap_controllers=addresses, timeout_s=30, retry_backoff_s=0.001)


def through_brokers(*nodes: FakeNode) -> Admin:
    """A client with very short pauses."""
    addresses = [node.address for node in nodes]
    return Admin(bootstrap_servers=addresses, timeout_s=30, retry_backoff_s=0.001)


def test_a_broker_that_knows_an_old_leader_is_made_to_look_again(broker: FakeNode) -> None:
    """Kafka's brokers pass voter changes to the old leader until something else fails there."""

    def remove(_: Message) -> Message:
        has_looked = any(isinstance(each, DescribeQuorumRequest) for each in broker.requests)
        code = ErrorCode.NONE if has_looked else ErrorCode.NOT_LEADER_OR_FOLLOWER
        return RemoveRaftVoterResponse(error_code=code)

    broker.answers[REMOVE_RAFT_VOTER] = remove
    broker.answers[DESCRIBE_QUORUM] = lambda _: quorum_state(2)
    through_brokers(broker).remove_raft_voter(4, DIRECTORY_ID)
    keys = [each.API_KEY for each in broker.requests if each.API_KEY != METADATA]
    assert keys == [REMOVE_RAFT_VOTER, DESCRIBE_QUORUM, REMOVE_RAFT_VOTER]


@pytest.mark.parametrize("answer", [None, HangUpError()], ids=["no answer", "connection lost"])
def test_an_unknown_outcome_is_reported_as_unknown(
    controller: FakeNode, answer: HangUpError | None
) -> None:
    """A person who has checked the voters has to decide whether to repeat it."""

    def fail(_: Message) -> Message | None:
        if answer is not None:
            raise answer
        return None

    controller.answers[ADD_RAFT_VOTER] = fail
    admin = Admin(bootstrap_controllers=controller.address, timeout_s=0.5)
    text = "whether the change was made is not known" if answer else "took more than 0.5 s"
    with pytest.raises(ApiError, match=text):
        admin.add_raft_voter(4, DIRECTORY_ID, ENDPOINTS)


@pytest.mark.parametrize("is_waiting", [True, False])
def test_a_leader_is_told_whether_to_wait_for_the_commit(
    controller: FakeNode, is_waiting: bool
) -> None:
    """A controller that joins by itself does not wait, a person does."""
    controller.answers[ADD_RAFT_VOTER] = lambda _: AddRaftVoterResponse()
    through_controllers(controller).add_raft_voter(
        4, DIRECTORY_ID, ENDPOINTS, ack_when_committed=is_waiting
    )
    sent = controller.requests[-1]
    assert isinstance(sent, AddRaftVoterRequest)
    assert sent.ack_when_committed is is_waiting
    assert [(each.name, each.host, each.port) for each in sent.listeners] == [
        ("CONTROLLER", "127.0.0.1", 9004),
        ("INSIDE", "::1", 9005),
    ]


def test_a_leader_that_cannot_be_told_is_not_asked() -> None:
    """The first version of the request always waits for the commit."""
    with FakeNode(versions={ADD_RAFT_VOTER: (0, 0)}) as node:
        node.answers[DESCRIBE_CLUSTER] = lambda _: controllers({2: node}, 2)
        node.answers[ADD_RAFT_VOTER] = lambda _: AddRaftVoterResponse()
        admin = through_controllers(node)
        with pytest.raises(ApiError, match="AddRaftVoterRequest v0 ackWhenCommitted"):
            admin.add_raft_voter(4, DIRECTORY_ID, ENDPOINTS, ack_when_committed=False)
        admin.add_raft_voter(4, DIRECTORY_ID, ENDPOINTS)
        assert sum(isinstance(each, AddRaftVoterRequest) for each in node.requests) == 1


def test_a_voter_is_updated_in_the_leaders_epoch(controller: FakeNode) -> None:
    """The leader refuses what was meant for another epoch."""
    controller.answers[UPDATE_RAFT_VOTER] = lambda _: UpdateRaftVoterResponse()
    through_controllers(controller).update_raft_voter(
        4, DIRECTORY_ID, ENDPOINTS, kraft_versions=(0, 2)
    )
    sent = controller.requests[-1]
    assert isinstance(sent, UpdateRaftVoterRequest)
    assert sent.current_leader_epoch == 7
    assert (sent.voter_id, sent.voter_directory_id) == (4, uuid_from_text(DIRECTORY_ID))
    assert [each.name for each in sent.listeners] == ["CONTROLLER", "INSIDE"]
    range_ = sent.kraft_version_feature
    assert (range_.min_supported_version, range_.max_supported_version) == (0, 2)


def test_an_answer_to_an_update_names_the_leader(controller: FakeNode) -> None:
    """The leader is asked next, without another look at the nodes."""
    with FakeNode() as other:
        both = {2: controller, 3: other}
        for node in both.values():
            node.answers[DESCRIBE_CLUSTER] = lambda _: controllers(both, 2)
        controller.answers[UPDATE_RAFT_VOTER] = lambda _: UpdateRaftVoterResponse(
            error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER,
            current_leader=CurrentLeader(leader_id=3, leader_epoch=7),
        )
        other.answers[UPDATE_RAFT_VOTER] = lambda _: UpdateRaftVoterResponse()
        through_controllers(controller).update_raft_voter(4, DIRECTORY_ID, ENDPOINTS)
        assert isinstance(other.requests[-1], UpdateRaftVoterRequest)


def test_an_update_that_is_refused_has_the_errors_name(controller: FakeNode) -> None:
    """The answer has no field for a message."""
    controller.answers[UPDATE_RAFT_VOTER] = lambda _: UpdateRaftVoterResponse(
        error_code=ErrorCode.VOTER_NOT_FOUND
    )
    with pytest.raises(ApiError, match="VOTER_NOT_FOUND"):
        through_controllers(controller).update_raft_voter(4, DIRECTORY_ID, ENDPOINTS)


def test_brokers_do_not_pass_updates_on(broker: FakeNode) -> None:
    """This is reported before anything is sent."""
    with pytest.raises(UsageError, match="through controllers"):
        through_brokers(broker).update_raft_voter(4, DIRECTORY_ID, ENDPOINTS)
    assert broker.requests == []


def test_features_are_raised_by_the_active_controller(controller: FakeNode) -> None:
    """The refusal of a controller that is no longer active proves that nothing was changed."""
    codes = [ErrorCode.NOT_CONTROLLER, ErrorCode.NONE]
    controller.answers[UPDATE_FEATURES] = lambda _: UpdateFeaturesResponse(error_code=codes.pop(0))
    through_controllers(controller).update_features({"kraft.version": 1}, validate_only=True)
    sent = [each for each in controller.requests if isinstance(each, UpdateFeaturesRequest)]
    assert len(sent) == 2
    assert sent[1].validate_only
    (update,) = sent[1].feature_updates
    assert (update.feature, update.max_version_level, update.upgrade_type) == (
        "kraft.version",
        1,
        1,
    )


@pytest.mark.parametrize(
    ("version", "answer", "text"),
    [
        (
            1,
            UpdateFeaturesResponse(
                results=[
                    UpdatableFeatureResult(feature="group.version"),
                    UpdatableFeatureResult(
                        feature="kraft.version",
                        error_code=ErrorCode.INVALID_UPDATE_VERSION,
                        error_message="voter 2 does not support it",
                    ),
                ]
            ),
            "kraft.version: INVALID_UPDATE_VERSION: voter 2 does not support it",
        ),
        (
            2,
            UpdateFeaturesResponse(
                error_code=ErrorCode.INVALID_UPDATE_VERSION, error_message="not now"
            ),
            "INVALID_UPDATE_VERSION: not now",
        ),
    ],
)
def test_a_refused_level_is_reported_in_the_controllers_words(
    version: int, answer: UpdateFeaturesResponse, text: str
) -> None:
    """Older versions have a result for each feature."""
    with FakeNode(versions={UPDATE_FEATURES: (0, version)}) as node:
        node.answers[DESCRIBE_CLUSTER] = lambda _: controllers({2: node}, 2)
        node.answers[UPDATE_FEATURES] = lambda _: answer
        with pytest.raises(ApiError, match=text):
            through_controllers(node).update_features({"kraft.version": 1})
