"""The findings of frames as cells, and bytes that could not be decoded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kraftwire.decode.body.findings import LOSSES, Finding
from kraftwire.spark.tables.files import BadBytes

_FIRST_BYTES_MAX = 32

# Id -> stage at which bytes were lost. All other findings are about a body.
_STAGES = {
    "batch-crc": "batch",
    "batch-damaged": "batch",
    "cut-by-close": "stream",
    "gap": "stream",
    "header-undecoded": "frame",
    "record-undecoded": "record",
    "resync": "stream",
    "truncated-packet": "packet",
    "unmatched-response": "frame",
}


def finding_cells(read: Any) -> list[tuple[str, int | None, str, str]]:
    """Return the findings of a frame as structs."""
    if not read.findings:
        return []
    show = read.show_bytes
    return [
        (each.id, each.offset, each.path, each.text(show_bytes=show)) for each in read.findings
    ]


def bad_bytes(read: Any) -> Iterator[BadBytes]:
    """The bytes of a frame that could not be decoded."""
    frame = read.frame
    for each in read.findings:
        if each.id in LOSSES:
            stage = _STAGES.get(each.id, "body")
            first = _first_bytes(read, each) if read.show_bytes else None
            length = _length(read, each)
            yield BadBytes(frame.file, frame.position, length, stage, each.id, each.detail, first)


def _length(read: Any, finding: Finding) -> int:
    """Return how many bytes of the file a finding covers; 0 for bytes that were not captured."""
    frame = read.frame
    if finding.id in ("undecoded", "header-undecoded", "unknown-api", "unmatched-response"):
        return max(0, len(frame.data) - (finding.offset or 0))
    return 0


_OF_BATCHES = frozenset({"batch-crc", "batch-damaged", "record-undecoded"})


def _first_bytes(read: Any, finding: Finding) -> bytes | None:
    if finding.rest:
        return finding.rest[:_FIRST_BYTES_MAX]
    # The bytes of batches are omitted where they may hold secrets.
    if finding.offset is None or finding.id in _OF_BATCHES:
        return None
    data: bytes = read.frame.data
    return data[finding.offset : finding.offset + _FIRST_BYTES_MAX]
