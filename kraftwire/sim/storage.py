"""Opens the shipped log and quorum-state file over a simulated disk, as a node does."""

from __future__ import annotations

from kraftwire.log.metadata_log import MetadataLog
from kraftwire.log.names import LOCK_FILE, QUORUM_STATE_FILE, join, partition_directory
from kraftwire.log.quorum_state import QuorumState, QuorumStateFile
from kraftwire.log.settings import LogSettings
from kraftwire.log.snapshots.store import SnapshotStore
from kraftwire.raft.config import METADATA_TOPIC, METADATA_TOPIC_ID
from kraftwire.raft.effects import ElectionState, PersistQuorumState
from kraftwire.raft.ports import LogImage, StoredSnapshot, StoredState
from kraftwire.raft.voters import ReplicaKey
from kraftwire.sim.ballots import Stored
from kraftwire.sim.disk import SimFiles
from kraftwire.sim.histories import split

__all__ = ["DIRECTORY", "Storage"]

DIRECTORY = "/log"

# Small indexes: they are made at their full size, and this disk is memory.
_INDEX_BYTES = 1024


class Storage:
    """What a process has open."""

    def __init__(self, files: SimFiles, segment_bytes: int) -> None:
        """Open everything. Raises: StorageError if that must not be."""
        self.files = files
        files.mkdir(DIRECTORY)
        self._lock = files.lock(join(DIRECTORY, LOCK_FILE))
        settings = LogSettings(segment_bytes=segment_bytes, index_bytes=_INDEX_BYTES)
        partition = partition_directory(DIRECTORY, METADATA_TOPIC)
        self.snapshots = SnapshotStore(files, partition)
        self.log = MetadataLog.open(
            files,
            DIRECTORY,
            settings,
            METADATA_TOPIC,
            METADATA_TOPIC_ID,
            snapshots=self.snapshots,
        )
        self._state_path = join(partition, QUORUM_STATE_FILE)
        self._state_file = QuorumStateFile(files, self._state_path)

    def stored(self) -> StoredState:
        """What a core is given at its start."""
        log = self.log
        image = LogImage(
            start_offset=log.start_offset,
            end_offset=log.end_offset,
            batches=log.batches(),
            control=log.control(),
            snapshots=[
                StoredSnapshot(one.id, one.size, one.control) for one in self.snapshots.stored()
            ],
        )
        state = self._state_file.read() or QuorumState()
        voted = ReplicaKey(state.voted_id, state.voted_directory_id)
        election = ElectionState(
            state.epoch, state.leader_id, voted if state.voted_id >= 0 else None
        )
        return StoredState(election, image)

    def write_state(self, effect: PersistQuorumState) -> None:
        """Carry out `PersistQuorumState`."""
        state = effect.state
        voted = state.voted
        kept = QuorumState(
            epoch=state.epoch,
            leader_id=state.leader_id,
            voted_id=voted.id if voted else -1,
            voted_directory_id=voted.directory_id if voted else bytes(16),
        )
        self._state_file.write(kept, effect.kraft_version, effect.voters)

    def durable_state(self) -> Stored:
        """What would be read if the power failed now. Raises: StorageError if that is mixed."""
        data = self.files.durable_bytes(self._state_path)
        if data is None:
            return Stored()
        alone = SimFiles()
        alone.open(self._state_path, create=True).pwrite(data, 0)
        state = QuorumStateFile(alone, self._state_path).read() or QuorumState()
        return Stored(state.epoch, state.leader_id, state.voted_id)

    def found_batches(self) -> list[bytes]:
        """The batches of the log as it was opened."""
        log, found, offset = self.log, [], self.log.start_offset
        while offset < log.end_offset:
            for _, end, _, raw in split(log.read(offset, 1 << 20, log.end_offset)):
                found.append(raw)
                offset = end
        return found

    def close(self) -> None:
        """Stop in good order."""
        self.log.close()
        self._lock.close()
