"""A frame with everything that can be known about it, computed on first use.

`FrameDecoder` turns the captured frames of a run into `Frame`s; what a frame reveals about later
ones (topic ids, SASL mechanisms, embedded requests) it remembers. Outputs, filters, statistics and
programs work on `Frame` alone. The request or response in an envelope is a `Frame`, too.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar, overload

from kraftwire import messages
from kraftwire.capture.framing.frames import BEFORE_CAPTURE, RawFrame, Request
from kraftwire.decode.body.bodies import (
    Header,
    Part,
    Payload,
    annotated,
    decode_header,
    decode_payload,
    partial_json,
)
from kraftwire.decode.body.context import NO_CONTEXT, FrameContext, Memory, ResponseContexts
from kraftwire.decode.body.findings import Finding, finding_of, json_path
from kraftwire.decode.body.nested import (
    CARRIED,
    HAS_NESTED,
    MessageContext,
    Nested,
    is_plain,
    nested_in,
)
from kraftwire.decode.body.ordinary import (
    NAMING_APIS,
    OrdinaryBody,
    needs_learning,
    ordinary_bodies,
)
from kraftwire.decode.body.records import (
    FieldBatches,
    Settings,
    batches_in,
    json_with_batches,
    read_into,
)
from kraftwire.decode.body.sasl_tokens import sasl_token
from kraftwire.decode.body.scan import (
    RecordsField,
    TopicUse,
    error_codes,
    groups,
    has_records,
    topics,
)
from kraftwire.decode.body.secrets import (
    REDACTED,
    holds_secrets,
    may_be_metadata,
    may_carry_secrets,
    redact,
    redact_carried,
)
from kraftwire.errors import WireError
from kraftwire.protocol.api_keys import ApiKey
from kraftwire.protocol.error_codes import error_name
from kraftwire.protocol.topic_names import METADATA_TOPIC
from kraftwire.records.json_form import plain
from kraftwire.wire.message import Message
from kraftwire.wire.reader import Annotation

T = TypeVar("T")
M = TypeVar("M", bound=Message)

_TOKEN = "sasl-token"
# Findings of packets about a response, and those of its payload that replace them, with a position.
_ALONE = frozenset({"unmatched-response", BEFORE_CAPTURE})
# A request in an envelope is never an envelope itself; damaged or hostile bytes may say so.
_DEPTH_MAX = 1
# The keys of a line that the JSON form of a frame in another one has.
_INNER_KEYS = (
    "direction", "apiKey", "apiName", "apiVersion", "correlationId", "size", "remaining", "header",
    "body", "nested",
)  # fmt: skip


class lazy(Generic[T]):
    """Decorate a method: it runs once, and its result then replaces it on the object.

    `functools.cached_property` takes a lock each time in Python 3.11, which costs more than most of
    what is computed for a frame.
    """

    def __init__(self, method: Callable[[Any], T]) -> None:
        self._method = method
        self._name = ""
        self.__doc__ = method.__doc__

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type[Any]) -> lazy[T]: ...

    @overload
    def __get__(self, instance: object, owner: type[Any]) -> T: ...

    def __get__(self, instance: object | None, owner: type[Any]) -> lazy[T] | T:
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._method(instance)
        return value


class Frame(RawFrame):
    """A request, a response or a bare SASL token: what was captured, and what it means.

    None stands for what is not known. What needs the frame's bytes decoded is computed on first
    use. Positions and ranges count from the first byte of `data`; `frame` is the number of the
    frame in its run, that of the `decoder`. `depth` is 0; that of a frame in an envelope is one
    more than that of the envelope. An ordinary frame may come with its body: `ordinary`.
    """

    # Computed values are in `__dict__`.
    __slots__ = ("__dict__", "_context", "decoder", "frame", "ordinary")

    decoder: FrameDecoder
    frame: int
    ordinary: OrdinaryBody | None
    depth: int = 0
    _context: FrameContext

    @classmethod
    def of(cls, raw: RawFrame) -> Frame:
        """Return a frame with the same bytes, as it was captured."""
        if isinstance(raw, Frame):
            return raw
        found = cls()
        for name in RawFrame.__slots__:
            if hasattr(raw, name):
                setattr(found, name, getattr(raw, name))
        return found

    def begin(
        self, decoder: FrameDecoder, number: int, context: FrameContext = NO_CONTEXT
    ) -> None:
        """Become a frame of a run, of which nothing was computed so far. Order: before anything."""
        self.decoder, self.frame = decoder, number
        self._context, self.ordinary = context, None
        self.__dict__.clear()

    @property
    def settings(self) -> Settings:
        """How much is decoded, and what is hidden."""
        return self.decoder.settings

    @property
    def is_token(self) -> bool:
        """Whether the frame is a bare SASL token, without header and body."""
        return self.kind == _TOKEN

    @property
    def api_name(self) -> str | None:
        """Name of the API, without Request or Response."""
        key = self.api_key
        return None if key is None else messages.API_NAMES.get(key)

    @property
    def client_id(self) -> str | None:
        """The client id of the request, also on its response."""
        request = self.request
        return None if request is None else request.client_id

    def learn(self) -> None:
        """Record what later frames need to know. Order: once, in order of frames."""
        contexts = self.decoder.contexts
        if self.is_token:
            token = self.data if self.is_request else b""
            self._context = contexts.of_token(self.connection, token)
        if needs_learning(self.api_key):
            learn = contexts.of_request if self.is_request else contexts.of_response
            self._context = learn(self.connection, self.payload)

    @property
    def login(self) -> tuple[str | None, str | None] | None:
        """Mechanism and principal of the login that a token belongs to, as far as they are known.

        None for other frames.
        """
        if not (self.is_token or self.api_key == ApiKey.SASL_AUTHENTICATE):
            return None
        return self._context.mechanism, self._context.principal

    def release_objects(self) -> None:
        """Drop computed values; they are computed again on request."""
        self.__dict__.clear()

    # -- header and body -----------------------------------------------------------------------

    @lazy
    def payload(self) -> Payload:
        """Header and body as far as they could be decoded. A token has neither."""
        data = self.data[: self.missing[0][0]] if self.missing else self.data
        if self.is_token:
            return Payload.of_token(data, self.size, is_request=self.is_request)
        api = None
        if self.api_key is not None and self.api_version is not None:
            api = self.api_key, self.api_version
        is_early = any(each[0] == BEFORE_CAPTURE for each in self.packet_findings)
        payload = decode_payload(
            data, is_request=self.is_request, api=api, size=self.size, is_early=is_early,
            input_bytes=self.input_bytes,
        )
        if self.depth > _DEPTH_MAX:
            payload.body = payload.body_class = None
        budget = self.settings.frame_budget
        sizes = len(data), self.input_bytes
        if budget is not None and payload.body and budget.is_too_much(payload.body, *sizes):
            payload.take_apart(budget.may_have(*sizes))
        return payload

    @property
    def header(self) -> Header | None:
        """The header, None if it could not be decoded."""
        return self.payload.header

    @property
    def body(self) -> Message | None:
        """The body, None if it could not be decoded as a whole; `isinstance` shows which it is."""
        return self.payload.body if self.ordinary is None else self.ordinary[0]

    def body_as(self, kind: type[M]) -> M | None:
        """The body if it is a message of this class."""
        body = self.body
        return body if isinstance(body, kind) else None

    @property
    def body_version(self) -> int:
        """Version of the schema that the body was decoded with."""
        return self.payload.body_version if self.ordinary is None else self.api_version or 0

    @property
    def is_assumed(self) -> bool:
        """Whether the body's version has no schema and the nearest one was taken."""
        return self.payload.is_assumed

    @property
    def remaining(self) -> int:
        """The number of announced bytes after the last one that was decoded."""
        return self.payload.remaining if self.ordinary is None else 0

    @lazy
    def part(self) -> Part:
        """The annotations of the body, up to where it stops.

        Order: only for a frame whose `payload.body_class` is known.
        """
        payload = self.payload
        if payload.part is not None:
            return payload.part
        assert payload.body_class is not None
        return annotated(
            payload.body_class, payload.data, payload.body_version, payload.header_end
        )

    # -- what is inside ------------------------------------------------------------------------

    @lazy
    def inner(self) -> Frame | None:
        """The request or response in an envelope; None if there is none."""
        body: Any = None if self.ordinary is not None else self.payload.body
        if body is None or body.NAME not in CARRIED:
            return None
        is_request = body.NAME == "EnvelopeRequest"
        data = body.request_data if is_request else body.response_data
        if not data and not is_request:
            return None
        api = self._context.embedded_api
        inner = uncaptured(data, is_request=is_request, api=api, depth=self.depth + 1)
        inner.file, inner.connection, inner.time_ns = self.file, self.connection, self.time_ns
        inner.begin(self.decoder, self.frame)
        return inner

    @property
    def _carrier(self) -> str:
        """The field of an envelope that holds a request or response."""
        return CARRIED[self.payload.name]

    @lazy
    def _nested(self) -> Nested:
        body = self.payload.body
        if body is None or body.NAME not in HAS_NESTED:
            return Nested({"token": self._token_json()} if self.is_token else {})
        context = MessageContext(
            self.payload.data,
            self._context.mechanism,
            self._context.protocol_type,
            self.settings.show_secrets,
        )
        return nested_in(body, context)

    def _token_json(self) -> dict[str, Any]:
        show = self.settings.show_secrets
        mechanism = self.decoder.contexts.mechanism(self.connection) or "unknown"
        data = self.data
        parts = sasl_token(mechanism, data, is_request=self.is_request, show_secrets=show)
        bytes_shown = b64encode(data).decode() if show or not data else REDACTED
        return {"mechanism": mechanism, **(parts or {}), "bytes": bytes_shown}

    @lazy
    def nested(self) -> dict[str, Any]:
        """Path -> what is decoded inside fields of type bytes; a token has the path ``token``."""
        inner = {} if self.inner is None else {self._carrier: self.inner.lazy_json()}
        return inner | self._nested.objects

    @lazy
    def batches(self) -> list[FieldBatches]:
        """The batches in the body's fields of type records, one element for each field."""
        body = self.payload.body
        if body is None:
            return []
        return batches_in(body, self.payload.body_version, self.settings, self.file)

    @lazy
    def has_records(self) -> bool:
        """Whether there is any byte of a batch in the body."""
        body = self.payload.body
        return body is not None and has_records(body, self.payload.body_version)

    @property
    def error_codes(self) -> list[int]:
        """Error codes in a response other than 0, and in one in an envelope, each once."""
        may_have_errors = self.ordinary is None or self.ordinary[1]
        return self._error_codes if may_have_errors else []

    @lazy
    def _error_codes(self) -> list[int]:
        body = self.body
        codes = error_codes(body, self.body_version) if body is not None else []
        inner = self.inner
        if inner is not None and not inner.is_request:
            codes += inner.error_codes
        return list(dict.fromkeys(codes))

    @property
    def error_names(self) -> list[str]:
        """The names of the error codes."""
        return [error_name(code) for code in self.error_codes]

    @lazy
    def topics(self) -> list[TopicUse]:
        """The topics that the body names, their names filled in where their ids are known.

        Those of an envelope are in the request inside.
        """
        payload, inner = self.payload, self.inner
        if inner is not None and inner.is_request and inner.body is not None:
            payload = inner.payload
        if payload.body is None:
            return []
        name = self.settings.topics.name
        return [
            TopicUse(name(each.name, each.id), each.id, each.partitions)
            for each in topics(payload.body, payload.body_version)
        ]

    @lazy
    def groups(self) -> list[str]:
        """The group ids in the body."""
        return groups(self.body, self.body_version) if self.body is not None else []

    # -- findings ------------------------------------------------------------------------------

    @lazy
    def findings(self) -> list[Finding]:
        """What was found in the packets, the header, the body and everything inside it."""
        if self.ordinary is not None:
            return []
        found = [Finding(*each) for each in self.packet_findings if each[0] not in _ALONE]
        found += self.payload.findings + self._findings_of_form()
        if self.has_records:
            found += self._findings_of_batches()
        return found + self._findings_of_inner() + self._nested.findings

    def _findings_of_form(self) -> list[Finding]:
        """Report the first field, if any, that Kafka would write in other bytes."""
        payload = self.payload
        body = payload.body
        if body is None or payload.is_assumed or self.settings.is_brief:
            return []
        read = payload.data[payload.header_end : payload.end]
        try:
            written = body.encode(payload.body_version)
        except WireError as error:
            return [finding_of(error, "not-canonical")]
        if written == read:
            return []
        at = payload.header_end + _same_size(read, written)
        path = json_path(self.part.innermost(at).path)
        detail = f"Kafka writes the same message in {len(written)} bytes, here are {len(read)}"
        return [Finding("not-canonical", at, path, detail)]

    def _findings_of_batches(self) -> list[Finding]:
        """The findings in batches, their offsets counted from the start of the payload."""
        batches = [each for each in self.batches if each.findings]
        starts = self.part.records_starts() if batches else {}
        return [
            each if each.offset is None
            else replace(each, offset=each.offset + starts.get(of.where.path, 0))
            for of in batches
            for each in of.findings
        ]  # fmt: skip

    def _findings_of_inner(self) -> list[Finding]:
        """The findings in an envelope's request or response, as seen from the envelope."""
        if self.inner is None:
            return []
        path, start = self._carrier, self.payload.data.find(self.inner.data)
        return [
            replace(
                each,
                offset=None if each.offset is None else start + each.offset,
                path=f"{path}.{each.path}" if each.path else path,
            )
            for each in self.inner.findings
        ]

    def _findings_json(self) -> list[dict[str, Any]]:
        show = not self.hides_bytes
        return [each.to_json(show_bytes=show) for each in self.findings]

    # -- secrets -------------------------------------------------------------------------------

    @property
    def hides_bytes(self) -> bool:
        """Whether raw bytes of the frame must not be shown because of what may be in them."""
        if self.settings.show_secrets:
            return False
        payload = self.payload
        if payload.body is None:
            # A response without a request, or bytes that are not a header, may belong to a login.
            is_unknown = payload.api_key is None or payload.header is None or payload.is_secret
            if is_unknown or may_carry_secrets(payload.name) or may_be_metadata(payload.data):
                return True
        elif holds_secrets(payload.name) or self._is_carrier_of_secrets:
            return True
        return payload.may_be_of_another

    @property
    def _is_carrier_of_secrets(self) -> bool:
        return self.inner is not None and self.inner.has_secrets

    @property
    def secret_paths(self) -> list[str]:
        """Paths of fields of the body, in its JSON form, that are redacted."""
        if self.payload.body is not None and is_plain(self.payload.name):
            return []
        return self._redacted_json[1]

    @property
    def has_secrets(self) -> bool:
        """Whether the frame holds secrets, or may hold them where it was not decoded."""
        payload = self.payload
        if payload.body is None:
            return not payload.name or payload.is_secret or may_carry_secrets(payload.name)
        return bool(self.secret_paths)

    # -- JSON ----------------------------------------------------------------------------------

    @lazy
    def _redacted_json(self) -> tuple[dict[str, Any] | None, list[str]]:
        """The body's JSON form, and the paths of what was redacted in it."""
        payload = self.payload
        if payload.body is not None:
            json: dict[str, Any] | None = json_with_batches(
                payload.body, payload.body_version, self.batches
            )
        elif payload.body_class is not None and not (
            payload.is_secret and not self.settings.show_secrets
        ):
            json = partial_json(self.part, self._partial_batches)
        else:
            json = None
        if json is None or self.settings.show_secrets:
            return json, []
        paths = redact(payload.name, json)
        if payload.body is None:
            return json, paths + redact_carried(payload.name, json)
        if self._is_carrier_of_secrets:
            json[self._carrier] = REDACTED
            paths.append(self._carrier)
        return json, paths

    def _partial_batches(self, node: Annotation, start: int, end: int) -> Any:
        """The batches of a field of type records in a body that was not decoded as a whole."""
        data = self.payload.data
        topic = METADATA_TOPIC if may_be_metadata(data) else None
        where = RecordsField((), node.name, None, "", topic, None)
        result = FieldBatches(where, topic, self.file, [])
        read_into(result, data[start:end], self.settings.records)
        return result.batches

    @property
    def header_json(self) -> dict[str, Any] | None:
        """The header in the form of Kafka's converters."""
        return self.payload.header_json()

    @property
    def body_json(self) -> dict[str, Any] | None:
        """The body in that form, with record batches, and without secrets unless they are shown.

        The leading fields if it could not be decoded as a whole, None if there are none.
        """
        body: dict[str, Any] | None = plain(self.lazy_body_json)
        return body

    @property
    def lazy_body_json(self) -> dict[str, Any] | None:
        """The same; long lists of records are `RecordRows`, read while they are iterated."""
        return self._redacted_json[0]

    def to_json(self) -> dict[str, Any]:
        """The line of ``kraftwire decode --format jsonl``, all records of long batches included."""
        line: dict[str, Any] = plain(self.lazy_json())
        return line

    def lazy_json(self) -> dict[str, Any]:
        """The same; long lists of records are `RecordRows`, read while they are iterated."""
        line = {
            "file": self.file,
            "frame": self.frame,
            "time": self.time if self.time_ns >= 0 else None,
            "connection": self.connection or None,
            "direction": self.direction,
            "apiKey": self.api_key,
            "apiName": self.api_name,
            "apiVersion": self.api_version,
            "correlationId": self.correlation_id,
            "size": self.size,
            "remaining": self.payload.remaining,
            "latencyMs": self.latency_ms,
            "header": self.payload.header_json(),
            "body": self.lazy_body_json,
            "nested": self.nested,
        }
        if self.depth:
            return {key: line[key] for key in _INNER_KEYS}
        line["findings"] = self._findings_json() if self.findings else []
        return line

    def __repr__(self) -> str:
        return (
            f"Frame({self.frame}, {self.connection}, {self.direction}, {self.api_name} "
            f"v{self.api_version}, correlation_id={self.correlation_id}, size={self.size})"
        )


class _InnerFrame(Frame):
    """The request or response in an envelope, or in what claims to be one inside it."""

    __slots__ = ("depth",)

    def __init__(self, depth: int) -> None:
        self.depth = depth


def uncaptured(
    data: bytes, *, is_request: bool, api: tuple[int, int] | None = None, size: int | None = None,
    depth: int = 0,
) -> Frame:
    """Return a frame that is not from packets, by its bytes: without place, time and connection.

    `api` are key and version of the request that a response answers, `size` is the announced
    length where bytes are missing. A frame with a `depth` is in an envelope.
    """
    frame = _InnerFrame(depth) if depth else Frame()
    payload = decode_header(data, is_request=is_request, api=api, size=size)
    frame.file = frame.end_file = frame.connection = ""
    frame.position = frame.end_position = frame.time_ns = -1
    frame.kind = "rpc"
    frame.data = data
    frame.size = frame.input_bytes = payload.size
    frame.direction = "request" if is_request else "response"
    frame.api_key, frame.api_version = payload.api_key, payload.api_version
    frame.correlation_id = payload.header.correlation_id if payload.header else None
    frame.latency_ms = None
    frame.packet_findings = ()
    frame.missing = ()
    frame.request = None
    if payload.header is not None and payload.api_key is not None:
        client_id = getattr(payload.header, "client_id", None)
        frame.request = Request(
            payload.api_key, payload.api_version or 0, payload.header.correlation_id, client_id
        )
    return frame


def _same_size(one: bytes, other: bytes) -> int:
    """Return how many leading bytes are the same."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


class FrameDecoder:
    """Decodes the frames of a run, in order.

    `memory` is what it starts from and learns more in; its topics take the place of those in
    the settings.
    """

    def __init__(self, settings: Settings, memory: Memory | None = None) -> None:
        self.memory = Memory(settings.topics) if memory is None else memory
        self.settings = replace(settings, topics=self.memory.topics)
        self.contexts = ResponseContexts(self.memory)
        self._next_number = 0

    def decode(self, frame: RawFrame, number: int | None = None) -> Frame:
        """Return the next frame of the run.

        `number` is that of the frame in the run, by default one more than the last.
        """
        if number is None:
            number = self._next_number
        self._next_number = number + 1
        decoded = Frame.of(frame)
        decoded.begin(self, number)
        decoded.learn()
        return decoded

    def decode_bodies(self, frames: Sequence[RawFrame], number: int) -> Iterator[Frame]:
        """Yield the next frames of the run; ordinary ones come with their bodies.

        These are read together. `number` is that of the first frame in the run.
        """
        topics = self.memory.topics
        found_bodies = zip(frames, ordinary_bodies(frames), strict=True)
        for at, (raw, found) in enumerate(found_bodies, number):
            if found is None:
                yield self.decode(raw, at)
                continue
            frame = raw if isinstance(raw, Frame) else Frame.of(raw)
            frame.decoder, frame.frame, frame.ordinary = self, at, found
            if frame.api_key in NAMING_APIS:
                topics.learn(found[0], frame.api_version or 0)
            yield frame
