"""Leader hints behind the records of an answer: rewritten if it is short, hidden if it is long."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.messages import fetch_response, share_fetch_response
from kraftwire.messages.fetch_request import FetchRequest
from kraftwire.messages.share_fetch_request import ShareFetchRequest
from kraftwire.protocol.payloads import decode_response
from kraftwire.proxy.events import Send
from kraftwire.proxy.hints import HintsFilter
from kraftwire.proxy.responses import HELD_BYTES_MAX
from kraftwire.wire.message import Message
from tests.support.proxy.layers import HERE, layer, request_frame, response_frame
from tests.support.proxy.playbook import client, upstream

_VERSIONS = [
    *(pytest.param(FetchRequest, version, id=f"Fetch-{version}") for version in (16, 17, 18)),
    *(
        pytest.param(ShareFetchRequest, version, id=f"ShareFetch-{version}")
        for version in range(ShareFetchRequest.VERSIONS.low, ShareFetchRequest.VERSIONS.high + 1)
    ),
]


def _answer(request: type[Message], size: int) -> Message:
    """An answer with every kind of field, records of this size, and hints."""
    if request is FetchRequest:
        fetched = fetch_response.LeaderIdAndEpoch(leader_id=3, leader_epoch=8)
        return fetch_response.FetchResponse(
            responses=[
                fetch_response.FetchableTopicResponse(
                    topic_id=bytes(range(16)),
                    partitions=[
                        fetch_response.PartitionData(records=None, current_leader=fetched),
                        fetch_response.PartitionData(
                            partition_index=1,
                            aborted_transactions=[
                                fetch_response.AbortedTransaction(producer_id=1, first_offset=2)
                            ],
                            records=bytes(size),
                        ),
                    ],
                )
            ],
            node_endpoints=[
                fetch_response.NodeEndpoint(node_id=3, host="b.test", port=9092, rack="r")
            ],
        )
    other = share_fetch_response
    leader = other.LeaderIdAndEpoch(leader_id=3, leader_epoch=8)
    acquired = other.AcquiredRecords(first_offset=1, last_offset=9, delivery_count=1)
    partition = other.PartitionData(
        records=bytes(size),
        current_leader=leader,
        error_message="text",
        acquired_records=[acquired],
    )
    return other.ShareFetchResponse(
        error_message=None,
        responses=[
            other.ShareFetchableTopicResponse(topic_id=bytes(range(16)), partitions=[partition])
        ],
        node_endpoints=[other.NodeEndpoint(node_id=3, host="b.test", port=9092, rack=None)],
    )


def _asked(request: type[Message], version: int) -> bytes:
    body: Any = request()
    if request is FetchRequest:
        body.replica_state = None
    return request_frame(body, version)


@pytest.mark.parametrize(("request_class", "version"), _VERSIONS)
def test_hints_of_a_short_answer_are_rewritten(request_class: type[Message], version: int) -> None:
    """The client goes on to the leader without asking again, through the proxy."""
    body = _answer(request_class, 1000)
    tested = layer()
    tested.handle(client(_asked(request_class, version)), 0.0)
    (sent,) = tested.handle(upstream(response_frame(body, version)), 0.0)
    assert isinstance(sent, Send)
    found: Any = decode_response(bytes(sent.data[4:]), request_class.API_KEY, version)[1]
    (hint,) = found.node_endpoints
    assert (hint.node_id, hint.host, hint.port) == (3, HERE, 20_003)
    assert found.responses[0].partitions[-1].records == bytes(1000)


@pytest.mark.parametrize("step", [1_000_003, 65_536, 300_000])
@pytest.mark.parametrize(("request_class", "version"), _VERSIONS)
def test_hints_of_a_long_answer_are_hidden_while_it_streams(
    request_class: type[Message], version: int, step: int
) -> None:
    """The size of the frame stays; the leader's id stays too, and a client asks where it is."""
    body = _answer(request_class, HELD_BYTES_MAX)
    answered = response_frame(body, version)
    tested = layer()
    tested.handle(client(_asked(request_class, version)), 0.0)
    passed = b""
    for start in range(0, len(answered), step):
        (sent,) = tested.handle(upstream(answered[start : start + step]), 0.0)
        assert isinstance(sent, Send)
        passed += sent.data
    assert len(passed) == len(answered)
    found: Any = decode_response(passed[4:], request_class.API_KEY, version)[1]
    expected: Any = _answer(request_class, HELD_BYTES_MAX)
    assert found.responses == expected.responses
    assert found.node_endpoints == []
    assert list(found.unknown_tagged_fields) == [126]
    assert tested.is_idle


@pytest.mark.parametrize("size", [0, 1, 100, 500])
@pytest.mark.parametrize("count", [0, 1, 3, 9, 10, 200, 2000])
@pytest.mark.parametrize("request_class", [FetchRequest, ShareFetchRequest])
def test_any_number_of_hints_is_hidden_in_pieces_of_one_byte(
    request_class: type[Message], count: int, size: int
) -> None:
    """Wherever the network cuts, and however long their own length is written."""
    body: Any = _answer(request_class, size)
    version = request_class.VERSIONS.high
    body.node_endpoints *= count
    data = response_frame(body, version)
    filtered = HintsFilter(request_class.API_KEY, version, len(data))
    passed = b"".join(bytes(filtered.feed(data[at : at + 1])) for at in range(len(data)))
    assert len(passed) == len(data)
    found: Any = decode_response(passed[4:], request_class.API_KEY, version)[1]
    assert found.node_endpoints == []
    assert found.responses == body.responses
    assert (passed == data) is (count == 0)


def test_an_answer_that_is_none_passes() -> None:
    """The client judges it."""
    garbage = bytes(range(256)) * 40
    assert HintsFilter(1, 17, len(garbage)).feed(garbage) == garbage
