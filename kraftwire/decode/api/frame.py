"""A frame as programs see it: a JSON line's attributes in snake_case."""

from __future__ import annotations

from typing import Any, TypeVar

from kraftwire.decode.body.findings import Finding
from kraftwire.decode.body.frame import DecodedFrame
from kraftwire.messages.request_header import RequestHeader
from kraftwire.messages.response_header import ResponseHeader
from kraftwire.records.json_form import plain
from kraftwire.wire.message import Message

M = TypeVar("M", bound=Message)


class Frame:
    """A request, a response or a bare SASL token of a capture.

    None stands for what is not known. Header and body are decoded on first use.
    Units: `time` in seconds since the epoch, of the frame's last packet; `size` in bytes.
    """

    __slots__ = ("decoded",)

    def __init__(self, decoded: DecodedFrame) -> None:
        self.decoded = decoded

    @property
    def file(self) -> str:
        """The capture's name."""
        return self.decoded.frame.file

    @property
    def frame(self) -> int:
        """The frame's number in this run, from 0, in order of completion."""
        return self.decoded.number

    @property
    def position(self) -> int:
        """Where the packet begins that holds the frame's first byte, in the unpacked file."""
        return self.decoded.frame.position

    @property
    def end_position(self) -> int:
        """Where the packet ends that completed the frame, in the unpacked file."""
        return self.decoded.frame.end_position

    @property
    def time(self) -> float:
        """Seconds since the epoch."""
        return self.decoded.frame.time

    @property
    def time_ns(self) -> int:
        """Nanoseconds since the epoch."""
        return self.decoded.frame.time_ns

    @property
    def connection(self) -> str:
        """Both ends: "client:port-server:port", IPv6 addresses in brackets."""
        return self.decoded.frame.connection

    @property
    def direction(self) -> str:
        """``"request"`` or ``"response"``."""
        return self.decoded.frame.direction

    @property
    def is_request(self) -> bool:
        """Whether the client sent it."""
        return self.decoded.frame.is_request

    @property
    def api_key(self) -> int | None:
        """Key of the API, on a response that of its request."""
        return self.decoded.frame.api_key

    @property
    def api_name(self) -> str | None:
        """Name of the API, without Request or Response."""
        return self.decoded.api_name

    @property
    def api_version(self) -> int | None:
        """Version of the API, on a response that of its request."""
        return self.decoded.frame.api_version

    @property
    def correlation_id(self) -> int | None:
        """The id that pairs requests and responses."""
        return self.decoded.frame.correlation_id

    @property
    def client_id(self) -> str | None:
        """The client id of the request, also on its response."""
        return self.decoded.client_id

    @property
    def size(self) -> int:
        """The declared size, without the 4 bytes of the length itself."""
        return self.decoded.frame.size

    @property
    def remaining(self) -> int:
        """The number of announced bytes after the last one that was decoded."""
        return self.decoded.remaining

    @property
    def latency_ms(self) -> float | None:
        """Milliseconds from the request's last packet to the response's; None on requests."""
        return self.decoded.frame.latency_ms

    @property
    def data(self) -> bytes:
        """The bytes after the length: header and body; zeros stand for missing bytes."""
        return self.decoded.frame.data

    @property
    def header(self) -> RequestHeader | ResponseHeader | None:
        """The header, None if it could not be decoded."""
        return self.decoded.header

    @property
    def body(self) -> Message | None:
        """The body, None if it could not be decoded as a whole; `isinstance` shows which it is."""
        return self.decoded.body

    def body_as(self, kind: type[M]) -> M | None:
        """The body if it is a message of this class."""
        body = self.decoded.body
        return body if isinstance(body, kind) else None

    @property
    def header_json(self) -> dict[str, Any] | None:
        """The header in the form of Kafka's converters."""
        return self.decoded.header_json

    @property
    def body_json(self) -> dict[str, Any] | None:
        """The body in that form, with record batches, and without secrets unless they are shown."""
        body: dict[str, Any] | None = plain(self.decoded.body_json)
        return body

    @property
    def nested(self) -> dict[str, Any]:
        """Path -> what is decoded inside fields of type bytes."""
        return self.decoded.nested

    @property
    def error_codes(self) -> list[int]:
        """Error codes in a response other than 0, each once."""
        return self.decoded.error_codes

    @property
    def error_names(self) -> list[str]:
        """The names of the error codes."""
        return self.decoded.error_names

    @property
    def findings(self) -> list[Finding]:
        """The findings: what is unusual, damaged or missing in the frame."""
        return self.decoded.findings

    def to_json(self) -> dict[str, Any]:
        """The line of ``kraftwire decode --format jsonl``, all records of long batches included."""
        line: dict[str, Any] = plain(self.decoded.to_json())
        return line

    def __repr__(self) -> str:
        return (
            f"Frame({self.frame}, {self.connection}, {self.direction}, {self.api_name} "
            f"v{self.api_version}, correlation_id={self.correlation_id}, size={self.size})"
        )
