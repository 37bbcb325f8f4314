"""Admin calls to scripted nodes: which node is asked, and what is retried."""

from __future__ import annotations

import inspect
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
import trio

from kraftwire.client import Admin, AsyncAdmin, Endpoint
from kraftwire.errors import ApiError, UsageError, WireError
from kraftwire.messages.add_raft_voter_request import AddRaftVoterRequest
from kraftwire.messages.add_raft_voter_response import AddRaftVoterResponse
from kraftwire.messages.api_versions_request import ApiVersionsRequest
from kraftwire.messages.api_versions_response import ApiVersionsResponse
from kraftwire.messages.describe_cluster_request import DescribeClusterRequest
from kraftwire.messages.describe_quorum_request import DescribeQuorumRequest
from kraftwire.messages.metadata_request import MetadataRequest
from kraftwire.messages.metadata_response import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.wire.message import Message
from tests.support.nodes.fake_node import (
    ADD_RAFT_VOTER,
    API_VERSIONS,
    CLUSTER_ID,
    DESCRIBE_CLUSTER,
    DESCRIBE_QUORUM,
    METADATA,
    FakeNode,
    HangUpError,
    controllers,
    metadata,
    quorum_state,
    unknown_leader,
)

DIRECTORY_ID = "l6CpXS7PU8WM8TMz3NcI7w"


class Quorum:
    """Three controllers; tests decide who claims to lead and what each answers."""

    def __init__(self, active: int = 2) -> None:
        self.active = active
        self.nodes = {number: FakeNode() for number in (1, 2, 3)}
        for node in self.nodes.values():
            node.answers[DESCRIBE_CLUSTER] = lambda _: controllers(self.nodes, self.active)
            node.answers[DESCRIBE_QUORUM] = lambda _: unknown_leader()

    def admin(self, *, timeout_s: float = 30.0, **options: object) -> Admin:
        """A client with very short pauses."""
        addresses = [node.address for node in self.nodes.values()]
        return Admin(
            bootstrap_controllers=addresses,
            timeout_s=timeout_s,
            retry_backoff_s=0.001,
            **options,  # type: ignore[arg-type]
        )

    def count(self, number: int, kind: type[Message]) -> int:
        """How often a node got a request."""
        return sum(isinstance(message, kind) for message in self.nodes[number].requests)


@pytest.fixture
def quorum() -> Iterator[Quorum]:
    """Three controllers that run."""
    made = Quorum()
    with ExitStack() as stack:
        for node in made.nodes.values():
            stack.enter_context(node)
        yield made


@pytest.fixture
def closed_address() -> str:
    """An address without a listener."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{held.getsockname()[1]}"


def in_turn(*answers: Message | Exception | None) -> Callable[[Message], Message | None]:
    """Answer one request after the other; the last answer stays."""
    left = list(answers)

    def answer(_: Message) -> Message | None:
        found = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(found, Exception):
            raise found
        return found

    return answer


def test_the_active_controller_is_asked_about_the_quorum(quorum: Quorum) -> None:
    """Only the leader can answer; asking the others first would cost a round trip each."""
    quorum.nodes[2].answers[DESCRIBE_QUORUM] = in_turn(quorum_state(2, 7))
    info = quorum.admin().describe_quorum()
    assert (info.leader_id, info.leader_epoch, info.high_watermark) == (2, 7, 10)
    assert info.endpoints[2] == (Endpoint("CONTROLLER", "127.0.0.1", 9002),)
    assert [quorum.count(number, DescribeQuorumRequest) for number in (1, 2, 3)] == [0, 1, 0]
    assert quorum.count(1, DescribeClusterRequest) == 1


def test_a_node_that_names_the_leader_is_followed_at_once(quorum: Quorum) -> None:
    """LeaderId of NOT_LEADER_OR_FOLLOWER saves a pause and a look at the nodes."""
    quorum.nodes[2].answers[DESCRIBE_QUORUM] = in_turn(quorum_state(3, 8, error=6))
    quorum.nodes[3].answers[DESCRIBE_QUORUM] = in_turn(quorum_state(3, 8))
    assert quorum.admin().describe_quorum().leader_id == 3
    assert sum(quorum.count(number, DescribeClusterRequest) for number in (1, 2, 3)) == 1


def test_a_node_that_knows_no_leader_leads_to_another_look_at_the_nodes(quorum: Quorum) -> None:
    """Kafka's controllers leave LeaderId 0 and epoch 0, which means no leader, not node 0."""
    quorum.nodes[3].answers[DESCRIBE_QUORUM] = in_turn(quorum_state(3, 8))

    def elected(_: Message) -> Message:
        quorum.active = 3
        return unknown_leader()

    quorum.nodes[2].answers[DESCRIBE_QUORUM] = elected
    retries: list[str] = []
    assert quorum.admin(on_retry=retries.append).describe_quorum().leader_id == 3
    assert retries == ["NOT_LEADER_OR_FOLLOWER: another node leads, or holds the replicas"]
    # Another node is asked the second time: the first one may be the one that is wrong.
    assert quorum.count(2, DescribeClusterRequest) == 1


def test_two_nodes_that_name_each_other_do_not_keep_a_client_busy(quorum: Quorum) -> None:
    """During an election both may be wrong; the client pauses and looks again."""
    quorum.nodes[2].answers[DESCRIBE_QUORUM] = in_turn(
        quorum_state(3, 8, error=6), quorum_state(2, 9)
    )
    quorum.nodes[3].answers[DESCRIBE_QUORUM] = in_turn(quorum_state(2, 8, error=6))
    assert quorum.admin().describe_quorum().leader_epoch == 9
    assert quorum.count(3, DescribeQuorumRequest) == 1


def test_an_active_controller_that_is_gone_is_not_waited_for(
    quorum: Quorum, closed_address: str
) -> None:
    """Survivors name the old leader until they have a new one, and longer without a quorum."""
    quorum.nodes[2].port = int(closed_address.partition(":")[2])
    quorum.nodes[1].answers[DESCRIBE_QUORUM] = in_turn(quorum_state(3, 8, error=6))
    quorum.nodes[3].answers[DESCRIBE_QUORUM] = in_turn(quorum_state(3, 8))
    assert quorum.admin().describe_quorum().leader_id == 3


def test_an_address_without_listener_is_skipped(quorum: Quorum, closed_address: str) -> None:
    """A list has several addresses because some may be down."""
    quorum.nodes[2].answers[DESCRIBE_QUORUM] = in_turn(quorum_state(2))
    admin = Admin(bootstrap_controllers=f"{closed_address}, {quorum.nodes[3].address}")
    assert admin.describe_quorum().leader_id == 2


def test_time_that_runs_out_is_an_error_with_the_last_problem(closed_address: str) -> None:
    """The user needs to know why time ran out."""
    admin = Admin(bootstrap_servers=closed_address, timeout_s=0.1)
    with pytest.raises(ApiError, match=f"more than 0.1 s.*{closed_address}: Connection") as raised:
        admin.describe_quorum()
    assert raised.value.code == ErrorCode.REQUEST_TIMED_OUT


def test_a_node_that_never_answers_is_given_up(quorum: Quorum) -> None:
    """A stopped process still accepts connections and bytes."""
    quorum.nodes[2].answers[DESCRIBE_QUORUM] = in_turn(None)
    quorum.nodes[3].answers[DESCRIBE_QUORUM] = in_turn(quorum_state(3, 2))

    def describe(_: Message) -> Message:
        quorum.active = 2 if quorum.count(2, DescribeQuorumRequest) == 0 else 3
        return controllers(quorum.nodes, quorum.active)

    for node in quorum.nodes.values():
        node.answers[DESCRIBE_CLUSTER] = describe
    admin = quorum.admin(request_timeout_s=0.2)
    assert admin.describe_quorum().leader_id == 3


@pytest.mark.parametrize("node_id", [None, 1])
def test_a_request_for_which_there_is_no_call_ends_in_time_too(
    quorum: Quorum, node_id: int | None
) -> None:
    """The time of a call is that of all nodes that it tries, however long each may take."""
    for node in quorum.nodes.values():
        node.answers[DESCRIBE_QUORUM] = lambda _: None
    admin = quorum.admin(timeout_s=0.2, request_timeout_s=30)
    with pytest.raises(ApiError, match=r"the request took more than 0\.2 s") as raised:
        admin.request(DescribeQuorumRequest(), node_id)
    assert raised.value.code == ErrorCode.REQUEST_TIMED_OUT


@pytest.mark.parametrize(
    "code", [ErrorCode.MISMATCHED_ENDPOINT_TYPE, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE]
)
def test_a_node_of_the_wrong_kind_ends_the_call_in_the_nodes_words(code: ErrorCode) -> None:
    """Waiting does not turn a broker into a controller."""
    with FakeNode() as broker:
        broker.answers[DESCRIBE_CLUSTER] = in_turn(controllers({}, -1, code, "wanted another"))
        with pytest.raises(ApiError, match="wanted another") as raised:
            Admin(bootstrap_controllers=broker.address).describe_quorum()
    assert raised.value.code == code


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("bootstrap_servers", "The node does not support METADATA"),
        ("bootstrap_controllers", "The node does not support DESCRIBE_CLUSTER"),
    ],
)
def test_a_node_without_the_api_for_discovery_ends_the_call(option: str, text: str) -> None:
    """The same words as Kafka's client."""
    with FakeNode() as node, pytest.raises(ApiError, match=text):
        Admin(**{option: node.address}).describe_quorum()  # type: ignore[arg-type]


def test_controllers_without_endpoint_types_end_the_call() -> None:
    """DescribeCluster v0 cannot ask for controllers, and brokers are not what was asked for."""
    with FakeNode({DESCRIBE_CLUSTER: in_turn(None)}, {DESCRIBE_CLUSTER: (0, 0)}) as node:
        with pytest.raises(ApiError, match="does not support DESCRIBE_CLUSTER"):
            Admin(bootstrap_controllers=node.address).describe_cluster()
        assert node.requests == []


def test_another_protocol_ends_the_wait() -> None:
    """An HTTP server will not become Kafka."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        admin = Admin(bootstrap_servers=address, timeout_s=30)
        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                connection.recv(1000)

        thread = threading.Thread(target=serve)
        thread.start()
        told = f"{address}: this is an HTTP server, not Kafka .*frame length"
        with pytest.raises(WireError, match=told):
            admin.describe_quorum()
        thread.join()


def test_a_broker_passes_the_question_on_and_is_asked_again_while_it_cannot() -> None:
    """A broker that knows no leader answers NOT_CONTROLLER, which is temporary."""
    with FakeNode() as broker:
        broker.answers[METADATA] = lambda _: metadata({5: broker})
        refused = quorum_state(1)
        refused.error_code = ErrorCode.NOT_CONTROLLER
        broker.answers[DESCRIBE_QUORUM] = in_turn(refused, quorum_state(1))
        admin = Admin(bootstrap_servers=broker.address, retry_backoff_s=0.001)
        assert admin.describe_quorum().leader_id == 1
        assert sum(isinstance(message, MetadataRequest) for message in broker.requests) == 2


def test_a_node_that_is_another_one_sends_the_client_back() -> None:
    """The address of node 5 is another's by now; its bootstrap address knows better (R-SRV-8)."""
    with FakeNode() as broker, FakeNode() as other:
        broker.answers[METADATA] = in_turn(metadata({5: other}), metadata({5: broker}))
        broker.answers[DESCRIBE_QUORUM] = in_turn(quorum_state(5, 3))
        aims = list[tuple[str | None, int]]()

        def refuse(message: Message) -> ApiVersionsResponse:
            assert isinstance(message, ApiVersionsRequest)
            aims.append((message.cluster_id, message.node_id))
            return ApiVersionsResponse(error_code=ErrorCode.REBOOTSTRAP_REQUIRED)

        other.answers[API_VERSIONS] = refuse
        retries: list[str] = []
        admin = Admin(
            bootstrap_servers=broker.address, retry_backoff_s=0.001, on_retry=retries.append
        )
        assert admin.describe_quorum().leader_id == 5
    assert aims == [(CLUSTER_ID, 5)]
    assert len(retries) == 1
    assert "REBOOTSTRAP_REQUIRED" in retries[0]


def test_a_cluster_without_brokers_is_waited_for() -> None:
    """The first answers of a starting broker name no node, not even itself."""
    with FakeNode() as broker:
        broker.answers[METADATA] = in_turn(metadata({}), metadata({5: broker}))
        broker.answers[DESCRIBE_QUORUM] = in_turn(quorum_state(1))
        admin = Admin(bootstrap_servers=broker.address, retry_backoff_s=0.001)
        assert admin.describe_quorum().leader_id == 1


def test_an_old_broker_describes_its_cluster_through_metadata() -> None:
    """DescribeCluster came with 2.8 and fenced brokers with 4.0."""
    with FakeNode() as broker:
        broker.answers[METADATA] = lambda _: metadata({5: broker}, controller=5)
        info = Admin(bootstrap_servers=broker.address).describe_cluster()
        assert (info.controller_id, [node.id for node in info.nodes]) == (5, [5])


def test_a_refused_question_is_final_and_has_its_name(quorum: Quorum) -> None:
    """Waiting does not grant a missing permission."""
    refused = quorum_state(2)
    refused.error_code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    quorum.nodes[2].answers[DESCRIBE_QUORUM] = in_turn(refused)
    with pytest.raises(ApiError, match="CLUSTER_AUTHORIZATION_FAILED: no right to the cluster"):
        quorum.admin().describe_quorum()


def added(code: int, text: str | None = None) -> AddRaftVoterResponse:
    """An answer to AddRaftVoter."""
    return AddRaftVoterResponse(error_code=code, error_message=text)


def add(admin: Admin) -> None:
    """Add a voter."""
    admin.add_raft_voter(4, DIRECTORY_ID, [Endpoint("CONTROLLER", "127.0.0.1", 9004)])


def test_a_voter_is_added_by_the_current_leader(quorum: Quorum) -> None:
    """NOT_CONTROLLER proves that nothing was done, so it is tried again."""
    answers = in_turn(added(ErrorCode.NOT_CONTROLLER), added(ErrorCode.NONE))
    for node in quorum.nodes.values():
        node.answers[ADD_RAFT_VOTER] = answers
    add(quorum.admin())
    requests = [message for node in quorum.nodes.values() for message in node.requests]
    sent = [message for message in requests if isinstance(message, AddRaftVoterRequest)]
    assert len(sent) == 2
    assert (sent[0].voter_id, sent[0].listeners[0].port) == (4, 9004)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        pytest.param(added(126, "there is one"), ErrorCode.DUPLICATE_VOTER, id="refused"),
        pytest.param(added(7), ErrorCode.REQUEST_TIMED_OUT, id="too slow for the leader"),
        pytest.param(HangUpError(), ErrorCode.NETWORK_EXCEPTION, id="connection lost"),
    ],
)
def test_a_voter_change_that_may_have_been_done_is_not_sent_twice(
    quorum: Quorum, answer: Message | Exception, code: ErrorCode
) -> None:
    """Sent again, a change that succeeded would be reported as a failure."""
    for node in quorum.nodes.values():
        node.answers[ADD_RAFT_VOTER] = in_turn(answer)
    with pytest.raises(ApiError) as raised:
        add(quorum.admin())
    assert raised.value.code == code
    assert sum(quorum.count(number, AddRaftVoterRequest) for number in (1, 2, 3)) == 1


def test_topics_are_sorted_and_internal_ones_listed_on_request() -> None:
    """The same list as kafka-topics --list, which can hide them too."""
    def topic(name: str, is_internal: bool) -> MetadataResponseTopic:
        partitions = [
            MetadataResponsePartition(partition_index=index, leader_id=1, replica_nodes=[1])
            for index in (1, 0)
        ]
        return MetadataResponseTopic(name=name, is_internal=is_internal, partitions=partitions)

    with FakeNode() as broker:
        def answer(_: Message) -> MetadataResponse:
            response = metadata({5: broker})
            response.topics = [topic("b", False), topic("__a", True), topic("a", False)]
            return response

        broker.answers[METADATA] = answer
        admin = Admin(bootstrap_servers=broker.address)
        assert [found.name for found in admin.list_topics()] == ["a", "b"]
        everything = admin.list_topics(include_internal=True)
        assert [found.name for found in everything] == ["__a", "a", "b"]
        assert [partition.index for partition in everything[0].partitions] == [0, 1]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "expected one of"),
        ({"bootstrap_servers": "a:1", "bootstrap_controllers": "b:2"}, "expected one of"),
        ({"bootstrap_servers": "a"}, "bootstrap_servers: expected host:port, found 'a'"),
        ({"bootstrap_servers": "a:0"}, "found 'a:0'"),
        ({"bootstrap_servers": "a:65536"}, "found 'a:65536'"),
        ({"bootstrap_servers": "::1:9092"}, "found '::1:9092'"),
        ({"bootstrap_servers": " , "}, "found an empty list"),
    ],
)
def test_wrong_addresses_are_refused_before_anything_is_sent(
    options: dict[str, str], text: str
) -> None:
    """They are refused where they are given, not at the first call."""
    with pytest.raises(UsageError, match=text):
        Admin(**options)  # type: ignore[arg-type]


def test_an_error_inside_the_async_client_is_raised_unchanged() -> None:
    """It is not in a group: users of the client should not have to know how it works inside."""
    async def run(address: str) -> None:
        async with AsyncAdmin(bootstrap_servers=address) as admin:
            await admin.describe_quorum()
            raise KeyError("mine")

    with FakeNode() as broker:
        broker.answers[METADATA] = lambda _: metadata({5: broker})
        broker.answers[DESCRIBE_QUORUM] = lambda _: quorum_state(1)
        with pytest.raises(KeyError, match="mine"):
            trio.run(run, broker.address)


def test_the_async_client_keeps_its_connections() -> None:
    """A view that looks every second should not connect every second."""
    async def run(address: str) -> None:
        async with AsyncAdmin(bootstrap_servers=address) as admin:
            for _ in range(3):
                await admin.describe_quorum()

    with FakeNode() as broker:
        broker.answers[METADATA] = lambda _: metadata({5: broker})
        broker.answers[DESCRIBE_QUORUM] = lambda _: quorum_state(1)
        trio.run(run, broker.address)
        assert len(broker.requests) == 1 + 3


def test_the_blocking_client_has_every_call_of_the_other() -> None:
    """A call that only programs with an event loop could make would be forgotten quickly."""
    calls = {name for name in vars(AsyncAdmin) if not name.startswith("_")}
    assert {name for name in vars(Admin) if not name.startswith("_")} == calls - {
        "aclose",
        "unconnected",
    }
    assert inspect.signature(Admin) == inspect.signature(AsyncAdmin)
