"""A replica's open files: the lock, meta.properties, quorum state and log.

There are two modes of startup (R-START-1): in Kafka mode a directory must be formatted for this
node and one cluster; in raft-README mode a node formats its directory at its first start, and adds
the cluster id once the quorum has one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from kraftwire.errors import StorageError, UsageError
from kraftwire.log.files import Files, Lock
from kraftwire.log.meta_properties import (
    MetaProperties,
    read_meta_properties,
    write_meta_properties,
)
from kraftwire.log.metadata_log import MetadataLog
from kraftwire.log.names import (
    LOCK_FILE,
    META_PROPERTIES_FILE,
    QUORUM_STATE_FILE,
    join,
    partition_directory,
)
from kraftwire.log.quorum_state import QuorumState, QuorumStateFile
from kraftwire.log.settings import LogSettings
from kraftwire.log.snapshots.store import SnapshotStore
from kraftwire.log.unowned_log import unowned_log
from kraftwire.log.uuids import random_uuid
from kraftwire.raft.config import TopicPartition
from kraftwire.raft.effects import ElectionState, PersistQuorumState
from kraftwire.raft.ports import LogImage, StoredSnapshot, StoredState
from kraftwire.raft.voters import ReplicaKey
from kraftwire.wire.fast import ZERO_UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class Directories:
    """The directories of a replica, and the node and cluster that they must belong to.

    `others` are the node's other log directories, which are locked and checked as well. With
    `is_self_formatted` a directory that is missing or empty is formatted, with ids from `new_id`.
    `source` names the configuration, for messages.
    """

    node_id: int
    metadata: str
    others: tuple[str, ...] = ()
    topic: TopicPartition = field(default_factory=TopicPartition)
    settings: LogSettings = field(default_factory=LogSettings)
    is_self_formatted: bool = False
    source: str = "server.properties"
    new_id: Callable[[], bytes] = random_uuid

    @property
    def all(self) -> tuple[str, ...]:
        """Return all directories, that of the log first."""
        return tuple(dict.fromkeys((self.metadata, *self.others)))


class Storage:
    """A replica's open files; `open` returns one."""

    def __init__(
        self,
        directories: Directories,
        files: Files,
        *,
        metas: dict[str, MetaProperties],
        log: MetadataLog,
        snapshots: SnapshotStore,
        locks: list[Lock],
    ) -> None:
        self.log = log
        self.snapshots = snapshots
        self._files = files
        self._metas = metas
        self._own = metas[directories.metadata]
        self._locks = locks
        partition = partition_directory(directories.metadata, directories.topic.name)
        self._state_file = QuorumStateFile(files, join(partition, QUORUM_STATE_FILE))

    @classmethod
    def open(cls, directories: Directories, files: Files) -> Storage:
        """Lock and open a replica's directories.

        Raises: UsageError if they are not formatted for this node, with the command that formats
        them; StorageError if another process has locked them or their contents cannot be trusted.
        """
        locks: list[Lock] = []
        try:
            for directory in directories.all:
                if directories.is_self_formatted or files.exists(directory):
                    files.mkdir(directory)
                    locks.append(files.lock(join(directory, LOCK_FILE)))
            metas = {name: _read_meta(directories, files, name) for name in directories.all}
            _check_one_cluster(metas)
            topic = directories.topic
            snapshots = SnapshotStore(
                files, partition_directory(directories.metadata, topic.name)
            )
            log = MetadataLog.open(
                files,
                directories.metadata,
                directories.settings,
                topic.name,
                topic.topic_id,
                snapshots=snapshots,
            )
        except BaseException:
            for lock in locks:
                lock.close()
            raise
        return cls(directories, files, metas=metas, log=log, snapshots=snapshots, locks=locks)

    @property
    def cluster_id(self) -> str | None:
        """The cluster id, None until the quorum has one."""
        return self._own.cluster_id

    @property
    def directory_id(self) -> bytes:
        """The id of the directory of the metadata log."""
        return self._own.directory_id

    def stored_state(self) -> StoredState:
        """Return the state that the core starts from.

        Raises: StorageError if quorum-state is missing next to a log that has or had records. It
        is written before the first record, so it was lost, and with it perhaps a vote (S3). Kafka
        takes the epoch from the log and continues.
        """
        stored = self._state_file.read()
        if stored is None and self.log.end_offset > 0:
            raise StorageError(
                f"the file is missing, although the log ends at offset {self.log.end_offset}: this "
                "replica may have voted, and could vote again in the same epoch; restore the file, "
                "or let the replica rejoin the quorum with a new directory",
                file=self._state_file.path,
            )
        stored = stored or QuorumState()
        voted = None
        if stored.voted_id >= 0:
            voted = ReplicaKey(stored.voted_id, stored.voted_directory_id)
        log = self.log
        image = LogImage(
            start_offset=log.start_offset,
            end_offset=log.end_offset,
            newest_timestamp=log.newest_timestamp,
            batches=log.batches(),
            control=log.control(),
            snapshots=[
                StoredSnapshot(one.id, one.size, one.control) for one in self.snapshots.stored()
            ],
        )
        return StoredState(ElectionState(stored.epoch, stored.leader_id, voted), image)

    def persist(self, effect: PersistQuorumState) -> None:
        """Write the quorum state, durably (D1)."""
        state = effect.state
        voted = state.voted
        stored = QuorumState(
            epoch=state.epoch,
            leader_id=state.leader_id,
            voted_id=voted.id if voted else -1,
            voted_directory_id=voted.directory_id if voted else ZERO_UUID,
        )
        self._state_file.write(stored, effect.kraft_version, effect.voters)

    def keep_cluster_id(self, cluster_id: str) -> None:
        """Store the id that the quorum has chosen, in every directory."""
        for directory, meta in self._metas.items():
            kept = replace(meta, cluster_id=cluster_id)
            write_meta_properties(self._files, join(directory, META_PROPERTIES_FILE), kept)
            self._metas[directory] = kept
        self._own = replace(self._own, cluster_id=cluster_id)

    def close(self) -> None:
        """Close the log and release the locks."""
        try:
            self.log.close()
        finally:
            for lock in self._locks:
                lock.close()


def _read_meta(directories: Directories, files: Files, directory: str) -> MetaProperties:
    """Read the meta.properties of a directory; a self-formatted node writes it first."""
    path = join(directory, META_PROPERTIES_FILE)
    node_id, source = directories.node_id, directories.source
    meta = read_meta_properties(files, path)
    if meta is None:
        if log := unowned_log(files, directory):
            raise StorageError(log.removeprefix(f"{directory} "), file=directory)
        if not directories.is_self_formatted:
            raise UsageError(
                f"{directory} is not formatted: run kraftwire storage format "
                f"--config {source} --cluster-id ID"
            )
        meta = MetaProperties(None, node_id, directories.new_id())
        write_meta_properties(files, path, meta)
    if meta.node_id != node_id:
        raise UsageError(
            f"{path} belongs to node {meta.node_id}, and {source} is that of node "
            f"{node_id}: correct node.id or log.dirs, or format another directory with "
            f"kraftwire storage format --config {source} --cluster-id ID"
        )
    if meta.directory_id == ZERO_UUID:
        meta = replace(meta, directory_id=directories.new_id())
        write_meta_properties(files, path, meta)
    return meta


def _check_one_cluster(metas: Mapping[str, MetaProperties]) -> None:
    """All directories of a node have to be formatted for one cluster.

    One without an id was formatted by the node itself, which may have ended before it reached all
    of them.
    """
    named = {meta.cluster_id: name for name, meta in metas.items() if meta.cluster_id is not None}
    if len(named) > 1:
        texts = [f"{name} belongs to cluster {cluster_id}" for cluster_id, name in named.items()]
        raise UsageError(f"{', '.join(texts)}: a node's directories must belong to one cluster")
