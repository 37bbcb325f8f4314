"""The shipped log directory on a simulated disk, and what checkers read from it."""

from __future__ import annotations

from collections.abc import Callable

from kraftwire.log.files import Files
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
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.replica.storage import Directories
from kraftwire.sim.check_elections import Stored
from kraftwire.sim.disk import SimFiles
from kraftwire.sim.replica_log import split

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


def durable_state(files: SimFiles) -> Stored:
    """The quorum state that would be read if the power failed now.

    Raises: StorageError if that is mixed.
    """
    data = files.durable_bytes(_STATE_PATH)
    if data is None:
        return Stored()
    alone = SimFiles()
    alone.open(_STATE_PATH, create=True).pwrite(data, 0)
    state = _read_state(alone)
    return Stored(state.epoch, state.leader_id, state.voted_id)


def _read_state(files: Files) -> QuorumState:
    return QuorumStateFile(files, _STATE_PATH).read() or QuorumState()


def durable_snapshot(files: SimFiles, snapshot: OffsetAndEpoch) -> bool:
    """Return whether a snapshot would survive complete if the power failed now."""
    path = join(_PARTITION, checkpoint_name(snapshot))
    return files.exists(path) and files.durable_bytes(path) == files.read_bytes(path)


def found_batches(log: MetadataLog) -> list[bytes]:
    """Return the batches of a log as opened."""
    found, offset = [], log.start_offset
    while offset < log.end_offset:
        for _, end, _, raw in split(log.read(offset, 1 << 20, log.end_offset)):
            found.append(raw)
            offset = end
    return found
