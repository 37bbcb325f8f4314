"""Header and body of one payload: decoded in full, or as far as the bytes and schemas reach.

Owns the choice of the schema (an unknown version is read with the nearest one) and the findings
of decoding. Never raises on bad bytes: the payload says where decoding stopped.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from struct import Struct
from typing import Any

from kraftwire import messages
from kraftwire.capture.framing.frames import BEFORE_CAPTURE
from kraftwire.decode.body.findings import Finding, finding_of, json_path
from kraftwire.decode.body.ordinary import ordinary_payload
from kraftwire.decode.body.scan import unknown_tags
from kraftwire.decode.body.secrets import (
    is_damaged_token_response,
    may_be_secret,
    may_carry_secrets,
    token_response_in,
)
from kraftwire.decode.limits import ANNOTATIONS_MAX, TAKEN_APART_BYTES_MAX
from kraftwire.errors import WireError
from kraftwire.limits import FINDING_HEX_BYTES
from kraftwire.messages.request_header import RequestHeader
from kraftwire.messages.response_header import ResponseHeader
from kraftwire.protocol.api_keys import ApiKey
from kraftwire.protocol.versions import (
    answered_version,
    nearest_version,
    request_header_version,
    response_header_version,
)
from kraftwire.records.salvage import bare
from kraftwire.wire.json_form import uuid_to_text
from kraftwire.wire.message import Message
from kraftwire.wire.reader import UNKNOWN_TAG, Annotation, PartialError, annotate
from kraftwire.wire.size_estimate import is_message_bomb

# The leading fields of a frame with missing bytes are read as if zeros followed, at most this many:
# enough to stand for the rest of an array of a thousand partitions.
PARTIAL_BYTES_MAX = 64 * 1024

# Shows the bytes of a field of type records: its annotation, and where its data begins and ends.
Batches = Callable[[Annotation, int, int], Any]

# The length that stands for null, by the type of the length.
_NULL_LENGTHS = {"unsigned varint": 0, "int16": -1, "int32": -1}
_BINARY = frozenset({"bytes", "records"})

ByteRange = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Part:
    """A tree of annotations that is valid up to `end`.

    `end` is the position after the last byte that is there; nodes that end after it, and
    those with end 0, were not read completely.
    """

    root: Annotation
    end: int

    def is_read(self, node: Annotation) -> bool:
        """Whether all bytes of a node are there and right."""
        return 0 < node.end <= self.end

    def records_starts(self) -> dict[str, int]:
        """Where the data of each field of type records begins, by the field's path."""
        return {
            json_path(node.path): node.children[0].end
            for node in self._nodes()
            if node.type == "records" and node.children
        }

    def unknown_tags(self) -> Iterator[ByteRange]:
        """The bytes of tagged fields that no schema has."""
        return ((node.start, node.end) for node in self._nodes() if node.type == UNKNOWN_TAG)

    def ranges_of(self, paths: set[str]) -> Iterator[ByteRange]:
        """The bytes of the fields at some paths of the JSON form."""
        stack = [self.root]
        while stack:
            node = stack.pop()
            if json_path(node.path) in paths:
                yield node.start, node.end
            else:
                stack += node.children

    def innermost(self, at: int) -> Annotation:
        """Return the innermost annotation that holds a position."""
        node = self.root
        while inner := next((each for each in node.children if each.start <= at < each.end), None):
            node = inner
        return node

    def _nodes(self) -> Iterator[Annotation]:
        stack = [self.root]
        while stack:
            node = stack.pop()
            yield node
            stack += node.children

    def stop(self) -> tuple[str, int]:
        """Return path and position of the innermost field that was not read completely."""
        node = self.root
        while True:
            inner = next((each for each in node.children if not self.is_read(each)), None)
            if inner is None or inner.start > self.end:
                break
            node = inner
        at = max((each.end for each in node.children if self.is_read(each)), default=node.start)
        return node.path, min(at, self.end)


def annotated(
    cls: type[Message], data: bytes, version: int, offset: int, *, size: int | None = None
) -> Part:
    """The annotations of a body, at most ANNOTATIONS_MAX of them.

    `size` is the announced length where bytes are missing.
    """
    missing = 0 if size is None else min(size - len(data), PARTIAL_BYTES_MAX)
    try:
        padded = data + bytes(missing)
        root, _ = annotate(cls.facts(), padded, version, offset, most=ANNOTATIONS_MAX)
    except PartialError as error:
        root = error.partial
    return Part(root, len(data))


def partial_json(part: Part, batches: Batches) -> dict[str, Any] | None:
    """Return the part of a message that its tree holds; None if it holds nothing.

    `batches` turns the data of a field of type records into what is to be shown.
    """
    return _Partial(part, batches).struct(part.root) or None


_MISSING: Any = object()


class _Partial:
    def __init__(self, part: Part, batches: Batches) -> None:
        self._part = part
        self._batches = batches

    def struct(self, node: Annotation) -> dict[str, Any]:
        out = {}
        for child in _fields(node):
            if (value := self.value(child)) is not _MISSING:
                out[child.name] = value
        return out

    def value(self, node: Annotation) -> Any:
        """A field or an element; `_MISSING` if nothing of it is there."""
        if node.type.startswith("[]"):
            return self.array(node)
        if node.type == "records":
            return self.records(node)
        if any(_fields(node)):
            return self.struct(node) or _MISSING
        return _plain(node) if self._part.is_read(node) else _MISSING

    def array(self, node: Annotation) -> Any:
        length = self.length(node)
        if length is None or length.value == _NULL_LENGTHS.get(length.type):
            return _MISSING if length is None else None
        items = (self.value(child) for child in node.children[1:])
        return [item for item in items if item is not _MISSING]

    def records(self, node: Annotation) -> Any:
        length = self.length(node)
        if length is None or length.value == _NULL_LENGTHS.get(length.type):
            return _MISSING if length is None else None
        end = node.end if self._part.is_read(node) else self._part.end
        return self._batches(node, length.end, end)

    def length(self, node: Annotation) -> Annotation | None:
        """The length before an array or records, if it is there."""
        length = node.children[0] if node.children else None
        return length if length is not None and self._part.is_read(length) else None


def _fields(node: Annotation) -> Iterator[Annotation]:
    """The fields of a struct, without lengths, counts and tag wrappers, which share its path."""
    for child in node.children:
        if child.path != node.path and child.type != UNKNOWN_TAG:
            yield child


def _plain(node: Annotation) -> Any:
    if node.value is None:
        return None
    if node.type in _BINARY:
        return b64encode(node.value).decode()
    if node.type == "uuid":
        return uuid_to_text(node.value)
    return node.value


Header = RequestHeader | ResponseHeader

# API key and version, with which a request begins.
_REQUESTED = Struct(">hh")

_NO_TAGS = b"\x00"


class Payload:
    """The header and body of a frame, decoded as far as its bytes and the schemas allow.

    `data` are the bytes after the frame's length up to the first one that is missing,
    `size` how many there should be. `header` and `body` are None where they could not be decoded
    in full; `body_class` and `body_version` then still name the schema that was tried. `end` is
    the position after the last byte that was decoded, `header_end` where the body starts.
    `is_assumed` marks a body that was read with the schema of another version. `error` is what
    stopped the body, and `part` its annotations where bytes of it are missing; `is_secret` marks
    bytes that must not be shown. `input_bytes` is the size in the input, which is less for data
    that a compressed capture unpacks to.
    """

    __slots__ = (
        "api_key",
        "api_version",
        "body",
        "body_class",
        "body_version",
        "data",
        "end",
        "error",
        "findings",
        "header",
        "header_end",
        "header_version",
        "is_assumed",
        "is_request",
        "is_secret",
        "part",
        "size",
        "input_bytes",
    )

    def __init__(
        self,
        data: bytes,
        *,
        is_request: bool,
        size: int | None = None,
        input_bytes: int | None = None,
    ) -> None:
        self.data = data
        self.is_request = is_request
        self.is_secret = False
        self.size = len(data) if size is None else size
        self.input_bytes = self.size if input_bytes is None else input_bytes
        self.api_key: int | None = None
        self.api_version: int | None = None
        self.header: Header | None = None
        self.header_version = 0
        self.header_end = 0
        self.body: Message | None = None
        self.body_class: type[Message] | None = None
        self.body_version = 0
        self.end = 0
        self.error: WireError | None = None
        self.part: Part | None = None
        self.is_assumed = False
        self.findings: list[Finding] = []

    @classmethod
    def of_token(cls, data: bytes, size: int, *, is_request: bool) -> Payload:
        """A SASL token, which has neither header nor body."""
        payload = cls(data, is_request=is_request, size=size)
        payload.end = size
        detail = f"{size} bytes of a SASL token without header"
        payload.findings.append(Finding("sasl-token", 0, "", detail))
        return payload

    @property
    def is_complete(self) -> bool:
        """Whether all announced bytes are there."""
        return len(self.data) == self.size

    @property
    def remaining(self) -> int:
        """Announced bytes after the last one that was decoded."""
        return self.size - self.end

    @property
    def name(self) -> str:
        """The schema's name of the body, empty if the API is not known."""
        return self.body_class.NAME if self.body_class else ""

    @property
    def may_be_of_another(self) -> bool:
        """Whether a response, which may belong to another request than that of its number, may have
        a secret in bytes that were not decoded."""
        if self.is_request or self.end >= len(self.data):
            return False
        return may_be_secret(self.data, self.end)

    def header_json(self) -> dict[str, Any] | None:
        """The header in the form of Kafka's converters."""
        header = self.header
        if header is None:
            return None
        # Written out, as every frame has one: the general way takes ten times as long.
        if not isinstance(header, RequestHeader):
            return {"correlationId": header.correlation_id}
        json: dict[str, Any] = {
            "requestApiKey": header.request_api_key,
            "requestApiVersion": header.request_api_version,
            "correlationId": header.correlation_id,
        }
        if self.header_version:
            json["clientId"] = header.client_id
        return json

    def take_apart(self, most: int) -> None:
        """Replace the body by its first fields, those in the first `most` bytes of the payload.

        Order: after the schema is known.
        """
        assert self.body_class is not None
        self.body = None
        data, size = self.data, None
        if most < len(data):
            data, size = data[:most], len(data)
        self.part = annotated(
            self.body_class, data, self.body_version, self.header_end, size=size
        )
        path, self.end = self.part.stop()
        detail = f"{self.name} has too many values for its {self.size} bytes to show all of them"
        self.note("message-bomb", self.end, detail, path=json_path(path))

    def note(self, id: str, offset: int | None, detail: str, *, path: str = "") -> None:
        """Add a finding, with the first bytes from the offset on."""
        rest = b"" if offset is None else self.data[offset : offset + FINDING_HEX_BYTES]
        self.findings.append(Finding(id, offset, path, detail, rest))


def decode_payload(
    data: bytes,
    *,
    is_request: bool,
    api: tuple[int, int] | None = None,
    size: int | None = None,
    is_early: bool = False,
    input_bytes: int | None = None,
) -> Payload:
    """Decode header and body.

    `api` are key and version of the request that a response answers, None if they are unknown;
    a request's own header has them. `size` is the announced length where bytes are missing.
    `is_early` if the request is unknown because it was sent before the capture began. `input_bytes`
    is how many bytes of the input account for the payload, by default its own.
    """
    payload = Payload(data, is_request=is_request, size=size, input_bytes=input_bytes)
    if payload.is_complete and _decode_ordinary(payload, api):
        return payload
    _decode_header_of(payload, api, is_early=is_early)
    if payload.header is not None and payload.api_key is not None:
        _decode_body(payload, payload.api_key, payload.api_version or 0)
    return payload


def decode_header(
    data: bytes, *, is_request: bool, api: tuple[int, int] | None = None, size: int | None = None
) -> Payload:
    """Decode the header alone, as `decode_payload` does."""
    payload = Payload(data, is_request=is_request, size=size)
    _decode_header_of(payload, api, is_early=False)
    return payload


def _decode_header_of(
    payload: Payload, api: tuple[int, int] | None, *, is_early: bool
) -> None:
    if payload.is_request:
        _decode_request_header(payload)
    else:
        _decode_response_header(payload, api, is_early=is_early)


def _decode_ordinary(payload: Payload, api: tuple[int, int] | None) -> bool:
    """Decode header and body at once; return False and leave the payload if it is not ordinary."""
    data, is_request = payload.data, payload.is_request
    api = _REQUESTED.unpack_from(data) if is_request and len(data) >= _REQUESTED.size else api
    if api is None:
        return False
    found = ordinary_payload(data, api, is_request=is_request, input_bytes=payload.input_bytes)
    if found is None:
        return False
    body, _ = found
    cls = RequestHeader if is_request else ResponseHeader
    version_of = request_header_version if is_request else response_header_version
    payload.api_key, payload.api_version = api
    payload.header_version = version_of(*api)
    payload.header, payload.header_end = cls.decode(data, payload.header_version)
    payload.body, payload.body_class, payload.body_version = body, type(body), api[1]
    payload.end = payload.size
    return True


def _decode_request_header(payload: Payload) -> None:
    if len(payload.data) < 4:
        payload.note("header-undecoded", 0, f"{len(payload.data)} bytes are not a request header")
        return
    key = int.from_bytes(payload.data[:2], "big", signed=True)
    version = int.from_bytes(payload.data[2:4], "big", signed=True)
    payload.api_key, payload.api_version = key, version
    payload.header_version = request_header_version(key, version)
    _choose_header(payload, RequestHeader)
    _decode_header(payload, RequestHeader)


def _decode_response_header(
    payload: Payload, api: tuple[int, int] | None, *, is_early: bool
) -> None:
    if api is None:
        # Every version of the header starts with the correlation id.
        _decode_header(payload, ResponseHeader)
        payload.is_secret = _may_be_token_response(payload)
        id = BEFORE_CAPTURE if is_early else "unmatched-response"
        payload.note(id, payload.end, "the request is not known")
        return
    payload.api_key, payload.api_version = api
    payload.header_version = response_header_version(*api)
    _choose_header(payload, ResponseHeader)
    _decode_header(payload, ResponseHeader)


def _choose_header(payload: Payload, cls: type[RequestHeader] | type[ResponseHeader]) -> None:
    """Take the older header for an unknown API, which may not be flexible, if only that fits."""
    if payload.api_key in messages.API_VERSIONS:
        return
    try:
        cls.decode(payload.data, payload.header_version)
    except WireError:
        payload.header_version -= 1


def _decode_header(payload: Payload, cls: type[RequestHeader] | type[ResponseHeader]) -> None:
    try:
        payload.header, payload.end = cls.decode(payload.data, payload.header_version)
    except WireError as error:
        payload.error = bare(error)
        if payload.is_complete:
            payload.findings.append(finding_of(error, "header-undecoded", rest=payload.data))
        else:
            _note_missing(payload)
        return
    payload.header_end = payload.end
    if payload.header.unknown_tagged_fields:
        _note_tags(payload, payload.header, payload.header_version, within="header")


def _decode_body(payload: Payload, api_key: int, api_version: int) -> None:
    nearest = nearest_version(api_key, api_version)
    if nearest is None:
        payload.is_secret = _may_be_token_response(payload)
        payload.note("unknown-api", payload.end, f"API key {api_key} has no schema")
        return
    find = messages.request_class if payload.is_request else messages.response_class
    payload.body_class = cls = find(api_key)
    payload.body_version = nearest
    is_answered_in_0 = not payload.is_request and _is_answer_in_0(payload, api_key, api_version)
    if nearest != api_version and not is_answered_in_0:
        payload.is_assumed = True
        is_greeting = api_key == ApiKey.API_VERSIONS and api_version > nearest
        detail = f"{cls.NAME} v{api_version} has no schema (known: {cls.VERSIONS}), read as"
        id = "api-versions-newer" if is_greeting else "unknown-version"
        payload.note(id, payload.end, f"{detail} v{nearest}")
        if is_greeting and payload.is_request and payload.is_complete:
            _decode_greeting(payload, cls)
            return
    input_bytes = payload.input_bytes
    place = payload.body_version, payload.end
    if is_message_bomb(cls, payload.data, *place, input_bytes=input_bytes):
        if payload.is_complete:
            payload.take_apart(max(input_bytes, TAKEN_APART_BYTES_MAX))
        else:
            _note_missing(payload)
        return
    try:
        payload.body, payload.end = cls.decode(payload.data, payload.body_version, payload.end)
    except WireError as error:
        _note_stop(payload, error)
        return
    _check_body(payload, payload.body)


def _is_answer_in_0(payload: Payload, api_key: int, api_version: int) -> bool:
    """Return whether a response is in version 0 though its request is not; if so, note it."""
    version = answered_version(payload.data, payload.end, api_key, api_version)
    if version == api_version:
        return False
    payload.body_version = version
    detail = f"asked for in version {api_version}, answered in version {version}"
    payload.findings.append(Finding("api-versions-v0", payload.end, "", detail))
    return True


def _decode_greeting(payload: Payload, cls: type[Message]) -> None:
    """Read the known fields of an ApiVersions request in a future version, without tagged fields.

    New fields stand before the tagged ones, so where these begin is unknown.
    """
    version, start = payload.body_version, payload.header_end
    part = annotated(cls, payload.data, version, start)
    ends = [each.end for each in part.root.children if each.path and part.is_read(each)]
    end = ends[-1] if ends else start
    try:
        payload.body, _ = cls.decode(payload.data[:end] + _NO_TAGS, version, start)
    except WireError as error:
        _note_stop(payload, error)
        return
    # One byte more is announced than is there: the tags are not among what was read.
    payload.part = annotated(cls, payload.data[:end], version, start, size=end + 1)
    payload.end = end
    _check_body(payload, payload.body)


def _note_stop(payload: Payload, error: WireError) -> None:
    payload.error = bare(error)
    if not payload.is_complete:
        payload.is_secret = not payload.is_request and is_damaged_token_response(payload.data)
        _note_missing(payload)
        return
    if _note_token_response(payload):
        return
    if error.offset is not None:
        payload.end = min(error.offset, len(payload.data))
    rest = payload.data[payload.end :]
    payload.findings.append(finding_of(error, "undecoded", rest=rest))


def _may_be_token_response(payload: Payload) -> bool:
    """Whether a response to an unknown request may hold a delegation token."""
    return not payload.is_request and is_damaged_token_response(payload.data)


def _note_token_response(payload: Payload) -> bool:
    """Note whether a response is one of a delegation token, though its request was not."""
    if payload.is_request or may_carry_secrets(payload.name):
        return False
    name = token_response_in(payload.data)
    if not name and not is_damaged_token_response(payload.data):
        return False
    payload.body, payload.is_secret, payload.end = None, True, payload.header_end
    what = f"a {name}" if name else "what may be a damaged response with a delegation token"
    payload.note("undecoded", payload.end, f"{what} in place of {payload.name}")
    return True


def _note_missing(payload: Payload) -> None:
    path = ""
    if payload.body_class is not None:
        payload.part = annotated(
            payload.body_class,
            payload.data,
            payload.body_version,
            payload.header_end,
            size=payload.size,
        )
        path, payload.end = payload.part.stop()
    missing = payload.size - len(payload.data)
    detail = f"{missing} bytes of the frame are missing or lie after missing ones"
    payload.note("incomplete", payload.end, detail, path=json_path(path))


def _check_body(payload: Payload, body: Message) -> None:
    left = payload.remaining
    if left > 0 and payload.is_complete and _note_token_response(payload):
        return
    if left > 0:
        noun = "byte" if left == 1 else "bytes"
        payload.note("trailing-bytes", payload.end, f"{left} {noun} after {payload.name}")
    _note_tags(payload, body, payload.body_version, within="")


def _note_tags(payload: Payload, message: Message, version: int, *, within: str) -> None:
    for found in unknown_tags(message, version):
        path = ".".join(filter(None, (within, found.path)))
        detail = f"tag {found.tag} with {found.size} bytes"
        payload.findings.append(Finding("unknown-tag", None, path, detail))
