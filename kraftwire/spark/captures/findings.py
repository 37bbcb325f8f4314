"""The bytes of frames that could not be decoded."""

from __future__ import annotations

from collections.abc import Iterator

from kraftwire.decode.body.findings import LOSSES, Finding
from kraftwire.spark.captures.bodies import TableFrame
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


def bad_bytes(frame: TableFrame) -> Iterator[BadBytes]:
    """The bytes of a frame that could not be decoded."""
    shows_bytes = not frame.hides_bytes
    for each in frame.findings:
        if each.id in LOSSES:
            stage = _STAGES.get(each.id, "body")
            first = _first_bytes(frame, each) if shows_bytes else None
            length = _length(frame, each)
            yield BadBytes(frame.file, frame.position, length, stage, each.id, each.detail, first)


def _length(frame: TableFrame, finding: Finding) -> int:
    """Return how many bytes of the file a finding covers; 0 for bytes that were not captured."""
    if finding.id in ("undecoded", "header-undecoded", "unknown-api", "unmatched-response"):
        return max(0, len(frame.data) - (finding.offset or 0))
    return 0


_OF_BATCHES = frozenset({"batch-crc", "batch-damaged", "record-undecoded"})


def _first_bytes(frame: TableFrame, finding: Finding) -> bytes | None:
    if finding.rest:
        return finding.rest[:_FIRST_BYTES_MAX]
    # The bytes of batches are omitted where they may hold secrets.
    if finding.offset is None or finding.id in _OF_BATCHES:
        return None
    data: bytes = frame.data
    return data[finding.offset : finding.offset + _FIRST_BYTES_MAX]
