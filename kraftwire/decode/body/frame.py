"""A frame of a capture with everything that can be known about it.

`FrameDecoder` turns the frames of a run into `Frame`s; what a frame reveals about later ones
(topic ids, SASL mechanisms, embedded requests) it remembers. Renderers, filters and statistics work
on `Frame` alone.
"""

from __future__ import annotations

from base64 import b64encode
from dataclasses import replace
from typing import Any, TypeVar

from kraftwire import messages
from kraftwire.capture.framing.frames import BEFORE_CAPTURE, RawFrame
from kraftwire.decode.body.bodies import Header, Payload, decode_payload
from kraftwire.decode.body.context import FrameContext, Memory, ResponseContexts, needs_learning
from kraftwire.decode.body.findings import Finding
from kraftwire.decode.body.payload_view import (
    ByteRange,
    PayloadView,
    hidden_ranges,
    lazy,
)
from kraftwire.decode.body.quick import quick_body
from kraftwire.decode.body.records import FieldBatches, Settings
from kraftwire.decode.body.sasl_tokens import sasl_token
from kraftwire.decode.body.scan import TopicUse, error_codes, groups, topics
from kraftwire.decode.body.secrets import REDACTED
from kraftwire.messages.envelope_request import EnvelopeRequest
from kraftwire.protocol.api_keys import ApiKey
from kraftwire.protocol.error_codes import error_name
from kraftwire.records.json_form import plain
from kraftwire.wire.message import Message

M = TypeVar("M", bound=Message)

_TOKEN = "sasl-token"
# Findings of packets about a response, and those of its payload that replace them, with a position.
_ALONE = frozenset({"unmatched-response", BEFORE_CAPTURE})

# The attributes that keep objects of the body alive.
_WORKED_OUT = ("payload", "view", "_quick_body", "topics", "groups", "nested", "findings")


class Frame:
    """A request, a response or a bare SASL token: what was captured, and what it means.

    None stands for what is not known. What needs the frame's bytes decoded is computed on first
    use. Positions and ranges count from the first byte of `data`; `frame` is the number of the
    frame in its run, `raw` the frame as it was captured.
    """

    def __init__(
        self, raw: RawFrame, number: int, settings: Settings, contexts: ResponseContexts
    ) -> None:
        self.raw = raw
        self.frame = number
        self.settings = settings
        self._contexts = contexts
        self._context: FrameContext | None = None

    @property
    def file(self) -> str:
        """The capture's name."""
        return self.raw.file

    @property
    def position(self) -> int:
        """Where the packet begins that holds the frame's first byte, in the unpacked file."""
        return self.raw.position

    @property
    def end_position(self) -> int:
        """Where the packet ends that completed the frame, in the unpacked file."""
        return self.raw.end_position

    @property
    def time(self) -> float:
        """Seconds since the epoch, of the frame's last packet."""
        return self.raw.time

    @property
    def time_ns(self) -> int:
        """Nanoseconds since the epoch."""
        return self.raw.time_ns

    @property
    def connection(self) -> str:
        """Both ends: "client:port-server:port", IPv6 addresses in brackets."""
        return self.raw.connection

    @property
    def direction(self) -> str:
        """``"request"`` or ``"response"``."""
        return self.raw.direction

    @property
    def is_request(self) -> bool:
        """Whether the client sent it."""
        return self.raw.is_request

    @property
    def api_key(self) -> int | None:
        """Key of the API, on a response that of its request."""
        return self.raw.api_key

    @property
    def api_version(self) -> int | None:
        """Version of the API, on a response that of its request."""
        return self.raw.api_version

    @property
    def correlation_id(self) -> int | None:
        """The id that pairs requests and responses."""
        return self.raw.correlation_id

    @property
    def size(self) -> int:
        """The declared size, without the 4 bytes of the length itself. Units: bytes."""
        return self.raw.size

    @property
    def latency_ms(self) -> float | None:
        """Milliseconds from the request's last packet to the response's; None on requests."""
        return self.raw.latency_ms

    @property
    def data(self) -> bytes:
        """The bytes after the length: header and body; zeros stand for missing bytes."""
        return self.raw.data

    @property
    def is_token(self) -> bool:
        """Whether the frame is a bare SASL token, without header and body."""
        return self.raw.kind == _TOKEN

    @property
    def api_name(self) -> str | None:
        """Name of the API, without Request or Response."""
        key = self.raw.api_key
        return None if key is None else messages.API_NAMES.get(key)

    @property
    def client_id(self) -> str | None:
        """The client id of the request, also on its response."""
        request = self.raw.request
        return None if request is None else request.client_id

    @lazy
    def payload(self) -> Payload:
        """Header and body as far as they could be decoded. Order: not for a token."""
        frame = self.raw
        data = frame.data
        if frame.missing:
            data = data[: frame.missing[0][0]]
        api = None
        if frame.api_key is not None and frame.api_version is not None:
            api = frame.api_key, frame.api_version
        is_early = any(each[0] == BEFORE_CAPTURE for each in frame.findings)
        payload = decode_payload(
            data, is_request=frame.is_request, api=api, size=frame.size, is_early=is_early,
            input_bytes=frame.input_bytes,
        )
        budget, body = self.settings.frame_budget, payload.body
        sizes = len(data), frame.input_bytes
        if budget is None or body is None or not budget.is_too_much(body, *sizes):
            return payload
        del body
        payload.take_apart(budget.may_have(*sizes))
        return payload

    @lazy
    def view(self) -> PayloadView:
        """The payload as it is shown. Order: not for a token."""
        context = self._context or FrameContext()
        return PayloadView(self.payload, self.settings, context, file=self.raw.file)

    def learn(self) -> None:
        """Record what later frames need to know. Order: once, in order of frames."""
        key, connection = self.raw.api_key, self.raw.connection
        if self.is_token:
            self._context = self._contexts.of_token(
                connection, self.raw.data if self.raw.is_request else b""
            )
        if not needs_learning(key):
            return
        if self.raw.is_request:
            self._context = self._contexts.of_request(connection, self.payload)
            return
        self._context = self._contexts.of_response(connection, self.payload)

    @property
    def login(self) -> tuple[str | None, str | None] | None:
        """Mechanism and principal of the login that a token belongs to, as far as they are known.

        None for other frames.
        """
        is_login = self.is_token or self.raw.api_key == ApiKey.SASL_AUTHENTICATE
        if self._context is None or not is_login:
            return None
        return self._context.mechanism, self._context.principal

    def release_objects(self) -> None:
        """Drop computed values; they are computed again on request."""
        for name in _WORKED_OUT:
            self.__dict__.pop(name, None)

    @property
    def header(self) -> Header | None:
        """The header, None if it could not be decoded."""
        return None if self.is_token else self.payload.header

    @property
    def body(self) -> Message | None:
        """The body, None if it could not be decoded as a whole; `isinstance` shows which it is."""
        return None if self.is_token else self.payload.body

    def body_as(self, kind: type[M]) -> M | None:
        """The body if it is a message of this class."""
        body = self.body
        return body if isinstance(body, kind) else None

    @lazy
    def _quick_body(self) -> Message | None:
        return None if "payload" in self.__dict__ else quick_body(self.raw)

    @property
    def quick_body(self) -> Message | None:
        """The body, on the fast path if the frame is ordinary: unknown tags are skipped."""
        body = self._quick_body
        return self.body if body is None else body

    @property
    def quick_error_codes(self) -> list[int]:
        """The error codes in a response, on the fast path if the frame is ordinary."""
        body = self._quick_body
        if body is None:
            return self.error_codes
        return error_codes(body, self.raw.api_version or 0)

    @property
    def body_version(self) -> int:
        """Version of the schema that the body was decoded with."""
        return 0 if self.is_token else self.payload.body_version

    @property
    def is_assumed(self) -> bool:
        """Whether the body's version has no schema and the nearest one was taken."""
        return not self.is_token and self.payload.is_assumed

    @property
    def remaining(self) -> int:
        """Announced bytes after the last one that was decoded."""
        return 0 if self.is_token else self.payload.remaining

    @property
    def error_codes(self) -> list[int]:
        """Error codes in a response other than 0, each once."""
        return [] if self.is_token else self.view.error_codes

    @property
    def error_names(self) -> list[str]:
        """The names of the error codes."""
        return [error_name(code) for code in self.error_codes]

    @lazy
    def topics(self) -> list[TopicUse]:
        """The topics that the body names, their names filled in where their ids are known.

        Those of an envelope are in the request inside.
        """
        if self.body is None:
            return []
        name = self.settings.topics.name
        body, version = self.body, self.body_version
        if isinstance(body, EnvelopeRequest):
            inside = decode_payload(body.request_data, is_request=True)
            if inside.body is not None:
                body, version = inside.body, inside.body_version
        return [
            TopicUse(name(each.name, each.id), each.id, each.partitions)
            for each in topics(body, version)
        ]

    @lazy
    def groups(self) -> list[str]:
        """The group ids in the body."""
        return groups(self.body, self.body_version) if self.body is not None else []

    @property
    def batches(self) -> list[FieldBatches]:
        """The record batches in the body, as `settings.records` wants them."""
        return [] if self.is_token else self.view.batches

    @lazy
    def nested(self) -> dict[str, Any]:
        """What is inside fields of type bytes, by their paths; a token has the path ``token``."""
        return {"token": self._token_json()} if self.is_token else self.view.nested.objects

    def _token_json(self) -> dict[str, Any]:
        show = self.settings.show_secrets
        mechanism = self._contexts.mechanism(self.raw.connection) or "unknown"
        data = self.raw.data
        parts = sasl_token(
            mechanism, data, is_request=self.raw.is_request, show_secrets=show
        )
        bytes_shown = b64encode(data).decode() if show or not data else REDACTED
        return {"mechanism": mechanism, **(parts or {}), "bytes": bytes_shown}

    @lazy
    def findings(self) -> list[Finding]:
        """What was found in the packets, the header, the body and everything inside it."""
        own = [Finding(*each) for each in self.raw.findings if each[0] not in _ALONE]
        if self.is_token:
            detail = f"{self.raw.size} bytes of a SASL token without header"
            return [*own, Finding(_TOKEN, 0, "", detail)]
        return own + self.view.findings if own else self.view.findings

    @property
    def hidden_ranges(self) -> list[ByteRange]:
        """Ranges [start, end) of `frame.data` that hold secrets and must not be shown."""
        if not self.is_token:
            return hidden_ranges(self.view)
        return [] if self.settings.show_secrets else [(0, len(self.raw.data))]

    @property
    def secret_paths(self) -> list[str]:
        """Paths of fields of the body, in its JSON form, that hold secrets."""
        return [] if self.is_token else self.view.secret_paths

    @property
    def header_json(self) -> dict[str, Any] | None:
        """The header in the form of Kafka's converters."""
        return None if self.is_token else self.payload.header_json()

    @property
    def body_json(self) -> dict[str, Any] | None:
        """The body in that form, with record batches, and without secrets unless they are shown."""
        body: dict[str, Any] | None = plain(self.lazy_body_json)
        return body

    @property
    def lazy_body_json(self) -> dict[str, Any] | None:
        """The same; long lists of records are `RecordRows`, read while they are iterated."""
        return None if self.is_token else self.view.body_json

    def to_json(self) -> dict[str, Any]:
        """The line of ``kraftwire decode --format jsonl``, all records of long batches included."""
        line: dict[str, Any] = plain(self.lazy_json())
        return line

    def lazy_json(self) -> dict[str, Any]:
        """The same; long lists of records are `RecordRows`, read while they are iterated."""
        frame = self.raw
        is_token = frame.kind == _TOKEN
        return {
            "file": frame.file,
            "frame": self.frame,
            "time": frame.time if frame.time_ns >= 0 else None,
            "connection": frame.connection or None,
            "direction": frame.direction,
            "apiKey": frame.api_key,
            "apiName": self.api_name,
            "apiVersion": frame.api_version,
            "correlationId": frame.correlation_id,
            "size": frame.size,
            "remaining": 0 if is_token else self.payload.remaining,
            "latencyMs": frame.latency_ms,
            "header": None if is_token else self.payload.header_json(),
            "body": None if is_token else self.view.body_json,
            "nested": self.nested,
            "findings": self._findings_json() if self.findings else [],
        }

    def _findings_json(self) -> list[dict[str, Any]]:
        show = not self.is_token and not self.view.hides_bytes
        return [each.to_json(show_bytes=show) for each in self.findings]

    def __repr__(self) -> str:
        return (
            f"Frame({self.frame}, {self.connection}, {self.direction}, {self.api_name} "
            f"v{self.api_version}, correlation_id={self.correlation_id}, size={self.size})"
        )


class FrameDecoder:
    """Decodes the frames of a run, in order.

    `memory` is what it starts from and learns more in; its topics take the place of those in
    the settings.
    """

    def __init__(self, settings: Settings, memory: Memory | None = None) -> None:
        self.memory = Memory(settings.topics) if memory is None else memory
        self.settings = replace(settings, topics=self.memory.topics)
        self._contexts = ResponseContexts(self.memory)
        self._next_number = 0

    def decode(self, frame: RawFrame, number: int | None = None) -> Frame:
        """Return the next frame of the run.

        `number` is that of the frame in the run, by default one more than the last.
        """
        if number is None:
            number = self._next_number
        self._next_number = number + 1
        decoded = Frame(frame, number, self.settings, self._contexts)
        decoded.learn()
        return decoded
