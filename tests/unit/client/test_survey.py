"""What is said when a quorum has no leader, put together from the answers of all its nodes."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from kraftwire.client import Admin
from kraftwire.client.survey import NodeState, survey_text
from kraftwire.errors import ApiError
from kraftwire.messages import fetch_response
from kraftwire.messages.fetch_response import FetchResponse
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.raft.config import METADATA_TOPIC_ID
from tests.support.fake_node import (
    DESCRIBE_CLUSTER,
    DESCRIBE_QUORUM,
    FakeNode,
    controllers,
    unknown_leader,
)

_FETCH = 1


def _state(number: int, **facts: object) -> NodeState:
    return NodeState(("127.0.0.1", 9090 + number), number, **facts)  # type: ignore[arg-type]


def test_a_lone_voter_is_named_with_its_epoch_and_the_others_with_their_problem() -> None:
    """The operator needs to know whom to start, and how many."""
    refused = "Connection refused"
    states = [
        _state(1, epoch=7),
        _state(2, problem=refused),
        _state(3, problem=refused),
    ]
    assert survey_text(states) == (
        "there is no leader: node 1 (127.0.0.1:9091) answers, in epoch 7 without a leader; "
        "node 2 (127.0.0.1:9092) and node 3 (127.0.0.1:9093): Connection refused; "
        "2 of 3 voters are needed"
    )


def test_a_leader_that_does_not_answer_is_not_taken_for_one() -> None:
    """A follower goes on to name it until its election timeout."""
    text = survey_text([_state(1, epoch=7, leader_id=2), _state(2, problem="no answer within 2 s")])
    assert text is not None
    assert "node 1 (127.0.0.1:9091) answers, in epoch 7, whose leader it takes to be node 2" in text
    assert "node 2 (127.0.0.1:9092): no answer within 2 s" in text


@pytest.mark.parametrize(
    "states",
    [
        [_state(1, epoch=7, leader_id=2), _state(2, epoch=7, leader_id=2)],
        [_state(1, problem="Connection refused")],
        [],
    ],
)
def test_nothing_is_concluded_from_a_leader_that_answers_or_from_silence(
    states: list[NodeState],
) -> None:
    """Then the last problem of the call says more."""
    assert survey_text(states) is None


def test_a_leader_of_an_older_epoch_does_not_count() -> None:
    """A node that was cut off believes in itself."""
    text = survey_text([_state(1, epoch=6, leader_id=1), _state(2, epoch=7)])
    assert text is not None
    assert "node 2 (127.0.0.1:9092) answers, in epoch 7 without a leader" in text


def _without_leader(epoch: int) -> FetchResponse:
    partition = fetch_response.PartitionData(
        error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER,
        current_leader=fetch_response.LeaderIdAndEpoch(leader_id=-1, leader_epoch=epoch),
    )
    topic = fetch_response.FetchableTopicResponse(
        topic="__cluster_metadata", topic_id=METADATA_TOPIC_ID, partitions=[partition]
    )
    return FetchResponse(responses=[topic])


def test_a_call_ends_with_the_answers_of_all_nodes() -> None:
    """Whatever was asked for, if it needs the leader."""
    nodes = {number: FakeNode() for number in (1, 2)}
    for node in nodes.values():
        node.answers[DESCRIBE_CLUSTER] = lambda _: controllers(nodes, -1)
        node.answers[DESCRIBE_QUORUM] = lambda _: unknown_leader()
        node.answers[_FETCH] = lambda _: _without_leader(9)
    with ExitStack() as stack:
        for node in nodes.values():
            stack.enter_context(node)
        admin = Admin(
            bootstrap_controllers=nodes[1].address, timeout_s=0.3, retry_backoff_s=0.001
        )
        with pytest.raises(ApiError, match=r"there is no leader: node 1 .* in epoch 9 .* node 2"):
            admin.describe_quorum()
