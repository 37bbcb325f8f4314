"""Judging a log without a flush mark: other evidence of how far it was flushed.

This is the case if another implementation wrote to the directory last. Index entries, epochs,
producer snapshots and segments are created only after a flush of what precedes them, so if one of
them lies after damage or after the end, flushed records are missing. A good batch after a bad one
shows the same: only the last write can be torn.

Two limits: one bad batch at the very end cannot be distinguished from a torn one, and a running
Kafka writes index entries and epochs before the flush, so its directory may be refused after a
power failure where Kafka itself would truncate.
"""

from __future__ import annotations

from collections.abc import Iterator

from kraftwire.log.names import base_offset_of
from kraftwire.log.recovery import Recovered, refusal
from kraftwire.log.scan import find_later_batch

__all__ = ["check_evidence"]


def check_evidence(found: Recovered) -> None:
    """Refuse a log if other files show that flushed records are damaged or missing.

    Raises: StorageError that names file, byte and offset.
    """
    last, damage = found.segments[-1], found.damage
    if damage:
        why = ""
        if found.dropped:
            why = f"a segment from offset {found.dropped[0]} follows"
        elif damage.is_whole:
            why = "its checksum is right, so it was not torn"
        elif later := find_later_batch(last.file, damage, last.last_epoch):
            why = f"a good batch of offset {later[1]} follows at byte {later[0]}"
        if why:
            what = f"{damage.problem} where offset {damage.offset} should begin"
            raise refusal(last.path, damage.position, f"{what}; {why}")
    for what, offset in _evidence(found):
        if offset > last.end_offset:
            problem = f"the log ends at offset {last.end_offset}, but {what} at offset {offset}"
            raise refusal(last.path, last.size, problem)


def _evidence(found: Recovered) -> Iterator[tuple[str, int]]:
    """Yield proof that the log was durable up to an offset."""
    for epoch, start in found.epochs_stored or ():
        yield f"epoch {epoch} began", start
    for name in found.names:
        offset = base_offset_of(name, "snapshot")
        if offset is not None:
            yield f"{name} was written", offset
    last = found.segments[-1]
    entries = last.offsets.stored()
    # A corrupt entry is not evidence: both halves must point past the end.
    if entries and entries == sorted(set(entries)) and entries[-1][1] >= last.size:
        yield "the index has a record", last.base_offset + entries[-1][0] + 1
