"""Whether a Produce request has a response is read from its bytes, in every version."""

from __future__ import annotations

import pytest

from kraftwire.capture.framing.headers import produce_acks
from kraftwire.messages.produce_request import ProduceRequest
from kraftwire.messages.request_header import RequestHeader
from kraftwire.protocol.payloads import encode_request

PRODUCE = 0
VERSIONS = range(ProduceRequest.VERSIONS.low, ProduceRequest.VERSIONS.high + 1)
CLIENT = "client"
# Length of the fixed fields and of the client id before the place that the function is given.
CLIENT_END = 8 + 2 + len(CLIENT)


@pytest.mark.parametrize("transactional_id", [None, "", "a transaction"])
@pytest.mark.parametrize("acks", [0, 1, -1])
@pytest.mark.parametrize("version", VERSIONS)
def test_acks_are_found_in_every_version(
    version: int, acks: int, transactional_id: str | None
) -> None:
    """A version that moves the field would leave requests without their responses."""
    body = ProduceRequest(acks=acks, timeout_ms=1000)
    if version >= 3:
        body.transactional_id = transactional_id
    header = RequestHeader(
        request_api_key=PRODUCE, request_api_version=version, correlation_id=1, client_id=CLIENT
    )
    data = encode_request(header, body)
    assert produce_acks(data, CLIENT_END, len(data), version) == acks
