"""What is said when a quorum has no leader, put together from the answers of all its nodes."""

from __future__ import annotations

import socket
from contextlib import ExitStack

import pytest

from kraftwire.cli import main as cli
from kraftwire.client import Admin, survey
from kraftwire.client.survey import NodeState, brokers_text, survey_text
from kraftwire.errors import ApiError
from kraftwire.messages import fetch_response
from kraftwire.messages.describe_cluster_response import (
    DescribeClusterBroker,
    DescribeClusterResponse,
)
from kraftwire.messages.fetch_request import FetchRequest
from kraftwire.messages.fetch_response import FetchResponse
from kraftwire.messages.metadata_response import MetadataResponse, MetadataResponseBroker
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.topic_names import METADATA_TOPIC_ID
from kraftwire.testing.ports import free_ports
from kraftwire.wire.message import Message
from tests.support.nodes.fake_node import (
    CLUSTER_ID,
    DESCRIBE_CLUSTER,
    DESCRIBE_QUORUM,
    METADATA,
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


def test_an_address_that_accepts_and_never_answers_is_named(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the time of the whole call ends before that of its first request."""
    monkeypatch.setattr(survey, "_SECONDS", 0.02)
    with socket.create_server(("127.0.0.1", 0)) as server:
        where = f"127.0.0.1:{server.getsockname()[1]}"
        admin = Admin(bootstrap_controllers=where, timeout_s=0.02)
        with pytest.raises(ApiError) as failed:
            admin.describe_quorum()
    assert str(failed.value).endswith(
        f"describing the quorum took more than 0.02 s; {where}: no answer within 0.02 s"
    )


def test_a_leader_that_does_not_answer_is_named_with_its_advertised_address() -> None:
    """A follower goes on to name it until its election timeout, so it may have ended."""
    text = survey_text([_state(1, epoch=7, leader_id=2), _state(2, problem="no answer within 2 s")])
    assert text == (
        "node 1 (127.0.0.1:9091) answers and names as the leader node 2, in epoch 7; its "
        "advertised address 127.0.0.1:9092: no answer within 2 s: if it runs, check "
        "advertised.listeners of node 2"
    )


def test_a_leader_behind_a_wrong_advertised_address_leads_all_the_same() -> None:
    """The most frequent mistake of all: what answers is the leader, only not where it says."""
    given = NodeState(("127.0.0.1", 24851), None, epoch=1, leader_id=1, leads=True)
    text = survey_text([given, _state(1, problem="Connection refused")])
    assert text == (
        "127.0.0.1:24851 answers and leads the quorum as node 1, in epoch 1; its advertised "
        "address 127.0.0.1:9091: Connection refused: check advertised.listeners of node 1"
    )
    text = survey_text([given, _state(1, epoch=1, leader_id=1), _state(2, epoch=1, leader_id=1)])
    assert text is not None
    assert "127.0.0.1:9091: another node answers there: check advertised.listeners" in text
    text = survey_text([given])
    assert text is not None
    assert "no address of that node is known: check its advertised.listeners" in text


def test_no_voters_are_counted_where_an_address_may_be_of_any_of_them() -> None:
    """One voter that is known by two addresses is one voter."""
    given = NodeState(("127.0.0.1", 24851), None, epoch=3)
    text = survey_text([given, _state(1, problem="Connection refused")])
    assert text == (
        "there is no leader: 127.0.0.1:24851 answers, in epoch 3 without a leader; "
        "node 1 (127.0.0.1:9091): Connection refused"
    )


@pytest.mark.parametrize(
    "states",
    [
        [_state(1, epoch=7, leader_id=2), _state(2, epoch=7, leader_id=2, leads=True)],
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
    states = [_state(1, epoch=6, leader_id=1, leads=True), _state(2, epoch=7)]
    text = survey_text(states)
    assert text is not None
    assert "node 1 (127.0.0.1:9091) answers, still in epoch 6 of node 1" in text
    assert "node 2 (127.0.0.1:9092) answers, in epoch 7 without a leader" in text


def test_brokers_behind_wrong_advertised_addresses_are_named() -> None:
    """What the caller gave is fine; the addresses in the answer are not."""
    given = NodeState(("127.0.0.1", 9092), None)
    states = [given, _state(1, problem="Connection refused"), _state(2, problem="no host")]
    assert brokers_text(states) == (
        "127.0.0.1:9092 answers and names brokers at addresses that do not: "
        "node 1 (127.0.0.1:9091): Connection refused; node 2 (127.0.0.1:9092): no host: "
        "check advertised.listeners"
    )
    assert brokers_text([*states, _state(3)]) is None
    assert brokers_text(states[1:]) is None
    assert brokers_text([given]) is None


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


def _advertising(node_id: int, address: str) -> DescribeClusterResponse:
    host, _, port = address.rpartition(":")
    broker = DescribeClusterBroker(broker_id=node_id, host=host, port=int(port))
    return DescribeClusterResponse(
        endpoint_type=2, cluster_id=CLUSTER_ID, controller_id=node_id, brokers=[broker]
    )


def _leading(request: Message) -> FetchResponse:
    """The answer of the leader of epoch 1, which takes requests in that epoch only."""
    assert isinstance(request, FetchRequest)
    epoch = request.topics[0].partitions[0].current_leader_epoch
    partition = fetch_response.PartitionData(
        error_code=ErrorCode.NONE if epoch == 1 else ErrorCode.FENCED_LEADER_EPOCH,
        current_leader=fetch_response.LeaderIdAndEpoch(leader_id=1, leader_epoch=1),
    )
    topic = fetch_response.FetchableTopicResponse(
        topic="__cluster_metadata", topic_id=METADATA_TOPIC_ID, partitions=[partition]
    )
    return FetchResponse(responses=[topic])


def test_every_call_names_the_advertised_address_that_does_not_answer(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Through the client, `quorum` and `metadata`; none says that there is no leader."""
    gone = f"127.0.0.1:{free_ports(1)[0]}"
    with FakeNode() as node:
        node.answers[DESCRIBE_CLUSTER] = lambda _: _advertising(1, gone)
        node.answers[_FETCH] = _leading
        admin = Admin(bootstrap_controllers=node.address, timeout_s=0.3, retry_backoff_s=0.001)
        with pytest.raises(ApiError) as caught:
            admin.describe_quorum()
        words = f"{node.address} answers and leads the quorum as node 1, in epoch 1; its advertised"
        assert words in str(caught.value)
        options = ["--bootstrap-controller", node.address, "--timeout", "0.3"]
        for command in (["quorum", "describe", "--status"], ["metadata", "show"]):
            assert cli.main([*command, *options]) == 1
            text = capsys.readouterr().err
            assert words in text
            assert f"address {gone}: Connection refused: check advertised.listeners" in text
            assert "no leader" not in text
            assert "are needed" not in text
            assert text.count("\n") == 1


def test_a_broker_that_advertises_another_address_is_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A client through brokers connects to what they advertise."""
    gone = free_ports(1)[0]
    with FakeNode() as node:
        broker = MetadataResponseBroker(node_id=5, host="127.0.0.1", port=gone)
        answer = MetadataResponse(brokers=[broker], cluster_id=CLUSTER_ID, controller_id=5)
        node.answers[METADATA] = lambda _: answer
        options = ["--bootstrap-server", node.address, "--timeout", "0.3"]
        assert cli.main(["quorum", "describe", "--status", *options]) == 1
        text = capsys.readouterr().err
        assert f"{node.address} answers and names brokers at addresses that do not: node 5" in text
        assert f"127.0.0.1:{gone}): Connection refused: check advertised.listeners" in text
