"""The contents of logs in words: batches, records, positions."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from kraftwire.errors import KraftwireError
from kraftwire.raft.batches import control_records
from kraftwire.records import RecordBatch, read_batches
from kraftwire.sim.words.ballots import voters
from kraftwire.wire.message import Message

_VALUE_SHOWN = 16
_VALUES_SHOWN = 4
_BATCHES_SHOWN = 3
_TEXT = range(0x20, 0x7F)


def position(offset: int, epoch: int) -> str:
    """Describe a position in a log: the offset, and the epoch of the record before it."""
    return f"{offset}@{epoch}"


def span(first: int, last: int) -> str:
    """Describe a range of offsets."""
    return f"{first}-{last}" if last > first else str(first)


def value(data: bytes) -> str:
    """Describe a record's value: its text up to the first byte that is not text; else its size."""
    end = next((place for place, byte in enumerate(data) if byte not in _TEXT), len(data))
    if not end:
        return f"{len(data)} bytes" if data else "empty"
    return data[: min(end, _VALUE_SHOWN)].decode("ascii")


def values(found: Sequence[bytes | None]) -> str:
    """Describe the first few of some values."""
    shown = [value(bytes(one)) if one is not None else "null" for one in found[:_VALUES_SHOWN]]
    more = len(found) - len(shown)
    return ", ".join(shown) + (f", {more} more" if more else "")


def batch(data: bytes | memoryview) -> str:
    """Describe a batch: its offsets, its epoch, its records."""
    try:
        found = RecordBatch(data)
        place = f"{span(found.base_offset, found.last_offset)} epoch {found.partition_leader_epoch}"
        return f"{place} ({_inside(found)})"
    except (KraftwireError, struct.error, ValueError):
        return f"{len(data)} bytes that are not a batch"


def _inside(found: RecordBatch) -> str:
    if found.is_control:
        return ", ".join(_control(*record) for record in control_records(bytes(found.raw)))
    return values([record.value for record in found.records()])


def _control(_offset: int, kind: Any, content: Message | None) -> str:
    name = getattr(kind, "name", f"control record of type {kind}")
    if name == "LEADER_CHANGE":
        return f"leader {getattr(content, 'leader_id', '?')}"
    if name == "KRAFT_VERSION":
        return f"kraft.version {getattr(content, 'kraft_version', '?')}"
    if name == "KRAFT_VOTERS":
        keys = [(v.voter_id, v.voter_directory_id) for v in getattr(content, "voters", ())]
        return f"voters {voters(keys)}"
    return name.lower().replace("_", " ")


def batches(data: bytes | memoryview) -> str:
    """Describe batches in order; of many, the first ones and the last."""
    try:
        found = list(read_batches(data))
        shown = [batch(one.raw) for one in found[:_BATCHES_SHOWN]]
        if len(found) > _BATCHES_SHOWN:
            more = len(found) - _BATCHES_SHOWN
            shown.append(f"{more} more batches up to {found[-1].last_offset}")
        return "; ".join(shown)
    except (KraftwireError, struct.error, ValueError):
        return f"{len(data)} bytes that are not batches"


def committed(end: int, last: bytes | None) -> str:
    """Describe the committed part of a log: its end and its last batch; None if it is empty."""
    return "nothing" if last is None else f"up to {end}, last batch {batch(last)}"


def high_watermark(offset: int) -> str:
    """Describe a replica's high watermark; a negative one is unknown."""
    return f"high watermark {offset if offset >= 0 else 'unknown'}"
