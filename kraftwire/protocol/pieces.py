"""The frame of a long answer in pieces, so that the records in it are hardly copied.

A Fetch is answered with up to a few MiB. Encoding it as one message, putting the header before that
and the length before both would copy them three times.
"""

from __future__ import annotations

from kraftwire.messages.fetch_response import FetchResponse, PartitionData
from kraftwire.messages.response_header import ResponseHeader
from kraftwire.protocol.envelope import encode_response
from kraftwire.wire.frame import frame, length_prefix
from kraftwire.wire.message import Message
from kraftwire.wire.varint import uvarint

__all__ = ["Pieces", "response_pieces"]

Pieces = list[bytes | memoryview]
"""Bytes that follow one another on a connection."""

# The length of records is a varint from this version on.
_FLEXIBLE_VERSION = 12

# Shorter records are copied: a separate piece costs a system call.
_CARRIED_BYTES_MIN = 64 * 1024
# This much of the records is copied into the pieces before and after them.
_EDGE_BYTES = 16 * 1024


def response_pieces(header: ResponseHeader, body: Message, api_version: int) -> Pieces:
    """Return the frame of a response, as `frame` and `encode_response` make it, in a few pieces.

    Raises: as `encode_response`.
    """
    carrier = _carrier(body) if api_version >= _FLEXIBLE_VERSION else None
    if carrier is None:
        return [frame(encode_response(header, body, api_version))]
    assert carrier.records is not None
    records = memoryview(carrier.records)
    before, after = _around_records(header, body, carrier, api_version)
    before += uvarint(len(records) + 1)
    prefix = length_prefix(len(before) + len(records) + len(after))
    return [
        b"".join((prefix, before, records[:_EDGE_BYTES])),
        records[_EDGE_BYTES:-_EDGE_BYTES],
        b"".join((records[-_EDGE_BYTES:], after)),
    ]


def _carrier(body: Message) -> PartitionData | None:
    """Return the only partition of a Fetch if its records are long, else None."""
    if type(body) is not FetchResponse or len(body.responses) != 1:
        return None
    partitions = body.responses[0].partitions
    if len(partitions) != 1 or not partitions[0].records:
        return None
    return partitions[0] if len(partitions[0].records) >= _CARRIED_BYTES_MIN else None


def _around_records(
    header: ResponseHeader, body: Message, carrier: PartitionData, api_version: int
) -> tuple[bytes, bytes]:
    """Return the bytes before the length of the records, and those after the records.

    Found by comparing the message without records to that with one byte of them: the first
    difference is their length.
    """
    records = carrier.records
    try:
        carrier.records = b""
        without = encode_response(header, body, api_version)
        carrier.records = b"\0"
        with_one = encode_response(header, body, api_version)
    finally:
        carrier.records = records
    at = next(
        i for i, (one, other) in enumerate(zip(without, with_one, strict=False)) if one != other
    )
    return without[:at], without[at + 1 :]
