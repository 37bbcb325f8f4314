"""The surviving controllers of a quorum, read from their directories without a change on disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from kraftwire.errors import StorageError, UsageError
from kraftwire.log.files import Files, InUseError
from kraftwire.log.flush_mark import FlushMark
from kraftwire.log.meta_properties import read_meta_properties
from kraftwire.log.names import (
    LOCK_FILE,
    META_PROPERTIES_FILE,
    QUORUM_STATE_FILE,
    join,
    partition_directory,
)
from kraftwire.log.quorum_state import QuorumStateFile
from kraftwire.protocol.endpoint import Endpoint
from kraftwire.raft.effects import ElectionState
from kraftwire.raft.histories import VoterHistory
from kraftwire.raft.ports import LogImage
from kraftwire.raft.voters import ReplicaKey, Voter, VoterSet
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.replica.start_check import opened_on_trial
from kraftwire.replica.storage import Directories
from kraftwire.wire.fast import ZERO_UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerNode:
    """A controller as its properties file describes it.

    `endpoints` are the advertised ones of its controller listeners, that of `listener` first;
    `static_voters` are those of controller.quorum.voters.
    """

    directories: Directories
    endpoints: tuple[Endpoint, ...]
    static_voters: VoterSet

    @property
    def partition(self) -> str:
        """The directory of the metadata log."""
        directories = self.directories
        return partition_directory(directories.metadata, directories.topic.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Survivor:
    """A surviving controller, and what its directories hold.

    `flushed` is the offset of a valid flush mark, None without one: Kafka keeps none. `has_log`
    says whether the directory of the metadata log exists.
    """

    node: ControllerNode
    key: ReplicaKey
    cluster_id: str | None
    election: ElectionState
    log: LogImage
    voters: VoterSet
    previous: VoterSet
    kraft_version: int
    flushed: int | None
    has_log: bool
    repairs: tuple[str, ...]

    @property
    def snapshot(self) -> OffsetAndEpoch | None:
        """End offset and epoch of the newest snapshot, the bootstrap checkpoint included."""
        return self.log.snapshots[-1].id if self.log.snapshots else None

    @property
    def end(self) -> OffsetAndEpoch:
        """The end of the log, and the epoch of its last record (R-START-5)."""
        if self.log.batches:
            return OffsetAndEpoch(self.log.end_offset, self.log.batches[-1].epoch)
        return OffsetAndEpoch(self.log.end_offset, self.snapshot.epoch if self.snapshot else 0)

    @property
    def epoch(self) -> int:
        """The highest epoch that the directory shows."""
        return max(self.election.epoch, self.end.epoch)


@contextmanager
def locked(nodes: Sequence[ControllerNode], files: Files, *, make: bool) -> Iterator[None]:
    """Hold the locks of all directories of all nodes.

    With `make` a lock file that is missing is made; without it such a directory is not locked.
    Raises: StorageError if another process has one, or two nodes name the same directory;
    UsageError if one does not exist.
    """
    with ExitStack() as stack:
        for source, directory in [
            (node.directories.source, name) for node in nodes for name in node.directories.all
        ]:
            if not files.exists(directory):
                raise UsageError(f"{directory}, which {source} names, is missing")
            path = join(directory, LOCK_FILE)
            if not make and not files.exists(path):
                continue
            try:
                stack.callback(files.lock(path).close)
            except InUseError:
                raise
            except StorageError:
                if make:
                    raise
        yield


def read_survivor(node: ControllerNode, files: Files) -> Survivor:
    """Read a node's directories as its start does. Order: they are locked, see `locked`.

    Raises: UsageError if they are not this node's or not formatted; StorageError if they are
    damaged.
    """
    directories, repairs = node.directories, list[str]()
    has_log = files.exists(node.partition)
    with opened_on_trial(directories, files, repairs) as storage:
        stored = storage.stored_state()
        key = ReplicaKey(directories.node_id, storage.directory_id)
        cluster_id = storage.cluster_id
    history = _history(node, stored.log)
    if history.kraft_version:
        _check_directory_id(node, files)
    return Survivor(
        node=node,
        key=key,
        cluster_id=cluster_id,
        election=stored.election,
        log=stored.log,
        voters=history.current if history.kraft_version else _last_voters(node, files),
        previous=history.previous,
        kraft_version=history.kraft_version,
        flushed=_flushed(node, files),
        has_log=has_log,
        repairs=tuple(repairs),
    )


def _history(node: ControllerNode, log: LogImage) -> VoterHistory:
    newest = log.snapshots[-1] if log.snapshots else None
    snapshot = (newest.id.offset, newest.control) if newest else None
    return VoterHistory(node.static_voters, log.control, snapshot)


def _last_voters(node: ControllerNode, files: Files) -> VoterSet:
    """Return the static voters with which the node last ran; the file may name others now."""
    ids = QuorumStateFile(files, join(node.partition, QUORUM_STATE_FILE)).voter_ids()
    static = node.static_voters
    return VoterSet.of(*(static.get(one) or Voter(ReplicaKey(one)) for one in set(ids))) or static


def _check_directory_id(node: ControllerNode, files: Files) -> None:
    """The voters' record names it, so a node must not invent another one at its start."""
    path = join(node.directories.metadata, META_PROPERTIES_FILE)
    meta = read_meta_properties(files, path)
    if meta is None or meta.directory_id == ZERO_UUID:
        raise UsageError(f"{path}: expected a directory.id, found none")


def _flushed(node: ControllerNode, files: Files) -> int | None:
    """Return the offset of the flush mark unless Kafka has used the directory since."""
    if not files.exists(node.partition):
        return None
    mark = FlushMark(files, node.partition).mark
    state = QuorumStateFile(files, join(node.partition, QUORUM_STATE_FILE))
    return mark.end.offset if mark is not None and not state.is_foreign else None
