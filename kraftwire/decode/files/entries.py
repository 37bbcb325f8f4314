"""Entries of the three indexes next to a segment: by offset, by time, and of aborted transactions.

Owns their layout, the padding of preallocated files and the rules that hold within one index.
Whether an index fits its segment is checked by `index_check`.

Source: Kafka's `OffsetIndex`, `TimeIndex`, `TransactionIndex` and `AbortedTxn`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kraftwire.decode.files.kinds import FileKind
from kraftwire.decode.files.report import FindingSink
from kraftwire.decode.files.scan import zeros_end
from kraftwire.decode.files.source import ByteSource
from kraftwire.limits import FILE_WINDOW_BYTES, FINDING_HEX_BYTES
from kraftwire.messages.aborted_txn import AbortedTxn

# An aborted transaction is a version and the schema AbortedTxn, which has fields of fixed size.
_LAYOUTS = {
    FileKind.OFFSET_INDEX: struct.Struct(">ii"),
    FileKind.TIME_INDEX: struct.Struct(">qi"),
    FileKind.TXN_INDEX: struct.Struct(">hqqqq"),
}
INDEX_KINDS = frozenset(_LAYOUTS)


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """An entry of an index.

    `number` counts the entries from 0, and `data` are the bytes at `start` of the file;
    `offset` is absolute (of an aborted transaction: its last); `fields` are the keys of the
    entry's line after `entry`.
    """

    number: int
    start: int
    data: bytes
    offset: int
    fields: dict[str, Any]


def read_entries(
    kind: FileKind, source: ByteSource, base_offset: int, sink: FindingSink
) -> Iterator[IndexEntry]:
    """Read an index; entries of zeros are padding of a file that was allocated in advance.

    Reports a finding where the order of the index or its layout is broken.
    """
    build = _BUILDERS[kind]
    layout = _LAYOUTS[kind]
    before: IndexEntry | None = None
    for number, start, values in _raw_entries(kind, source, sink):
        offset, fields = build(base_offset, values)
        entry = IndexEntry(number, start, layout.pack(*values), offset, fields)
        if kind is FileKind.TXN_INDEX and values[0] not in AbortedTxn.VERSIONS:
            sink.add(
                "unknown-version",
                start,
                f"aborted transaction of version {values[0]}, known is {AbortedTxn.VERSIONS}",
            )
            return
        problem = _ORDERS[kind](before, entry, base_offset)
        if problem:
            sink.add("not-monotonic", start, f"entry {number}: {problem}")
        before = entry
        yield entry


def _raw_entries(
    kind: FileKind, source: ByteSource, sink: FindingSink
) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """Number, position and values of every entry that is not padding."""
    layout = _LAYOUTS[kind]
    end = source.size - source.size % layout.size
    position = number = 0
    while position < end:
        room = min(end - position, FILE_WINDOW_BYTES // layout.size * layout.size)
        window = source.read(position, room)
        window = window[: len(window) // layout.size * layout.size]
        if not window:
            break
        for values in layout.iter_unpack(window):
            if not any(values):
                break
            yield number, position, values
            position += layout.size
            number += 1
        else:
            continue
        position = _skip_padding(source, position, layout.size, sink)
    if end < source.size:
        _trailing_bytes(source, end, layout.size, sink)


def _skip_padding(source: ByteSource, start: int, entry_size: int, sink: FindingSink) -> int:
    """Return the position after padding; report padding that entries follow as a hole."""
    zeros = zeros_end(source, start) - start
    end = start + zeros // entry_size * entry_size
    if end < source.size - source.size % entry_size:
        sink.add("index-hole", start, "entries of zeros before other entries", size=end - start)
        return end
    return source.size


def _trailing_bytes(source: ByteSource, start: int, entry_size: int, sink: FindingSink) -> None:
    rest = source.read(start, min(source.size - start, FINDING_HEX_BYTES))
    if any(rest):
        size = source.size - start
        sink.add(
            "trailing-bytes", start, f"no whole entry of {entry_size} bytes", size=size, rest=rest
        )


_Fields = tuple[int, dict[str, Any]]


def _offset_entry(base_offset: int, values: tuple[int, ...]) -> _Fields:
    relative, position = values
    offset = base_offset + relative
    return offset, {"offset": offset, "position": position}


def _time_entry(base_offset: int, values: tuple[int, ...]) -> _Fields:
    timestamp, relative = values
    offset = base_offset + relative
    return offset, {"offset": offset, "timestamp": timestamp}


def _aborted_entry(_: int, values: tuple[int, ...]) -> _Fields:
    version, *held = values
    names = (each.name for each in AbortedTxn.facts().root.fields)
    fields = {"version": version, **dict(zip(names, held, strict=True))}
    return fields["lastOffset"], fields


def _offset_order(before: IndexEntry | None, entry: IndexEntry, base_offset: int) -> str:
    position = entry.fields["position"]
    if entry.offset < base_offset or position < 0:
        return f"offset {entry.offset} or position {position} is before the segment's start"
    if before is None:
        return ""
    if entry.offset <= before.offset:
        return f"offset {entry.offset} follows {before.offset}"
    if position <= before.fields["position"]:
        return f"position {position} follows {before.fields['position']}"
    return ""


def _time_order(before: IndexEntry | None, entry: IndexEntry, base_offset: int) -> str:
    timestamp = entry.fields["timestamp"]
    if entry.offset < base_offset:
        return f"offset {entry.offset} is before the segment's start"
    if before is None:
        return ""
    if timestamp <= before.fields["timestamp"]:
        return f"timestamp {timestamp} follows {before.fields['timestamp']}"
    if entry.offset < before.offset:
        return f"offset {entry.offset} follows {before.offset}"
    return ""


def _aborted_order(before: IndexEntry | None, entry: IndexEntry, _: int) -> str:
    first = entry.fields["firstOffset"]
    if not 0 <= first <= entry.offset:
        return f"the transaction runs from {first} to {entry.offset}"
    if before is not None and entry.offset <= before.offset:
        return f"last offset {entry.offset} follows {before.offset}"
    return ""


_BUILDERS = {
    FileKind.OFFSET_INDEX: _offset_entry,
    FileKind.TIME_INDEX: _time_entry,
    FileKind.TXN_INDEX: _aborted_entry,
}
_ORDERS = {
    FileKind.OFFSET_INDEX: _offset_order,
    FileKind.TIME_INDEX: _time_order,
    FileKind.TXN_INDEX: _aborted_order,
}
