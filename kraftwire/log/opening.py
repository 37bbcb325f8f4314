"""Opening a log's directory: the order of checks, and a log without a flush mark.

The checks are, in order: the owner of the directory, the validity of the flush mark, the contents
of the log, missing records, and only then the repairs.

There is no mark if another implementation wrote to the directory last. Then other files show how
far the log was flushed. Index entries, epochs, producer snapshots and segments are created only
after a flush of what precedes them, so if one of them lies after damage or after the end, flushed
records are missing. A good batch after a bad one shows the same: only the last write can be torn.

Two limits: one bad batch at the very end cannot be distinguished from a torn one, and a running
Kafka writes index entries and epochs before the flush, so its directory may be refused after a
power failure where Kafka itself would truncate.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass

from kraftwire.errors import StorageError
from kraftwire.log.files import Files
from kraftwire.log.flush_mark import NOBODY, FlushMark, Identity, Mark
from kraftwire.log.meta_properties import read_meta_properties
from kraftwire.log.names import META_PROPERTIES_FILE, QUORUM_STATE_FILE, base_offset_of, join
from kraftwire.log.quorum_state import QuorumStateFile
from kraftwire.log.recovery import Recovered, check_mark, load, refusal, repair
from kraftwire.log.scan import find_later_batch
from kraftwire.log.settings import LogSettings
from kraftwire.log.snapshots.store import SnapshotStore
from kraftwire.records.crc import crc32c
from kraftwire.wire.fast import ZERO_UUID
from kraftwire.wire.json_form import uuid_to_text

_LOG = logging.getLogger(__name__)


@dataclass(slots=True)
class Opened:
    """A log as found and repaired, and the file of its mark, which is not updated yet."""

    found: Recovered
    mark: FlushMark
    identity: Identity


def open_directory(
    files: Files, partition: str, settings: LogSettings, snapshots: SnapshotStore, *, parent: str
) -> Opened:
    """Open the log in a partition's directory; `parent` is the log directory that it is in.

    Raises: StorageError if flushed records are missing or damaged, or a file contradicts another.
    """
    mark = FlushMark(files, partition)
    identity = _identity(files, parent, mark)
    state = QuorumStateFile(files, join(partition, QUORUM_STATE_FILE))
    believed = _trusted_mark(mark, state)
    found = load(files, partition, settings, snapshots)
    try:
        if believed is None:
            check_evidence(found)
        else:
            check_mark(found, snapshots.newest, believed)
        if found.damage and found.is_behind(snapshots.newest):
            _LOG.error("%s: %s; a snapshot has it", found.segments[-1].path, found.damage.problem)
        repair(files, partition, found, is_marked=believed is not None)
    except StorageError:
        found.close()
        raise
    return Opened(found, mark, identity)


def _trusted_mark(mark: FlushMark, state: QuorumStateFile) -> Mark | None:
    """Return the mark, or None if another implementation has used the directory since.

    That implementation may have truncated records legitimately. It has rewritten quorum-state,
    which kraftwire never writes before a mark exists. Raises: StorageError if the mark is lost.
    """
    if mark.mark is not None and not state.is_foreign:
        return mark.mark
    if mark.mark is not None:
        _LOG.info("%s: ignored, another implementation has written here since", mark.path)
    elif mark.is_damaged and state.is_foreign:
        _LOG.warning("%s: damaged, written again", mark.path)
    elif mark.is_damaged or _has_checksum(state):
        problem = "both copies are damaged" if mark.is_damaged else "the file is missing"
        raise StorageError(
            f"{problem}, so it is unknown how far the log was flushed: restore the file, or let "
            "the replica rejoin the quorum with a new directory",
            file=mark.path,
        )
    return None


def _has_checksum(state: QuorumStateFile) -> bool:
    return state.read() is not None and not state.is_foreign


def _identity(files: Files, directory: str, mark: FlushMark) -> Identity:
    """Return the owner of the log: from meta.properties, and from the mark what that lacks.

    Raises: StorageError if they contradict each other: one has a flipped bit, or they are from two
    directories.
    """
    known = mark.mark.identity if mark.mark else NOBODY
    path = join(directory, META_PROPERTIES_FILE)
    meta = read_meta_properties(files, path)
    if meta is None:
        return known
    cluster_crc = crc32c(meta.cluster_id.encode()) if meta.cluster_id is not None else 0
    found = Identity(meta.node_id, meta.directory_id, cluster_crc)
    for what, has, had, unknown in (
        ("node.id", str(found.node_id), str(known.node_id), str(NOBODY.node_id)),
        ("directory.id", *map(uuid_to_text, (found[1], known[1], ZERO_UUID))),
        ("the CRC-32C of cluster.id", *(f"{crc:08x}" for crc in (found[2], known[2], 0))),
    ):
        if had not in (unknown, has):
            raise StorageError(
                f"{what} is {has}, but the log was written under {had}: restore the file, "
                f"or move {mark.path} and the log next to it away, so that the replica copies the "
                "log from the leader",
                file=path,
            )
    return found


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
