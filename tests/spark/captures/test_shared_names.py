"""Names that connections learn from each other, packet by packet."""

from __future__ import annotations

from kraftwire.messages.metadata_request import MetadataRequest
from kraftwire.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)
from kraftwire.messages.request_header import RequestHeader
from kraftwire.messages.response_header import ResponseHeader
from kraftwire.protocol.payloads import encode_request, encode_response
from kraftwire.spark.captures.shared_names import NameGatherer, PacketDirection
from kraftwire.wire.frame import frame

_VERSION = 12
_ID = b"i" * 16


def _directions() -> tuple[PacketDirection, PacketDirection]:
    there, back = PacketDirection(0), PacketDirection(1)
    there.other, back.other = back, there
    return there, back


def _request(correlation_id: int) -> bytes:
    header = RequestHeader(
        request_api_key=3, request_api_version=_VERSION, correlation_id=correlation_id
    )
    return frame(encode_request(header, MetadataRequest(topics=[])))


def _response(correlation_id: int) -> bytes:
    topic = MetadataResponseTopic(name="orders", topic_id=_ID)
    brokers = [MetadataResponseBroker(node_id=1, host="one", port=9092)]
    body = MetadataResponse(brokers=brokers, cluster_id="a cluster", topics=[topic])
    return frame(encode_response(ResponseHeader(correlation_id=correlation_id), body, _VERSION))


def _look(gatherer: NameGatherer, direction: PacketDirection, seq: int, data: bytes) -> None:
    gatherer.read_packet(direction, seq, data, 0, len(data))


def test_a_response_in_several_packets() -> None:
    """It tells the topic's id and the cluster of the broker."""
    gatherer, (there, back), response = NameGatherer(), _directions(), _response(7)
    _look(gatherer, there, 0, _request(7))
    for at in range(0, len(response), 16):
        _look(gatherer, back, at, response[at : at + 16])
    assert gatherer.names.topics == {_ID: "orders"}
    assert gatherer.names.clusters == {"one:9092": "a cluster"}


def test_a_response_that_later_requests_push_out() -> None:
    """The index of such a capture failed: the table of awaited responses has a bound."""
    gatherer, (there, back), response = NameGatherer(), _directions(), _response(7)
    _look(gatherer, there, 0, _request(7))
    _look(gatherer, back, 0, response[:16])
    for number in range(100, 300):
        _look(gatherer, there, 0, _request(number))
    _look(gatherer, back, 16, response[16:])
    assert gatherer.names.topics == {}
    _look(gatherer, back, len(response), _response(299))
    assert gatherer.names.topics == {_ID: "orders"}
