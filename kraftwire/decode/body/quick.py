"""The bodies of ordinary frames, decoded without a detour.

Owns the fast path from a frame to its body: whole frames of APIs and versions that the schemas
know, with headers free of tagged fields. All other frames are left to the decoder that learns
from frames and reports findings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from crc32c import crc32c

from kraftwire import messages
from kraftwire.capture.framing.frames import Frame
from kraftwire.capture.framing.message_bomb import is_message_bomb
from kraftwire.decode.body.response_context import needs_learning
from kraftwire.decode.body.size_limits import LIGHT_BYTES
from kraftwire.errors import WireError
from kraftwire.protocol.versions import (
    API_VERSIONS_KEY,
    request_header_version,
    response_header_version,
)
from kraftwire.records.header import LENGTH_MIN, LOG_OVERHEAD, MAGIC, fields
from kraftwire.wire.message import Message

__all__ = ["find_way", "quick_bodies", "quick_body", "quick_payload"]

# Length, magic and CRC of a batch, whose CRC covers what follows.
_BATCH = fields("batch_length", "magic", "crc")

# Responses with records, or another response, that only the slow path looks into.
_LONG_WAY = frozenset({"EnvelopeResponse", "FetchSnapshotResponse", "ShareFetchResponse"})

_CLIENT_ID = 8
_NULL = 0xFFFF

# (API key, version) -> class and whether the header ends with tagged fields; None: slow path.
_Ways = dict[tuple[int | None, int | None], tuple[type[Message], bool] | None]
_request_ways: _Ways = {}
_response_ways: _Ways = {}


def quick_body(frame: Frame) -> Message | None:
    """The body of a frame; None if the frame is not ordinary."""
    if frame.findings or frame.missing:
        return None
    is_request = frame.direction == "request"
    api = frame.api_key, frame.api_version
    body, end = _decode(frame.data, api, is_request, frame.worth)
    return body if end == frame.size else None


def quick_bodies(frames: Sequence[Frame]) -> Iterable[Message | None]:
    """Return what `quick_body` does for each frame, all at once unless it may be large."""
    if sum([frame.size for frame in frames]) >= LIGHT_BYTES:
        return map(quick_body, frames)
    return [quick_body(frame) for frame in frames]


def quick_payload(data: bytes, api: tuple[int, int], *, is_request: bool) -> Message | None:
    """The body of a whole frame without its length, by API key and version of the request."""
    body, end = _decode(data, api, is_request, len(data))
    return body if end == len(data) else None


def _decode(
    data: bytes, api: tuple[int | None, int | None], is_request: bool, worth: int
) -> tuple[Message | None, int]:
    """The body and where it ends; None if it cannot be read on this path."""
    ways = _request_ways if is_request else _response_ways
    try:
        way = ways[api]
    except KeyError:
        way = ways[api] = find_way(is_request, *api)
    if way is None:
        return None, 0
    cls, has_tags = way
    position = 4
    try:
        if is_request:
            position = _CLIENT_ID + 2
            size = data[_CLIENT_ID] << 8 | data[_CLIENT_ID + 1]
            if size != _NULL:
                position += size
        if has_tags:
            if data[position]:
                return None, 0
            position += 1
        size = len(data) - position
        if size < 0 or (
            size >= LIGHT_BYTES
            and is_message_bomb(cls, data, api[1] or 0, position, worth=worth)
        ):
            return None, 0
        body, end = cls.decode(data, api[1] or 0, position)
    except (WireError, IndexError):
        return None, 0
    records = _RECORDS.get(cls.NAME)
    if records is not None:
        for each in records(body):
            if each and not _is_sound(each):
                return None, 0
    return body, end


def _is_sound(data: memoryview | bytes) -> bool:
    """Whether records are batches of magic 2 with right CRCs, the last of them perhaps cut."""
    position, end = 0, len(data)
    while end - position >= _BATCH.size:
        length, magic, crc = _BATCH.unpack_from(data, position)
        position, start = position + LOG_OVERHEAD + length, position + _BATCH.size
        if magic != MAGIC or length < LENGTH_MIN:
            return False
        if position <= end and crc32c(data[start:position]) != crc:
            return False
    return True


def find_way(
    is_request: bool, key: int | None, version: int | None
) -> tuple[type[Message], bool] | None:
    """The class of an ordinary body, and whether the header before it ends with tagged fields.

    Returns None for versions without schema, for headers without a client id, for frames that
    reveal something about others, and for those that only the slow path looks into.
    """
    if key is None or version is None or needs_learning(key) or key == API_VERSIONS_KEY:
        return None
    low, high = messages.API_VERSIONS.get(key, (0, -1))
    if not low <= version <= high:
        return None
    if not is_request:
        if messages.response_class(key).NAME in _LONG_WAY:
            return None
        return messages.response_class(key), response_header_version(key, version) == 1
    header_version = request_header_version(key, version)
    return (messages.request_class(key), header_version == 2) if header_version else None


def _fetched(body: Any) -> list[memoryview | bytes | None]:
    return [p.records for topic in body.responses for p in topic.partitions]


def _produced(body: Any) -> list[memoryview | bytes | None]:
    return [p.records for topic in body.topic_data for p in topic.partition_data]


# Where the records of a body are.
_RECORDS: dict[str, Callable[[Any], list[memoryview | bytes | None]]] = {
    "FetchResponse": _fetched,
    "ProduceRequest": _produced,
}
