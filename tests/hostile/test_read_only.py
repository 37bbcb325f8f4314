"""A stranger on a listener that is marked read-only changes nothing (SEC-READONLY)."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from kraftwire import messages
from kraftwire.messages.fetch_request import FetchRequest
from kraftwire.messages.unregister_broker_request import UnregisterBrokerRequest
from kraftwire.messages.unregister_broker_response import UnregisterBrokerResponse
from kraftwire.node import handlers
from kraftwire.node.config_listeners import Listener
from kraftwire.node.context import Request
from kraftwire.node.handlers.read_only import CHANGING
from kraftwire.node.handlers.versions import BROKER_VERSIONS, CONTROLLER_VERSIONS, offered
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.payloads import decode_response
from kraftwire.wire.message import Message, Struct
from tests.hostile.served import request_frame
from tests.support.messages.random_messages import fresh_seed, random_message
from tests.support.nodes.accepted import accepted
from tests.support.nodes.stub import StubNode, answer_of, request_of, with_brokers

READING = {
    *("ApiVersions", "Metadata", "DescribeCluster", "DescribeConfigs", "DescribeLogDirs"),
    *("DescribeAcls", "DescribeQuorum", "DescribeTopicPartitions", "ListConfigResources"),
    *("ListGroups", "ListOffsets", "ListPartitionReassignments", "OffsetForLeaderEpoch"),
    *("FindCoordinator", "SaslHandshake", "SaslAuthenticate"),
}
NAMES = {messages.API_NAMES[key] for key in BROKER_VERSIONS | CONTROLLER_VERSIONS}
DENIED = {
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
}
OFFERS = [
    (to, key, version)
    for to in ("client", "peer", "both")
    for key, (low, high) in offered(is_controller=to != "client", is_client=to != "peer").items()
    for version in range(low, high + 1)
    if messages.API_NAMES[key] in CHANGING
]


def _asked(message: Message, version: int, to: str) -> Request:
    return request_of(message, version, to=to, from_read_only_listener=True)


def _errors(value: object) -> set[int]:
    """All error codes in an answer."""
    if isinstance(value, list):
        return set[int]().union(*map(_errors, value))
    if not isinstance(value, Struct):
        return set()
    own = {getattr(value, "error_code", 0)}
    return own.union(*(_errors(getattr(value, name)) for name in type(value).__slots__))


def test_every_api_is_known_to_read_or_to_change() -> None:
    """One that is offered later must not be let through because nobody thought of it."""
    assert set(CHANGING) | READING == NAMES
    assert not set(CHANGING) & READING


@pytest.mark.trio
async def test_what_would_change_something_is_denied_in_every_version() -> None:
    """Neither the core nor the log hears of it, whatever the request says."""
    seed = fresh_seed()
    print(f"KRAFTWIRE_SEED={seed}")
    source = random.Random(seed)
    denied = set()
    for to, key, version in OFFERS:
        node = with_brokers(StubNode(), 1)
        node.controller.leadership(1, 1, node.raft.end_offset)
        written = len(node.batches)
        for _ in range(3):
            message: Any = random_message(messages.request_class(key), version, source)
            for replica in (message, getattr(message, "replica_state", None)):
                if hasattr(replica, "replica_id"):
                    replica.replica_id = 2
            answer = await answer_of(node, _asked(message, version, to))
            assert len(node.batches) == written
            assert not node.forwarded
            if answer is not None:
                answer.encode(version)
                found = _errors(answer) - {ErrorCode.NONE}
                assert found <= DENIED, messages.API_NAMES[key]
                denied |= {messages.API_NAMES[key]} if found else set()
    assert denied == set(CHANGING)


@pytest.mark.parametrize("to", ["client", "peer", "both"])
def test_what_only_reads_is_answered_as_elsewhere(to: str) -> None:
    """Tools that describe the quorum, and consumers, notice nothing."""
    versions = offered(is_controller=to != "client", is_client=to != "peer")
    for key, (low, _) in versions.items():
        message = messages.request_class(key)()
        if messages.API_NAMES[key] in READING or isinstance(message, FetchRequest):
            elsewhere = handlers.route(request_of(message, low, to=to))
            assert handlers.route(_asked(message, low, to)) is elsewhere


@pytest.mark.trio
@pytest.mark.parametrize("is_read_only", [True, False])
async def test_the_mark_of_a_listener_reaches_the_handlers(
    nursery: trio.Nursery, is_read_only: bool
) -> None:
    """A stranger asks to unregister a broker."""
    node: Any = with_brokers(StubNode(), 1)
    node.controller.leadership(1, 1, node.raft.end_offset)
    nursery.start_soon(node.controller.run)

    async def answer(request: Request) -> Message | None:
        handler = handlers.route(request)
        assert handler is not None
        return await handler(request, node)

    near, far = trio.testing.memory_stream_pair()
    listener = Listener("PLAINTEXT", "here", 9092, False, True, is_read_only)
    nursery.start_soon(accepted(far, BROKER_VERSIONS, answer, listener=listener).serve)
    await near.send_all(request_frame(UnregisterBrokerRequest(broker_id=1), 0))
    size = int.from_bytes(await near.receive_some(4), "big")
    told = decode_response(bytes(await near.receive_some(size)), UnregisterBrokerRequest.API_KEY, 0)
    assert isinstance(told[1], UnregisterBrokerResponse)
    assert (told[1].error_code in DENIED) is is_read_only
    assert (1 in node.image.brokers) is is_read_only
    nursery.cancel_scope.cancel()


def test_the_documented_table_is_the_one_in_use() -> None:
    """docs/security.md promises which APIs a read-only listener refuses."""
    text = (Path(__file__).resolve().parents[2] / "docs/security.md").read_text()
    section = text.split("## Read-only listeners", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| (.+?) \| (\d+) ", section, re.M)
    documented = {
        name: int(code) for names, code in rows for name in re.findall(r"`(\w+)`", names)
    }
    assert set(documented) == set(CHANGING)
    for name, code in documented.items():
        error = CHANGING[name].error
        node_error = CHANGING[name].node_error
        shown: Any = None
        if node_error(shown, shown).code:
            assert code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED, name
        elif isinstance(error, tuple):
            assert code == error.code, name
