"""Decodes the bodies of ordinary frames without findings: most frames of most captures.

A frame is ordinary if header, body and batches have no findings, as the full decoder in `bodies`
would report them, and if it neither explains other frames nor depends on them. All other frames are
left to that decoder. Records inside batches are not read here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from crc32c import crc32c

from kraftwire import messages
from kraftwire.capture.framing.frames import RawFrame
from kraftwire.capture.limits import is_message_bomb
from kraftwire.decode.body.nested import HAS_NESTED
from kraftwire.decode.body.scan import may_have_records, tag_check
from kraftwire.decode.limits import LIGHT_BYTES
from kraftwire.errors import WireError
from kraftwire.protocol.api_keys import ApiKey
from kraftwire.protocol.versions import (
    request_header_version,
    response_header_version,
)
from kraftwire.records.header import LENGTH_MIN, LOG_OVERHEAD, MAGIC, fields
from kraftwire.wire.message import Message

# Length, magic and CRC of a batch, whose CRC covers what follows.
_BATCH = fields("batch_length", "magic", "crc")

# APIs whose responses carry the names of topics.
_TOPICS = frozenset(
    {
        ApiKey.METADATA,
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    }
)
_TELLING = _TOPICS | {
    ApiKey.JOIN_GROUP,
    ApiKey.SYNC_GROUP,
    ApiKey.SASL_HANDSHAKE,
    ApiKey.API_VERSIONS,
    ApiKey.SASL_AUTHENTICATE,
    ApiKey.ENVELOPE,
}

# Where the length of the client id is in a request.
_CLIENT_ID = 8
_TEXT_SIZE_MAX = 0x7FFF
_NULL = 0xFFFF


def names_topics(api_key: int | None) -> bool:
    """Whether responses of an API carry names of topics; its requests explain nothing."""
    return api_key in _TOPICS


def needs_learning(api_key: int | None) -> bool:
    """Whether frames of an API reveal something about others, or depend on others."""
    return api_key in _TELLING


class Schema(NamedTuple):
    """How ordinary frames of an API in a version are decoded, by direction.

    `has_tags` if the header ends with tagged fields. `records` returns the records in a body, and
    `has_unknown_tags` says whether any struct in it has tagged fields that the schema lacks.
    """

    message: type[Message]
    has_tags: bool
    records: Callable[[Any], list[memoryview | bytes | None]] | None
    has_unknown_tags: Callable[[Any], Any]


# (API key, version) -> schema; None where frames are never ordinary.
_Schemas = dict[tuple[int | None, int | None], Schema | None]
_request_schemas: _Schemas = {}
_response_schemas: _Schemas = {}


def quick_body(frame: RawFrame) -> Message | None:
    """The body of a frame; None if the frame is not ordinary."""
    if frame.findings or frame.missing:
        return None
    if len(frame.data) != frame.size:
        return None
    return ordinary_body(
        frame.data,
        (frame.api_key, frame.api_version),
        is_request=frame.direction == "request",
        input_bytes=frame.input_bytes,
    )


def quick_bodies(frames: Sequence[RawFrame]) -> Iterable[Message | None]:
    """The `quick_body` of each frame: all at once, or one at a time if they are large."""
    if sum([frame.size for frame in frames]) >= LIGHT_BYTES:
        return map(quick_body, frames)
    return [quick_body(frame) for frame in frames]


def ordinary_body(
    data: bytes, api: tuple[int | None, int | None], *, is_request: bool, input_bytes: int
) -> Message | None:
    """Return the body of a frame; None if the frame is not ordinary.

    `data` are all bytes after the frame's length, `api` key and version of the request, and
    `input_bytes` how many bytes of the input account for the frame.
    """
    schemas = _request_schemas if is_request else _response_schemas
    try:
        schema = schemas[api]
    except KeyError:
        schema = schemas[api] = ordinary_schema(is_request, *api)
    if schema is None:
        return None
    cls, has_tags, records, has_unknown_tags = schema
    version = api[1] or 0
    position = 4
    try:
        if is_request:
            position = _CLIENT_ID + 2
            size = data[_CLIENT_ID] << 8 | data[_CLIENT_ID + 1]
            if size <= _TEXT_SIZE_MAX:
                position += size
                data[_CLIENT_ID + 2 : position].decode()
            elif size != _NULL:
                return None
        if has_tags:
            if data[position]:
                return None
            position += 1
        size = len(data) - position
        if size < 0 or (
            size >= LIGHT_BYTES
            and is_message_bomb(cls, data, version, position, input_bytes=input_bytes)
        ):
            return None
        body, end = cls.decode(data, version, position)
    except (WireError, IndexError, UnicodeDecodeError):
        return None
    if records is not None:
        for each in records(body):
            if each and not _is_sound(each):
                return None
    if end != len(data) or has_unknown_tags(body):
        return None
    return body


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


def ordinary_schema(is_request: bool, key: int | None, version: int | None) -> Schema | None:
    """The schema of an ordinary frame's body by direction, API key and version.

    Returns None for versions without schema, for headers without a client id, and for frames that
    explain others, hold other messages, or hold records that are not checked here.
    """
    if key is None or version is None:
        return None
    if needs_learning(key) and not (is_request and names_topics(key)):
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
    return Schema(cls, has_tags, records, tag_check(cls, version))


def _fetched(body: Any) -> list[memoryview | bytes | None]:
    return [p.records for topic in body.responses for p in topic.partitions]


def _produced(body: Any) -> list[memoryview | bytes | None]:
    return [p.records for topic in body.topic_data for p in topic.partition_data]


# Where the records of a body are, by the name of its message.
RECORDS: dict[str, Callable[[Any], list[memoryview | bytes | None]]] = {
    "FetchResponse": _fetched,
    "ProduceRequest": _produced,
}
