"""Decodes the bodies of ordinary frames without findings: most frames of most captures.

A frame is ordinary if header, body and batches have no findings, as the full decoder in `bodies`
would report them, and if it does not depend on others and reveals nothing but the names of topics.
All other frames are left to that decoder. Records inside batches are not read here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

from kraftwire import engine, messages
from kraftwire.capture.framing.frames import RawFrame
from kraftwire.decode.body.nested import HAS_NESTED
from kraftwire.decode.body.scan import has_unknown_tags, may_have_records
from kraftwire.decode.limits import LIGHT_BYTES
from kraftwire.errors import WireError
from kraftwire.protocol.api_keys import ApiKey
from kraftwire.protocol.versions import (
    request_header_version,
    response_header_version,
)
from kraftwire.records.crc import crc32c
from kraftwire.records.header import LENGTH_MIN, LOG_OVERHEAD, MAGIC, fields
from kraftwire.wire.message import Message
from kraftwire.wire.plans import engine_plan
from kraftwire.wire.size_estimate import is_message_bomb

# Length, magic and CRC of a batch, whose CRC covers what follows.
_BATCH = fields("batch_length", "magic", "crc")

# APIs whose responses carry the names of topics; their requests explain nothing.
NAMING_APIS = frozenset(
    {
        ApiKey.METADATA,
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    }
)
_LEARNED_FROM = NAMING_APIS | {
    ApiKey.JOIN_GROUP,
    ApiKey.SYNC_GROUP,
    ApiKey.SASL_HANDSHAKE,
    ApiKey.API_VERSIONS,
    ApiKey.SASL_AUTHENTICATE,
    ApiKey.ENVELOPE,
}

# Where the length of the client id is in a request, and the body after a header without one.
_CLIENT_ID = 8
_CORRELATION_SIZE = 4
_TEXT_SIZE_MAX = 0x7FFF
_NULL = 0xFFFF


def needs_learning(api_key: int | None) -> bool:
    """Whether frames of an API reveal something about others, or depend on others."""
    return api_key in _LEARNED_FROM


# The body of an ordinary frame, and whether any error code in it may be set.
OrdinaryBody = tuple[Message, bool]


class Form(NamedTuple):
    """How ordinary frames of an API in a version are decoded, in one direction.

    `read` takes a frame's bytes, `is_request` and `has_tags`, whether the header ends with tagged
    fields; it returns None where they are not ordinary. `records` returns the records in a body,
    and `names_topics` says that later frames are shown with names in it.
    """

    message: type[Message]
    version: int
    is_request: bool
    has_tags: bool
    read: Callable[[bytes, bool, bool], OrdinaryBody | None]
    records: Callable[[Any], list[memoryview | bytes | None]] | None
    names_topics: bool


# (API key, version) -> form; None where frames are never ordinary.
_Forms = dict[tuple[int | None, int | None], Form | None]
# By engine and direction.
_FORMS: dict[tuple[bool, bool], _Forms] = {
    (is_pure, is_request): {} for is_pure in (False, True) for is_request in (False, True)
}


def form_of(is_request: bool, key: int | None, version: int | None) -> Form | None:
    """The form of ordinary frames by direction, API key and version.

    Returns None for versions without schema, for headers without a client id, and for frames that
    depend on others, hold other messages, or hold records that are not checked here.
    """
    forms = _FORMS[engine.core is None, is_request]
    api = key, version
    if api not in forms:
        forms[api] = _form(is_request, key, version)
    return forms[api]


def ordinary_body(frame: RawFrame) -> OrdinaryBody | None:
    """The body of a frame; None if the frame is not ordinary."""
    form = form_of(frame.direction == "request", frame.api_key, frame.api_version)
    data = frame.data
    if form is None or frame.packet_findings or frame.missing or len(data) != frame.size:
        return None
    return _read(data, form, frame.input_bytes)


def ordinary_bodies(frames: Sequence[RawFrame]) -> Iterable[OrdinaryBody | None]:
    """The `ordinary_body` of each frame: all at once, or one at a time if they are large."""
    if sum([frame.size for frame in frames]) >= LIGHT_BYTES:
        return map(ordinary_body, frames)
    return [ordinary_body(frame) for frame in frames]


def ordinary_payload(
    data: bytes, api: tuple[int | None, int | None], *, is_request: bool, input_bytes: int
) -> OrdinaryBody | None:
    """The body in a frame that is not of a capture; None if it is not ordinary.

    `data` are all bytes after the frame's length, `api` key and version of the request, and
    `input_bytes` how many bytes of the input account for the frame.
    """
    form = form_of(is_request, *api)
    return None if form is None else _read(data, form, input_bytes)


def _read(data: bytes, form: Form, input_bytes: int) -> OrdinaryBody | None:
    if len(data) >= LIGHT_BYTES and _is_bomb(data, form, input_bytes):
        return None
    found = form.read(data, form.is_request, form.has_tags)
    if found is not None and form.records is not None:
        for each in form.records(found[0]):
            if each and not _is_sound(each):
                return None
    return found


def _is_bomb(data: bytes, form: Form, input_bytes: int) -> bool:
    start = _body_start(data, form.is_request, form.has_tags)
    return start >= 0 and is_message_bomb(
        form.message, data, form.version, start, input_bytes=input_bytes
    )


def _is_sound(data: memoryview | bytes) -> bool:
    """Whether records are whole batches of magic 2 with right CRCs."""
    position, end = 0, len(data)
    while end - position >= _BATCH.size:
        length, magic, crc = _BATCH.unpack_from(data, position)
        position, start = position + LOG_OVERHEAD + length, position + _BATCH.size
        if magic != MAGIC or length < LENGTH_MIN or position > end:
            return False
        if crc32c(data[start:position]) != crc:
            return False
    return position == end


def _form(is_request: bool, key: int | None, version: int | None) -> Form | None:
    if key is None or version is None:
        return None
    if needs_learning(key) and not (key in NAMING_APIS or key == ApiKey.API_VERSIONS):
        return None
    low, high = messages.API_VERSIONS.get(key, (0, -1))
    if not low <= version <= high:
        return None
    cls = messages.request_class(key) if is_request else messages.response_class(key)
    version_of = request_header_version if is_request else response_header_version
    header_version = version_of(key, version)
    records = RECORDS.get(cls.NAME)
    if cls.NAME in HAS_NESTED or (may_have_records(cls) and records is None):
        return None
    if is_request and not header_version:
        return None
    has_tags = header_version == (2 if is_request else 1)
    is_naming = key in NAMING_APIS and not is_request
    plan = engine_plan(cls, version)
    read = partial(_read_by_python, cls, version) if plan is None else plan.read
    return Form(cls, version, is_request, has_tags, read, records, is_naming)


def _read_by_python(
    cls: type[Message], version: int, data: bytes, is_request: bool, has_tags: bool
) -> OrdinaryBody | None:
    """Act as the engine's `Plan.read`, which also knows whether an error code is set."""
    try:
        start = _body_start(data, is_request, has_tags)
        if start < 0:
            return None
        body, end = cls.decode(data, version, start)
    except (WireError, IndexError, UnicodeDecodeError):
        return None
    if end != len(data) or has_unknown_tags(body, version):
        return None
    return body, not is_request


def _body_start(data: bytes, is_request: bool, has_tags: bool) -> int:
    """Where the body begins after a header that is as usual, without tagged fields; -1 if not.

    Raises: IndexError where the header is cut; UnicodeDecodeError.
    """
    position = _CORRELATION_SIZE
    if is_request:
        position = _CLIENT_ID + 2
        size = data[_CLIENT_ID] << 8 | data[_CLIENT_ID + 1]
        if size <= _TEXT_SIZE_MAX:
            position += size
            data[_CLIENT_ID + 2 : position].decode()
        elif size != _NULL:
            return -1
    if has_tags:
        if data[position]:
            return -1
        position += 1
    return position if position <= len(data) else -1


def _fetched(body: Any) -> list[memoryview | bytes | None]:
    return [p.records for topic in body.responses for p in topic.partitions]


def _snapshots(body: Any) -> list[memoryview | bytes | None]:
    return [p.unaligned_records for topic in body.topics for p in topic.partitions]


def _produced(body: Any) -> list[memoryview | bytes | None]:
    return [p.records for topic in body.topic_data for p in topic.partition_data]


# Where the records of a body are, by the name of its message.
RECORDS: dict[str, Callable[[Any], list[memoryview | bytes | None]]] = {
    "FetchResponse": _fetched,
    "FetchSnapshotResponse": _snapshots,
    "ProduceRequest": _produced,
}
