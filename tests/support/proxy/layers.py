"""Layers for tests, over a table of nodes whose listeners are made up, and frames for them."""

from __future__ import annotations

from typing import Any

from kraftwire import messages
from kraftwire.faults.rules import FaultRules
from kraftwire.messages.request_header import RequestHeader
from kraftwire.messages.response_header import ResponseHeader
from kraftwire.protocol.endpoint import Address
from kraftwire.protocol.payloads import encode_request, encode_response
from kraftwire.proxy.addresses import BROKER, Node
from kraftwire.proxy.layer import ProxyLayer
from kraftwire.proxy.nodes import NodeTable
from kraftwire.proxy.state import ConnectionState, Shared
from kraftwire.wire.frame import frame
from kraftwire.wire.message import Message

HERE = "proxy.test"


def here(node: Node) -> Address:
    """The address here of a node: one for each role, id and listener."""
    base = 20_000 if node.role == BROKER else 30_000
    return HERE, base + 100 * node.listener + node.id


def shared(rules: FaultRules | None = None, *, records: bool = False) -> Shared:
    """What the connections of a proxy share."""
    table = NodeTable(here)
    return Shared(find_here=table.find_here, rules=rules or FaultRules(), records=records)


def layer(
    rules: FaultRules | None = None,
    *,
    records: bool = False,
    role: str = BROKER,
    node: int | None = None,
) -> ProxyLayer:
    """A new connection to a node."""
    common = shared(rules, records=records)
    return ProxyLayer(ConnectionState(shared=common, role=role, node=node))


def request(
    name: str, version: int, correlation_id: int = 1, client_id: str | None = "me", **fields: Any
) -> bytes:
    """The frame of a request."""
    return request_frame(_message(f"{name}Request", fields), version, correlation_id, client_id)


def request_frame(
    body: Message, version: int, correlation_id: int = 1, client_id: str | None = "me"
) -> bytes:
    """The frame of a request with this body."""
    header = RequestHeader(
        request_api_key=body.API_KEY,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    return frame(encode_request(header, body))


def response(name: str, version: int, correlation_id: int = 1, **fields: Any) -> bytes:
    """The frame of a response."""
    return response_frame(_message(f"{name}Response", fields), version, correlation_id)


def response_frame(body: Message, version: int, correlation_id: int = 1) -> bytes:
    """The frame of a response with this body."""
    return frame(encode_response(ResponseHeader(correlation_id=correlation_id), body, version))


def _message(name: str, fields: dict[str, Any]) -> Message:
    made: Message = messages.find(name)(**fields)
    return made
