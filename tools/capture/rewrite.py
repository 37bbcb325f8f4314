"""Replaces addresses of nodes inside answers by those of a proxy.

Owns which answers name nodes. It follows the requests of a connection, because an answer can be
read only with its request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kraftwire.errors import WireError
from kraftwire.messages.describe_cluster_response import DescribeClusterResponse
from kraftwire.messages.fetch_response import FetchResponse
from kraftwire.messages.find_coordinator_response import FindCoordinatorResponse
from kraftwire.messages.metadata_response import MetadataResponse
from kraftwire.messages.produce_response import ProduceResponse
from kraftwire.protocol.payloads import decode_request_header, decode_response, encode_response
from kraftwire.wire.frame import FrameBuffer, frame
from kraftwire.wire.message import Message

# Host and port as advertised -> host and port for the client.
Redirect = Callable[[str, int], tuple[str, int]]

_NAMING = {
    response.API_KEY
    for response in (
        MetadataResponse,
        DescribeClusterResponse,
        FindCoordinatorResponse,
        ProduceResponse,
        FetchResponse,
    )
}


class Rewriter:
    """Rewrites the answers of one connection.

    Order: a request goes through `on_request` before its answer goes through `answer`.
    Raises: WireError if the bytes are not Kafka's frames; the connection is then unusable.
    """

    def __init__(self, redirect: Redirect) -> None:
        self._redirect = redirect
        self._requests = FrameBuffer()
        self._responses = FrameBuffer()
        # Correlation id -> API key and version of requests whose answers name nodes.
        self._expected: dict[int, tuple[int, int]] = {}

    def on_request(self, data: bytes) -> None:
        """Record which answers to expect."""
        for payload in self._requests.feed(data):
            header, _ = decode_request_header(payload)
            if header.request_api_key in _NAMING:
                api = (header.request_api_key, header.request_api_version)
                self._expected[header.correlation_id] = api

    def answer(self, data: bytes) -> bytes:
        """Return the bytes for the client in place of the server's; whole frames only."""
        return b"".join(frame(self._rewritten(each)) for each in self._responses.feed(data))

    def _rewritten(self, payload: bytes) -> bytes:
        api = self._expected.pop(int.from_bytes(payload[:4], signed=True), None)
        if api is None:
            return payload
        try:
            header, body, end = decode_response(payload, *api)
        except WireError:
            return payload
        is_changed = False
        for node in _nodes(body):
            address = self._redirect(node.host, node.port)
            is_changed |= address != (node.host, node.port)
            node.host, node.port = address
        if not is_changed:
            return payload
        return encode_response(header, body, api[1]) + payload[end:]


def _nodes(body: Message) -> Iterator[Any]:
    """Yield everything with a host and a port; an empty host is not an address."""
    if isinstance(body, MetadataResponse | DescribeClusterResponse):
        found: list[Any] = list(body.brokers)
    elif isinstance(body, FindCoordinatorResponse):
        found = [body, *body.coordinators]
    elif isinstance(body, ProduceResponse | FetchResponse):
        found = list(body.node_endpoints)
    else:
        found = []
    yield from (node for node in found if node.host)
