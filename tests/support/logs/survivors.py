"""Directories of controllers that survived, with logs of chosen epochs, on any file system."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kraftwire.log.files import Files
from kraftwire.log.format import FormatNode, FormatRequest, VotersFlag, format_directories
from kraftwire.log.names import QUORUM_STATE_FILE, join
from kraftwire.log.quorum_state import QuorumState, QuorumStateFile
from kraftwire.log.settings import LogSettings
from kraftwire.log.snapshots.store import SnapshotStore
from kraftwire.log.voters import InitialVoter
from kraftwire.messages.leader_change_message import LeaderChangeMessage
from kraftwire.protocol.endpoint import Endpoint
from kraftwire.raft.histories import VoterHistory, voters_record
from kraftwire.raft.voters import ReplicaKey, Voter, VoterSet
from kraftwire.records.control import ControlType, control_batch
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.replica.lost_majority.survivors import ControllerNode, Survivor, read_survivor
from kraftwire.replica.storage import Directories, Storage
from tests.support.logs.batches import TIME, append

CLUSTER = "9CIbsF9FQuGtwD837BRpPA"


def directory_id(node_id: int) -> bytes:
    """The directory id of a node."""
    return bytes([node_id]) * 16


def endpoint(node_id: int) -> Endpoint:
    """The controller endpoint of a node."""
    return Endpoint("CONTROLLER", f"host{node_id}", 9093)


def static_voters(*ids: int) -> VoterSet:
    """What controller.quorum.voters says."""
    return VoterSet.of(*(Voter(ReplicaKey(one), (endpoint(one),)) for one in ids))


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A controller to make.

    `epochs` are (epoch, records): a leader's first record, then so many in one batch, none for 0.
    `voters` are those of the quorum before; with `is_static` they are in the properties file.
    """

    id: int
    epochs: Sequence[tuple[int, int]] = ((1, 3),)
    state: QuorumState | None = None
    voters: Sequence[int] = (1, 2, 3)
    is_static: bool = False
    cluster: str = CLUSTER
    root: str = ""


def node_of(made: Made, voters: Sequence[int] = ()) -> ControllerNode:
    """The controller as its properties file describes it; `voters` if the file is changed."""
    return ControllerNode(
        directories=Directories(
            node_id=made.id,
            metadata=f"{made.root}/n{made.id}",
            settings=LogSettings(index_bytes=1024),
            source=f"n{made.id}.properties",
        ),
        endpoints=(endpoint(made.id),),
        static_voters=static_voters(*(voters or made.voters)) if made.is_static else VoterSet(),
    )


def make(files: Files, made: Made) -> ControllerNode:
    """Write the directory of a controller that was stopped."""
    node = node_of(made)
    folder = node.directories.metadata
    all_voters = tuple(
        InitialVoter(one, directory_id(one), endpoint(one).host, 9093) for one in made.voters
    )
    list(format_directories(
        files,
        FormatNode(
            node_id=made.id, directories=(folder,), metadata_directory=folder, is_controller=True,
            has_static_voters=made.is_static, endpoint=(endpoint(made.id).host, 9093),
        ),
        FormatRequest(
            cluster_id=made.cluster,
            voters_flag=VotersFlag.UNSAID if made.is_static else VotersFlag.INITIAL_CONTROLLERS,
            voters=() if made.is_static else all_voters,
            new_id=lambda: directory_id(made.id),
        ),
    ))  # fmt: skip
    storage = Storage.open(node.directories, files)
    last = made.epochs[-1][0] if made.epochs else 0
    path = join(node.partition, QUORUM_STATE_FILE)
    version = 0 if made.is_static else 1
    QuorumStateFile(files, path).write(made.state or QuorumState(last), version, made.voters)
    for epoch, records in made.epochs:
        _append_epoch(storage, epoch, records)
    storage.log.flush()
    storage.close()
    return node


def _append_epoch(storage: Storage, epoch: int, records: int) -> None:
    log, message = storage.log, LeaderChangeMessage(leader_id=1)
    end = log.end_offset
    log.append(
        control_batch(end, epoch, TIME, [(ControlType.LEADER_CHANGE, message)]), end, end + 1
    )
    if records:
        append(log, records, epoch=epoch)


def append_voters(files: Files, node: ControllerNode, epoch: int, *ids: int) -> None:
    """Append a record of these voters to a stopped controller's log."""
    voters = [Voter(ReplicaKey(one, directory_id(one)), (endpoint(one),), 0, 1) for one in ids]
    record = (ControlType.KRAFT_VOTERS, voters_record(VoterSet.of(*voters)))
    storage = Storage.open(node.directories, files)
    end = storage.log.end_offset
    storage.log.append(control_batch(end, epoch, TIME, [record]), end, end + 1)
    storage.log.flush()
    storage.close()


def snapshot(files: Files, node: ControllerNode, end_offset: int) -> None:
    """Write a snapshot of epoch 1 into a stopped controller's directory."""
    store = SnapshotStore(files, node.partition)
    control = VoterHistory(VoterSet(), (), (0, store.stored()[0].control)).control_at(0)
    writer = store.writer(OffsetAndEpoch(end_offset, 1), control, TIME, TIME)
    writer.append([b"the state up to %d" % end_offset])
    writer.freeze()


def survivors_of(files: Files, *made: Made) -> list[Survivor]:
    """Make the directories of controllers, and read them."""
    return [read_survivor(make(files, one), files) for one in made]
