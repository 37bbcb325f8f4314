"""The client's side of a connection: negotiation, correlation ids, answers that are wrong."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftwire.errors import ApiError, WireError
from kraftwire.messages.api_versions_request import ApiVersionsRequest
from kraftwire.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from kraftwire.messages.describe_quorum_request import DescribeQuorumRequest
from kraftwire.messages.describe_quorum_response import DescribeQuorumResponse
from kraftwire.messages.fetch_request import FetchRequest, ReplicaState
from kraftwire.messages.response_header import ResponseHeader
from kraftwire.messages.vote_request import PartitionData, TopicData, VoteRequest
from kraftwire.messages.vote_response import VoteResponse
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.payloads import decode_request, encode_response
from kraftwire.protocol.session import ClientSession
from kraftwire.wire.frame import LENGTH_SIZE, frame
from kraftwire.wire.message import Message

FETCH, API_VERSIONS, VOTE, DESCRIBE_QUORUM = 1, 18, 52, 55
OFFERED = {API_VERSIONS: (0, 4), VOTE: (0, 2), DESCRIBE_QUORUM: (0, 2), FETCH: (4, 17)}


def asked(data: bytes) -> tuple[Message, int, int]:
    """A request's body, version and correlation id."""
    header, body, end = decode_request(data[LENGTH_SIZE:])
    assert end == len(data) - LENGTH_SIZE
    return body, header.request_api_version, header.correlation_id


def answer(correlation_id: int, body: Message, version: int) -> bytes:
    """The frame of a response."""
    return frame(encode_response(ResponseHeader(correlation_id=correlation_id), body, version))


def offer(versions: dict[int, tuple[int, int]], error: int = 0) -> ApiVersionsResponse:
    """The answer of a server that offers these versions."""
    keys = [ApiVersion(api_key=k, min_version=v[0], max_version=v[1]) for k, v in versions.items()]
    return ApiVersionsResponse(error_code=error, api_keys=keys)


def opened(versions: dict[int, tuple[int, int]] | None = None, **options: object) -> ClientSession:
    """A session whose negotiation is over."""
    session = ClientSession("tester", **options)  # type: ignore[arg-type]
    _, version, correlation_id = asked(session.open())
    assert session.receive(answer(correlation_id, offer(versions or OFFERED), version)) == []
    assert session.is_ready
    return session


def test_the_first_request_is_api_versions_5_and_tells_the_software() -> None:
    """Peers decide by the software name whether a node is one of ours."""
    body, version, _ = asked(ClientSession("tester").open())
    assert isinstance(body, ApiVersionsRequest)
    assert (version, body.cluster_id, body.node_id) == (5, None, -1)
    assert body.client_software_name == "kraftwire"
    assert body.client_software_version[0].isdigit()


def test_the_node_that_is_meant_is_named() -> None:
    """Another one refuses the connection (R-SRV-8); an older server is not told."""
    session = ClientSession("tester", aim=("c", 7))
    body, _, first_id = asked(session.open())
    assert isinstance(body, ApiVersionsRequest)
    assert (body.cluster_id, body.node_id) == ("c", 7)
    refusal = offer({API_VERSIONS: (0, 4)}, ErrorCode.UNSUPPORTED_VERSION)
    session.receive(answer(first_id, refusal, 0))
    body, version, _ = asked(session.take_output())
    assert isinstance(body, ApiVersionsRequest)
    assert (version, body.cluster_id, body.node_id) == (4, None, -1)


def test_an_older_server_is_asked_again_in_the_version_that_it_names() -> None:
    """KIP-511: the answer in version 0 lists the versions of ApiVersions, and nothing else."""
    session = ClientSession("tester")
    _, _, first_id = asked(session.open())
    refusal = offer({API_VERSIONS: (0, 2)}, ErrorCode.UNSUPPORTED_VERSION)
    assert session.receive(answer(first_id, refusal, 0)) == []
    assert not session.is_ready
    _, version, second_id = asked(session.take_output())
    assert version == 2
    assert session.take_output() == b""
    session.receive(answer(second_id, offer(OFFERED), 2))
    assert session.versions[VOTE] == (0, 2)


def test_a_server_that_names_no_version_is_asked_in_version_0() -> None:
    """The oldest servers send the error and an empty list."""
    session = ClientSession("tester")
    _, _, first_id = asked(session.open())
    session.receive(answer(first_id, offer({}, ErrorCode.UNSUPPORTED_VERSION), 0))
    assert asked(session.take_output())[1] == 0


def test_a_server_that_refuses_every_version_is_not_asked_for_ever() -> None:
    """A peer that always answers 35 must not keep a client busy."""
    session = ClientSession("tester")
    data = session.open()
    refusal = offer({API_VERSIONS: (0, 9)}, ErrorCode.UNSUPPORTED_VERSION)
    for expected in (5, 4, 3, 2, 1):
        _, version, correlation_id = asked(data)
        assert version == expected
        session.receive(answer(correlation_id, refusal, 0))
        data = session.take_output()
    _, _, correlation_id = asked(data)
    with pytest.raises(ApiError, match="UNSUPPORTED_VERSION"):
        session.receive(answer(correlation_id, refusal, 0))


def test_another_error_ends_the_negotiation_with_its_name() -> None:
    """The user needs to know that the server refuses a client id or software name."""
    session = ClientSession("tester")
    _, version, correlation_id = asked(session.open())
    with pytest.raises(ApiError, match="INVALID_REQUEST") as raised:
        session.receive(answer(correlation_id, offer({}, ErrorCode.INVALID_REQUEST), version))
    assert raised.value.code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("theirs", "ours", "expected"),
    [
        pytest.param((0, 2), None, 2, id="all of ours"),
        pytest.param((0, 99), None, VoteRequest.VERSIONS.high, id="newer ones that we do not know"),
        pytest.param((0, 1), None, 1, id="older than ours"),
        pytest.param((0, 2), (0, 1), 1, id="narrowed on purpose"),
    ],
)
def test_each_api_is_spoken_in_its_highest_common_version(
    theirs: tuple[int, int], ours: tuple[int, int] | None, expected: int
) -> None:
    """R-NET-2: the intersection per API, not one version for all."""
    own = {VOTE: ours} if ours else None
    session = opened({API_VERSIONS: (0, 4), VOTE: theirs}, own_versions=own)
    assert session.version_of(VOTE) == expected
    _, data = session.request(VoteRequest())
    assert asked(data)[1] == expected


@pytest.mark.parametrize(
    ("offered", "text"),
    [
        pytest.param({API_VERSIONS: (0, 4)}, "does not support Vote", id="no such API"),
        pytest.param(
            {VOTE: (7, 9)}, f"Vote 7-9, this client {VoteRequest.VERSIONS}", id="only newer ones"
        ),
    ],
)
def test_without_a_common_version_nothing_is_sent(
    offered: dict[int, tuple[int, int]], text: str
) -> None:
    """R-NET-3: the local error equals a peer's, so callers handle both alike."""
    session = opened(offered)
    with pytest.raises(ApiError, match=text) as raised:
        session.request(VoteRequest())
    assert raised.value.code == ErrorCode.UNSUPPORTED_VERSION
    assert not session._in_flight


@pytest.mark.parametrize("version", [17, 15, 14, 13])
def test_a_fetch_names_its_replica_where_the_version_has_it(version: int) -> None:
    """A follower of an older leader that could not identify itself would follow nobody."""
    session = opened({**OFFERED, FETCH: (4, version)})
    request = FetchRequest(replica_state=ReplicaState(replica_id=7))
    body, sent, _ = asked(session.request(request)[1])
    assert isinstance(body, FetchRequest)
    assert sent == version
    if version >= 15:
        assert body.replica_state == ReplicaState(replica_id=7)
    else:
        assert body.replica_id == 7
    assert request.replica_state == ReplicaState(replica_id=7), "the request stays as it was"


def test_a_field_that_the_version_cannot_carry_is_a_local_error_too() -> None:
    """A pre-vote sent as a real vote would disturb the leader, so it is not sent."""
    session = opened({VOTE: (0, 1)})
    partition = PartitionData(pre_vote=True)
    message = VoteRequest(topics=[TopicData(topic_name="t", partitions=[partition])])
    with pytest.raises(ApiError, match="Vote") as raised:
        session.request(message)
    assert raised.value.code == ErrorCode.UNSUPPORTED_VERSION
    assert not session._in_flight


def test_answers_find_their_requests_in_any_order_and_in_any_pieces() -> None:
    """TCP cuts frames anywhere, and a proxy may answer out of order."""
    session = opened()
    vote_id, _ = session.request(VoteRequest())
    quorum_id, _ = session.request(DescribeQuorumRequest())
    fetch_id, data = session.request(FetchRequest(replica_state=ReplicaState(replica_id=-1)))
    assert len({vote_id, quorum_id, fetch_id}) == 3
    assert asked(data)[1] == 17
    stream = answer(quorum_id, DescribeQuorumResponse(error_code=31), 2)
    stream += answer(vote_id, VoteResponse(), 2)
    answers = [found for byte in stream for found in session.receive(bytes([byte]))]
    assert [found[0] for found in answers] == [quorum_id, vote_id]
    first = answers[0][1]
    assert isinstance(first, DescribeQuorumResponse)
    assert first.error_code == 31


def test_an_unreadable_answer_is_an_error_in_its_place_and_the_rest_is_read() -> None:
    """One bad answer of a peer must not cost the connection."""
    session = opened()
    bad_id, _ = session.request(DescribeQuorumRequest())
    good_id, _ = session.request(DescribeQuorumRequest())
    bad = frame(struct.pack(">i", bad_id) + b"\xff\xff")
    good = answer(good_id, DescribeQuorumResponse(), 2)
    answers = session.receive(bad + good)
    assert [found[0] for found in answers] == [bad_id, good_id]
    assert isinstance(answers[0][1], WireError)
    assert isinstance(answers[1][1], DescribeQuorumResponse)


def test_an_answer_that_nobody_asked_for_is_an_error_in_its_place() -> None:
    """It ends Kafka's client; here the owner of the connection decides."""
    session = opened()
    correlation_id, _ = session.request(DescribeQuorumRequest())
    ((found_id, found),) = session.receive(answer(77, DescribeQuorumResponse(), 2))
    assert found_id == 77
    assert isinstance(found, WireError)
    assert "an answer to no request" in str(found)
    assert f"correlation id {correlation_id}" in str(found)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        pytest.param(struct.pack(">i", -1), "0 to 1000", id="a negative length"),
        pytest.param(struct.pack(">i", 1001), "found 1001", id="more than the limit"),
        pytest.param(b"HTTP/1.1 400 Bad Request", "frame length", id="another protocol"),
        pytest.param(frame(b"ab"), "too short", id="no correlation id"),
    ],
)
def test_a_lost_stream_ends_the_session(data: bytes, text: str) -> None:
    """It is unknown where the next frame begins: nothing after it can be trusted."""
    session = opened(frame_size_max=1000)
    with pytest.raises(WireError, match=text):
        session.receive(data)


def test_a_bad_answer_to_the_negotiation_ends_the_session() -> None:
    """Without versions no request can be made."""
    session = ClientSession("tester")
    _, _, correlation_id = asked(session.open())
    with pytest.raises(WireError):
        session.receive(frame(struct.pack(">ih", correlation_id, 0)))


def test_correlation_ids_start_again_before_they_overflow() -> None:
    """A node's connections may last for years; the id is a signed 32-bit integer."""
    session = opened()
    session._next_id = 0x7FFFFFFF
    last_id, _ = session.request(DescribeQuorumRequest())
    next_id, _ = session.request(DescribeQuorumRequest())
    assert (last_id, next_id) == (0x7FFFFFFF, 0)


@given(st.lists(st.binary(max_size=60), max_size=8), st.booleans())
def test_no_bytes_of_a_peer_raise_anything_unexpected(pieces: list[bytes], is_open: bool) -> None:
    """The owner of the socket handles two kinds of errors, and nothing else may be raised."""
    session = opened(frame_size_max=1000) if is_open else ClientSession("tester")
    if is_open:
        session.request(DescribeQuorumRequest())
    else:
        session.open()
    for piece in pieces:
        try:
            # Half of the pieces are whole frames, so that some get past the length.
            session.receive(frame(piece) if len(piece) % 2 else piece)
            session.take_output()
        except (WireError, ApiError):
            break
    assert len(session._in_flight) <= 2
