"""The headers of users' batches as JSON, their records being null; the engine has the same in C."""

from __future__ import annotations

from functools import cache

from kraftwire.records.batch import CREATE_TIME, LOG_APPEND_TIME
from kraftwire.records.compression import CODEC_MASK, NAMES
from kraftwire.records.header import (
    CONTROL,
    CRC_START,
    DELETE_HORIZON,
    HEADER,
    HEADER_SIZE,
    LENGTH_MIN,
    LOG_OVERHEAD,
    MAGIC,
    STAMPED,
    TRANSACTIONAL,
)
from kraftwire.records.record import NO_SEQUENCE, SEQUENCE_MASK

__all__ = ["json_batches"]


def json_batches(
    data: bytes, start: int, end: int, head: bytes
) -> tuple[bytes, list[tuple[int, int, int]]] | None:
    """Return whole batches of users' records as a JSON list, without their records.

    Each begins with `head`, up to the position's value. Every CRC is taken to be right; they come
    with where the bytes begin and end that they cover. Returns None if there is anything else.
    """
    begin = head.decode("ascii")
    texts: list[str] = []
    crcs: list[tuple[int, int, int]] = []
    at = start
    while at < end:
        if end - at < HEADER_SIZE:
            return None
        (
            base, length, leader_epoch, magic, crc, attributes, delta, base_timestamp,
            max_timestamp, producer_id, producer_epoch, sequence, count,
        ) = HEADER.unpack_from(data, at)  # fmt: skip
        stop = at + LOG_OVERHEAD + length
        if magic != MAGIC or length < LENGTH_MIN or stop > end or attributes & CONTROL:
            return None
        is_transactional, stamp, codec = _attributes(attributes)
        last = sequence if sequence == NO_SEQUENCE else sequence + delta & SEQUENCE_MASK
        horizon = base_timestamp if attributes & DELETE_HORIZON else "null"
        texts.append(
            f'{begin}{at - start},"baseOffset":{base},"lastOffset":{base + delta},'
            f'"count":{count},"baseSequence":{sequence},"lastSequence":{last},'
            f'"producerId":{producer_id},"producerEpoch":{producer_epoch},'
            f'"partitionLeaderEpoch":{leader_epoch},"isTransactional":{is_transactional},'
            f'"isControl":false,"deleteHorizonMs":{horizon},"timestampType":"{stamp}",'
            f'"maxTimestamp":{max_timestamp},"size":{stop - at},"magic":2,'
            f'"compression":"{codec}","crc":{crc},"isValid":true,"records":null}}'
        )
        crcs.append((crc, at + CRC_START, stop))
        at = stop
    return f"[{','.join(texts)}]".encode("ascii"), crcs


@cache
def _attributes(attributes: int) -> tuple[str, str, str]:
    """Return the texts that depend on attributes alone, which have 16 bits."""
    is_transactional = "true" if attributes & TRANSACTIONAL else "false"
    stamp = LOG_APPEND_TIME if attributes & STAMPED else CREATE_TIME
    return is_transactional, stamp, NAMES[attributes & CODEC_MASK]
