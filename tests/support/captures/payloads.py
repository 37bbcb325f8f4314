"""Payloads of requests and responses, made from JSON, and how the decode tool shows them."""

from __future__ import annotations

from typing import Any

from kraftwire import messages
from kraftwire.decode.body.context import FrameContext
from kraftwire.decode.body.frame import Frame, FrameDecoder, uncaptured
from kraftwire.decode.body.records import RecordsForm, Settings
from kraftwire.messages.request_header import RequestHeader
from kraftwire.messages.response_header import ResponseHeader
from kraftwire.protocol.payloads import encode_request, encode_response
from kraftwire.wire.message import Message

Body = Message | dict[str, Any]

_KEYS = {name: key for key, name in messages.API_NAMES.items()}


def api_key(name: str) -> int:
    """The key of an API by its name."""
    return _KEYS[name]


def request(name: str, version: int, body: Body, correlation: int = 1) -> bytes:
    """The payload of a request; the body as an object or in the form of Kafka's converters."""
    header = RequestHeader(
        request_api_key=api_key(name),
        request_api_version=version,
        correlation_id=correlation,
        client_id="tester",
    )
    return encode_request(header, _body(f"{name}Request", version, body))


def response(name: str, version: int, body: Body, correlation: int = 1) -> bytes:
    """The payload of a response."""
    header = ResponseHeader(correlation_id=correlation)
    return encode_response(header, _body(f"{name}Response", version, body), version)


def _body(name: str, version: int, body: Body) -> Message:
    if isinstance(body, Message):
        return body
    return messages.find(name).from_json(body, version)


def view(
    payload: bytes,
    answers: tuple[str, int] | None = None,
    *,
    size: int | None = None,
    context: FrameContext | None = None,
    **form: Any,
) -> Frame:
    """A payload as the decode tool shows it; `answers` are name and version of its request."""
    api = None if answers is None else (api_key(answers[0]), answers[1])
    frame = uncaptured(payload, is_request=api is None, api=api, size=size)
    frame.begin(FrameDecoder(Settings(RecordsForm(**form))), 0, context or FrameContext())
    return frame
