"""Opening a log directory after a stop or a crash (D11).

The end of the last segment may be torn: written, but never flushed, so never acknowledged. That is
cut off. Anything else that is wrong means that flushed records are lost, and then this replica must
not vote with what is left: it refuses to start. What tells the two apart is all on disk. Index
entries, epochs, producer snapshots and segments are made only behind a flush of what was before
them, so if one of them lies behind the damage or the end, then flushed records are missing. Where
none does, but a good batch follows, the damage counts as torn only if it has a hole: sectors of
zeros, as a power failure leaves them when sectors reach the disk out of order.

Source: rules R-START-2, R-START-5; KAFKA-14240, KAFKA-13098, KAFKA-16541.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field

from kraftwire.errors import StorageError
from kraftwire.log.epochs import EpochEntries, read_epochs
from kraftwire.log.files import Files
from kraftwire.log.names import (
    EPOCHS_FILE,
    base_offset_of,
    is_leftover,
    join,
    offset_name,
)
from kraftwire.log.scan import Damage, SegmentScan, find_later_batch, has_hole
from kraftwire.log.segment import SUFFIXES, Segment
from kraftwire.log.settings import LogSettings
from kraftwire.log.snapshots.store import SnapshotStore

__all__ = ["Recovered", "epochs_of", "recover"]

_LOG = logging.getLogger(__name__)

_REMEDY = (
    "this replica may have acknowledged what is missing, so it must not take part with this log: "
    "restore the file, or move the directory away and let the replica copy the log from the leader"
)


@dataclass(slots=True)
class Recovered:
    """A log directory as it was opened.

    `segments` is never empty; `epochs_stored` is what the epoch file holds, which may differ from
    the log.
    """

    segments: list[Segment] = field(default_factory=list)
    epochs_stored: EpochEntries | None = None
    last_epoch: int = -1


def recover(
    files: Files, directory: str, settings: LogSettings, snapshots: SnapshotStore
) -> Recovered:
    """Open every segment of a directory; a log without any begins behind the newest snapshot.

    Raises: StorageError if flushed records are missing or damaged.
    """
    names = _remove_leftovers(files, directory)
    found = Recovered(epochs_stored=read_epochs(files, join(directory, EPOCHS_FILE)))
    bases = [base for name in names if (base := base_offset_of(name, "log")) is not None]
    if not bases:
        bases = [snapshots.newest.offset if snapshots.newest else 0]
    try:
        snapshots.check_start(bases[0], join(directory, offset_name(bases[0], "log")))
        for base, following in zip(bases, [*bases[1:], None], strict=True):
            segment = Segment(files, directory, base, settings)
            found.segments.append(segment)
            _load(found, segment, following)
        _check_end(found, names)
    except StorageError:
        for segment in found.segments:
            segment.close()
        raise
    for segment in found.segments:
        if not segment.check_indexes():
            _LOG.info("%s: indexes made anew", segment.path)
    return found


def epochs_of(segments: list[Segment]) -> EpochEntries:
    """(epoch, start offset) of every epoch, from the batches."""
    entries: EpochEntries = []
    last = -1
    for segment in segments:
        epochs = segment.batches.epochs
        if not len(epochs) or epochs[-1] == last:
            continue
        for number, epoch in enumerate(epochs):
            if epoch != last:
                last = epoch
                entries.append((epoch, segment.batches.offset(number)))
    return entries


def _remove_leftovers(files: Files, directory: str) -> list[str]:
    """Remove what a crash has left unfinished; returns the names of the other files."""
    names = []
    for name in files.listdir(directory):
        if is_leftover(name):
            _LOG.info("%s: leftover of a crash removed", join(directory, name))
            files.unlink(join(directory, name))
        else:
            names.append(name)
    logs = {base_offset_of(name, "log") for name in names}
    for name in list(names):
        for suffix in SUFFIXES[1:]:
            base = base_offset_of(name, suffix)
            if base is not None and base not in logs:
                files.unlink(join(directory, name))
                names.remove(name)
    return names


def _load(found: Recovered, segment: Segment, following: int | None) -> None:
    """Read a segment, the last of those found; another one may follow at an offset."""
    scan = segment.load(found.last_epoch)
    found.last_epoch = scan.last_epoch
    if scan.damage:
        _judge(segment, scan, scan.damage, following)
    if following is not None and segment.end_offset != following:
        raise _refusal(
            segment.path,
            scan.size,
            f"ends at offset {segment.end_offset}, but the next segment begins at {following}",
        )


def _judge(segment: Segment, scan: SegmentScan, damage: Damage, following: int | None) -> None:
    """Refuse a damage among flushed records; a torn end is left to `_check_end`."""
    what = f"{damage.problem} where offset {damage.offset} should begin"
    if following is not None:
        why = f"a segment from offset {following} follows"
    elif has_hole(segment.file, damage):
        return
    elif damage.is_whole:
        why = "its checksum is right, so it was not torn"
    elif later := find_later_batch(segment.file, scan):
        why = f"a good batch of offset {later[1]} follows at byte {later[0]}"
    else:
        return
    raise _refusal(segment.path, damage.position, f"{what}; {why}")


def _check_end(found: Recovered, names: list[str]) -> None:
    """Refuse an end that other files contradict, then cut what is torn."""
    last = found.segments[-1]
    for what, offset in _evidence(found, names):
        if offset > last.end_offset:
            problem = f"the log ends at offset {last.end_offset}, but {what} at offset {offset}"
            raise _refusal(last.path, last.size, problem)
    torn = last.file.size() - last.size
    if torn:
        _LOG.warning(
            "%s: %d bytes of a write that was never flushed are cut off behind offset %d",
            last.path, torn, last.end_offset,
        )
        last.file.truncate(last.size)
    # What is made from the log next must not say more than is durable.
    last.file.fdatasync()


def _evidence(found: Recovered, names: list[str]) -> Iterator[tuple[str, int]]:
    """What proves that the log was durable up to an offset."""
    for epoch, start in found.epochs_stored or ():
        yield f"epoch {epoch} began", start
    for name in names:
        offset = base_offset_of(name, "snapshot")
        if offset is not None:
            yield f"{name} was written", offset
    last = found.segments[-1]
    entries = last.offsets.stored()
    # A rotten entry is no evidence: both halves must point behind the end.
    if entries and entries == sorted(set(entries)) and entries[-1][1] >= last.size:
        yield "the index has a record", last.base_offset + entries[-1][0] + 1


def _refusal(path: str, position: int, problem: str) -> StorageError:
    return StorageError(f"{problem}; {_REMEDY}", file=path, position=position)
