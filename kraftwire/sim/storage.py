"""The shipped log directory on a simulated disk, and what checkers read from it."""

from __future__ import annotations

from collections.abc import Callable

from kraftwire.log.metadata_log import MetadataLog
from kraftwire.log.names import (
    QUORUM_STATE_FILE,
    checkpoint_name,
    join,
    partition_directory,
)
from kraftwire.log.quorum_state import QuorumState, QuorumStateFile
from kraftwire.log.settings import LogSettings
from kraftwire.protocol.topic_names import METADATA_TOPIC
from kraftwire.raft.effects import ElectionState
from kraftwire.raft.voters import ReplicaKey
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.replica.storage import Directories, Storage
from kraftwire.sim.checks import replica_events as did
from kraftwire.sim.checks.entries import Entry, control_of, entries_of
from kraftwire.sim.checks.voters import Voters
from kraftwire.sim.disk import SimFiles
from kraftwire.sim.state_machine import state_in

DIRECTORY = "/log"
_PARTITION = partition_directory(DIRECTORY, METADATA_TOPIC)
_STATE_PATH = join(_PARTITION, QUORUM_STATE_FILE)

# Small indexes: they are preallocated, and this disk is in memory.
_INDEX_BYTES = 1024


def directories(
    node: int, segment_bytes: int, new_id: Callable[[], bytes] | None
) -> Directories:
    """Where a node keeps its files; with `new_id` it formats an empty disk itself."""
    settings = LogSettings(segment_bytes=segment_bytes, index_bytes=_INDEX_BYTES)
    if new_id is None:
        return Directories(node_id=node, metadata=DIRECTORY, settings=settings)
    return Directories(
        node_id=node,
        metadata=DIRECTORY,
        settings=settings,
        is_self_formatted=True,
        new_id=new_id,
    )


def durable_election(files: SimFiles) -> ElectionState:
    """The quorum state that would be read if the power failed now.

    Raises: StorageError if that is mixed.
    """
    data = files.durable_bytes(_STATE_PATH)
    if data is None:
        return ElectionState()
    alone = SimFiles()
    alone.open(_STATE_PATH, create=True).pwrite(data, 0)
    state = QuorumStateFile(alone, _STATE_PATH).read() or QuorumState()
    voted = ReplicaKey(state.voted_id, state.voted_directory_id) if state.voted_id >= 0 else None
    return ElectionState(state.epoch, state.leader_id, voted)


def durable_snapshot(files: SimFiles, snapshot: OffsetAndEpoch) -> bool:
    """Return whether a snapshot would survive complete if the power failed now."""
    path = join(_PARTITION, checkpoint_name(snapshot))
    return files.exists(path) and files.durable_bytes(path) == files.read_bytes(path)


def batches_of(log: MetadataLog) -> tuple[Entry, ...]:
    """Return the batches of a log as opened."""
    found: list[Entry] = []
    offset = log.start_offset
    while offset < log.end_offset:
        found += entries_of(log.read(offset, 1 << 20, log.end_offset))
        offset = found[-1].end
    return tuple(found)


# Reports about a disk to the checks


def started(storage: Storage, files: SimFiles) -> did.Started:
    """What a start found in an open directory."""
    log, stored = storage.log, storage.snapshots.stored()
    start = log.start_offset
    epoch = next((one.id.epoch for one in stored if one.id.offset == start), 0)
    covered, control = (stored[-1].id.offset, stored[-1].control) if stored else (0, b"")
    voters, version, _ = control_of(control) if control else (None, None, -1)
    return did.Started(
        OffsetAndEpoch(start, epoch),
        batches_of(log),
        durable_election(files),
        covered,
        voters,
        version,
        not files.unflushed(".log"),
    )


def stored_snapshot(storage: Storage) -> list[did.ReplicaEvent]:
    """The newest snapshot in an open directory, as an event; none for that of the beginning."""
    newest = storage.snapshots.newest
    return [did.SnapshotStored(newest, *_content(storage, newest))] if newest is not None else []


def reset(
    storage: Storage, files: SimFiles, start: OffsetAndEpoch, epoch: int
) -> did.Reset:
    """The log now starts at the end of a snapshot."""
    if not durable_snapshot(files, start):
        return did.Reset(start, None, None, None, epoch)
    return did.Reset(start, *_content(storage, start), epoch)


def _content(
    storage: Storage, snapshot: OffsetAndEpoch
) -> tuple[tuple[int, int], Voters | None, int | None]:
    """The state, the voters and kraft.version in a snapshot."""
    reader = storage.snapshots.reader(snapshot)
    state = state_in(reader)
    reader.close()
    stored = next(one for one in storage.snapshots.stored() if one.id == snapshot)
    voters, version, _ = control_of(stored.control)
    return state, voters, version
