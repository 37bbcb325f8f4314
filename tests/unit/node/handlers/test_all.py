"""Every handler, in every offered version: its answer can be encoded."""

from __future__ import annotations

import random

import pytest

from kraftwire import messages
from kraftwire.messages.fetch_request import FetchRequest
from kraftwire.messages.register_broker_record import BrokerEndpoint, RegisterBrokerRecord
from kraftwire.node import handlers
from kraftwire.node.context import Request
from kraftwire.node.handlers.versions import (
    BROKER_VERSIONS,
    CONTROLLER_VERSIONS,
    RAFT_APIS,
    offered,
)
from kraftwire.protocol.topic_names import METADATA_TOPIC, METADATA_TOPIC_ID
from kraftwire.wire.facts import StructFacts
from kraftwire.wire.message import Message, Struct
from tests.support.messages.random_messages import fresh_seed, random_message
from tests.support.nodes.stub import StubNode
from tests.unit.controller.test_brokers import LEVEL

ROUNDS = 12

# Values with which fields of requests refer to something that exists.
AIMS: dict[str, list[object]] = {
    "topic": [METADATA_TOPIC],
    "name": [METADATA_TOPIC],
    "topic_names": [[METADATA_TOPIC]],
    "topic_id": [METADATA_TOPIC_ID],
    "partition": [0],
    "partition_index": [0],
    "partitions": [[0]],
    "current_leader_epoch": [-1, 1],
    "leader_epoch": [0, 1],
    "timestamp": [-1, -2, -3, -4, -5, -6, 0, 10**15],
    "replica_id": [-1],
    "session_epoch": [0, -1],
    "fetch_offset": [0, 1, 2, 3],
    "endpoint_type": [1, 2],
    "resource_type": [2, 4],
    "resource_name": [METADATA_TOPIC, "1", ""],
    "configuration_keys": [None],
    "coordinator_keys": [["a", "b"]],
    "broker_id": [1],
    "broker_epoch": [1],
}
OFFERS = [
    (is_controller, key, version)
    for is_controller, table in ((True, CONTROLLER_VERSIONS), (False, BROKER_VERSIONS))
    for key, (low, high) in table.items()
    for version in range(low, high + 1)
]


def _request(is_controller: bool, message: Message, version: int) -> Request:
    return Request(
        message.API_KEY,
        version,
        message,
        listener="CONTROLLER" if is_controller else "PLAINTEXT",
        from_controller_listener=is_controller,
        from_client_listener=not is_controller,
    )


def _aim(struct: Struct, facts: StructFacts, version: int, source: random.Random) -> None:
    """Let a random request refer to what exists here: the quorum's topic, this broker."""
    for field in facts.fields:
        if version not in field.versions:
            continue
        if field.struct is not None and field.is_array:
            for item in getattr(struct, field.attribute) or ():
                _aim(item, field.struct, version, source)
        elif field.attribute in AIMS and source.random() < 0.7:
            setattr(struct, field.attribute, source.choice(AIMS[field.attribute]))


def _node(key: int) -> StubNode:
    node = StubNode()
    endpoints = [
        BrokerEndpoint(name=e.listener, host=e.host, port=e.port) for e in node.endpoints
    ]
    broker = RegisterBrokerRecord(broker_id=1, broker_epoch=1, end_points=endpoints, fenced=False)
    node.commit_records(LEVEL, (broker, 4))
    node.core_answer = node.forward_answer = messages.response_class(key)()
    return node


def test_every_handler_is_offered_and_every_offer_is_of_kafka() -> None:
    """A handler that no listener offers is dead; a range beyond Kafka's has no schema."""
    assert set(handlers.HANDLERS) <= set(BROKER_VERSIONS) | set(CONTROLLER_VERSIONS)
    assert set(handlers.BROKER) == set(BROKER_VERSIONS)
    assert set(handlers.CONTROLLER) == set(CONTROLLER_VERSIONS)
    known = messages.API_VERSIONS
    for key, (low, high) in [*BROKER_VERSIONS.items(), *CONTROLLER_VERSIONS.items()]:
        assert known[key][0] <= low <= high <= known[key][1], messages.API_NAMES[key]


def test_a_listener_for_all_offers_both_tables() -> None:
    """Without process.roles peers and clients share one listener."""
    both = offered(is_controller=True, is_client=True)
    assert set(both) == set(BROKER_VERSIONS) | set(CONTROLLER_VERSIONS)
    shared = set(BROKER_VERSIONS) & set(CONTROLLER_VERSIONS)
    differ = {
        messages.API_NAMES[key]: (BROKER_VERSIONS[key], CONTROLLER_VERSIONS[key])
        for key in shared
        if BROKER_VERSIONS[key] != CONTROLLER_VERSIONS[key]
    }
    assert differ == {}


@pytest.mark.trio
async def test_every_answer_can_be_written_whatever_is_asked() -> None:
    """No field of a request, however odd, may end in an error of ours."""
    seed = fresh_seed()
    print(f"KRAFTWIRE_SEED={seed}")
    source = random.Random(seed)
    for is_controller, key, version in OFFERS:
        node = _node(key)
        for _ in range(ROUNDS):
            message = random_message(messages.request_class(key), version, source)
            _aim(message, message.facts().root, version, source)
            if isinstance(message, FetchRequest):
                message.max_wait_ms = 0
            request = _request(is_controller, message, version)
            handler = handlers.route(request)
            assert handler is not None
            answer = await handler(request, node)
            if answer is not None:
                assert key == answer.API_KEY
                written = answer.encode(version)
                assert type(answer).decode(written, version)[1] == len(written)


@pytest.mark.trio
async def test_requests_of_the_core_reach_it() -> None:
    """Handlers do not answer requests between peers."""
    for key in RAFT_APIS:
        version = CONTROLLER_VERSIONS[key][1]
        node = _node(key)
        request = _request(True, messages.request_class(key)(), version)
        handler = handlers.route(request)
        assert handler is not None
        assert await handler(request, node) is node.core_answer


def test_a_client_listener_has_nothing_for_peers() -> None:
    """A vote on a client listener is treated like any unknown request: it gets no answer."""
    request = _request(False, messages.find("VoteRequest")(), 2)
    assert handlers.route(request) is None
