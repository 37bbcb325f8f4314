"""A payload as it is shown: its JSON form, the batches and messages inside it, all its findings.

Everything here is computed on request, so that a program that prints one line for a frame does not
pay for its JSON.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar, overload

from kraftwire import messages
from kraftwire.decode.body.bodies import Part, Payload, annotated, decode_payload, partial_json
from kraftwire.decode.body.context import NO_CONTEXT, FrameContext
from kraftwire.decode.body.findings import Finding, finding_of, json_path
from kraftwire.decode.body.nested import (
    HAS_NESTED,
    Inner,
    MessageContext,
    Nested,
    is_plain,
    nested_in,
)
from kraftwire.decode.body.records import (
    METADATA,
    FieldBatches,
    Settings,
    batches_in,
    json_with_batches,
    read_into,
)
from kraftwire.decode.body.scan import RecordsField, error_codes, has_records
from kraftwire.decode.body.secrets import (
    REDACTED,
    SECRET_HEADS,
    has_secret_records,
    holds_secrets,
    may_be_secret,
    may_carry_secrets,
    redact,
    redact_carried,
)
from kraftwire.errors import WireError
from kraftwire.messages.response_header import ResponseHeader
from kraftwire.protocol.topic_names import METADATA_TOPIC, METADATA_TOPIC_ID
from kraftwire.records.header import HEADER_SIZE
from kraftwire.records.messages import family_of_topic
from kraftwire.records.reader import BatchReader
from kraftwire.wire.reader import UNKNOWN_TAG, Annotation

T = TypeVar("T")

# How secret records of the metadata log begin, of whatever topic they are said to be.
_SECRET_RECORD = re.compile(
    b"|".join(re.escape(head) + b"[\\x00-\\x03]" for head in SECRET_HEADS if head[0])
)
# Where the correlation id of a response header ends, and the client id of a request header begins.
_CORRELATION_END, _CLIENT_ID_AT = 4, 10
# A request in an envelope is never an envelope itself; damaged or hostile bytes may say so.
_DEPTH_MAX = 1

ByteRange = tuple[int, int]


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


class PayloadView:
    """A payload and everything that can be derived from it."""

    def __init__(
        self,
        payload: Payload,
        settings: Settings,
        context: FrameContext = NO_CONTEXT,
        *,
        file: str | None = None,
        depth: int = 0,
    ) -> None:
        """Prepare a view. `file` is the name that batches carry."""
        self.payload = payload
        self.settings = settings
        self.file = file
        self._context = context
        self._depth = depth

    @lazy
    def part(self) -> Part:
        """The annotations of the body, up to where it stops.

        Order: only for a payload whose `body_class` is known.
        """
        payload = self.payload
        if payload.part is not None:
            return payload.part
        assert payload.body_class is not None
        return annotated(
            payload.body_class, payload.data, payload.body_version, payload.header_end
        )

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

    @lazy
    def nested(self) -> Nested:
        """What is inside the body's fields of type bytes."""
        body = self.payload.body
        if body is None or body.NAME not in HAS_NESTED:
            return Nested()
        context = MessageContext(
            self.payload.data,
            self._unwrap,
            self._context.mechanism,
            self._context.protocol_type,
            self._context.embedded_api,
            self.settings.show_secrets,
        )
        return nested_in(body, context)

    def _unwrap(self, data: bytes, is_request: bool, api: tuple[int, int] | None) -> Inner:
        payload = decode_payload(data, is_request=is_request, api=api)
        depth = self._depth + 1
        if depth > _DEPTH_MAX:
            payload.body = payload.body_class = None
        view = PayloadView(payload, self.settings, file=self.file, depth=depth)
        return Inner(view.to_json(), view.findings, view.has_secrets)

    @lazy
    def inner(self) -> Payload | None:
        """The request or response in an envelope; None if there is none, or it cannot be read."""
        body: Any = self.payload.body
        if self._depth == _DEPTH_MAX or body is None:
            return None
        if body.NAME == "EnvelopeRequest":
            return decode_payload(body.request_data, is_request=True)
        if body.NAME != "EnvelopeResponse" or not body.response_data:
            return None
        return decode_payload(body.response_data, is_request=False, api=self._context.embedded_api)

    @lazy
    def findings(self) -> list[Finding]:
        """Everything that was found in the payload."""
        found = self.payload.findings + self._of_form()
        batches = [each for each in self.batches if each.findings] if self.has_records else []
        if not batches and not self.nested.findings:
            return found
        return [*found, *self._of_batches(batches), *self.nested.findings]

    def _of_form(self) -> list[Finding]:
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
        path = json_path(_innermost(self.part.root, at).path)
        detail = f"Kafka writes the same message in {len(written)} bytes, here are {len(read)}"
        return [Finding("not-canonical", at, path, detail)]

    def _of_batches(self, batches: list[FieldBatches]) -> list[Finding]:
        """The findings in batches, their offsets counted from the start of the payload."""
        starts = records_starts(self.part.root)
        return [
            Finding(
                each.id,
                None if each.offset is None else each.offset + starts.get(of.where.path, 0),
                each.path,
                each.detail,
                each.rest,
            )
            for of in batches
            for each in of.findings
        ]

    @lazy
    def error_codes(self) -> list[int]:
        """The error codes other than 0 in the body and in an envelope's response, each once."""
        body = self.payload.body
        codes = error_codes(body, self.payload.body_version) if body is not None else []
        inner = self.inner
        if inner is not None and inner.body is not None and not inner.is_request:
            codes += error_codes(inner.body, inner.body_version)
        return list(dict.fromkeys(codes))

    @property
    def hides_bytes(self) -> bool:
        """Whether raw bytes of the payload must not be shown because of what may be in them."""
        if self.settings.show_secrets:
            return False
        payload = self.payload
        if payload.body is None:
            # A response without a request, or bytes that are not a header, may belong to a login.
            is_unknown = payload.api_key is None or payload.header is None or payload.is_secret
            if is_unknown or may_carry_secrets(payload.name) or _may_be_metadata(payload.data):
                return True
        elif holds_secrets(payload.name) or self.nested.secret_paths:
            return True
        return _may_be_of_another(payload)

    @lazy
    def _json(self) -> tuple[dict[str, Any] | None, list[str]]:
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
        for path in self.nested.secret_paths:
            json[path] = REDACTED
        return json, paths + self.nested.secret_paths

    @property
    def body_json(self) -> dict[str, Any] | None:
        """The body in the form of Kafka's converters, with batches and without secrets.

        The leading fields if the body cannot be decoded as a whole, None if there are none.
        """
        return self._json[0]

    @property
    def secret_paths(self) -> list[str]:
        """Paths of the fields that are redacted in the body."""
        name = self.payload.name
        if self.payload.body is not None and is_plain(name):
            return []
        return self._json[1]

    @property
    def has_secrets(self) -> bool:
        """Whether the payload holds secrets, or may hold them where it was not decoded."""
        if self.payload.body is None:
            is_unknown = not self.payload.name or self.payload.is_secret
            return is_unknown or may_carry_secrets(self.payload.name)
        return bool(self.secret_paths)

    def _partial_batches(self, node: Annotation, start: int, end: int) -> Any:
        """The batches of a field of type records in a body that was not decoded as a whole."""
        topic = METADATA_TOPIC if _may_be_metadata(self.payload.data) else None
        where = RecordsField((), node.name, None, "", topic, None)
        result = FieldBatches(where, topic, self.file, [])
        read_into(result, self.payload.data[start:end], self.settings.records)
        return result.batches

    def findings_json(self) -> list[dict[str, Any]]:
        """The findings as JSON."""
        show = not self.hides_bytes
        return [each.to_json(show_bytes=show) for each in self.findings]

    def to_json(self) -> dict[str, Any]:
        """A payload inside another one as JSON."""
        payload = self.payload
        key = payload.api_key
        return {
            "direction": "request" if payload.is_request else "response",
            "apiKey": key,
            "apiName": None if key is None else messages.API_NAMES.get(key),
            "apiVersion": payload.api_version,
            "correlationId": payload.header.correlation_id if payload.header else None,
            "size": payload.size,
            "remaining": payload.remaining,
            "header": payload.header_json(),
            "body": self.body_json,
            "nested": self.nested.objects,
        }


def _may_be_of_another(payload: Payload) -> bool:
    """Whether a response, which may belong to another request than that of its number, may have a
    secret in bytes that were not decoded."""
    if payload.is_request or payload.end >= len(payload.data):
        return False
    return may_be_secret(payload.data, payload.end)


def _may_be_metadata(data: bytes) -> bool:
    """Whether records of the metadata log may be in a payload that was not decoded."""
    if METADATA_TOPIC_ID in data or METADATA_TOPIC.encode() in data:
        return True
    return _SECRET_RECORD.search(data) is not None


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


def _innermost(node: Annotation, at: int) -> Annotation:
    """Return the innermost annotation that holds a position."""
    while inner := next((each for each in node.children if each.start <= at < each.end), None):
        node = inner
    return node


def records_starts(root: Annotation) -> dict[str, int]:
    """Where the data of each field of type records begins, by the field's path."""
    starts: dict[str, int] = {}
    stack = [root]
    while stack:
        node = stack.pop()
        if node.type == "records" and node.children:
            starts[json_path(node.path)] = node.children[0].end
        stack += node.children
    return starts


def hidden_ranges(view: PayloadView) -> list[ByteRange]:
    """The ranges [start, end) of a payload to hide, in order; none if secrets are shown.

    They are the fields that are redacted in its JSON, for views of raw bytes. Where a secret is in
    bytes that were not decoded, all of these are hidden; where it is in a record, the records of
    the whole batch are, as they may be compressed.
    """
    payload = view.payload
    if view.settings.show_secrets:
        return []
    if payload.body is None:
        start = payload.header_end
        return [(start, len(payload.data))] if view.hides_bytes else []
    ranges = list(_secret_records(view))
    has_unknown_tags = any(each.id == "unknown-tag" for each in payload.findings)
    if has_unknown_tags and may_carry_secrets(payload.name):
        ranges += _unknown_tags(view)
    paths = set(view.secret_paths)
    if paths:
        ranges += _fields_at(view.part.root, paths)
    if payload.end < len(payload.data) and (
        holds_secrets(payload.name) or _may_be_of_another(payload)
    ):
        ranges.append((payload.end, len(payload.data)))
    return sorted(ranges)


def _unknown_tags(view: PayloadView) -> Iterator[ByteRange]:
    """The bytes of tagged fields that no schema has, in a message that holds secrets."""
    payload = view.payload
    header = payload.header
    if header is not None and header.unknown_tagged_fields:
        size = 0 if isinstance(header, ResponseHeader) else len((header.client_id or "").encode())
        before = _CORRELATION_END if isinstance(header, ResponseHeader) else _CLIENT_ID_AT + size
        yield before, payload.header_end
    stack = [view.part.root]
    while stack:
        node = stack.pop()
        if node.type == UNKNOWN_TAG:
            yield node.start, node.end
        stack += node.children


def _fields_at(root: Annotation, paths: set[str]) -> Iterator[ByteRange]:
    """The bytes of the fields at some paths of the JSON form."""
    stack = [root]
    while stack:
        node = stack.pop()
        if json_path(node.path) in paths:
            yield node.start, node.end
        else:
            stack += node.children


def _secret_records(view: PayloadView) -> Iterator[ByteRange]:
    """The records of batches that hold secrets; in the metadata log also what cannot be read."""
    if not view.has_records:
        return
    fields = [(each, getattr(each.where.holder, each.where.attribute)) for each in view.batches]
    found = [(each, list(secret_ranges(data, each.topic))) for each, data in fields if data]
    if not any(ranges for _, ranges in found):
        return
    starts = records_starts(view.part.root)
    for each, ranges in found:
        start = starts.get(each.where.path, 0)
        for low, high in ranges:
            yield start + low, start + high


def secret_ranges(data: memoryview | bytes, topic: str | None) -> Iterator[ByteRange]:
    """The ranges to hide in the records of a topic, None if its name is unknown."""
    family = None if topic is None else family_of_topic(topic)
    # Records of a topic without a known name may be those of the metadata log.
    is_metadata = topic is None or family == METADATA
    reader = BatchReader(data)
    while True:
        try:
            for batch in reader:
                if has_secret_records(batch, family, is_metadata=is_metadata):
                    yield batch.position + HEADER_SIZE, batch.position + batch.size
            break
        except WireError:
            # Half a batch at the start of a slice may hold anything.
            start = reader.position
            end = start + reader.resume()
            if is_metadata:
                yield start, end
    if reader.remaining and is_metadata:
        yield reader.position, len(data)
