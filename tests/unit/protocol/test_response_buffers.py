"""A long answer in pieces is the same frame as in one piece."""

from __future__ import annotations

import pytest

from kraftwire.messages.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from kraftwire.messages.response_header import ResponseHeader
from kraftwire.messages.vote_response import VoteResponse
from kraftwire.protocol.payloads import encode_response, response_buffers
from kraftwire.wire.frame import frame
from kraftwire.wire.message import Message

_HEADER = ResponseHeader(correlation_id=7)
_LONG = bytes(range(256)) * 300


def _partition(records: bytes | memoryview | None) -> PartitionData:
    leader = LeaderIdAndEpoch(leader_id=1, leader_epoch=3)
    return PartitionData(high_watermark=9, current_leader=leader, records=records)


def _answer(version: int, *records: bytes | memoryview | None) -> FetchResponse:
    topic = FetchableTopicResponse(partitions=list(map(_partition, records)))
    answer = FetchResponse(responses=[topic])
    if version >= 16:
        answer.node_endpoints = [NodeEndpoint(node_id=1, host="localhost", port=9092)]
    return answer


@pytest.mark.parametrize("version", range(12, 19))
@pytest.mark.parametrize("size", [65535, 65536, len(_LONG)])
def test_the_pieces_are_the_frame(version: int, size: int) -> None:
    """A length that does not fit what follows would end the connection of every follower."""
    for records in (_LONG[:size], memoryview(_LONG)[:size], bytes(size)):
        answer = _answer(version, records)
        pieces = response_buffers(_HEADER, answer, version)
        assert b"".join(pieces) == frame(encode_response(_HEADER, answer, version))
        assert answer.responses[0].partitions[0].records is records
        assert (len(pieces) > 1) == (size >= 65536)


def test_most_of_the_records_is_not_copied() -> None:
    """What is between the edges is a view of the given records."""
    pieces = response_buffers(_HEADER, _answer(17, _LONG), 17)
    views = [piece for piece in pieces if isinstance(piece, memoryview)]
    assert [view.obj is _LONG for view in views] == [True]
    assert len(views[0]) > len(_LONG) / 2


@pytest.mark.parametrize(
    ("answer", "version"),
    [
        (VoteResponse(), 2),
        (FetchResponse(), 17),
        (_answer(17), 17),
        (_answer(17, None), 17),
        (_answer(17, b""), 17),
        (_answer(17, _LONG, _LONG), 17),
    ],
)
def test_everything_else_is_one_piece(answer: Message, version: int) -> None:
    """Only a Fetch of one partition carries records for which it pays."""
    pieces = response_buffers(_HEADER, answer, version)
    assert pieces == [frame(encode_response(_HEADER, answer, version))]
