"""The bytes of a frame that must not be shown, for views of raw bytes and tables.

They are those of the fields that are redacted in its JSON. Where a secret is in bytes that were not
decoded, all of these are hidden; where it is in a record, the records of the whole batch are, as
they may be compressed.
"""

from __future__ import annotations

from collections.abc import Iterator

from kraftwire.decode.body.bodies import ByteRange
from kraftwire.decode.body.frame import Frame
from kraftwire.decode.body.secrets import holds_secrets, may_carry_secrets, secret_ranges
from kraftwire.messages.response_header import ResponseHeader

# Where the correlation id of a response header ends, and the client id of a request header begins.
_CORRELATION_END, _CLIENT_ID_AT = 4, 10


def hidden_ranges(frame: Frame) -> list[ByteRange]:
    """The ranges [start, end) of the data of a frame to hide, in order; none if secrets are shown.
    """
    payload = frame.payload
    if frame.settings.show_secrets:
        return []
    if payload.body is None:
        return [(payload.header_end, len(payload.data))] if frame.hides_bytes else []
    ranges = list(_secret_records(frame))
    has_unknown_tags = any(each.id == "unknown-tag" for each in payload.findings)
    if has_unknown_tags and may_carry_secrets(payload.name):
        ranges += _tags_of_header(frame)
        ranges += frame.part.unknown_tags()
    paths = set(frame.secret_paths)
    if paths:
        ranges += frame.part.ranges_of(paths)
    if payload.end < len(payload.data) and (
        holds_secrets(payload.name) or payload.may_be_of_another
    ):
        ranges.append((payload.end, len(payload.data)))
    return sorted(ranges)


def _tags_of_header(frame: Frame) -> Iterator[ByteRange]:
    """The bytes of the tagged fields of a header, none of which a schema has."""
    header = frame.header
    if header is not None and header.unknown_tagged_fields:
        size = 0 if isinstance(header, ResponseHeader) else len((header.client_id or "").encode())
        before = _CORRELATION_END if isinstance(header, ResponseHeader) else _CLIENT_ID_AT + size
        yield before, frame.payload.header_end


def _secret_records(frame: Frame) -> Iterator[ByteRange]:
    """The records of batches that hold secrets; in the metadata log also what cannot be read."""
    if not frame.has_records:
        return
    fields = [(each, getattr(each.where.holder, each.where.attribute)) for each in frame.batches]
    found = [(each, list(secret_ranges(data, each.topic))) for each, data in fields if data]
    if not any(ranges for _, ranges in found):
        return
    starts = frame.part.records_starts()
    for each, ranges in found:
        start = starts.get(each.where.path, 0)
        for low, high in ranges:
            yield start + low, start + high
