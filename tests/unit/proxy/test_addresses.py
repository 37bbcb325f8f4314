"""Addresses of nodes: every place of every schema, in every version."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kraftwire import messages
from kraftwire.messages.describe_quorum_request import DescribeQuorumRequest
from kraftwire.messages.describe_quorum_response import DescribeQuorumResponse
from kraftwire.messages.envelope_request import EnvelopeRequest
from kraftwire.messages.envelope_response import EnvelopeResponse
from kraftwire.protocol.endpoint import ENDPOINT_CONTROLLER
from kraftwire.protocol.payloads import decode_request, decode_response
from kraftwire.proxy.addresses import (
    BROKER,
    CONTROLLER,
    REQUESTS,
    RESPONSES,
    Node,
    Place,
    answers_with_addresses,
    asks_with_addresses,
)
from kraftwire.proxy.events import Send
from kraftwire.wire.facts import StructFacts
from kraftwire.wire.message import Message
from tests.support.proxy.layers import here, layer, request_frame, response_frame
from tests.support.proxy.playbook import client, to_upstream, upstream

_TABLES = ((REQUESTS, messages.request_class), (RESPONSES, messages.response_class))

# Where a schema has a host, or an endpoint, that is not rewritten, and why.
_NOT_NODES = {
    # The instance of a streams application, a client, the host of an ACL.
    "StreamsGroupHeartbeatRequest": {"userEndpoint"},
    "StreamsGroupHeartbeatResponse": {"partitionsByUserEndpoint.userEndpoint"},
    "StreamsGroupDescribeResponse": {"groups.members.userEndpoint", "groups.members"},
    "DescribeGroupsResponse": {"groups.members"},
    "ConsumerGroupDescribeResponse": {"groups.members"},
    "ShareGroupDescribeResponse": {"groups.members"},
    "CreateAclsRequest": {"creations"},
    "DescribeAclsRequest": {""},
    "DescribeAclsResponse": {"resources.acls"},
    "DeleteAclsRequest": {"filters"},
    "DeleteAclsResponse": {"filterResults.matchingAcls"},
    "EnvelopeRequest": {""},
    # Stored by the receiver, and given on as they are.
    "BrokerRegistrationRequest": {"listeners"},
    "ControllerRegistrationRequest": {"listeners"},
    "AddRaftVoterRequest": {"listeners"},
    "UpdateRaftVoterRequest": {"listeners"},
    "LeaderAndIsrRequest": {"liveLeaders"},
    "UpdateMetadataRequest": {"liveBrokers", "liveBrokers.endpoints"},
}


def _structs(facts: StructFacts, path: str = "") -> Iterator[tuple[str, StructFacts]]:
    yield path, facts
    for one in facts.fields:
        if one.struct is not None:
            yield from _structs(one.struct, f"{path}.{one.name}".removeprefix("."))


def _has_host(facts: StructFacts) -> bool:
    return any("host" in one.name.lower() and one.struct is None for one in facts.fields)


def _attributes(path: str, facts: StructFacts) -> str:
    """A path in the attributes' spelling."""
    found = []
    for name in filter(None, path.split(".")):
        one = next(each for each in facts.fields if each.name == name)
        found.append(one.attribute)
        assert one.struct is not None
        facts = one.struct
    return ".".join(found)


def test_every_host_of_every_schema_has_its_place() -> None:
    """A new one fails here until somebody has decided whether it is a node's."""
    for api_key in messages.API_NAMES:
        for table, class_of in _TABLES:
            cls = class_of(api_key)
            root = cls.facts().root
            hosts = {path for path, facts in _structs(root) if _has_host(facts)}
            placed = {f"{each.array}.{each.inner}".strip(".") for each in table.get(api_key, ())}
            left = {path for path in hosts if _attributes(path, root) not in placed}
            assert left == _NOT_NODES.get(cls.NAME, set()), cls.NAME
            assert placed <= {_attributes(path, root) for path in hosts}, cls.NAME


_CASES = [
    pytest.param(cls, place, version, id=f"{cls.NAME}-{place.array or 'itself'}-{version}")
    for table, class_of in _TABLES
    for api_key, places in table.items()
    for cls in [class_of(api_key)]
    for place in places
    for version in range(cls.VERSIONS.low, cls.VERSIONS.high + 1)
    for root in [cls.facts().root]
    if any(
        one.attribute == (place.array or place.id) and version in one.versions
        for one in root.fields
    )
]


@pytest.mark.parametrize(("cls", "place", "version"), _CASES)
def test_an_address_becomes_that_of_the_proxy(
    cls: type[Message], place: Place, version: int
) -> None:
    """And nothing else changes: one node with two addresses where there may be two."""
    body = cls()
    _fill(body, place, ("broker.test", 9092))
    expected = cls()
    role = place.role or BROKER
    is_list = bool(place.inner) or not place.id
    _fill(expected, place, *[here(Node(role, 7, number)) for number in range(1 + is_list)])
    if cls.KIND == "request":
        assert asks_with_addresses(cls.API_KEY, version)
        (sent,) = layer().handle(client(request_frame(body, version)), 0.0)
        assert isinstance(sent, Send)
        found = decode_request(bytes(sent.data[4:]))[1]
    else:
        assert answers_with_addresses(cls.API_KEY, version)
        tested = layer()
        asked = messages.request_class(cls.API_KEY)()
        _fit(asked, version)
        tested.handle(client(request_frame(asked, version)), 0.0)
        (sent,) = tested.handle(upstream(response_frame(body, version)), 0.0)
        assert isinstance(sent, Send)
        found = decode_response(bytes(sent.data[4:]), cls.API_KEY, version)[1]
    assert found == expected


def _fit(asked: Any, version: int) -> None:
    """Give a request without contents what its version has to have."""
    if asked.NAME == "ProduceRequest":
        asked.acks = -1
    if asked.NAME == "FetchRequest" and version < 15:
        asked.replica_state = None


def _fill(body: Any, place: Place, *addresses: tuple[str, int]) -> None:
    """Put node 7 into a message with its addresses; the first one twice where two are wanted."""
    root = body.facts().root
    if not place.array:
        body.node_id, (body.host, body.port) = 7, addresses[0]
        return
    holder = _element(root, place.array)
    if place.inner:
        inner = _element(next(
            one.struct for one in root.fields if one.attribute == place.array
        ), place.inner)
        setattr(holder, place.id, 7)
        setattr(holder, place.inner, _holders(type(inner), addresses))
        setattr(body, place.array, [holder])
    elif not place.id:
        setattr(body, place.array, _holders(type(holder), addresses))
        topic = _element(root, "topics")
        topics = next(one.struct for one in root.fields if one.attribute == "topics")
        topic.partitions = [_element(topics, "partitions")]
        topic.partitions[0].leader_id = 7
        body.topics = [topic]
    else:
        setattr(holder, place.id, 7)
        holder.host, holder.port = addresses[0]
        is_array = next(one.is_array for one in root.fields if one.attribute == place.array)
        setattr(body, place.array, [holder] if is_array else holder)


def _holders(cls: type[Any], addresses: tuple[tuple[str, int], ...]) -> list[Any]:
    """Two holders of addresses, told apart by the names of their listeners."""
    found = []
    for number in range(2):
        holder = cls()
        holder.name = f"LISTENER{number}"
        holder.host, holder.port = addresses[min(number, len(addresses) - 1)]
        found.append(holder)
    return found


def _element(facts: StructFacts | None, attribute: str) -> Any:
    assert facts is not None
    struct = next(one.struct for one in facts.fields if one.attribute == attribute)
    assert struct is not None
    return struct.cls()


def test_a_message_without_a_node_is_not_changed() -> None:
    """A coordinator that is not found has no id, no host and no port."""
    cls = messages.response_class(10)
    tested = layer()
    tested.handle(client(request_frame(messages.request_class(10)(), 3)), 0.0)
    body = cls(node_id=-1, host="", port=-1, error_code=15)  # type: ignore[call-arg]
    answered = response_frame(body, 3)
    (sent,) = tested.handle(upstream(answered), 0.0)
    assert isinstance(sent, Send)
    assert sent.data == answered


def test_describe_cluster_says_itself_which_nodes_it_describes() -> None:
    """Brokers describe themselves, controllers themselves, whatever the connection leads to."""
    cls: Any = messages.response_class(60)
    nodes: Any = messages.find("DescribeClusterResponse")
    broker = _element(nodes.facts().root, "brokers")
    broker.broker_id, broker.host, broker.port = 3, "c.test", 9093
    body = cls(endpoint_type=ENDPOINT_CONTROLLER, brokers=[broker])
    tested = layer()
    tested.handle(client(request_frame(messages.request_class(60)(), 1)), 0.0)
    (sent,) = tested.handle(upstream(response_frame(body, 1)), 0.0)
    assert isinstance(sent, Send)
    found: Any = decode_response(bytes(sent.data[4:]), 60, 1)[1]
    assert (found.brokers[0].host, found.brokers[0].port) == here(Node(CONTROLLER, 3))


def _carried(data: bytes, answer: bytes | None) -> bytes:
    """What passes of the answer that a broker gets in an Envelope for a client's request."""
    tested = layer(role=CONTROLLER)
    envelope = EnvelopeRequest(request_data=data, client_host_address=bytes(4))
    asked = request_frame(envelope, 0)
    assert tested.handle(client(asked), 0.0) == [to_upstream(asked)]
    answered = response_frame(EnvelopeResponse(response_data=answer), 0)
    (sent,) = tested.handle(upstream(answered), 0.0)
    assert isinstance(sent, Send)
    found: Any = decode_response(bytes(sent.data[4:]), 58, 0)[1]
    carried: bytes = found.response_data
    return carried


def test_an_envelope_has_no_other_addresses_than_its_broker_may_see() -> None:
    """DescribeQuorum is forwarded to the controllers, and brokers give the answer to clients."""
    body = DescribeQuorumResponse()
    _fill(body, RESPONSES[55][0], ("controller.test", 9093))
    expected = DescribeQuorumResponse()
    nodes = (here(Node(CONTROLLER, 7, number)) for number in range(2))
    _fill(expected, RESPONSES[55][0], *nodes)
    forwarded = request_frame(DescribeQuorumRequest(), 2, 5)[4:]
    found = _carried(forwarded, response_frame(body, 2, 5)[4:])
    assert found == response_frame(expected, 2, 5)[4:]


@pytest.mark.parametrize(
    ("forwarded", "answer"),
    [
        (request_frame(DescribeQuorumRequest(), 2, 5)[4:], b"unreadable"),
        (request_frame(DescribeQuorumRequest(), 2, 5)[4:], None),
        (request_frame(DescribeQuorumRequest(), 0, 5)[4:], b"has no addresses"),
        (b"\0\x37\x7f\xff", b"of an unknown version"),
        (b"\0", b"to no request"),
    ],
)
def test_what_else_an_envelope_carries_passes(forwarded: bytes, answer: bytes | None) -> None:
    """Whether or not it can be read; the broker judges it."""
    assert _carried(forwarded, answer) == answer
