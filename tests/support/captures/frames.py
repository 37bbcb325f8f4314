"""Frames of captures that were never taken: requests and responses made from messages."""

from __future__ import annotations

from kraftwire.capture.framing.frames import Request
from kraftwire.decode.body.frame import Frame
from kraftwire.messages.request_header import RequestHeader
from kraftwire.messages.response_header import ResponseHeader
from kraftwire.protocol.payloads import encode_request, encode_response
from kraftwire.wire.message import Message

_NS = 1_000_000_000
_LATENCY_NS = 2_500_000
_FILE_HEADER = 24
_PACKET_HEADERS = 16 + 14 + 20 + 32 + 4


class FrameMaker:
    """Frames of one connection, in order; every response answers the request before it."""

    def __init__(
        self, connection: str = "10.0.0.1:50000-10.0.0.2:9092", *, time_s: int = 1000
    ) -> None:
        self.connection = connection
        self._time_ns = time_s * _NS
        self._position = _FILE_HEADER
        self._correlation_id = 0
        self._asked: Request | None = None

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self._time_ns += round(seconds * _NS)

    def request(self, body: Message, version: int, client_id: str | None = "tester") -> Frame:
        """A request."""
        self._correlation_id += 1
        header = RequestHeader(
            request_api_key=body.API_KEY,
            request_api_version=version,
            correlation_id=self._correlation_id,
            client_id=client_id,
        )
        request = Request(body.API_KEY, version, self._correlation_id, client_id)
        request.position, request.time_ns = self._position, self._time_ns
        self._asked = request
        return self._frame("request", encode_request(header, body), request)

    def response(self, body: Message, latency_ns: int = _LATENCY_NS) -> Frame:
        """The response to the last request."""
        request = self._asked
        assert request is not None
        self._time_ns += latency_ns
        header = ResponseHeader(correlation_id=request.correlation_id)
        frame = self._frame(
            "response", encode_response(header, body, request.api_version), request
        )
        frame.latency_ms = latency_ns / 1_000_000
        return frame

    def _frame(self, direction: str, data: bytes, request: Request) -> Frame:
        frame = Frame()
        frame.file = frame.end_file = "made.pcap"
        frame.position, frame.kind = self._position, "rpc"
        self._position += len(data) + _PACKET_HEADERS
        frame.end_position = self._position
        frame.connection, frame.direction = self.connection, direction
        frame.data, frame.size, frame.time_ns = data, len(data), self._time_ns
        frame.api_key, frame.api_version = request.api_key, request.api_version
        frame.correlation_id, frame.request = request.correlation_id, request
        frame.missing, frame.packet_findings, frame.latency_ms = (), (), None
        frame.input_bytes = len(data)
        return frame


def frame_at(
    time: float, connection: str, api_key: int, *, is_request: bool, correlation_id: int = 0,
    request: Request | None = None,
) -> Frame:
    """A frame by time and place, for readers that get its body apart. Units: seconds."""
    frame = Frame()
    frame.connection, frame.time_ns = connection, round(time * _NS)
    frame.direction = "request" if is_request else "response"
    frame.api_key, frame.correlation_id, frame.request = api_key, correlation_id, request
    return frame
