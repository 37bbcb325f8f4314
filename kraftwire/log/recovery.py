"""Recovery of a log directory after a stop or a crash (D11).

The flush mark shows how far the log was durable. Above it a write may be torn, but none of it was
acknowledged: it is truncated. Any damage below it means that acknowledged records are lost, and
this replica must not vote with the rest: it refuses to start. Only a snapshot that is not older
than the mark can replace them.

A directory without a mark, or one that another implementation wrote to last, is judged by other
files; see `opening.py`.

Source: rules R-START-2, R-START-5; KAFKA-14240, KAFKA-13098, KAFKA-16541.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from kraftwire.errors import StorageError
from kraftwire.log.files import Files
from kraftwire.log.flush_mark import Mark, epochs_crc
from kraftwire.log.names import EPOCHS_FILE, base_offset_of, is_leftover, join, offset_name
from kraftwire.log.partition_files import EpochEntries, epochs_from, read_epochs
from kraftwire.log.scan import Damage
from kraftwire.log.segment import SUFFIXES, Segment
from kraftwire.log.settings import LogSettings
from kraftwire.log.snapshots.store import SnapshotStore
from kraftwire.records.offsets import OffsetAndEpoch

_LOG = logging.getLogger(__name__)

_REMEDY = (
    "this replica may have acknowledged what is missing, so it must not vote without it: restore "
    "the file, or let the replica rejoin the quorum. With dynamic voters remove it, format an "
    "empty directory and add it again; with static voters format an empty one only while all "
    "other voters run and none of them lags"
)


@dataclass(slots=True)
class Recovered:
    """A log directory as found.

    `segments` is never empty and holds the undamaged part. `damage` is the first damage, None if
    there is none; the segments that begin at `dropped` follow it. `names` are the other files of
    the directory, `epochs_stored` is what the epoch file holds, which may differ from the log.
    """

    segments: list[Segment] = field(default_factory=list)
    damage: Damage | None = None
    dropped: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    epochs_stored: EpochEntries | None = None

    @property
    def end(self) -> OffsetAndEpoch:
        """The end of the undamaged part, and the epoch of its last batch, -1 without one."""
        for segment in reversed(self.segments):
            if len(segment.batches):
                return OffsetAndEpoch(self.segments[-1].end_offset, segment.last_epoch)
        return OffsetAndEpoch(self.segments[-1].end_offset, -1)

    def is_behind(self, snapshot: OffsetAndEpoch | None) -> bool:
        """Return whether a snapshot has records that the log lacks, or different ones
        (R-START-2)."""
        end = self.end
        if snapshot is None or (end.epoch < 0 and end.offset == snapshot.offset):
            return False
        return not end.is_newer_or_equal(snapshot)

    def close(self) -> None:
        """Close the files."""
        for segment in self.segments:
            segment.close()


def load(
    files: Files, directory: str, settings: LogSettings, snapshots: SnapshotStore
) -> Recovered:
    """Read every segment of a directory up to the first damage.

    A log without segments begins at the end of the newest snapshot. Only leftovers are removed;
    nothing else is changed. Raises: StorageError if no snapshot covers what is before the log.
    """
    names = _remove_leftovers(files, directory)
    found = Recovered(names=names, epochs_stored=read_epochs(files, join(directory, EPOCHS_FILE)))
    bases = [base for name in names if (base := base_offset_of(name, "log")) is not None]
    if not bases:
        bases = [snapshots.newest.offset if snapshots.newest else 0]
    snapshots.check_start(bases[0], join(directory, offset_name(bases[0], "log")))
    last_epoch = -1
    for number, base in enumerate(bases):
        segment = Segment(files, directory, base, settings)
        found.segments.append(segment)
        scan = segment.load(last_epoch)
        last_epoch = scan.last_epoch
        found.damage = scan.damage
        following = bases[number + 1 :]
        if not found.damage and following and segment.end_offset != following[0]:
            problem = f"the next segment begins at {following[0]}"
            found.damage = Damage(scan.size, segment.end_offset, problem)
        if found.damage:
            found.dropped = following
            break
    return found


def check_mark(found: Recovered, newest: OffsetAndEpoch | None, mark: Mark) -> None:
    """Refuse a log that lacks what the mark covers, unless the newest snapshot has it.

    Raises: StorageError that names file, byte and offset.
    """
    if found.is_behind(newest) and newest is not None and newest.is_newer_or_equal(mark.end):
        return
    last, flushed, damage = found.segments[-1], mark.end.offset, found.damage
    if last.end_offset < flushed and damage:
        problem = f"{damage.problem} where offset {damage.offset} should begin"
    elif last.end_offset < flushed:
        problem = f"the log ends at offset {last.end_offset}"
    elif not _has_border(found.segments, flushed):
        problem = f"no batch ends at offset {flushed}"
    elif not _has_epochs(found.segments, mark):
        problem = "the leader epochs of the batches are not those that were flushed"
    else:
        return
    problem += f", but the log was flushed up to offset {flushed}"
    raise refusal(last.path, last.size, problem)


def _has_border(segments: list[Segment], offset: int) -> bool:
    """Return whether an offset is a batch boundary."""
    for segment in segments:
        if segment.base_offset < offset < segment.end_offset:
            return segment.batches.offset(segment.batches.containing(offset)) == offset
    return True


def _has_epochs(segments: list[Segment], mark: Mark) -> bool:
    """Return whether the batches have the leader epochs that were flushed."""
    begins = segments[0].base_offset
    if begins > mark.start_offset:
        # The newest snapshot ends after this, or the start would have been refused.
        _LOG.warning(
            "%s: the log begins here; what was before, from offset %d on, is in a snapshot",
            segments[0].path,
            mark.start_offset,
        )
        return True
    entries = epochs_from(epochs_of(segments), mark.start_offset)
    return epochs_crc(entry for entry in entries if entry[1] < mark.end.offset) == mark.epochs_crc


def repair(files: Files, directory: str, found: Recovered, *, is_marked: bool) -> None:
    """Truncate damage, durably, and repair the indexes. Raises: StorageError."""
    for base in reversed(found.dropped):
        for suffix in SUFFIXES:
            path = join(directory, offset_name(base, suffix))
            if files.exists(path):
                files.unlink(path)
        files.fsync_dir(directory)
    last = found.segments[-1]
    torn = last.file.size() - last.size
    if torn or found.dropped:
        _LOG.warning(
            "%s: %d bytes after offset %d%s are cut off: %s",
            last.path,
            torn,
            last.end_offset,
            f" and {len(found.dropped)} segments" if found.dropped else "",
            "none of them was acknowledged" if is_marked else "nothing shows they were flushed",
        )
        last.file.truncate(last.size)
    # State that is derived from the log must not claim more than is durable.
    last.file.fdatasync()
    for segment in found.segments:
        if not segment.check_indexes():
            _LOG.info("%s: indexes rebuilt", segment.path)


def epochs_of(segments: list[Segment]) -> EpochEntries:
    """Return (epoch, start offset) of every epoch in the batches."""
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


def refusal(path: str, position: int, problem: str) -> StorageError:
    """Return the error that refuses a start, with the remedy."""
    return StorageError(f"{problem}; {_REMEDY}", file=path, position=position)


def _remove_leftovers(files: Files, directory: str) -> list[str]:
    """Remove the unfinished files of a crash; returns the names of the other files."""
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
