"""Headers and envelopes: which header precedes which body, in both directions."""

from __future__ import annotations

import pytest

from kraftwire import messages
from kraftwire.errors import WireError
from kraftwire.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from kraftwire.messages.controlled_shutdown_request import ControlledShutdownRequest
from kraftwire.messages.request_header import RequestHeader
from kraftwire.messages.response_header import ResponseHeader
from kraftwire.messages.vote_request import VoteRequest
from kraftwire.messages.vote_response import VoteResponse
from kraftwire.protocol.payloads import (
    decode_request,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
)
from kraftwire.protocol.versions import (
    nearest_version,
    request_header_version,
    response_header_version,
)

API_VERSIONS, CONTROLLED_SHUTDOWN, SASL_HANDSHAKE, VOTE = 18, 7, 17, 52


@pytest.mark.parametrize(
    ("api_key", "api_version", "request_version", "response_version"),
    [
        pytest.param(1, 11, 1, 0, id="the last fixed Fetch"),
        pytest.param(1, 12, 2, 1, id="the first flexible Fetch"),
        pytest.param(API_VERSIONS, 2, 1, 0, id="an old ApiVersions"),
        pytest.param(API_VERSIONS, 4, 2, 0, id="ApiVersions answers without tagged fields"),
        pytest.param(SASL_HANDSHAKE, 1, 1, 0, id="SaslHandshake is never flexible"),
        pytest.param(CONTROLLED_SHUTDOWN, 0, 0, 0, id="the request without client id"),
        pytest.param(CONTROLLED_SHUTDOWN, 1, 1, 0, id="the same, one version later"),
        pytest.param(VOTE, 99, 2, 1, id="a version yet to come"),
        pytest.param(999, 0, 2, 1, id="an API yet to come"),
    ],
)
def test_header_versions_follow_kafka(
    api_key: int, api_version: int, request_version: int, response_version: int
) -> None:
    """One wrong header version shifts every byte of the body."""
    assert request_header_version(api_key, api_version) == request_version
    assert response_header_version(api_key, api_version) == response_version


@pytest.mark.parametrize("api_key", sorted(messages.API_NAMES))
def test_every_request_survives_the_envelope_in_every_version(api_key: int) -> None:
    """Header and body meet at the same byte in both directions, for all 850 pairs."""
    low, high = messages.API_VERSIONS[api_key]
    for version in range(low, high + 1):
        header = RequestHeader(
            request_api_key=api_key,
            request_api_version=version,
            correlation_id=7,
            client_id="" if request_header_version(api_key, version) == 0 else "tester",
        )
        body = messages.request_class(api_key)()
        payload = encode_request(header, body)
        assert decode_request(payload) == (header, body, len(payload))

        answer = messages.response_class(api_key)()
        answered = encode_response(ResponseHeader(correlation_id=7), answer, version)
        expected = (ResponseHeader(correlation_id=7), answer, len(answered))
        assert decode_response(answered, api_key, version) == expected


def test_an_answer_in_the_oldest_version_is_read_as_such() -> None:
    """A server older than its client answers ApiVersions in version 0, whatever was asked."""
    body = ApiVersionsResponse(
        error_code=35, api_keys=[ApiVersion(api_key=18, min_version=0, max_version=2)]
    )
    payload = encode_response(ResponseHeader(correlation_id=1), body, 0)
    for asked in (1, 2, 3, 4):
        _, decoded, end = decode_response(payload, API_VERSIONS, asked)
        assert (decoded, end) == (body, len(payload))


def test_an_unsupported_answer_in_its_own_version_is_not_taken_for_the_oldest() -> None:
    """Error 35 alone does not make an answer one of version 0."""
    body = ApiVersionsResponse(error_code=35, api_keys=[ApiVersion(api_key=18, max_version=4)])
    for version in (1, 2, 3, 4):
        payload = encode_response(ResponseHeader(correlation_id=1), body, version)
        assert decode_response(payload, API_VERSIONS, version)[1] == body


def test_the_header_of_an_unknown_version_can_still_be_read() -> None:
    """To refuse a request, a server needs its correlation id."""
    header = RequestHeader(
        request_api_key=VOTE, request_api_version=99, correlation_id=5, client_id="new"
    )
    payload = header.encode(2) + b"whatever"
    assert decode_request_header(payload) == (header, len(payload) - 8)
    with pytest.raises(WireError, match=rf"Vote v99.*versions {VoteRequest.VERSIONS}.*version 99"):
        decode_request(payload)
    with pytest.raises(WireError, match="no schema"):
        decode_response(payload, 999, 0)


def test_a_payload_without_key_and_version_is_refused_with_a_place() -> None:
    """Two bytes are not a request, and the error says so instead of a struct error."""
    with pytest.raises(WireError, match=r"RequestHeader at offset 0.*at least 4 bytes, found 2"):
        decode_request(b"\x00\x01")


def test_a_body_that_ends_early_names_its_offset_in_the_payload() -> None:
    """Offsets count from the header's first byte, so they can be found in a hexdump."""
    header = RequestHeader(request_api_key=VOTE, request_api_version=2, client_id="x")
    payload = encode_request(header, VoteRequest(cluster_id="abc"))
    with pytest.raises(WireError) as caught:
        decode_request(memoryview(payload)[:-1])
    assert caught.value.offset == len(payload) - 1


def test_bytes_after_the_body_are_left_to_the_caller() -> None:
    """Real clients send such bytes; a server may accept them and a tool must show them."""
    header = ResponseHeader(correlation_id=3)
    payload = encode_response(header, VoteResponse(error_code=41), 2)
    assert decode_response(payload + b"\x00", VOTE, 2)[2] == len(payload)


def test_the_oldest_request_has_no_client_id() -> None:
    """ControlledShutdown version 0 is the only request with an eight-byte header."""
    header = RequestHeader(request_api_key=7, request_api_version=0, correlation_id=9)
    payload = encode_request(header, ControlledShutdownRequest(broker_id=3))
    assert payload.hex() == "0007" "0000" "00000009" "00000003"


def test_the_nearest_known_version_is_found_on_either_side() -> None:
    """An attempt at an unknown version starts from the schema closest to it."""
    assert nearest_version(VOTE, 9) == VoteRequest.VERSIONS.high
    assert nearest_version(VOTE, -1) == 0
    assert nearest_version(VOTE, 1) == 1
    assert nearest_version(999, 1) is None
